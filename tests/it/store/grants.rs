//! Connections and what else is sealed: leases, fences, and rows that come and go.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use futures_util::future::join_all;
use tollgate::{
    clock::Clock,
    connect::{
        Claim, Claimed, Earlier, GrantKey, GrantRow, GrantState, Key, Of, Records, Row, Save,
    },
    store::Store,
    subject::Owner,
    telemetry::Metrics,
    vault::{Keyring, Kid},
};
use uuid::Uuid;

use super::Place;

/// The time of all stores of a test, in Unix seconds.
struct Hand(AtomicU64);

impl Clock for Hand {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(self.0.load(Ordering::Relaxed))
    }
}

fn at(seconds: u64) -> Arc<Hand> {
    Arc::new(Hand(AtomicU64::new(seconds)))
}

fn open(place: &Place, clock: &Arc<Hand>) -> Store {
    let keyring = Keyring::open(&place.0.path().join("keyring")).unwrap();
    let metrics = Arc::<Metrics>::default();
    Store::open_by(&place.file(), &keyring, clock.clone(), metrics).unwrap()
}

fn key(user: &str, server: &str) -> GrantKey {
    GrantKey {
        owner: Owner {
            tenant: "default".into(),
            user: user.into(),
        },
        server: server.into(),
    }
}

fn grant(record: u128, user: &str, server: &str) -> GrantRow {
    GrantRow {
        record: Uuid::from_u128(record),
        key: key(user, server),
        grant: [record as u8; 16],
        version: 1,
        issuer: "https://as.example".into(),
        client: "gateway".into(),
        resource: None,
        state: GrantState::Active,
        expires_at: Some(2_000),
        next_try: None,
        lease: None,
        kid: Kid([1; 8]),
        sealed: vec![record as u8; 300],
        created_at: 1_000,
    }
}

fn claim(row: &GrantRow, holder: u128) -> Claim {
    Claim {
        record: row.record,
        version: row.version,
        holder: Uuid::from_u128(holder),
        lease: Duration::from_secs(30),
    }
}

/// The row of a claim that was given, with its fence.
fn ours(claimed: Claimed) -> (GrantRow, u64, Earlier) {
    let Claimed::Ours { row, earlier } = claimed else {
        panic!("{claimed:?}");
    };
    let fence = row.lease.as_ref().unwrap().fence;
    (*row, fence, earlier)
}

fn next(row: &GrantRow, fence: u64) -> Save {
    let mut row = row.clone();
    row.version += 1;
    row.sealed = vec![9; 300];
    Save {
        record: row.record,
        fence,
        row,
        unknown: false,
    }
}

#[tokio::test]
async fn a_connection_is_found_by_its_key_and_in_pages() {
    let place = Place::new();
    let store = open(&place, &at(1_000));
    let full = GrantRow {
        resource: Some("https://tools.example/mcp".into()),
        state: GrantState::NeedsReconnect("rotation_lost"),
        next_try: Some(7),
        expires_at: None,
        ..grant(1, "ann", "a")
    };
    assert_eq!(store.put_grant(full.clone()).await.unwrap(), None);
    for (record, user, server) in [(2, "ann", "b"), (3, "bob", "a"), (4, "bob", "b")] {
        store.put_grant(grant(record, user, server)).await.unwrap();
    }
    assert_eq!(store.grant(&full.key).await.unwrap(), Some(full.clone()));
    assert_eq!(store.grant(&key("ann", "c")).await.unwrap(), None);
    let page = async |of: Of, after: Option<u128>| {
        let rows = store.grants(&of, after.map(Uuid::from_u128)).await.unwrap();
        rows.iter()
            .map(|row| row.record.as_u128())
            .collect::<Vec<_>>()
    };
    assert_eq!(page(Of::Everyone, None).await, [1, 2, 3, 4]);
    assert_eq!(page(Of::Everyone, Some(2)).await, [3, 4]);
    assert_eq!(page(Of::Owner(full.key.owner.clone()), None).await, [1, 2]);
    assert_eq!(page(Of::Server("a".into()), None).await, [1, 3]);
    assert_eq!(page(Of::Server("a".into()), Some(3)).await, []);

    let replaced = store.put_grant(grant(5, "ann", "a")).await.unwrap();
    assert_eq!(replaced, Some(full));
    assert_eq!(page(Of::Everyone, None).await, [2, 3, 4, 5]);
    let other = store.remove_grant(&key("ann", "a"), Some([1; 16])).await;
    assert_eq!(other.unwrap(), None, "of another connection");
    let removed = store.remove_grant(&key("ann", "a"), Some([5; 16])).await;
    assert_eq!(removed.unwrap(), Some(grant(5, "ann", "a")));
    let removed = store.remove_grant(&key("bob", "a"), None).await;
    assert_eq!(removed.unwrap(), Some(grant(3, "bob", "a")));
}

#[tokio::test]
async fn of_many_who_claim_one_has_the_lease() {
    let place = Place::new();
    let clock = at(1_000);
    let stores: Vec<_> = (0..4).map(|_| open(&place, &clock)).collect();
    let row = grant(1, "ann", "a");
    stores[0].put_grant(row.clone()).await.unwrap();
    let claims: Vec<_> = (0..16).map(|holder| claim(&row, holder)).collect();
    let claimed = join_all(
        claims
            .iter()
            .zip(stores.iter().cycle())
            .map(|(claim, store)| store.claim(claim)),
    );
    let claimed: Vec<_> = claimed.await.into_iter().map(Result::unwrap).collect();
    let given = claimed
        .iter()
        .filter(|claimed| matches!(claimed, Claimed::Ours { .. }));
    assert_eq!(given.count(), 1);
    let seen = stores[3].grant(&row.key).await.unwrap().unwrap();
    assert_eq!(seen.lease.unwrap().until, 1_030);
}

#[tokio::test]
async fn a_lease_ends_with_its_save_or_its_time() {
    let place = Place::new();
    let clock = at(1_000);
    let store = open(&place, &clock);
    let row = grant(1, "ann", "a");
    store.put_grant(row.clone()).await.unwrap();
    let (claimed, first, earlier) = ours(store.claim(&claim(&row, 7)).await.unwrap());
    assert_eq!(earlier, Earlier::Known);
    assert_eq!(claimed.lease.as_ref().unwrap().holder, Uuid::from_u128(7));
    clock.0.store(1_029, Ordering::Relaxed);
    let refused = store.claim(&claim(&row, 8)).await.unwrap();
    assert_eq!(refused, Claimed::Theirs(Some(Box::new(claimed.clone()))));

    clock.0.store(1_030, Ordering::Relaxed);
    let (_, second, earlier) = ours(store.claim(&claim(&row, 8)).await.unwrap());
    assert!(second > first);
    assert_eq!(
        earlier,
        Earlier::Unknown,
        "the first sent something, perhaps"
    );
    assert!(
        !store.save(&next(&claimed, first)).await.unwrap(),
        "too late"
    );
    assert!(store.save(&next(&claimed, second)).await.unwrap());
    assert!(!store.save(&next(&claimed, second)).await.unwrap(), "once");
    let saved = store.grant(&row.key).await.unwrap().unwrap();
    assert_eq!((saved.version, saved.lease.as_ref()), (2, None));
    assert_eq!(saved.created_at, 1_000);

    let stale = store.claim(&claim(&row, 9)).await.unwrap();
    assert_eq!(
        stale,
        Claimed::Theirs(Some(Box::new(saved.clone()))),
        "another version"
    );
    let (_, third, earlier) = ours(store.claim(&claim(&saved, 9)).await.unwrap());
    assert!(third > second);
    assert_eq!(earlier, Earlier::Known);
    let unknown = Save {
        unknown: true,
        ..next(&saved, third)
    };
    assert!(store.save(&unknown).await.unwrap());
    let (_, _, earlier) = ours(store.claim(&claim(&unknown.row, 9)).await.unwrap());
    assert_eq!(earlier, Earlier::Unknown);
}

#[tokio::test]
async fn fences_rise_whatever_comes_and_goes() {
    let place = Place::new();
    let store = open(&place, &at(1_000));
    let mut last = 0;
    for record in 1..=5 {
        let row = grant(record, "ann", "a");
        store.put_grant(row.clone()).await.unwrap();
        let (claimed, fence, _) = ours(store.claim(&claim(&row, 7)).await.unwrap());
        assert!(fence > last);
        last = fence;
        if record % 2 == 0 {
            store.remove_grant(&row.key, None).await.unwrap();
        } else {
            store
                .put_grant(grant(100 + record, "ann", "a"))
                .await
                .unwrap();
        }
        assert!(!store.save(&next(&claimed, fence)).await.unwrap());
        assert_eq!(
            store.claim(&claim(&row, 7)).await.unwrap(),
            Claimed::Theirs(None)
        );
    }
}

#[tokio::test]
async fn who_writes_over_a_version_takes_its_lease_away() {
    let place = Place::new();
    let store = open(&place, &at(1_000));
    let row = grant(1, "ann", "a");
    store.put_grant(row.clone()).await.unwrap();
    let (claimed, fence, _) = ours(store.claim(&claim(&row, 7)).await.unwrap());
    let over = next(&row, 0).row;
    assert!(!store.overwrite(2, &over).await.unwrap());
    assert!(store.overwrite(1, &over).await.unwrap());
    assert!(!store.save(&next(&claimed, fence)).await.unwrap());
    let stored = store.grant(&row.key).await.unwrap().unwrap();
    assert_eq!(
        (stored.version, stored.lease, stored.sealed),
        (2, None, vec![9; 300])
    );
    assert!(!store.overwrite(1, &over).await.unwrap());
}

fn sealed(record: u128, version: u64) -> Row {
    Row {
        record: Uuid::from_u128(record),
        version,
        flow: None,
        expires_at: None,
        kid: Kid([1; 8]),
        sealed: vec![record as u8; 40],
    }
}

fn flow(record: u128, user: &str, server: &str, expires_at: i64) -> (Key, Row) {
    let mut state = [0; 32];
    state[..16].copy_from_slice(&record.to_be_bytes());
    let row = Row {
        flow: Some(key(user, server)),
        expires_at: Some(expires_at),
        ..sealed(record, 1)
    };
    (Key::Pending { state }, row)
}

#[tokio::test]
async fn rows_of_each_kind_are_replaced_by_version_and_taken_once() {
    let place = Place::new();
    let store = open(&place, &at(1_000));
    let client = Key::Client {
        tenant: "default".into(),
        issuer: "https://as.example".into(),
        redirect_uri: "https://gw.example/oauth/callback".into(),
    };
    let discovery = Key::Discovery {
        server: "a".into(),
        endpoint: "https://a.example:443/mcp".into(),
    };
    let secret = Key::Secret(key("ann", "a"));
    let shared = Key::Shared {
        tenant: "default".into(),
        server: "a".into(),
    };
    for (number, key) in [client, discovery, secret, shared].iter().enumerate() {
        let record = number as u128;
        assert_eq!(store.read(key).await.unwrap(), None);
        assert!(
            !store
                .replace(key, Some(1), &sealed(record, 2))
                .await
                .unwrap()
        );
        assert!(store.replace(key, None, &sealed(record, 1)).await.unwrap());
        assert!(!store.replace(key, None, &sealed(record, 1)).await.unwrap());
        assert!(
            store
                .replace(key, Some(1), &sealed(record, 2))
                .await
                .unwrap()
        );
        assert!(
            !store
                .replace(key, Some(1), &sealed(record, 3))
                .await
                .unwrap()
        );
        assert_eq!(store.read(key).await.unwrap(), Some(sealed(record, 2)));
    }
    let found = async |of: Of| {
        let rows = store.rows(&of, None).await.unwrap();
        rows.iter()
            .map(|(_, row)| row.record.as_u128())
            .collect::<Vec<_>>()
    };
    assert_eq!(found(Of::Everyone).await, [0, 1, 2, 3]);
    assert_eq!(found(Of::Server("a".into())).await, [1, 2, 3]);
    assert_eq!(found(Of::Owner(key("ann", "a").owner)).await, [2]);
    let all = store.rows(&Of::Everyone, None).await.unwrap();
    for (key, row) in all {
        let takes = join_all((0..4).map(|_| store.take(&key))).await;
        let taken: Vec<_> = takes.into_iter().filter_map(Result::unwrap).collect();
        assert_eq!(taken, [row]);
    }
    assert_eq!(found(Of::Everyone).await, []);
}

#[tokio::test]
async fn flows_are_bounded_and_end() {
    let place = Place::new();
    let clock = at(1_000);
    let store = open(&place, &clock);
    let ann = key("ann", "a");
    assert_eq!(store.flows(&ann).await.unwrap(), None);
    for number in 0..20 {
        let server = if number % 2 == 0 { "a" } else { "b" };
        let (key, row) = flow(number, "ann", server, 1_600 + number as i64);
        assert!(store.replace(&key, None, &row).await.unwrap());
    }
    let (bobs, row) = flow(99, "bob", "a", 1_610);
    assert!(store.replace(&bobs, None, &row).await.unwrap());
    assert_eq!(store.flows(&ann).await.unwrap(), Some((8, 1_618)));
    assert_eq!(
        store.flows(&key("ann", "b")).await.unwrap(),
        Some((8, 1_619))
    );
    let (oldest, _) = flow(3, "ann", "b", 0);
    assert_eq!(store.read(&oldest).await.unwrap(), None, "the oldest went");
    let (fourth, row) = flow(4, "ann", "a", 1_604);
    assert_eq!(store.read(&fourth).await.unwrap(), Some(row));

    clock.0.store(1_610, Ordering::Relaxed);
    assert_eq!(store.take(&bobs).await.unwrap(), None, "it has ended");
    assert_eq!(store.flows(&ann).await.unwrap(), Some((4, 1_618)));
    let (new, row) = flow(50, "eve", "a", 2_200);
    assert!(store.replace(&new, None, &row).await.unwrap());
    let kept = store.rows(&Of::Everyone, None).await.unwrap();
    assert_eq!(kept.len(), 10, "what has ended is swept");
}

#[tokio::test]
async fn what_is_kept_is_there_after_a_restart() {
    let place = Place::new();
    let clock = at(1_000);
    let row = grant(1, "ann", "a");
    let (key, flow) = flow(7, "ann", "a", 1_600);
    let store = open(&place, &clock);
    store.put_grant(row.clone()).await.unwrap();
    store.replace(&key, None, &flow).await.unwrap();
    let (_, fence, _) = ours(store.claim(&claim(&row, 7)).await.unwrap());
    store.close().await;
    let store = open(&place, &clock);
    let found = store.grant(&row.key).await.unwrap().unwrap();
    assert_eq!(found.lease.as_ref().unwrap().fence, fence);
    assert!(store.save(&next(&found, fence)).await.unwrap());
    assert_eq!(store.take(&key).await.unwrap(), Some(flow));
}
