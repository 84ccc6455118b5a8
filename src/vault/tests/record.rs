//! Records: the form, and that nothing but what was sealed opens, for nothing but what it was sealed for.

use std::{fmt, marker::PhantomData};

use proptest::prelude::*;
use uuid::{Uuid, uuid};

use super::{super::*, COUNTED, counted, folder, write};
use crate::{
    id::hex,
    vault::{keys::Keys, record},
};

const RECORD: Uuid = uuid!("0193e0c0-0000-7000-8000-000000000001");
/// The end of every record's head, from which the fields of the seal follow.
const NONCE_AT: usize = 45;

/// What is sealed below: a record with every field.
fn full() -> Binding<'static> {
    Binding {
        purpose: Purpose::Grant,
        record: RECORD,
        tenant: "acme",
        user: Some("ann"),
        server: Some("notes"),
        issuer: Some("https://as.example/"),
        client: Some("client-1"),
        resource: Some("https://notes.example/mcp"),
        grant: Some([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]),
        version: 7,
    }
}

/// One with as few as can be.
fn sparse() -> Binding<'static> {
    Binding {
        purpose: Purpose::Client,
        user: None,
        server: None,
        client: None,
        resource: None,
        grant: None,
        version: 1,
        ..full()
    }
}

fn counted_keys() -> Keys {
    let (_folder, path) = folder();
    write(&path, COUNTED, 0o600);
    keyring::read(&path, None).expect("keys").0
}

fn opened(vault: &Vault, binding: &Binding<'_>, sealed: &[u8]) -> Result<Vec<u8>, Unopened> {
    vault
        .open(binding, sealed)
        .map(|opened| opened.expose().to_vec())
}

/// What was sealed by one version opens in every later one. The expected bytes were computed with another
/// implementation of HKDF and AES-GCM.
#[test]
fn the_form_stays() {
    let (keys, salt) = (counted_keys(), b"sixteen salt b..");
    let seal = |binding: &Binding<'_>, plain: &[u8]| {
        record::seal_with(&keys, binding, plain, salt, b"twelve bytes")
    };
    let (grant, client) = (seal(&full(), b"a secret"), seal(&sparse(), b""));
    assert_eq!(hex(&grant), GRANT);
    assert_eq!(hex(&client), CLIENT);
    let vault = counted().vault();
    assert_eq!(opened(&vault, &full(), &grant), Ok(b"a secret".to_vec()));
    assert_eq!(opened(&vault, &sparse(), &client), Ok(Vec::new()));
    assert_eq!(vault.primary().to_string(), "f5526df39562884a");
    assert_eq!(Kid::of(&grant), Some(vault.primary()));
    assert_eq!(record::OVERHEAD, 73);
}

const GRANT: &str = "5447560101f5526df39562884a7369787465656e2073616c7420622e2ee2e64daa51cc15285ef96d34867f5f76\
     7477656c7665206279746573f9228f78a3d73561bc06237035157e80c9444e74b9c0e75b";
const CLIENT: &str = "5447560101f5526df39562884a7369787465656e2073616c7420622e2eb971beee39bdb9988f4c1a2be287494b\
     7477656c7665206279746573be0b014219eaab1eda97b12987d1b1c4";

/// Every single change of what a record belongs to.
fn others() -> Vec<Binding<'static>> {
    let mut others = Vec::new();
    let purposes = [
        Purpose::Client,
        Purpose::Pending,
        Purpose::Spool,
        Purpose::Secret,
        Purpose::Shared,
        Purpose::Discovery,
        Purpose::Check,
    ];
    let mut other = |change: &dyn Fn(&mut Binding<'static>)| {
        let mut binding = full();
        change(&mut binding);
        others.push(binding);
    };
    for purpose in purposes {
        other(&|binding| binding.purpose = purpose);
    }
    other(&|binding| binding.record = uuid!("0193e0c0-0000-7000-8000-000000000002"));
    for tenant in ["", "Acme", "acme ", "acm"] {
        other(&|binding| binding.tenant = tenant);
    }
    for user in [
        None,
        Some(""),
        Some("bob"),
        Some("Ann"),
        Some("a\u{0301}nn"),
    ] {
        other(&|binding| binding.user = user);
    }
    for server in [None, Some(""), Some("note"), Some("notes2")] {
        other(&|binding| binding.server = server);
    }
    for issuer in [None, Some(""), Some("https://as.example")] {
        other(&|binding| binding.issuer = issuer);
    }
    for client in [None, Some(""), Some("client-2")] {
        other(&|binding| binding.client = client);
    }
    for resource in [None, Some(""), Some("https://notes.example/mcp/")] {
        other(&|binding| binding.resource = resource);
    }
    for grant in [None, Some([0; 16])] {
        other(&|binding| binding.grant = grant);
    }
    for version in [0, 6, 8, 7 << 56] {
        other(&|binding| binding.version = version);
    }
    // The same bytes, divided elsewhere or in other fields.
    other(&|binding| (binding.tenant, binding.user) = ("acmea", Some("nn")));
    other(&|binding| (binding.user, binding.server) = (Some("notes"), Some("ann")));
    other(&|binding| (binding.user, binding.server) = (Some("annnotes"), None));
    other(&|binding| (binding.issuer, binding.client) = (binding.client, binding.issuer));
    others
}

#[test]
fn a_record_opens_for_nothing_else() {
    let vault = counted().vault();
    let sealed = vault.seal(&full(), b"a secret");
    assert_eq!(opened(&vault, &full(), &sealed), Ok(b"a secret".to_vec()));
    for other in others() {
        let found = opened(&vault, &other, &sealed);
        assert_eq!(found, Err(Unopened::Tampered), "{other:?}");
        let theirs = vault.seal(&other, b"a secret");
        let found = opened(&vault, &full(), &theirs);
        assert_eq!(found, Err(Unopened::Tampered), "moved from {other:?}");
    }
}

#[test]
fn an_absent_field_is_no_empty_one() {
    let vault = counted().vault();
    let sealed = vault.seal(&sparse(), b"");
    for field in 0..4 {
        let mut empty = sparse();
        let fields = [
            &mut empty.user,
            &mut empty.server,
            &mut empty.client,
            &mut empty.resource,
        ];
        *fields.into_iter().nth(field).unwrap() = Some("");
        assert_eq!(opened(&vault, &empty, &sealed), Err(Unopened::Tampered));
    }
}

#[test]
fn every_bit_and_every_byte_counts() {
    let vault = counted().vault();
    let sealed = vault.seal(&full(), b"a secret");
    for at in 0..sealed.len() {
        for bit in 0..8 {
            let mut changed = sealed.clone();
            changed[at] ^= 1 << bit;
            let expected = match at {
                0..5 => Unopened::Form,
                5..13 => Unopened::UnknownKey(Kid::of(&changed).unwrap()),
                _ => Unopened::Tampered,
            };
            assert_eq!(opened(&vault, &full(), &changed), Err(expected), "{at}");
        }
        assert!(opened(&vault, &full(), &sealed[..at]).is_err(), "cut {at}");
    }
    let longer = [&*sealed, b"x"].concat();
    assert_eq!(opened(&vault, &full(), &longer), Err(Unopened::Tampered));
}

/// Parts of two records that the same key sealed for the same make no third one.
#[test]
fn parts_of_two_records_are_no_record() {
    let vault = counted().vault();
    let (one, two) = (vault.seal(&full(), b"first"), vault.seal(&full(), b"other"));
    for cut in [29, NONCE_AT, 57, one.len() - 16] {
        let mixed = [&one[..cut], &two[cut..]].concat();
        let found = opened(&vault, &full(), &mixed);
        assert_eq!(found, Err(Unopened::Tampered), "{cut}");
    }
}

#[test]
fn every_seal_has_a_salt_and_a_nonce_of_its_own() {
    let vault = counted().vault();
    let (one, two) = (vault.seal(&full(), b"text"), vault.seal(&full(), b"text"));
    assert_eq!(one[..13], two[..13]);
    assert_ne!(one[13..29], two[13..29]);
    assert_ne!(one[NONCE_AT..57], two[NONCE_AT..57]);
}

#[test]
fn another_deployment_with_the_same_keys_opens_nothing() {
    let (here, mut there) = (counted_keys(), counted_keys());
    there.deployment[15] ^= 1;
    let sealed = record::seal(&here, &full(), b"a secret");
    assert!(record::open(&here, &full(), &sealed).is_ok());
    let found = record::open(&there, &full(), &sealed).err();
    assert_eq!(found, Some(Unopened::Tampered));
}

#[test]
fn another_keyring_does_not_know_the_key() {
    let (_folder, path) = folder();
    let elsewhere = Keyring::open(&path).expect("made").vault();
    let vault = counted().vault();
    let sealed = vault.seal(&full(), b"a secret");
    let found = opened(&elsewhere, &full(), &sealed);
    assert_eq!(found, Err(Unopened::UnknownKey(vault.primary())));
}

/// Whether a type can be shown, found out while compiling.
struct Probe<T>(PhantomData<T>);

trait Otherwise {
    const SHOWN: bool = false;
}

impl<T> Otherwise for Probe<T> {}

impl<T: fmt::Debug> Probe<T> {
    const SHOWN: bool = true;
}

#[test]
fn what_holds_secrets_cannot_be_shown() {
    const { assert!(Probe::<Vec<u8>>::SHOWN) };
    const { assert!(!Probe::<Opened>::SHOWN) };
    const { assert!(!Probe::<Vault>::SHOWN) };
    const { assert!(!Probe::<Keyring>::SHOWN) };
    const { assert!(!Probe::<Kek>::SHOWN) };
    const { assert!(!Probe::<Credential>::SHOWN) };
    const { assert!(!Probe::<Sealer>::SHOWN) };
    const { assert!(!Probe::<Mac>::SHOWN) };
}

proptest! {
    #[test]
    fn what_is_sealed_opens(plain: Vec<u8>, user: Option<String>, resource: Option<String>, version: u64) {
        let binding = Binding { user: user.as_deref(), resource: resource.as_deref(), version, ..full() };
        let vault = counted().vault();
        let sealed = vault.seal(&binding, &plain);
        prop_assert_eq!(sealed.len(), plain.len() + record::OVERHEAD);
        prop_assert_eq!(opened(&vault, &binding, &sealed), Ok(plain));
    }

    #[test]
    fn two_bindings_open_each_other_only_where_they_are_equal(
        one in fields(), two in fields(),
    ) {
        let vault = counted().vault();
        let bind = |fields: &'static [Option<String>; 5]| Binding {
            user: fields[0].as_deref(),
            server: fields[1].as_deref(),
            issuer: fields[2].as_deref(),
            client: fields[3].as_deref(),
            resource: fields[4].as_deref(),
            ..full()
        };
        let (one, two): (&'static _, &'static _) = (Box::leak(Box::new(one)), Box::leak(Box::new(two)));
        let sealed = vault.seal(&bind(one), b"text");
        prop_assert_eq!(vault.open(&bind(two), &sealed).is_ok(), one == two);
    }

    #[test]
    fn any_bytes_are_answered(bytes: Vec<u8>) {
        let vault = counted().vault();
        prop_assert!(vault.open(&full(), &bytes).is_err());
        let begun = [&b"TGV\x01\x01\xf5\x52\x6d\xf3\x95\x62\x88\x4a"[..], &bytes].concat();
        prop_assert!(vault.open(&full(), &begun).is_err());
    }
}

/// Few different ones, so that equal ones come up.
fn fields() -> impl Strategy<Value = [Option<String>; 5]> {
    prop::array::uniform5(prop::option::of("[ab]{0,1}"))
}
