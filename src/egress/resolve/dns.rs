//! The resolver over real name servers, asked directly: no hosts file, no search list.

mod answer;
mod settings;

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::future::{BoxFuture, Either, FutureExt as _, Shared, WeakShared, select};
use hickory_proto::rr::{Name as DnsName, RecordType};
use hickory_resolver::{
    TokioResolver,
    config::{
        NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts, ServerOrderingStrategy,
    },
    net::{DnsError, NetError, runtime::TokioRuntimeProvider},
};
use tokio::time::{Instant, timeout_at};

use self::answer::{Found, combine, follow};
pub use self::settings::{DnsSettings, DnsSetupError, Patience, Zone};
use super::{Answer, Resolve, ResolveError};
use crate::address::Name;

/// The most names remembered.
const CACHE: usize = 1024;

/// The real resolver; one for each worker thread, made inside its runtime.
pub struct Dns(Arc<Inner>);

struct Inner {
    everything: TokioResolver,
    zones: Vec<(String, TokioResolver)>,
    patience: Patience,
    cache: Mutex<HashMap<Name, Remembered>>,
    /// Lookups under way: whoever asks for the same name meanwhile waits for the same answer.
    asking: Mutex<HashMap<Name, UnderWay>>,
}

/// A lookup, as long as somebody waits for it.
struct UnderWay(WeakShared<BoxFuture<'static, Result<Answer, ResolveError>>>);

struct Remembered {
    until: Instant,
    answer: Result<Answer, ResolveError>,
}

impl Dns {
    /// A resolver with an empty cache.
    ///
    /// # Errors
    ///
    /// [`DnsSetupError`] where a zone, or everything else, has no name server.
    pub fn new(settings: &DnsSettings) -> Result<Self, DnsSetupError> {
        let mut zones = settings
            .zones
            .iter()
            .map(|zone| {
                let suffix = zone.suffix.trim_matches('.').to_ascii_lowercase();
                let resolver = build(&suffix, &zone.servers, settings.patience)?;
                Ok((suffix, resolver))
            })
            .collect::<Result<Vec<_>, _>>()?;
        zones.sort_by_key(|(suffix, _)| std::cmp::Reverse(suffix.len()));
        Ok(Self(Arc::new(Inner {
            everything: build(".", &settings.servers, settings.patience)?,
            zones,
            patience: settings.patience,
            cache: Mutex::default(),
            asking: Mutex::default(),
        })))
    }
}

impl Resolve for Dns {
    fn resolve<'a>(&'a self, name: &'a Name) -> BoxFuture<'a, Result<Answer, ResolveError>> {
        match self.0.remembered(name) {
            Some(answer) => Box::pin(std::future::ready(answer)),
            None => Box::pin(self.0.clone().join(name)),
        }
    }
}

impl Inner {
    /// The lookup of `name` that is under way, else a new one. One that nobody waits for any more ends with its last
    /// waiter.
    fn join(
        self: Arc<Self>,
        name: &Name,
    ) -> Shared<BoxFuture<'static, Result<Answer, ResolveError>>> {
        let mut asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lookup) = asking.get(name).and_then(|lookup| lookup.0.upgrade()) {
            return lookup;
        }
        let (this, asked) = (self.clone(), name.clone());
        let lookup = async move { this.ask(&asked).await }.boxed().shared();
        asking.retain(|_, lookup| lookup.0.upgrade().is_some());
        asking.extend(
            lookup
                .downgrade()
                .map(|weak| (name.clone(), UnderWay(weak))),
        );
        lookup
    }

    fn servers_for(&self, name: &Name) -> &TokioResolver {
        self.zones
            .iter()
            .find(|(suffix, _)| name.as_str() == suffix || name.is_below(suffix))
            .map_or(&self.everything, |(_, resolver)| resolver)
    }

    fn remembered(&self, name: &Name) -> Option<Result<Answer, ResolveError>> {
        let cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let found = cache.get(name)?;
        (Instant::now() < found.until).then(|| found.answer.clone())
    }

    fn remember(&self, name: &Name, answer: &Result<Answer, ResolveError>, ttl: Duration) {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if cache.len() >= CACHE && !cache.contains_key(name) {
            cache.retain(|_, found| now < found.until);
            if cache.len() >= CACHE
                && let Some(victim) = cache.keys().next().cloned()
            {
                cache.remove(&victim);
            }
        }
        let until = now + ttl;
        cache.insert(
            name.clone(),
            Remembered {
                until,
                answer: answer.clone(),
            },
        );
    }

    async fn ask(&self, name: &Name) -> Result<Answer, ResolveError> {
        let Ok(mut question) = DnsName::from_ascii(name.as_str()) else {
            return Err(ResolveError::NoName(name.clone()));
        };
        question.set_fqdn(true);
        let resolver = self.servers_for(name);
        let (v4, v6) = both(
            family(resolver, &question, RecordType::A),
            family(resolver, &question, RecordType::AAAA),
            self.patience,
        )
        .await;
        let (answer, ttl) = combine(name, v4, v6);
        if let Some(ttl) = ttl {
            self.remember(name, &answer, ttl);
        }
        answer
    }
}

fn build(
    zone: &str,
    servers: &[SocketAddr],
    patience: Patience,
) -> Result<TokioResolver, DnsSetupError> {
    if servers.is_empty() {
        return Err(DnsSetupError::NoServers(zone.to_owned()));
    }
    let servers = servers.iter().map(|server| {
        let mut config = NameServerConfig::udp_and_tcp(server.ip());
        for connection in &mut config.connections {
            connection.port = server.port();
        }
        config
    });
    let config = ResolverConfig::from_name_servers(servers.collect());
    let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
    let options: &mut ResolverOpts = builder.options_mut();
    options.use_hosts_file = ResolveHosts::Never;
    options.cache_size = 0;
    options.timeout = patience.whole / 2;
    options.attempts = 1;
    options.try_tcp_on_error = true;
    options.preserve_intermediates = true;
    options.server_ordering_strategy = ServerOrderingStrategy::UserProvidedOrder;
    builder.build().map_err(|source| DnsSetupError::Build {
        zone: zone.to_owned(),
        source,
    })
}

/// Waits for both, but for the second only a little once the first has addresses.
async fn both(
    v4: impl Future<Output = Found>,
    v6: impl Future<Output = Found>,
    patience: Patience,
) -> (Found, Found) {
    let end = Instant::now() + patience.whole;
    let first = timeout_at(end, select(Box::pin(v4), Box::pin(v6))).await;
    let until = |first: &Found| match first {
        Found::Addresses(..) => end.min(Instant::now() + patience.behind),
        _ => end,
    };
    match first {
        Err(_) => (Found::Timeout, Found::Timeout),
        Ok(Either::Left((v4, v6))) => {
            let v6 = timeout_at(until(&v4), v6).await.unwrap_or(Found::Timeout);
            (v4, v6)
        }
        Ok(Either::Right((v6, v4))) => {
            let v4 = timeout_at(until(&v6), v4).await.unwrap_or(Found::Timeout);
            (v4, v6)
        }
    }
}

async fn family(resolver: &TokioResolver, question: &DnsName, records: RecordType) -> Found {
    match resolver.lookup(question.clone(), records).await {
        Ok(lookup) => follow(question, lookup.answers()),
        Err(error) if error.is_nx_domain() => Found::NoName,
        Err(error) if error.is_no_records_found() => Found::NoAddress,
        Err(NetError::Timeout) => Found::Timeout,
        Err(error) => {
            if !matches!(error, NetError::Dns(DnsError::ResponseCode(_))) {
                tracing::debug!(target: "tollgate::egress", %error, %question, "no name server could be asked");
            }
            Found::Failed
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::{Host, Target};

    fn name(text: &str) -> Name {
        let target = Target::from_operator(&format!("https://{text}/")).unwrap();
        let Host::Name(name) = target.host() else {
            panic!("a name")
        };
        name.clone()
    }

    #[tokio::test(start_paused = true)]
    async fn memory_ends_with_its_time_and_is_bounded() {
        let dns = Dns::new(&DnsSettings {
            servers: vec![([127, 0, 0, 1], 9).into()],
            ..DnsSettings::default()
        })
        .unwrap();
        let gone = Err(ResolveError::NoName(name("a.test")));
        dns.0
            .remember(&name("a.test"), &gone, Duration::from_secs(5));
        tokio::time::advance(Duration::from_secs(4)).await;
        assert_eq!(dns.0.remembered(&name("a.test")), Some(gone.clone()));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(dns.0.remembered(&name("a.test")), None);
        for number in 0..=CACHE {
            dns.0.remember(
                &name(&format!("a{number}.test")),
                &gone,
                Duration::from_secs(60),
            );
        }
        assert_eq!(dns.0.cache.lock().unwrap().len(), CACHE);
    }
}
