use std::{
    collections::HashMap,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use super::*;
use crate::{
    policy::Key,
    refusal::Code,
    subject::{Scopes, Subject},
};
use sha2::{Digest, Sha256};

const NOW: SystemTime = UNIX_EPOCH;

struct Fixed(SystemTime);

impl Clock for Fixed {
    fn now(&self) -> SystemTime {
        self.0
    }
}

fn subject(scopes: Scopes) -> Arc<Subject> {
    Arc::new(Subject {
        tenant: "default".into(),
        agent: "ci".into(),
        user: "alice".into(),
        groups: Arc::new(["eng".into()]),
        scopes,
        conversation: None,
        turn: None,
        acting: None,
        evidence: "key:a95e5472b4168973".into(),
    })
}

fn key() -> Key {
    Key {
        subject: subject(Scopes::CALL),
        may_act_for: Vec::new(),
        may_assert_groups: false,
        expires: None,
    }
}

fn app_key() -> Key {
    Key {
        subject: subject(Scopes {
            act_for: true,
            ..Scopes::CALL
        }),
        may_act_for: vec!["bob".into()],
        ..key()
    }
}

fn identify(key: Key, headers: &[(&'static str, &str)]) -> Result<Caller, Error> {
    let policy = Snapshot {
        keys: HashMap::from_iter([(Sha256::digest("tg_one").into(), Arc::new(key))]),
        ..Snapshot::default()
    };
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(*name, value.parse().unwrap());
    }
    Identity::keys(Arc::new(Fixed(NOW))).identify(&map, &policy)
}

fn code(result: Result<Caller, Error>) -> Code {
    result.unwrap_err().code()
}

#[test]
fn a_key_names_its_caller() {
    let caller = identify(key(), &[("authorization", "bearer tg_one")]).unwrap();
    assert_eq!((&*caller.agent, &*caller.user), ("ci", "alice"));
    assert_eq!(&*caller.groups, &["eng".into()]);
    assert_eq!(caller.acting, None);
    assert_eq!(&*caller.evidence, "key:a95e5472b4168973");
    assert_eq!(caller.conversation, None);
}

#[test]
fn evidence_that_fails_is_refused() {
    assert_eq!(code(identify(key(), &[])), Code::EvidenceMissing);
    let bearer = |text| code(identify(key(), &[("authorization", text)]));
    assert_eq!(bearer("Bearer tg_two"), Code::EvidenceInvalid);
    assert_eq!(bearer("Bearer other"), Code::EvidenceInvalid);
    assert_eq!(bearer("Basic dGdfb25l"), Code::EvidenceInvalid);
    assert_eq!(bearer("Bearer"), Code::EvidenceInvalid);
    assert_eq!(bearer("Bearer tg_o ne"), Code::EvidenceInvalid);
    let twice = [("authorization", "Bearer tg_one"); 2];
    assert_eq!(identify(key(), &twice).unwrap_err(), Error::Doubled);
}

#[test]
fn a_key_stops_at_the_instant_it_expires() {
    let until = |end| Key {
        expires: Some(end),
        ..key()
    };
    let one = [("authorization", "Bearer tg_one")];
    assert_eq!(code(identify(until(NOW), &one)), Code::EvidenceExpired);
    assert!(identify(until(NOW + Duration::from_nanos(1)), &one).is_ok());
}

#[test]
fn a_key_without_the_call_scope_does_not_call() {
    let vouch = Key {
        subject: subject(Scopes {
            vouch: true,
            ..Scopes::default()
        }),
        ..key()
    };
    let refused = identify(vouch, &[("authorization", "Bearer tg_one")]);
    assert_eq!(code(refused), Code::ScopeMissing);
}

#[test]
fn an_app_key_acts_for_the_users_it_names() {
    let one = ("authorization", "Bearer tg_one");
    let caller = identify(app_key(), &[one, ("tollgate-user", "bob")]).unwrap();
    assert_eq!(&*caller.user, "bob");
    assert!(caller.groups.is_empty(), "the key's groups stay its own");
    assert_eq!(caller.acting.as_deref(), Some("key:a95e5472b4168973"));

    let refused =
        |key, more: &[(&'static str, &str)]| code(identify(key, &[&[one], more].concat()));
    assert_eq!(
        refused(app_key(), &[("tollgate-user", "eve")]),
        Code::ActingRefused
    );
    assert_eq!(
        refused(key(), &[("tollgate-user", "bob")]),
        Code::ActingRefused
    );
    assert_eq!(
        refused(app_key(), &[("tollgate-groups", "a")]),
        Code::ActingRefused
    );
    let asserting = [("tollgate-user", "bob"), ("tollgate-groups", "eng, ops")];
    assert_eq!(refused(app_key(), &asserting), Code::ActingRefused);
    let twice = [("tollgate-user", "bob"), ("tollgate-user", "bob")];
    assert_eq!(refused(app_key(), &twice), Code::HeaderDuplicate);

    let may = Key {
        may_act_for: vec!["*".into()],
        may_assert_groups: true,
        ..app_key()
    };
    let caller = identify(may, &[&[one], &asserting[..]].concat()).unwrap();
    assert_eq!(&*caller.groups, &["eng".into(), "ops".into()]);
}

#[test]
fn a_proxy_url_may_name_the_keys_own_user() {
    let identify = |key: Key, user: Option<&str>| {
        let policy = Snapshot {
            keys: HashMap::from_iter([(Sha256::digest("tg_one").into(), Arc::new(key))]),
            ..Snapshot::default()
        };
        let identity = Identity::keys(Arc::new(Fixed(NOW)));
        identity.identify_proxied(Some(b"tg_one"), user, &HeaderMap::new(), &policy)
    };
    let own = subject(Scopes::CALL).user.clone();
    for user in [None, Some(&*own)] {
        let caller = identify(app_key(), user).unwrap();
        assert_eq!(&*caller.user, &*own);
        assert_eq!(caller.acting, None);
        assert_eq!(caller.groups, subject(Scopes::CALL).groups);
    }
    let caller = identify(app_key(), Some("bob")).unwrap();
    assert_eq!(caller.acting.as_deref(), Some("key:a95e5472b4168973"));
    assert_eq!(code(identify(key(), Some("bob"))), Code::ActingRefused);
}

#[test]
fn conversation_and_turn_are_short_visible_and_single() {
    let with = |more: &[(&'static str, &str)]| {
        identify(
            key(),
            &[&[("authorization", "Bearer tg_one")], more].concat(),
        )
    };
    let caller = with(&[("tollgate-conversation", "c-1"), ("tollgate-turn", "7")]).unwrap();
    assert_eq!(caller.conversation.as_deref(), Some("c-1"));
    assert_eq!(caller.turn.as_deref(), Some("7"));
    assert_eq!(code(with(&[("tollgate-turn", "a b")])), Code::BadHead);
    assert_eq!(code(with(&[("tollgate-turn", "")])), Code::BadHead);
    assert_eq!(
        code(with(&[("tollgate-turn", &"x".repeat(129))])),
        Code::BadHead
    );
    assert_eq!(
        code(with(&[("tollgate-turn", "1"), ("tollgate-turn", "1")])),
        Code::HeaderDuplicate
    );
}

#[test]
fn the_local_user_needs_no_credential_and_takes_none() {
    let local = Identity::local("me", "home");
    let policy = Snapshot::default();
    let caller = local.identify(&HeaderMap::new(), &policy).unwrap();
    assert_eq!((&*caller.tenant, &*caller.user), ("home", "me"));
    let with = |name: &'static str| {
        let headers = HeaderMap::from_iter([(name.parse().unwrap(), "tg_one".parse().unwrap())]);
        code(local.identify(&headers, &policy))
    };
    assert_eq!(with("authorization"), Code::EvidenceInvalid);
    assert_eq!(with("tollgate-user"), Code::ActingRefused);
}

fn proxied(key: Key, presented: Option<&str>, user: Option<&str>) -> Result<Caller, Error> {
    let policy = holding(key);
    let mut headers = HeaderMap::new();
    headers.append("tollgate-user", "eve".parse().unwrap());
    headers.append("tollgate-turn", "t1".parse().unwrap());
    let presented = presented.map(str::as_bytes);
    Identity::keys(Arc::new(Fixed(NOW))).identify_proxied(presented, user, &headers, &policy)
}

fn holding(key: Key) -> Snapshot {
    Snapshot {
        keys: HashMap::from_iter([(Sha256::digest("tg_one").into(), Arc::new(key))]),
        ..Snapshot::default()
    }
}

#[test]
fn a_proxy_credential_is_judged_as_a_key_is() {
    let caller = proxied(key(), Some("tg_one"), None).unwrap();
    assert_eq!(
        (&*caller.user, caller.turn.as_deref()),
        ("alice", Some("t1"))
    );
    let caller = proxied(app_key(), Some("tg_one"), Some("bob")).unwrap();
    assert_eq!(&*caller.user, "bob");
    assert_eq!(code(proxied(key(), None, None)), Code::EvidenceMissing);
    assert_eq!(
        code(proxied(key(), Some("tg_two"), None)),
        Code::EvidenceInvalid
    );
    assert_eq!(
        code(proxied(key(), Some("one"), None)),
        Code::EvidenceInvalid
    );
    assert_eq!(
        code(proxied(key(), Some("tg_one"), Some("bob"))),
        Code::ActingRefused
    );
    assert_eq!(
        code(proxied(app_key(), Some("tg_one"), Some("eve"))),
        Code::ActingRefused
    );

    let local = Identity::local("ann", "default");
    let local = |key| local.identify_proxied(key, None, &HeaderMap::new(), &Snapshot::default());
    assert_eq!(&*local(None).unwrap().user, "ann");
    assert_eq!(local(Some(b"tg_one")).unwrap_err(), Error::NotJudged);
}

#[test]
fn a_caller_is_judged_again_by_the_key_that_named_it() {
    let identity = Identity::keys(Arc::new(Fixed(NOW)));
    let caller = proxied(app_key(), Some("tg_one"), Some("bob")).unwrap();
    let again = |policy: &Snapshot| identity.again(&caller, policy);
    let same = again(&holding(app_key())).unwrap();
    assert_eq!((&*same.user, same.turn.as_deref()), ("bob", Some("t1")));
    assert_eq!(again(&Snapshot::default()).unwrap_err(), Error::Unknown);
    let narrowed = Key {
        may_act_for: vec!["eve".into()],
        ..app_key()
    };
    assert_eq!(code(again(&holding(narrowed))), Code::ActingRefused);
    let over = Key {
        expires: Some(NOW),
        ..app_key()
    };
    assert_eq!(again(&holding(over)).unwrap_err(), Error::Expired);
}

#[test]
fn a_key_that_names_somebody_else_is_another_key() {
    let identity = Identity::keys(Arc::new(Fixed(NOW)));
    let caller = proxied(key(), Some("tg_one"), None).unwrap();
    let named = |change: fn(&mut Subject)| {
        let mut subject = Subject::clone(&key().subject);
        change(&mut subject);
        let key = Key {
            subject: Arc::new(subject),
            ..key()
        };
        identity.again(&caller, &holding(key)).map(|_| ())
    };
    assert_eq!(named(|_| ()), Ok(()));
    assert_eq!(named(|own| own.groups = ["eng".into()].into()), Ok(()));
    assert_eq!(named(|own| own.user = "eve".into()), Err(Error::Unknown));
    assert_eq!(named(|own| own.tenant = "acme".into()), Err(Error::Unknown));
    assert_eq!(named(|own| own.agent = "other".into()), Err(Error::Unknown));
}
