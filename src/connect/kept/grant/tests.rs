use uuid::Uuid;
use zeroize::Zeroizing;

use super::*;
use crate::{
    connect::{GrantKey, GrantState, provider::register::Origin},
    policy::TokenAuth,
    subject::Owner,
    vault::Keyring,
};

fn vault() -> Vault {
    let folder = tempfile::tempdir().unwrap();
    Keyring::open(&folder.path().join("keyring"))
        .unwrap()
        .vault()
}

fn payload(access: &str) -> Payload {
    Payload {
        access: Zeroizing::new(access.to_owned()),
        refresh: Some(Zeroizing::new("rt \"\\\u{7f}é".to_owned())),
        expires_at: Some(1_800_003_600),
        refresh_expires_at: None,
        requested_scopes: vec!["a".to_owned(), "b".to_owned()],
        granted_scopes: vec!["a".to_owned()],
        issuer: "https://as.example".to_owned(),
        token_endpoint: "https://as.example/token".to_owned(),
        revocation_endpoint: None,
        client: Client {
            id: "gateway".to_owned(),
            secret: Some(Zeroizing::new("secret".to_owned())),
            auth: TokenAuth::Post,
            secret_expires_at: None,
            management: None,
            origin: Origin::Dynamic,
        },
        resource_sent: Some("https://tools.example/mcp".to_owned()),
        endpoint: "https://tools.example:443/mcp".to_owned(),
        obtained_at: 1_800_000_000,
        wanted: Vec::new(),
        tried: Vec::new(),
        refused_at: None,
    }
}

fn row() -> GrantRow {
    GrantRow {
        record: Uuid::from_u128(1),
        key: GrantKey {
            owner: Owner {
                tenant: "default".into(),
                user: "ann".into(),
            },
            server: "demo".into(),
        },
        grant: [7; 16],
        version: 1,
        issuer: "https://as.example".into(),
        client: "gateway".into(),
        resource: Some("https://tools.example/mcp".into()),
        state: GrantState::Active,
        expires_at: None,
        next_try: None,
        lease: None,
        kid: Kid([0; 8]),
        sealed: Vec::new(),
        created_at: 0,
    }
}

#[test]
fn what_is_sealed_opens_again_as_it_was() {
    let vault = vault();
    let mut row = row();
    row.sealed = seal(&vault, &row, &payload("at"));
    assert_eq!(kid(&row.sealed), vault.primary());
    let opened = open(&vault, &row).unwrap();
    assert_eq!(*opened.access, "at");
    assert_eq!(opened.refresh.as_ref().unwrap().as_str(), "rt \"\\\u{7f}é");
    assert_eq!(opened.expires_at, Some(1_800_003_600));
    assert_eq!(opened.client.secret.as_ref().unwrap().as_str(), "secret");
    assert_eq!(opened.client.auth, TokenAuth::Post);
    assert_eq!(
        opened.resource_sent.as_deref(),
        Some("https://tools.example/mcp")
    );
}

#[test]
fn lengths_tell_no_token_from_another() {
    let vault = vault();
    let length = |access: &str| seal(&vault, &row(), &payload(access)).len();
    let overhead = 3 + 2 + 8 + 16 + 16 + 12 + 16;
    let mut lengths: Vec<_> = (0..=256)
        .map(|n| length(&"a".repeat(n)) - overhead)
        .collect();
    lengths.dedup();
    let [shorter, longer] = lengths[..] else {
        panic!("{lengths:?}");
    };
    assert_eq!((shorter % 256, longer - shorter), (0, 256));
}

#[test]
fn it_opens_nowhere_else() {
    let vault = vault();
    let mut row = row();
    row.sealed = seal(&vault, &row, &payload("at"));
    let edits: [fn(&mut GrantRow); 10] = [
        |row| row.record = Uuid::from_u128(2),
        |row| row.key.owner.tenant = "other".into(),
        |row| row.key.owner.user = "bob".into(),
        |row| row.key.server = "elsewhere".into(),
        |row| row.grant = [8; 16],
        |row| row.version = 2,
        |row| row.issuer = "https://as.example/".into(),
        |row| row.client = "other".into(),
        |row| row.resource = None,
        |row| row.sealed[60] ^= 1,
    ];
    for (number, edit) in edits.into_iter().enumerate() {
        let mut edited = row.clone();
        edit(&mut edited);
        assert!(open(&vault, &edited).is_err(), "{number}");
    }
    assert!(open(&vault, &row).is_ok());
}

#[test]
fn it_can_be_refreshed_while_its_refresh_token_lasts() {
    let mut payload = payload("at");
    assert!(payload.refreshable(1_900_000_000));
    payload.refresh_expires_at = Some(1_800_000_010);
    assert!(payload.refreshable(1_800_000_009));
    assert!(!payload.refreshable(1_800_000_010));
    payload.refresh = None;
    assert!(!payload.refreshable(0));
}
