//! Permits as policy gives them, without files.

use std::{collections::HashMap, net::IpAddr, sync::Arc, time::Duration};

use tollgate::{
    address::{Grant, Host, Leg, Port, Rules, Target},
    policy::{
        Auth, Endpoint, Era, Mark, Permit, Pin, ReadOnly, Relay, Server, ServerLimits, Snapshot,
        Trust, decide,
    },
    subject::{Admins, Scopes, Subject},
};

/// What a test may vary.
pub(crate) struct Maker {
    pub(crate) url: String,
    pub(crate) user: &'static str,
    pub(crate) tenant: &'static str,
    pub(crate) generation: u64,
    pub(crate) auth: Auth,
    pub(crate) trust: Trust,
    pub(crate) limits: ServerLimits,
    pub(crate) rules: Rules,
    /// Servers beside `demo`.
    pub(crate) others: Vec<Arc<Server>>,
}

impl Maker {
    /// A permit for the server `demo` at `url`, with wide limits and no private grant.
    pub(crate) fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            user: "ann",
            tenant: "default",
            generation: 1,
            auth: Auth::None,
            trust: Trust::default(),
            limits: ServerLimits {
                call: Duration::from_secs(60),
                connect: Duration::from_secs(20),
                first_byte: Duration::from_secs(20),
                idle: Duration::from_secs(20),
                response_bytes: 1 << 20,
                ..ServerLimits::default()
            },
            rules: Rules::default(),
            others: Vec::new(),
        }
    }

    /// Opens one loopback address for the server.
    pub(crate) fn granting(self, address: &str) -> Self {
        self.opening(address, Leg::Server("demo".into()))
    }

    /// Opens one loopback address for the server's OAuth.
    pub(crate) fn granting_oauth(self, address: &str) -> Self {
        self.opening(address, Leg::OAuth("demo".into()))
    }

    fn opening(mut self, address: &str, leg: Leg) -> Self {
        let address: IpAddr = address.parse().unwrap();
        self.rules.grants.push(Grant {
            host: Host::Ip(address),
            port: Port::Any,
            addresses: Vec::new(),
            address: None,
            legs: vec![leg],
            origin: "egress.toml:1: [[private]]".into(),
        });
        self
    }

    pub(crate) fn permit(&self) -> Permit {
        let subject = subject(self.tenant, self.user);
        decide(&self.snapshot(), &subject, "demo").unwrap()
    }

    /// The policy that gives it; its user is an admin.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let demo = Arc::new(self.server("demo"));
        let servers = self.others.iter().cloned().chain([demo]);
        Snapshot {
            generation: self.generation,
            servers: Arc::new(
                servers
                    .map(|server| (server.name.clone(), server))
                    .collect(),
            ),
            admins: Admins {
                users: vec![self.user.into()],
                groups: Vec::new(),
            },
            addresses: Arc::new(self.rules.clone()),
            ..Snapshot::default()
        }
    }

    /// The server, by any name.
    pub(crate) fn server(&self, name: &str) -> Server {
        let (target, path) = Target::from_operator_with_path(&self.url).unwrap();
        Server {
            relay: Relay::default(),
            name: name.into(),
            title: None,
            endpoint: Endpoint::new(target, &path).unwrap(),
            access: Default::default(),
            tenants: vec![self.tenant.into()],
            read_only: ReadOnly::default(),
            pin: Pin::default(),
            mark: Mark::default(),
            builtin: true,
            era: Era::Auto,
            auth: self.auth.clone(),
            trust: self.trust.clone(),
            tools: HashMap::default(),
            limits: self.limits,
        }
    }
}

/// A caller by the name of `user`, and nothing more.
pub(crate) fn subject(tenant: &str, user: &str) -> Subject {
    Subject {
        tenant: tenant.into(),
        agent: "test".into(),
        user: user.into(),
        groups: Arc::from([]),
        scopes: Scopes::CALL,
        conversation: None,
        turn: None,
        acting: None,
        evidence: "test".into(),
    }
}
