//! `keys.toml`.

use std::time::UNIX_EPOCH;

use super::*;
use crate::subject::Scopes;

#[test]
fn every_key_of_an_agent_key_acts() {
    let text = format!(
        "[[key]]\nsha256 = \"{0}\"\nagent = \"ci\"\nuser = \"ann\"\ngroups = [\"eng\"]\n\
         [[key]]\nsha256 = \"{1}\"\nagent = \"app\"\ntenant = \"default\"\nuser = \"app\"\nscopes = [\"act-for\"]\n\
         may_act_for = [\"*\"]\nmay_assert_groups = true\nexpires = 1970-01-02T01:00:00+01:00\n\
         [[key]]\nsha256 = \"{2}\"\nagent = \"x\"\nuser = \"x\"\nscopes = [\"call\"]\nexpires = 1970-01-03\n",
        "0a".repeat(32),
        "0B".repeat(32),
        "0c".repeat(32)
    );
    let policy = policy(&[("keys.toml", &text)]);
    let ci = &policy.keys[&[0x0a; 32]];
    assert_eq!(
        (&*ci.subject.agent, &*ci.subject.tenant, &*ci.subject.user),
        ("ci", "default", "ann")
    );
    assert_eq!(*ci.subject.groups, [Arc::from("eng")]);
    assert_eq!(&*ci.subject.evidence, "key:0a0a0a0a0a0a0a0a");
    assert_eq!((ci.subject.scopes, ci.expires), (Scopes::CALL, None));
    let app = &policy.keys[&[0x0b; 32]];
    assert!(app.subject.scopes.act_for && !app.subject.scopes.call && app.may_assert_groups);
    assert_eq!(app.may_act_for, [Arc::from("*")]);
    assert_eq!(app.expires, Some(UNIX_EPOCH + Duration::from_secs(86_400)));
    let dated = &policy.keys[&[0x0c; 32]];
    assert_eq!(
        dated.expires,
        Some(UNIX_EPOCH + Duration::from_secs(2 * 86_400))
    );
}

#[test]
fn keys_that_contradict_themselves_or_one_another_are_faults() {
    let one = "0a".repeat(32);
    let key = format!("[[key]]\nsha256 = \"{one}\"\nagent = \"a\"\nuser = \"u\"\n");
    let text = format!("{key}{key}scopes = []\nmay_act_for = [\"v\"]\nexpires = 10:00:00\n");
    assert_eq!(
        faults(&[("keys.toml", &text)]),
        "\
keys.toml:6:10: key[1].sha256: the key of keys.toml:1 again; remove one of the two
keys.toml:9:10: key[1].scopes: a key without a scope opens nothing; name one, or remove the key `scopes` for `call`
keys.toml:10:15: key[1].may_act_for: has no effect without the scope `act-for`; add it to scopes, or remove this key
keys.toml:11:11: key[1].expires: expected a date, or a time with its offset like 2027-01-31T12:00:00Z; correct it"
    );
    let text = format!("{key}scopes = [\"act-for\"]\n");
    assert!(faults(&[("keys.toml", &text)]).contains("`act-for` needs users"));
}

#[test]
fn keys_beside_the_local_user_are_a_fault() {
    let text = format!(
        "[[key]]\nsha256 = \"{}\"\nagent = \"a\"\nuser = \"u\"\n",
        "0a".repeat(32)
    );
    let local = || Local {
        tenant: "default".into(),
        user: "me".into(),
    };
    let found = compiled(&[("keys.toml", &text)], |inputs| {
        inputs.local = Some(local())
    });
    assert_eq!(
        found.expect_err("a fault"),
        [
            "keys.toml:1:1: key[0]: keys are not asked for, since every caller is the local user; add `[identity.keys]` to \
          tollgate.toml (and remove `[identity.local]`), or remove the keys"
        ]
    );
    let alone = compiled(&[], |inputs| inputs.local = Some(local())).expect("no faults");
    assert!(alone.keys.is_empty());
}
