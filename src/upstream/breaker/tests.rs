use std::{io, net::SocketAddr};

use tokio::time::advance;

use super::*;
use crate::{
    address::{Rules, Target},
    egress::DialError,
    policy::{self, Endpoint, Era, Mark, Pin, ReadOnly, Relay, ServerLimits, Trust},
    refusal::Code,
    subject::{Admins, Scopes, Subject},
};

/// Leaves of users on one server.
struct Circuit {
    breakers: Arc<Breakers>,
    policy: Snapshot,
}

fn server(url: &str) -> Arc<Server> {
    let (target, path) = Target::from_operator_with_path(url).unwrap();
    Arc::new(Server {
        name: "docs".into(),
        title: None,
        endpoint: Endpoint::new(target, &path).unwrap(),
        access: Default::default(),
        tenants: vec!["default".into()],
        read_only: ReadOnly::default(),
        pin: Pin::default(),
        mark: Mark::default(),
        builtin: true,
        era: Era::Auto,
        auth: crate::policy::Auth::None,
        trust: Trust::default(),
        relay: Relay::default(),
        tools: HashMap::default(),
        limits: ServerLimits::default(),
    })
}

impl Circuit {
    fn new() -> Self {
        let policy = Snapshot {
            servers: Arc::new(HashMap::from_iter([(
                "docs".into(),
                server("https://docs.example/mcp"),
            )])),
            admins: Admins {
                users: vec!["ann".into(), "bob".into()],
                groups: Vec::new(),
            },
            addresses: Arc::new(Rules::default()),
            ..Snapshot::default()
        };
        Self {
            breakers: Arc::new(Breakers::new(Arc::default())),
            policy,
        }
    }

    fn permit(&self, user: &str) -> Permit {
        let subject = Subject {
            tenant: "default".into(),
            agent: "agent".into(),
            user: user.into(),
            groups: Arc::from([]),
            scopes: Scopes::CALL,
            conversation: None,
            turn: None,
            acting: None,
            evidence: "key:1".into(),
        };
        policy::decide(&self.policy, &subject, "docs").unwrap()
    }

    fn admit(&self, user: &str) -> Result<Leave, Error> {
        self.breakers.admit(&self.permit(user))
    }

    /// Why a request of `user` is refused.
    fn refused(&self, user: &str) -> String {
        let error = self.admit(user).unwrap_err();
        assert_eq!(error.code(), Code::ServerFailing);
        error.to_string()
    }

    fn fail(&self, user: &str, error: egress::Error) {
        let failed = Failed {
            error,
            not_sent: true,
            destination: None,
        };
        self.breakers.note(&self.permit(user), &Err(failed));
    }

    fn metric(&self) -> Option<String> {
        let text = self.breakers.metrics.render();
        let name = r#"tollgate_gateway_server_open{server="docs"} "#;
        let value = text.lines().find_map(|line| line.strip_prefix(name));
        value.map(str::to_owned)
    }
}

fn refused() -> egress::Error {
    let address: SocketAddr = "203.0.113.7:443".parse().unwrap();
    let error = io::Error::from(io::ErrorKind::ConnectionRefused);
    egress::Error::Connect {
        host: "docs.example".into(),
        source: DialError::Failed {
            tried: vec![(address, error)],
        },
    }
}

fn silent() -> egress::Error {
    egress::Error::FirstByteTimeout {
        host: "docs.example".into(),
        limit: Duration::from_secs(30),
    }
}

#[tokio::test(start_paused = true)]
async fn failures_in_a_row_open_it_and_tries_come_ever_later() {
    let circuit = Circuit::new();
    for _ in 0..4 {
        circuit.fail("ann", refused());
        drop(circuit.admit("bob").unwrap());
    }
    advance(Duration::from_secs(3)).await;
    circuit.fail("bob", refused());
    assert_eq!(
        circuit.refused("ann"),
        "server `docs` has been failing for 3 seconds and is not asked; the next try is made in a second"
    );
    assert_eq!(circuit.metric().as_deref(), Some("1"));
    for seconds in [1, 2, 4, 8, 16, 30, 30] {
        advance(Duration::from_millis(seconds * 1000 - 1)).await;
        circuit.refused("bob");
        advance(Duration::from_millis(1)).await;
        let tries = circuit.admit("bob").unwrap();
        assert!(
            circuit
                .refused("ann")
                .ends_with("the next try is being made")
        );
        circuit.fail("bob", refused());
        drop(tries);
    }
    let open = circuit.breakers.open();
    assert_eq!(open.len(), 1);
    assert_eq!((open[0].user.as_deref(), open[0].retry), (None, LONGEST));
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_any_kind_closes_it() {
    let circuit = Circuit::new();
    (0..5).for_each(|_| circuit.fail("ann", refused()));
    circuit.refused("ann");
    advance(FIRST).await;
    let _tries = circuit.admit("ann").unwrap();
    let redirect = egress::Error::Redirect {
        host: "docs.example".into(),
        status: 302,
        to: "elsewhere".to_owned(),
        moved: false,
    };
    circuit.fail("ann", redirect);
    let (_one, _other) = (circuit.admit("ann").unwrap(), circuit.admit("bob").unwrap());
    assert_eq!(circuit.metric().as_deref(), Some("0"));
    assert_eq!(circuit.breakers.open(), []);
    (0..4).for_each(|_| circuit.fail("ann", refused()));
    drop(circuit.admit("ann").unwrap());
}

#[tokio::test(start_paused = true)]
async fn failures_long_apart_do_not_count_together() {
    let circuit = Circuit::new();
    for _ in 0..20 {
        circuit.fail("ann", refused());
        drop(circuit.admit("ann").unwrap());
        advance(Duration::from_secs(8)).await;
    }
}

/// A call may take long to answer because of what it asks; others go on.
#[tokio::test(start_paused = true)]
async fn whoever_is_not_answered_is_refused_alone() {
    let circuit = Circuit::new();
    (0..9).for_each(|_| circuit.fail("ann", silent()));
    circuit.refused("ann");
    drop(circuit.admit("bob").unwrap());
    assert_eq!(circuit.metric(), None);
    let open = circuit.breakers.open();
    assert_eq!(open[0].user.as_deref(), Some("ann"));
}

/// Neither ends that callers bring about themselves, nor what policy or the answer's content ends.
#[tokio::test(start_paused = true)]
async fn only_what_the_network_shows_counts() {
    let circuit = Circuit::new();
    let host: Arc<str> = "docs.example".into();
    for _ in 0..9 {
        circuit.fail("ann", egress::Error::CallTimeout { host: host.clone() });
        let limit = Duration::from_secs(30);
        let host = host.clone();
        circuit.fail("ann", egress::Error::IdleTimeout { host, limit });
    }
    drop(circuit.admit("ann").unwrap());
    assert_eq!(circuit.breakers.count.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn a_try_that_is_given_up_makes_way_and_one_that_hangs_too() {
    let circuit = Circuit::new();
    (0..5).for_each(|_| circuit.fail("ann", refused()));
    advance(FIRST).await;
    drop(circuit.admit("ann").unwrap());
    let _hangs = circuit.admit("bob").unwrap();
    circuit.refused("ann");
    advance(ServerLimits::default().connect).await;
    let _next = circuit.admit("ann").unwrap();
    circuit.refused("bob");
}

#[tokio::test(start_paused = true)]
async fn another_policy_forgets_what_it_changes() {
    let mut circuit = Circuit::new();
    (0..5).for_each(|_| circuit.fail("ann", refused()));
    circuit.policy.generation = 2;
    circuit.breakers.take_up(&circuit.policy);
    circuit.refused("ann");
    let moved = server("https://other.example/mcp");
    Arc::make_mut(&mut circuit.policy.servers).insert("docs".into(), moved);
    circuit.breakers.take_up(&circuit.policy);
    drop(circuit.admit("ann").unwrap());
    assert_eq!(circuit.metric(), None);
}
