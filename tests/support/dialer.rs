//! A dialer that remembers what it was asked for and leads every address to a server on loopback.

use std::{
    collections::HashMap,
    io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex},
};

use futures_util::future::BoxFuture;
use tokio::net::TcpStream;
use tollgate::{
    address::{JudgedAddr, Name},
    egress::{Answer, Dial, Io, Resolve, ResolveError},
};

/// What an address does when it is dialled.
#[derive(Clone, Copy)]
pub(crate) enum Behaviour {
    /// It leads to this server.
    Leads(SocketAddr),
    /// It refuses.
    Refuses,
    /// No socket can be made for it: the process has too many open files.
    Lacks,
    /// It never answers.
    Hangs,
}

/// Records every dial.
pub(crate) struct RecordingDialer {
    otherwise: Behaviour,
    special: HashMap<IpAddr, Behaviour>,
    dialled: Mutex<Vec<SocketAddr>>,
}

impl RecordingDialer {
    /// Leads every address to `server`.
    pub(crate) fn to(server: SocketAddr) -> Arc<Self> {
        Self::with(Behaviour::Leads(server), &[])
    }

    pub(crate) fn with(otherwise: Behaviour, special: &[(&str, Behaviour)]) -> Arc<Self> {
        let special = special
            .iter()
            .map(|(address, behaviour)| (address.parse().unwrap(), *behaviour));
        Arc::new(Self {
            otherwise,
            special: special.collect(),
            dialled: Mutex::default(),
        })
    }

    /// Every address that was dialled, in order.
    pub(crate) fn dialled(&self) -> Vec<String> {
        self.dialled
            .lock()
            .unwrap()
            .iter()
            .map(ToString::to_string)
            .collect()
    }
}

impl Dial for RecordingDialer {
    #[expect(
        clippy::disallowed_methods,
        reason = "tests connect to their own servers on loopback"
    )]
    fn dial(&self, address: JudgedAddr) -> BoxFuture<'_, io::Result<Box<dyn Io>>> {
        let address = address.socket();
        self.dialled.lock().unwrap().push(address);
        let behaviour = self
            .special
            .get(&address.ip())
            .copied()
            .unwrap_or(self.otherwise);
        Box::pin(async move {
            match behaviour {
                Behaviour::Leads(server) => {
                    let stream = TcpStream::connect(server).await?;
                    Ok(Box::new(stream) as Box<dyn Io>)
                }
                Behaviour::Refuses => Err(io::ErrorKind::ConnectionRefused.into()),
                Behaviour::Lacks => Err(io::Error::from_raw_os_error(24)),
                Behaviour::Hangs => std::future::pending().await,
            }
        })
    }
}

/// Answers from a table; each call takes the next answer of a name, the last one for ever.
#[derive(Default)]
pub(crate) struct TableResolver(Mutex<HashMap<String, Vec<Result<Answer, ResolveError>>>>);

impl TableResolver {
    /// Names and their addresses.
    pub(crate) fn of(names: &[(&str, &[&str])]) -> Arc<Self> {
        let resolver = Self::default();
        for (name, addresses) in names {
            resolver.then(name, addresses);
        }
        Arc::new(resolver)
    }

    /// Adds an answer after those that `name` has.
    pub(crate) fn then(&self, name: &str, addresses: &[&str]) {
        let addresses: Vec<IpAddr> = addresses.iter().map(|text| text.parse().unwrap()).collect();
        let answer = Answer {
            addresses: addresses.into(),
            left_out: None,
        };
        self.0
            .lock()
            .unwrap()
            .entry(name.to_owned())
            .or_default()
            .push(Ok(answer));
    }
}

impl Resolve for TableResolver {
    fn resolve<'a>(&'a self, name: &'a Name) -> BoxFuture<'a, Result<Answer, ResolveError>> {
        let mut names = self.0.lock().unwrap();
        let answer = match names.get_mut(name.as_str()) {
            Some(answers) if answers.len() > 1 => answers.remove(0),
            Some(answers) => answers[0].clone(),
            None => Err(ResolveError::NoName(name.clone())),
        };
        Box::pin(std::future::ready(answer))
    }
}
