//! Rows follow the primary key, and nobody loses one on the way.

use std::{sync::Arc, time::Duration};

use tollgate::{
    connect::{
        Claim, Claimed, Earlier, GrantKey, GrantRow, GrantState, Key, Of, Records, Resealed, Row,
        Save, reseal,
    },
    subject::Owner,
    vault::{Keyring, Kid, Vault},
};
use uuid::Uuid;

use super::Place;

fn whose(user: &str) -> GrantKey {
    GrantKey {
        owner: Owner {
            tenant: "default".into(),
            user: user.into(),
        },
        server: "notes".into(),
    }
}

/// A row of its own for each user.
fn record(user: &str) -> Uuid {
    let mut bytes = [1; 16];
    bytes[..user.len()].copy_from_slice(user.as_bytes());
    Uuid::from_bytes(bytes)
}

/// A connection whose sealed part says `tokens of USER`.
pub(super) fn grant(vault: &Vault, user: &str) -> GrantRow {
    let mut row = GrantRow {
        record: record(user),
        key: whose(user),
        grant: [7; 16],
        version: 1,
        issuer: "https://as.example/".into(),
        client: "client-1".into(),
        resource: Some("https://notes.example/mcp".into()),
        state: GrantState::Active,
        expires_at: Some(4_000_000_000),
        next_try: None,
        lease: None,
        kid: vault.primary(),
        sealed: Vec::new(),
        created_at: 1_700_000_000,
    };
    row.sealed = vault.seal(&row.binding(), format!("tokens of {user}").as_bytes());
    row
}

fn other(vault: &Vault, key: &Key, id: u8, flow: Option<GrantKey>) -> Row {
    let mut row = Row {
        record: Uuid::from_bytes([id; 16]),
        version: 3,
        expires_at: flow.is_some().then_some(4_000_000_000),
        flow,
        kid: vault.primary(),
        sealed: Vec::new(),
    };
    row.sealed = vault.seal(&row.binding(key), b"something");
    row
}

/// One of each: a client, a discovery, a secret of a user and one of the operator's.
fn keys() -> [Key; 4] {
    [
        Key::Client {
            tenant: "default".into(),
            issuer: "https://as.example/".into(),
            redirect_uri: "http://127.0.0.1:8703/oauth/callback".into(),
        },
        Key::Discovery {
            server: "notes".into(),
            endpoint: "https://notes.example/mcp".into(),
        },
        Key::Secret(whose("ann")),
        Key::Shared {
            tenant: "default".into(),
            server: "notes".into(),
        },
    ]
}

/// A vault, and the key that it had before a rotation.
fn rotated(place: &Place, vault: &Vault) -> Kid {
    let before = vault.primary();
    Keyring::rotate(&place.0.path().join("keyring"), None).unwrap();
    assert!(vault.follow());
    before
}

fn vault(place: &Place) -> Vault {
    Keyring::open(&place.0.path().join("keyring"))
        .unwrap()
        .vault()
}

#[tokio::test(start_paused = true)]
async fn everything_but_flows_follows_the_primary_key_and_opens_as_before() {
    let place = Place::new();
    let (store, vault) = (place.open(), vault(&place));
    let users: Vec<String> = (0..300).map(|at| format!("user-{at}")).collect();
    for user in &users {
        store.put_grant(grant(&vault, user)).await.unwrap();
    }
    for (id, key) in (1..).zip(keys()) {
        let row = other(&vault, &key, id, None);
        assert!(store.replace(&key, None, &row).await.unwrap());
    }
    let flow = Key::Pending { state: [5; 32] };
    let begun = other(&vault, &flow, 9, Some(whose("ann")));
    assert!(store.replace(&flow, None, &begun).await.unwrap());
    let before = rotated(&place, &vault);

    let round = reseal(&store, &vault).await.unwrap();
    let done = Resealed {
        done: 304,
        busy: 0,
        unopened: 0,
    };
    assert_eq!(round, done);
    for user in &users {
        let row = store.grant(&whose(user)).await.unwrap().unwrap();
        assert_eq!(
            (row.kid, row.version, &row.lease),
            (vault.primary(), 2, &None)
        );
        let opened = vault.open(&row.binding(), &row.sealed).unwrap();
        assert_eq!(opened.expose(), format!("tokens of {user}").as_bytes());
    }
    for key in keys() {
        let row = store.read(&key).await.unwrap().unwrap();
        assert_eq!((row.kid, row.version), (vault.primary(), 4));
        assert_eq!(
            vault
                .open(&row.binding(&key), &row.sealed)
                .unwrap()
                .expose(),
            b"something"
        );
    }
    assert_eq!(store.read(&flow).await.unwrap(), Some(begun));
    store.seal_check().await.unwrap();
    let mut rows = store.sealed_rows().await.unwrap();
    rows.sort_by_key(|(_, rows)| *rows);
    assert_eq!(rows, [(before, 1), (vault.primary(), 305)]);
    assert_eq!(reseal(&store, &vault).await.unwrap(), Resealed::default());
}

fn claim(row: &GrantRow) -> Claim {
    Claim {
        record: row.record,
        version: row.version,
        holder: Uuid::from_bytes([3; 16]),
        lease: Duration::from_secs(30),
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_refreshed_just_now_is_left_alone() {
    let place = Place::new();
    let (store, vault) = (place.open(), vault(&place));
    store.put_grant(grant(&vault, "ann")).await.unwrap();
    rotated(&place, &vault);
    let row = store.grant(&whose("ann")).await.unwrap().unwrap();
    let Claimed::Ours { row, .. } = store.claim(&claim(&row)).await.unwrap() else {
        panic!("nobody else claims it");
    };
    let round = reseal(&store, &vault).await.unwrap();
    assert_eq!(
        round,
        Resealed {
            done: 0,
            busy: 1,
            unopened: 0
        }
    );
    assert_eq!(
        store.grant(&whose("ann")).await.unwrap().as_ref(),
        Some(&*row)
    );

    // The refresh ends without its end being known: whoever claims next is told so still, after it was sealed again.
    let fence = row.lease.as_ref().unwrap().fence;
    let save = Save {
        record: row.record,
        fence,
        row: *row,
        unknown: true,
    };
    assert!(store.save(&save).await.unwrap());
    assert_eq!(reseal(&store, &vault).await.unwrap().done, 1);
    let row = store.grant(&whose("ann")).await.unwrap().unwrap();
    let claimed = store.claim(&claim(&row)).await.unwrap();
    assert!(matches!(
        claimed,
        Claimed::Ours {
            earlier: Earlier::Unknown,
            ..
        }
    ));
}

#[tokio::test(start_paused = true)]
async fn what_does_not_open_stays_as_it_is() {
    let place = Place::new();
    let (store, vault) = (place.open(), vault(&place));
    for user in ["ann", "bob"] {
        store.put_grant(grant(&vault, user)).await.unwrap();
    }
    let secret = Key::Secret(whose("ann"));
    let row = other(&vault, &secret, 1, None);
    store.replace(&secret, None, &row).await.unwrap();
    // Ann's tokens in the row of Bob, and a secret that was changed.
    let sql = place.sql();
    let moved = "UPDATE grants SET sealed = (SELECT sealed FROM grants WHERE user = 'ann') WHERE user = 'bob'";
    sql.execute_batch(moved).unwrap();
    sql.execute_batch("UPDATE sealed SET sealed = x'00'")
        .unwrap();
    rotated(&place, &vault);
    let before = store.grant(&whose("bob")).await.unwrap();
    let round = reseal(&store, &vault).await.unwrap();
    assert_eq!(
        round,
        Resealed {
            done: 1,
            busy: 0,
            unopened: 2
        }
    );
    assert_eq!(store.grant(&whose("bob")).await.unwrap(), before);
    assert_eq!(store.read(&secret).await.unwrap().unwrap().sealed, [0]);
}

#[tokio::test(start_paused = true)]
async fn several_processes_may_do_so_at_once() {
    let place = Place::new();
    let stores = [place.open(), place.open(), place.open()].map(Arc::new);
    let first = vault(&place);
    for user in 0..100 {
        let row = grant(&first, &user.to_string());
        stores[0].put_grant(row).await.unwrap();
    }
    rotated(&place, &first);
    let rounds = stores.clone().map(|store| {
        let vault = vault(&place);
        tokio::spawn(async move { reseal(&*store, &vault).await.unwrap() })
    });
    let mut done = 0;
    for round in rounds {
        let round = round.await.unwrap();
        assert_eq!(round.unopened, 0);
        done += round.done;
    }
    assert_eq!(done, 100, "each row once");
    let rows = stores[1].grants(&Of::Everyone, None).await.unwrap();
    assert_eq!(rows.len(), 100);
    for row in rows {
        let opened = first.open(&row.binding(), &row.sealed).unwrap();
        assert_eq!(
            opened.expose(),
            format!("tokens of {}", row.key.owner.user).as_bytes()
        );
        assert_eq!((row.version, row.kid), (2, first.primary()));
    }
}
