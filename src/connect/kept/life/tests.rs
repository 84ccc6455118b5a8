use super::*;
use crate::{
    connect::provider::register::{Client, Origin},
    policy::TokenAuth,
};

const WALL: i64 = 1_800_000_000;

fn token(obtained_at: i64, expires_at: Option<i64>) -> Payload {
    Payload {
        access: String::new().into(),
        refresh: None,
        expires_at,
        refresh_expires_at: None,
        requested_scopes: Vec::new(),
        granted_scopes: Vec::new(),
        issuer: String::new(),
        token_endpoint: String::new(),
        revocation_endpoint: None,
        client: Client {
            id: "x".to_owned(),
            secret: None,
            auth: TokenAuth::None,
            secret_expires_at: None,
            management: None,
            origin: Origin::Dynamic,
        },
        resource_sent: None,
        endpoint: String::new(),
        obtained_at,
        wanted: Vec::new(),
        tried: Vec::new(),
        refused_at: None,
    }
}

/// Seconds after which a token of this lifetime is due and over, where it was just issued.
fn ends(lifetime: i64, seed: u64) -> (u64, u64) {
    let now = Instant::now();
    let life = Life::of(&token(WALL, Some(WALL + lifetime)), seed, WALL, now);
    let first = |age| {
        let at = |seconds| now + Duration::from_secs(seconds);
        (0..10_000).find(|seconds| life.age(WALL, at(*seconds)) == age)
    };
    let over = first(Age::Over).unwrap();
    (first(Age::Due).unwrap_or(over), over)
}

#[test]
fn a_token_is_due_a_minute_or_a_fifth_before_its_end() {
    assert_eq!(ends(3600, 0), (3540, 3600));
    assert_eq!(ends(3600, 10), (3530, 3600));
    assert_eq!(ends(3600, 11), (3540, 3600));
    assert_eq!(ends(300, 0), (240, 300));
    assert_eq!(ends(100, 0), (80, 100));
    assert_eq!(ends(30, 3), (21, 30));
    assert_eq!(ends(29, 3), (29, 29), "on use only");
    assert_eq!(ends(0, 3), (0, 0));
    assert_eq!(ends(-5, 3), (0, 0));
}

#[test]
fn a_token_without_an_end_has_none() {
    let now = Instant::now();
    let life = Life::of(&token(WALL, None), 0, WALL, now);
    let later = now + Duration::from_secs(1_000_000);
    assert_eq!(life.age(WALL + 1_000_000, later), Age::Fresh);
}

#[test]
fn a_clock_that_is_set_back_makes_no_token_older_than_its_life() {
    let now = Instant::now();
    // Seen while wall time is a day behind what it was when the token came.
    let life = Life::of(&token(WALL, Some(WALL + 3600)), 0, WALL - 86_400, now);
    let at = |seconds| life.age(WALL - 86_400, now + Duration::from_secs(seconds));
    assert_eq!(at(3539), Age::Fresh);
    assert_eq!(at(3540), Age::Due);
    assert_eq!(at(3600), Age::Over);
}

#[test]
fn a_clock_that_is_set_while_a_token_is_known_ends_nothing() {
    let now = Instant::now();
    let life = Life::of(&token(WALL, Some(WALL + 3600)), 0, WALL, now);
    let soon = now + Duration::from_secs(10);
    assert_eq!(life.age(WALL + 10, soon), Age::Fresh);
    assert_eq!(life.age(WALL - 86_400, soon), Age::Fresh, "set back");
    assert_eq!(
        life.age(WALL + 86_400, soon),
        Age::Due,
        "set forth, or asleep"
    );
    let end = now + Duration::from_secs(3600);
    assert_eq!(life.age(WALL - 86_400, end), Age::Over, "however it is set");
}
