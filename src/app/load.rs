//! From a folder and an environment to settings and policy: what `serve`, `check` and every reload do alike.

mod folder;
pub(super) mod guard;
mod material;
mod pins;

use std::{
    cell::RefCell,
    collections::BTreeMap,
    env,
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
};

use self::folder::read_one;
pub use self::{folder::Contents, material::TlsMaterial};
use crate::{
    address::Host,
    config::{self, Endpoint, Environment, Method, Offer, Settings},
    policy::{self, CallLimits, Inputs, Local, ServerLimits, Snapshot},
    secret::{Secret, Source},
    subject::Admins,
    table::Fault,
};

/// Everything that files and environment say, checked.
#[derive(Debug)]
pub struct Loaded {
    /// `tollgate.toml`.
    pub settings: Arc<Settings>,
    /// All other files.
    pub policy: Arc<Snapshot>,
    /// Certificate and key of the agents listener.
    pub tls: Option<Arc<TlsMaterial>>,
    /// Where secrets were read from: those of servers, and the key of the listeners.
    pub secrets: Vec<Source>,
    /// SHA-256 over all that was read.
    pub digest: [u8; 32],
}

/// Where to load from; the same for the whole life of a process.
#[derive(Clone, Debug)]
pub struct Loader {
    folder: PathBuf,
    environment: Environment,
}

/// What one attempt gave.
#[derive(Debug)]
pub struct Attempt {
    /// The result, or every fault in the order of files and lines.
    pub result: Result<Loaded, Vec<Fault>>,
    /// SHA-256 over all that was read, faults included: another attempt is worth it only when this changes.
    pub digest: [u8; 32],
    /// Settings that changed and wait for a restart.
    pub kept: Vec<&'static str>,
    /// The files outside the folder's own that were read, in order.
    pub references: Vec<String>,
}

impl Loader {
    /// Loads from `folder`.
    pub fn new(folder: impl Into<PathBuf>, environment: Environment) -> Self {
        Self {
            folder: folder.into(),
            environment,
        }
    }

    /// The policy folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The environment.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Loads everything; the policy has generation 1.
    ///
    /// # Errors
    ///
    /// Every fault, in the order of files and lines.
    pub fn load(&self) -> Result<Loaded, Vec<Fault>> {
        self.attempt(None).result
    }

    /// What [`Attempt::digest`] would be now, if the files named are still those that `references` lists.
    pub fn digest(&self, references: &[String]) -> [u8; 32] {
        let contents = Contents::read(&self.folder);
        let read = references.iter();
        let read = read
            .map(|path| (path.clone(), self.reference(path)))
            .collect();
        contents.digest(&read)
    }

    /// Loads for a process that runs with `running`, whose restart-bound settings hold.
    pub fn attempt(&self, running: Option<&Loaded>) -> Attempt {
        let contents = Contents::read(&self.folder);
        let references = RefCell::new(BTreeMap::new());
        let read = |path: &str| {
            let mut references = references.borrow_mut();
            let result = references
                .entry(path.to_owned())
                .or_insert_with(|| self.reference(path));
            result.clone()
        };
        let mut faults = contents.faults.clone();
        let mut kept = Vec::new();
        let (settings, written) = match self.settings(&contents, running, &mut kept) {
            Ok((settings, written)) => (Some(settings), Some(written)),
            Err(more) => {
                faults.extend(more);
                (None, None)
            }
        };
        // A running process keeps the key that it began with.
        if let (Some(settings), None) = (&settings, running) {
            faults.extend(material::vault_key(settings, &self.folder));
        }
        let key = settings
            .as_ref()
            .and_then(|settings| settings.listen.tls.as_ref());
        let tls = key.and_then(|tls| {
            material::resolve(tls, &self.folder, &read)
                .map_err(|fault| faults.push(fault))
                .ok()
        });
        let secrets = RefCell::new(Vec::from_iter(key.map(|tls| tls.key.clone())));
        let secret = |source: &Source| {
            secrets.borrow_mut().push(source.clone());
            material::secret(source, &self.folder, &read).map(Secret::new)
        };
        let compiled = self.compile(
            &contents,
            settings.as_ref(),
            written.as_ref(),
            &read,
            &secret,
        );
        let policy = compiled.map_err(|more| faults.extend(more));
        if let Ok(policy) = &policy {
            faults.extend(pins::faults(policy));
        }
        let references = references.into_inner();
        let digest = contents.digest(&references);
        faults.sort();
        let result = match (settings, policy) {
            (Some(settings), Ok(policy)) if faults.is_empty() => Ok(Loaded {
                settings: Arc::new(settings),
                policy: Arc::new(policy),
                tls: tls.map(Arc::new),
                secrets: secrets.into_inner(),
                digest,
            }),
            _ => Err(faults),
        };
        Attempt {
            result,
            digest,
            kept,
            references: references.into_keys().collect(),
        }
    }

    /// The settings that hold, and how the files would know callers.
    fn settings(
        &self,
        contents: &Contents,
        running: Option<&Loaded>,
        kept: &mut Vec<&'static str>,
    ) -> Result<(Settings, Method), Vec<Fault>> {
        let text = contents.files.iter().find(|file| file.path == config::FILE);
        let settings = config::read(text.map(|file| file.text.as_str()), &self.environment)?;
        let written = settings.identity.method.clone();
        let Some(running) = running else {
            return Ok((settings, written));
        };
        let (settings, changed) = settings.taken_up_by(&running.settings);
        *kept = changed;
        Ok((settings, written))
    }

    /// Compiles the policy. Where the settings themselves are at fault the defaults stand in, so that the faults of all
    /// other files show too. `written` is how the files would know callers, which a running process takes up at its next
    /// start: the files are judged by it, while whoever is known today keeps what is theirs.
    fn compile(
        &self,
        contents: &Contents,
        settings: Option<&Settings>,
        written: Option<&Method>,
        read: &dyn Fn(&str) -> Result<Vec<u8>, String>,
        secret: &dyn Fn(&Source) -> Result<Secret, String>,
    ) -> Result<Snapshot, Vec<Fault>> {
        let limits = settings.map_or_else(config::Limits::default, |settings| settings.limits);
        let mut admins =
            settings.map_or_else(Admins::default, |settings| settings.identity.admins.clone());
        admins.users.extend(
            settings
                .and_then(|settings| local(&settings.identity.method))
                .map(|local| local.user),
        );
        let text = |path: &str| {
            let bytes = read(path)?;
            String::from_utf8(bytes).map_err(|_| "not UTF-8 text; save it as UTF-8".to_owned())
        };
        let kubernetes = self.environment.kubernetes_service_host.as_deref();
        let mut policy = policy::compile(&Inputs {
            files: &contents.files,
            read: &text,
            secret,
            web: settings.is_none_or(|settings| settings.listen.web.is_some()),
            client_metadata: settings
                .is_none_or(|settings| settings.connect.client_metadata_url.is_some()),
            private_allowlist: self.environment.private_allowlist.as_deref(),
            access_mode: self.environment.access_mode.as_deref(),
            kubernetes: kubernetes.and_then(|host| Host::from_operator(host).ok()),
            admins,
            local: written.and_then(local),
            limits: ServerLimits {
                call: limits.call,
                connect: limits.connect,
                first_byte: limits.first_byte,
                idle: limits.idle,
                response_bytes: limits.response_bytes,
                ..ServerLimits::default()
            },
            calls: CallLimits {
                running: limits.running,
                waiting: limits.waiting,
                turn_bytes: limits.turn_bytes,
            },
            connected_only: settings.is_some_and(|settings| settings.offer == Offer::Connected),
            parent: settings
                .and_then(|settings| settings.parent.as_ref())
                .map(|parent| (&*parent.url, parent.resolves)),
            own_addresses: own_addresses(),
            own_listeners: settings.map(listeners).unwrap_or_default(),
        })?;
        policy.generation = 1;
        Ok(policy)
    }

    fn reference(&self, path: &str) -> Result<Vec<u8>, String> {
        read_one(&self.folder, &self.folder.join(path))
    }
}

/// The policy folder: the flag's, else `$TOLLGATE_POLICY`, else `/etc/tollgate`, else `$XDG_CONFIG_HOME/tollgate`
/// (`~/.config/tollgate` where that is unset).
///
/// # Errors
///
/// A fault that says where a folder was looked for.
pub fn find_folder(flag: Option<&Path>) -> Result<PathBuf, Fault> {
    let set = |name| {
        env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    if let Some(folder) = flag.map(Path::to_owned).or_else(|| set("TOLLGATE_POLICY")) {
        return Ok(folder);
    }
    let home = set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")));
    let places: Vec<PathBuf> = std::iter::once(PathBuf::from("/etc/tollgate"))
        .chain(home.map(|home| home.join("tollgate")))
        .collect();
    places
        .iter()
        .find(|place| place.is_dir())
        .cloned()
        .ok_or_else(|| {
            let looked: Vec<String> = places
                .iter()
                .map(|place| format!("`{}`", place.display()))
                .collect();
            Fault::whole(
                "policy folder",
                format!(
                    "none found in {}; name one with --policy DIR or TOLLGATE_POLICY",
                    looked.join(" or ")
                ),
            )
        })
}

/// The process environment, as far as it is read at all.
pub fn environment() -> Environment {
    let get = |name| env::var(name).ok();
    const PROXIES: &[&str] = &[
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
    ];
    Environment {
        state_directory: get("STATE_DIRECTORY"),
        xdg_state_home: get("XDG_STATE_HOME"),
        home: get("HOME"),
        kubernetes_service_host: get("KUBERNETES_SERVICE_HOST"),
        private_allowlist: get("TOOLS_PRIVATE_NETWORK_ALLOWLIST"),
        access_mode: get("TOOLS_ACCESS_MODE"),
        proxies: PROXIES
            .iter()
            .filter(|name| get(name).is_some())
            .map(|name| (*name).to_owned())
            .collect(),
    }
}

fn local(method: &Method) -> Option<Local> {
    match method {
        Method::Local { user, tenant } => Some(Local {
            tenant: tenant.clone(),
            user: user.clone(),
        }),
        Method::Keys => None,
    }
}

fn listeners(settings: &Settings) -> Vec<SocketAddr> {
    let agents = match settings.listen.agents {
        Some(Endpoint::Tcp(address)) => Some(address),
        _ => None,
    };
    let listen = &settings.listen;
    [agents, listen.egress, listen.ops, listen.web]
        .into_iter()
        .flatten()
        .collect()
}

/// Addresses of this host's interfaces, in order and once each, so that two readings compare.
fn own_addresses() -> Vec<IpAddr> {
    let interfaces = nix::ifaddrs::getifaddrs().into_iter().flatten();
    let mut addresses: Vec<IpAddr> = interfaces
        .filter_map(|interface| {
            let address = interface.address?;
            let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
            v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
        })
        .collect();
    addresses.sort();
    addresses.dedup();
    addresses
}

#[cfg(test)]
mod tests;
