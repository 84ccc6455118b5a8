//! Static secrets in the vault: one person's own, and the operator's for everybody of a tenant.

use std::sync::Arc;

use tollgate::{
    connect::{Of, Records, SharedSecret, State},
    policy::{Auth, Permit, Shared, Snapshot},
    secret::Secret,
    store::Store,
    vault::{Credential, Keyring},
};

use super::{Hand, Process, SERVER, World, issuer::Reuse, told};
use crate::support::permit::Maker;

const AGAIN: &str = "connect.reconnect refused";
const WRONG: &str = "connect.shared_secret refused";

fn kept() -> Auth {
    Auth::Shared(Shared {
        header: None,
        secret: None,
    })
}

fn maker(auth: Auth) -> Maker {
    Maker {
        auth,
        ..Maker::new(SERVER)
    }
}

fn of_tenant(tenant: &'static str) -> Permit {
    let maker = Maker {
        tenant,
        ..maker(kept())
    };
    maker.permit()
}

fn sent(token: &str) -> Credential {
    Credential::bearer(token.as_bytes()).unwrap()
}

impl Process {
    async fn set(&self, permit: &Permit, secret: &str) -> Result<(), String> {
        let tenant = &permit.owner().tenant;
        let set = self
            .connections
            .set_shared(permit.server(), tenant, secret.as_bytes());
        set.await.map_err(|error| error.to_string())
    }

    async fn shared(&self, policy: &Snapshot) -> Vec<SharedSecret> {
        self.connections.shared(policy).await.unwrap()
    }

    async fn why(&self, permit: &Permit) -> String {
        told(&self.token(permit).await.unwrap_err())
    }
}

/// A bearer token of `ann`'s that the server has refused.
async fn refused() -> (World, Process, Permit) {
    let world = World::new(Reuse::Kills).await;
    let process = world.process("process", 0);
    let permit = maker(Auth::Bearer).permit();
    process.connections.enter(&permit, b"old").await.unwrap();
    assert_eq!(process.token(&permit).await.unwrap(), "old");
    let none = process.after_refusal(&permit, "old").await.unwrap_err();
    assert_eq!(told(&none), AGAIN);
    (world, process, permit)
}

#[tokio::test]
async fn a_refused_secret_is_kept_as_that_over_a_restart_and_until_another_is_entered() {
    let (world, process, permit) = refused().await;
    let restarted = world.process("restarted", 59);
    for process in [&process, &restarted] {
        let ended = State::NeedsReconnect("refused".to_owned());
        assert_eq!(process.state(&permit).await, ended);
        assert_eq!(process.why(&permit).await, AGAIN);
        let all = process.connections.all(&Snapshot::default()).await.unwrap();
        assert_eq!((all.len(), &all[0].state), (1, &ended));
    }
    restarted.connections.enter(&permit, b"new").await.unwrap();
    assert_eq!(restarted.token(&permit).await.unwrap(), "new");
    assert_eq!(restarted.state(&permit).await, State::Connected);
    // What is said of the one before is not kept of this one.
    assert_eq!(restarted.refused_again(&permit, "old").await, AGAIN);
    assert_eq!(restarted.state(&permit).await, State::Connected);
    assert_eq!(
        process.records().await,
        [
            "connect entered allowed -",
            "connect reconnect_needed refused connect.reconnect"
        ]
    );
}

#[tokio::test]
async fn a_refused_secret_is_tried_again_more_and_more_seldom() {
    let (_world, process, permit) = refused().await;
    let mut now = 0;
    for rest in [60, 120, 240, 480, 600, 600] {
        process.clock.set(now + rest - 1);
        assert_eq!(process.why(&permit).await, AGAIN);
        now += rest;
        process.clock.set(now);
        assert_eq!(process.token(&permit).await.unwrap(), "old");
        // Whoever else sent it at the same time does not make it rest longer.
        for _ in 0..3 {
            let told = process.after_refusal(&permit, "old").await.unwrap_err();
            assert_eq!(super::told(&told), AGAIN);
        }
    }
    process.clock.set(0);
    let late = process.token(&permit).await;
    assert_eq!(late.unwrap(), "old", "a clock that was set back");
}

#[tokio::test]
async fn a_secret_that_is_let_in_again_is_refused_no_more() {
    let (world, process, permit) = refused().await;
    process.clock.set(60);
    assert_eq!(process.token(&permit).await.unwrap(), "old");
    process.connections.taken(&permit, &sent("other"));
    process.connections.taken(&permit, &sent("old"));
    process.connections.drain().await;
    assert_eq!(process.state(&permit).await, State::Connected);
    let other = world.process("other", 0);
    assert_eq!(other.token(&permit).await.unwrap(), "old");
    let records = process.records().await;
    assert_eq!(records[2..], ["connect usable_again allowed -"]);
}

#[tokio::test]
async fn the_operators_secret_is_sent_for_everybody_of_its_tenant_and_nobody_else() {
    let world = World::new(Reuse::Kills).await;
    let (process, other) = (world.process("process", 0), world.process("other", 0));
    let [ann, foreign] = [of_tenant("default"), of_tenant("acme")];
    assert_eq!(process.why(&ann).await, "connect.shared_secret missing");
    assert_eq!(process.state(&ann).await, State::NotConnected);
    process.set(&ann, "everybodys").await.unwrap();
    let bob = Maker {
        user: "bob",
        ..maker(kept())
    };
    for process in [&process, &other] {
        for permit in [&ann, &bob.permit()] {
            assert_eq!(process.token(permit).await.unwrap(), "everybodys");
            assert_eq!(process.state(permit).await, State::Connected);
        }
        let none = process.why(&foreign).await;
        assert_eq!(none, "connect.shared_secret missing");
    }
    // Tollgate's own requests are made with that of the first tenant.
    let snapshot = maker(kept()).snapshot();
    let own = tollgate::policy::decide_leg(&snapshot, tollgate::policy::Purpose::Catalogue, "demo");
    assert_eq!(process.token(&own.unwrap()).await.unwrap(), "everybodys");
    let header = maker(Auth::Shared(Shared {
        header: Some("x-api-key".parse().unwrap()),
        secret: None,
    }))
    .permit();
    let headed = process.connections.credential(&header, super::soon());
    let headed = headed.await.unwrap().unwrap();
    assert_eq!(
        (headed.name().as_str(), headed.value().as_bytes()),
        ("x-api-key", &b"everybodys"[..])
    );
    let (server, tenant) = (&ann.server().name, &ann.owner().tenant);
    for there in [true, false] {
        let removed = process.connections.remove_shared(server, tenant).await;
        assert_eq!(removed.unwrap(), there);
    }
    assert_eq!(process.why(&ann).await, "connect.shared_secret missing");
}

#[tokio::test]
async fn the_operators_secret_is_for_one_url_and_kept_only_where_it_is_sent() {
    let world = World::new(Reuse::Kills).await;
    let process = world.process("process", 0);
    let ann = of_tenant("default");
    for secret in ["", "two words", "line\n"] {
        let told = process.set(&ann, secret).await.unwrap_err();
        assert!(told.starts_with("this secret cannot be sent"), "{told}");
    }
    let bearer = maker(Auth::Bearer).permit();
    assert_eq!(
        process.set(&bearer, "x").await.unwrap_err(),
        "the vault keeps no such secret for server `demo`: its file asks for none; set auth.mode = \
         \"shared\" there, and no auth.secret"
    );
    let foreign = process
        .connections
        .set_shared(ann.server(), &"acme".into(), b"x")
        .await;
    assert_eq!(
        foreign.unwrap_err().to_string(),
        "the vault keeps no such secret for server `demo`: it is not for tenant `acme`, found default"
    );
    process.set(&ann, "everybodys").await.unwrap();
    let moved = Maker {
        url: "https://elsewhere.example.com/mcp".to_owned(),
        ..maker(kept())
    };
    let told = process.why(&moved.permit()).await;
    assert_eq!(told, "connect.shared_secret origin_changed");
    let wrong = async |policy: &Snapshot| {
        let all = process.shared(policy).await;
        let [one] = &all[..] else { panic!("{all:?}") };
        one.wrong.clone()
    };
    assert_eq!(wrong(&maker(kept()).snapshot()).await, None);
    let changed = wrong(&moved.snapshot()).await;
    assert_eq!(changed.as_deref(), Some("origin_changed"));
    let unused = wrong(&Snapshot::default()).await;
    assert_eq!(unused.as_deref(), Some("unused"));
}

#[tokio::test]
async fn the_operator_is_told_of_a_refused_secret_and_it_is_tried_again() {
    let world = World::new(Reuse::Kills).await;
    let process = world.process("process", 0);
    let (permit, policy) = (of_tenant("default"), maker(kept()).snapshot());
    assert_eq!(
        process.shared(&policy).await[0].wrong.as_deref(),
        Some("missing")
    );
    process.set(&permit, "everybodys").await.unwrap();
    process.token(&permit).await.unwrap();
    let none = process.after_refusal(&permit, "everybodys").await;
    assert_eq!(told(&none.unwrap_err()), WRONG);
    assert_eq!(process.refused_again(&permit, "everybodys").await, WRONG);
    let other = world.process("other", 0);
    for process in [&process, &other] {
        assert_eq!(process.why(&permit).await, WRONG);
        let listed = process.shared(&policy).await;
        assert_eq!(
            listed,
            [SharedSecret {
                server: "demo".to_owned(),
                tenant: "default".to_owned(),
                since: Some(1_795_989_600),
                wrong: Some("refused".to_owned()),
            }]
        );
        let all = process.connections.all(&policy).await.unwrap();
        assert_eq!(all[0].state, State::NeedsReconnect("refused".to_owned()));
        assert_eq!((&*all[0].user, &*all[0].mode), ("", "shared"));
    }
    // The operator may have put it right at the server.
    process.clock.set(5);
    assert_eq!(process.token(&permit).await.unwrap(), "everybodys");
    process.connections.taken(&permit, &sent("everybodys"));
    process.connections.drain().await;
    assert_eq!(process.shared(&policy).await[0].wrong, None);
    assert_eq!(
        process.records().await,
        [
            "credential shared_refused refused connect.shared_secret",
            "credential shared_usable_again allowed -"
        ]
    );
}

/// Another process has read it, and is about to write that it is refused.
#[tokio::test]
async fn a_secret_that_was_taken_away_is_not_written_over_the_next_one() {
    let world = World::new(Reuse::Kills).await;
    let process = world.process("process", 0);
    let permit = of_tenant("default");
    process.set(&permit, "leaked").await.unwrap();
    let keyring = Keyring::open(&world.folder.path().join("keyring")).unwrap();
    let clock = Arc::<Hand>::default();
    let store = Store::open_by(&world.database(), &keyring, clock, Arc::default()).unwrap();
    let (key, leaked) = store.rows(&Of::Everyone, None).await.unwrap().remove(0);

    let (server, tenant) = (&permit.server().name, &permit.owner().tenant);
    let removed = process.connections.remove_shared(server, tenant).await;
    assert!(removed.unwrap());
    process.set(&permit, "next").await.unwrap();
    let version = Some(leaked.version);
    assert!(!store.replace(&key, version, &leaked).await.unwrap());
    assert_eq!(process.token(&permit).await.unwrap(), "next");
}

#[tokio::test]
async fn a_row_that_was_moved_gives_no_secret() {
    for sql in [
        // One person's own as everybody's, another tenant's, another server's, an older one.
        "UPDATE sealed SET sealed = (SELECT sealed FROM sealed WHERE kind = 'secret') WHERE kind = 'shared'",
        "UPDATE sealed SET record = (SELECT record FROM sealed WHERE kind = 'shared' AND one = 'acme') || x'',
            sealed = (SELECT sealed FROM sealed WHERE kind = 'shared' AND one = 'acme')
            WHERE kind = 'none'; DELETE FROM sealed WHERE kind = 'shared' AND one = 'default';
         UPDATE sealed SET one = 'default', tenant = 'default' WHERE kind = 'shared'",
        "UPDATE sealed SET version = version + 1",
        "UPDATE sealed SET sealed = substr(sealed, 1, 60)",
    ] {
        let world = World::new(Reuse::Kills).await;
        let first = world.process("first", 0);
        let (ann, foreign) = (of_tenant("default"), of_tenant("acme"));
        first.set(&ann, "ours").await.unwrap();
        first.set(&foreign, "theirs").await.unwrap();
        let own = maker(Auth::Bearer).permit();
        first.connections.enter(&own, b"anns").await.unwrap();
        world.sql().execute_batch(sql).unwrap();
        let process = world.process("process", 0);
        for _ in 0..2 {
            assert_eq!(process.why(&ann).await, "connect.shared_secret unreadable", "{sql}");
        }
        let listed = process.shared(&maker(kept()).snapshot()).await;
        let ours = listed.iter().find(|found| found.tenant == "default");
        assert_eq!(ours.unwrap().wrong.as_deref(), Some("unreadable"), "{sql}");
        let records = process.records().await;
        assert_eq!(records[0], "credential tampered refused vault.record", "{sql}");
    }
}

#[tokio::test]
async fn a_secret_beside_the_policy_that_is_refused_rests_and_is_told_of() {
    let world = World::new(Reuse::Kills).await;
    let process = world.process("process", 0);
    let of = |secret: &str| {
        maker(Auth::Shared(Shared {
            header: None,
            secret: Some(Secret::new(secret.as_bytes().to_vec()).into()),
        }))
    };
    let (first, policy) = (of("first").permit(), of("first").snapshot());
    assert_eq!(process.token(&first).await.unwrap(), "first");
    assert_eq!(process.shared(&policy).await, []);
    let none = process.after_refusal(&first, "first").await.unwrap_err();
    assert_eq!(told(&none), "connect.unusable");
    assert_eq!(
        process.refused_again(&first, "first").await,
        "connect.unusable"
    );
    assert_eq!(process.why(&first).await, "connect.unusable");
    let listed = process.shared(&policy).await;
    assert_eq!(listed[0].wrong.as_deref(), Some("file_refused"));
    assert_eq!(
        process.state(&first).await,
        State::NeedsReconnect("file_refused".to_owned())
    );
    // Another one is another one, whoever had it in hand when it came.
    let second = of("second").permit();
    assert_eq!(process.token(&second).await.unwrap(), "second");
    let other = process.after_refusal(&second, "first").await.unwrap();
    assert_eq!(other, "second");
    assert_eq!(process.shared(&of("second").snapshot()).await, []);
    assert_eq!(process.state(&second).await, State::Connected);
    for (now, sends) in [(4, false), (5, true)] {
        process.clock.set(now);
        assert_eq!(process.token(&first).await.is_ok(), sends);
    }
    process.connections.taken(&first, &sent("first"));
    process.clock.set(0);
    assert_eq!(process.token(&first).await.unwrap(), "first");
    assert_eq!(
        process.records().await,
        [
            "credential shared_refused refused connect.unusable",
            "credential shared_usable_again allowed -"
        ]
    );
}
