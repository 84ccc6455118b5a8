use uuid::Uuid;

use super::*;
use crate::{
    connect::{GrantState, Lease},
    subject::Owner,
    vault::Kid,
};

const NOW: i64 = 1_800_000_000;

fn key() -> GrantKey {
    GrantKey {
        owner: Owner {
            tenant: "default".into(),
            user: "ann".into(),
        },
        server: "demo".into(),
    }
}

fn row(lease: Option<(i64, bool)>, next_try: Option<i64>) -> GrantRow {
    GrantRow {
        record: Uuid::nil(),
        key: key(),
        grant: [0; 16],
        version: 1,
        issuer: "".into(),
        client: "".into(),
        resource: None,
        state: GrantState::Active,
        expires_at: None,
        next_try,
        lease: lease.map(|(until, sent)| Lease {
            fence: 1,
            holder: Uuid::nil(),
            until,
            sent,
        }),
        kid: Kid([0; 8]),
        sealed: Vec::new(),
        created_at: 0,
    }
}

#[test]
fn a_lease_is_somebodys_until_it_runs_out() {
    let turn = |until, sent| turn(&row(Some((until, sent)), None), NOW);
    assert_eq!(super::turn(&row(None, None), NOW), Turn::Free);
    assert_eq!(turn(NOW + 30, true), Turn::Taken);
    assert_eq!(turn(NOW + 1, false), Turn::Taken);
    assert_eq!(turn(NOW, true), Turn::Abandoned);
    assert_eq!(turn(NOW, false), Turn::Free);
    assert_eq!(
        turn(NOW + 61, true),
        Turn::Abandoned,
        "left behind by a clock"
    );
}

#[test]
fn a_row_is_left_alone_until_its_next_try() {
    let pause = |next_try| pause(&row(None, next_try), NOW);
    assert_eq!(pause(None), None);
    assert_eq!(pause(Some(NOW + 7)), Some(7));
    assert_eq!(pause(Some(NOW)), None);
    assert_eq!(pause(Some(NOW - 7)), None);
    assert_eq!(pause(Some(NOW + 3600)), Some(3600));
    assert_eq!(pause(Some(NOW + 3601)), None, "left behind by a clock");
}

#[tokio::test(start_paused = true)]
async fn pauses_double_and_a_provider_has_its_say() {
    let patience = Patience::new();
    let failed = |wanted: Option<u64>| {
        let wanted = wanted.map(Duration::from_secs);
        patience
            .failed(&key(), "https://as.example/token", wanted)
            .as_secs()
    };
    let pauses: Vec<_> = (0..10).map(|_| failed(None)).collect();
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]);
    assert_eq!(failed(Some(7)), 300);
    assert_eq!(failed(Some(1000)), 1000);
    assert_eq!(failed(Some(1_000_000)), 3600);
    patience.answered(&key(), "https://as.example/token");
    assert_eq!(failed(None), 1);
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_fails_for_everybody_is_left_alone() {
    let patience = Patience::new();
    let endpoint = "https://as.example/token";
    let user = |number: u32| GrantKey {
        owner: Owner {
            tenant: "default".into(),
            user: number.to_string().into(),
        },
        server: "demo".into(),
    };
    for number in 0..4 {
        patience.failed(&user(number), endpoint, None);
        assert!(!patience.troubled(endpoint), "{number}");
    }
    patience.failed(&user(4), endpoint, None);
    assert!(patience.troubled(endpoint));
    assert!(!patience.troubled("https://other.example/token"));
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(!patience.troubled(endpoint));
    patience.failed(&user(5), endpoint, None);
    tokio::time::advance(Duration::from_millis(1999)).await;
    assert!(patience.troubled(endpoint));
    patience.answered(&user(5), endpoint);
    assert!(!patience.troubled(endpoint));
}

#[test]
fn what_does_not_open_is_told_of_once() {
    let patience = Patience::new();
    let record = Uuid::from_u128(1);
    assert!(patience.tell(record, 1));
    assert!(!patience.tell(record, 1));
    assert!(patience.tell(record, 2));
    assert!(patience.tell(Uuid::nil(), 1));
}

#[test]
fn a_forced_token_is_known_by_its_digest() {
    let patience = Patience::new();
    patience.forced(&key(), [7; 32]);
    assert!(patience.was_forced(&key(), &[7; 32]));
    assert!(!patience.was_forced(&key(), &[8; 32]));
}
