//! Links and sign-ins over the real database: each link once, each sign-in for a time, nobody's by somebody else's hand.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rusqlite::Connection;
use tempfile::TempDir;
use tollgate::{
    clock::Clock,
    identity::{Browser, Browsers, Identity, LoginError},
    policy::{Key, Snapshot},
    refusal::Code,
    store::Store,
    subject::{Scopes, Subject},
    telemetry::Metrics,
    vault::Keyring,
};

/// When these tests begin, in Unix seconds.
const BEGIN: u64 = 1_795_989_600;

/// A clock that is set by hand.
pub(super) struct Hand(AtomicU64);

impl Hand {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self(AtomicU64::new(BEGIN)))
    }

    pub(super) fn forward(&self, seconds: u64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }
}

impl Clock for Hand {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(self.0.load(Ordering::SeqCst))
    }
}

/// Browsers of a database, and its clock.
struct Place {
    folder: TempDir,
    clock: Arc<Hand>,
    browsers: Browsers,
}

impl Place {
    fn new(identity: impl FnOnce(Arc<Hand>) -> Identity) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Hand::new();
        let keyring = Keyring::open(&folder.path().join("keyring")).unwrap();
        let file = folder.path().join("tollgate.db");
        let store = Store::open(&file, &keyring, Arc::<Metrics>::default()).unwrap();
        let browsers = Browsers::new(
            identity(clock.clone()),
            Arc::new(store),
            keyring.mac("sessions"),
            clock.clone(),
        );
        Self {
            folder,
            clock,
            browsers,
        }
    }

    fn local() -> Self {
        Self::new(|_| Identity::local("ann", "default"))
    }

    /// The database, in somebody else's hands.
    fn sql(&self, statement: &str) -> usize {
        let file = self.folder.path().join("tollgate.db");
        Connection::open(file)
            .unwrap()
            .execute(statement, [])
            .unwrap()
    }

    async fn link(&self) -> String {
        let policy = Snapshot::default();
        self.browsers
            .invite(None, None, &policy)
            .await
            .unwrap()
            .token
    }

    async fn sign_in(&self) -> (String, Browser) {
        let link = self.link().await;
        self.browsers
            .sign_in(&link, &Snapshot::default())
            .await
            .unwrap()
    }

    /// Who the cookie stands for, or why for nobody.
    async fn who(&self, id: &str) -> Result<String, Code> {
        let policy = Snapshot::default();
        let browser = self.browsers.recognise(id, &policy).await;
        browser
            .map(|browser| browser.user.to_string())
            .map_err(|error| error.code())
    }
}

#[tokio::test]
async fn a_link_signs_in_once() {
    let place = Place::local();
    let policy = Snapshot::default();
    let invitation = place.browsers.invite(None, None, &policy).await.unwrap();
    assert_eq!(invitation.token.len(), 64);
    assert_eq!(invitation.lasts, 300);
    // Looking does not use it up.
    for _ in 0..2 {
        let owner = place
            .browsers
            .invited(&invitation.token, &policy)
            .await
            .unwrap();
        assert_eq!((&*owner.tenant, &*owner.user), ("default", "ann"));
    }
    let (id, browser) = place
        .browsers
        .sign_in(&invitation.token, &policy)
        .await
        .unwrap();
    assert_eq!(&*browser.agent, "browser");
    assert_eq!(place.who(&id).await, Ok("ann".to_owned()));
    let again = place.browsers.sign_in(&invitation.token, &policy).await;
    assert!(matches!(again, Err(LoginError::Link)));
    let looked = place.browsers.invited(&invitation.token, &policy).await;
    assert!(matches!(looked, Err(LoginError::Link)));
}

#[tokio::test]
async fn of_many_who_use_a_link_one_is_signed_in() {
    let place = Place::local();
    let link = place.link().await;
    let policy = Snapshot::default();
    let tries = (0..32).map(|_| place.browsers.sign_in(&link, &policy));
    let signed_in = futures_util::future::join_all(tries).await;
    assert_eq!(signed_in.iter().filter(|tried| tried.is_ok()).count(), 1);
}

#[tokio::test]
async fn a_link_lasts_five_minutes() {
    let place = Place::local();
    let (late, kept) = (place.link().await, place.link().await);
    place.clock.forward(299);
    let policy = Snapshot::default();
    assert!(place.browsers.sign_in(&kept, &policy).await.is_ok());
    place.clock.forward(1);
    let refused = place.browsers.sign_in(&late, &policy).await;
    assert!(matches!(refused, Err(LoginError::Link)));
    // Another link takes what has ended away.
    let link = place.link().await;
    assert_eq!(place.sql("UPDATE login_links SET ends = ends"), 1);
    assert!(place.browsers.invited(&link, &policy).await.is_ok());
}

#[tokio::test]
async fn what_is_no_token_is_nobodys() {
    let place = Place::local();
    let (id, _) = place.sign_in().await;
    let policy = Snapshot::default();
    for wrong in [
        "",
        "0",
        &id[..63],
        &format!("{id}0"),
        &id.replace(|_| true, "g"),
        &"0".repeat(64),
    ] {
        assert_eq!(place.who(wrong).await, Err(Code::SignedOut), "{wrong}");
        let linked = place.browsers.sign_in(wrong, &policy).await;
        assert!(matches!(linked, Err(LoginError::Link)), "{wrong}");
    }
    // The id of a sign-in is no link, and no link is an id.
    assert!(place.browsers.sign_in(&id, &policy).await.is_err());
    let link = place.link().await;
    assert_eq!(place.who(&link).await, Err(Code::SignedOut));
}

#[tokio::test]
async fn a_sign_in_ends_after_eight_silent_hours() {
    let place = Place::local();
    let (id, _) = place.sign_in().await;
    for _ in 0..3 {
        place.clock.forward(8 * 3600 - 1);
        assert_eq!(place.who(&id).await, Ok("ann".to_owned()));
    }
    place.clock.forward(8 * 3600);
    assert_eq!(place.who(&id).await, Err(Code::SignedOut));
    assert_eq!(place.sql("UPDATE sessions SET seen = seen"), 0);
}

#[tokio::test]
async fn a_sign_in_ends_after_seven_days_whatever_it_does() {
    let place = Place::local();
    let (id, _) = place.sign_in().await;
    for _ in 0..27 {
        place.clock.forward(6 * 3600);
        assert_eq!(place.who(&id).await, Ok("ann".to_owned()));
    }
    place.clock.forward(6 * 3600);
    assert_eq!(place.who(&id).await, Err(Code::SignedOut));
}

#[tokio::test]
async fn sign_ins_are_listed_and_ended() {
    let place = Place::local();
    let (mine, browser) = place.sign_in().await;
    place.clock.forward(60);
    let (other, _) = place.sign_in().await;
    let listed = place.browsers.sign_ins(&browser).await.unwrap();
    let facts: Vec<_> = listed.iter().map(|one| (one.since, one.own)).collect();
    assert_eq!(facts, [(1_795_989_660, false), (1_795_989_600, true)]);
    assert!(
        place
            .browsers
            .revoke(&browser, &listed[0].name)
            .await
            .unwrap()
    );
    assert!(
        !place
            .browsers
            .revoke(&browser, &listed[0].name)
            .await
            .unwrap()
    );
    assert_eq!(place.who(&other).await, Err(Code::SignedOut));
    assert_eq!(place.who(&mine).await, Ok("ann".to_owned()));
    place.browsers.sign_out(&browser).await.unwrap();
    assert_eq!(place.who(&mine).await, Err(Code::SignedOut));
}

#[tokio::test]
async fn a_user_keeps_the_last_32_sign_ins() {
    let place = Place::local();
    let (first, _) = place.sign_in().await;
    place.clock.forward(1);
    let mut last = first.clone();
    for _ in 0..32 {
        (last, _) = place.sign_in().await;
    }
    assert_eq!(place.who(&first).await, Err(Code::SignedOut));
    assert_eq!(place.who(&last).await, Ok("ann".to_owned()));
    assert_eq!(place.sql("UPDATE sessions SET seen = seen"), 32);
}

#[tokio::test]
async fn rows_that_somebody_changed_sign_nobody_in() {
    for change in [
        "UPDATE sessions SET user = 'bob'",
        "UPDATE sessions SET tenant = 'other'",
        "UPDATE sessions SET ends = ends + 1",
        "UPDATE sessions SET seen = seen + 1",
        "UPDATE sessions SET made = made - 1",
        "UPDATE sessions SET mac = zeroblob(32)",
        "UPDATE sessions SET mac = x'00'",
        "UPDATE sessions SET (user, mac) = ('bob', (SELECT mac FROM sessions WHERE user = 'ann'))",
    ] {
        let place = Place::local();
        let (id, _) = place.sign_in().await;
        assert_eq!(place.sql(change), 1, "{change}");
        assert_eq!(place.who(&id).await, Err(Code::RecordForged), "{change}");
    }
    for change in [
        "UPDATE login_links SET user = 'bob'",
        "UPDATE login_links SET ends = ends + 3600",
        "UPDATE login_links SET mac = zeroblob(32)",
    ] {
        let place = Place::local();
        let link = place.link().await;
        assert_eq!(place.sql(change), 1, "{change}");
        let tried = place.browsers.sign_in(&link, &Snapshot::default()).await;
        assert_eq!(tried.err().unwrap().code(), Code::RecordForged, "{change}");
    }
}

/// A sign-in that is moved to the place of another one, whose id somebody knows.
#[tokio::test]
async fn a_row_does_not_serve_another_id() {
    let place = Place::local();
    let (mine, _) = place.sign_in().await;
    let (other, _) = place.sign_in().await;
    place.sql("CREATE TABLE digests AS SELECT digest FROM sessions");
    place.sql("DELETE FROM sessions WHERE digest = (SELECT digest FROM digests LIMIT 1)");
    place.sql("UPDATE sessions SET digest = (SELECT digest FROM digests LIMIT 1)");
    let mut found = [place.who(&mine).await, place.who(&other).await];
    found.sort();
    assert_eq!(
        found,
        [Err(Code::SignedOut), Err(Code::RecordForged)].map(|one| one)
    );
}

fn key(user: &str, groups: &[&str], acts_for: &[&str], expires: Option<SystemTime>) -> Arc<Key> {
    let scopes = Scopes {
        act_for: !acts_for.is_empty(),
        ..Scopes::CALL
    };
    Arc::new(Key {
        subject: Arc::new(Subject {
            tenant: "acme".into(),
            agent: "ci".into(),
            user: user.into(),
            groups: groups.iter().map(|group| Arc::from(*group)).collect(),
            scopes,
            conversation: None,
            turn: None,
            acting: None,
            evidence: "key".into(),
        }),
        may_act_for: acts_for.iter().map(|user| Arc::from(*user)).collect(),
        may_assert_groups: false,
        expires,
    })
}

fn keys(keys: &[Arc<Key>]) -> Snapshot {
    let numbered = keys.iter().enumerate();
    Snapshot {
        keys: numbered
            .map(|(number, key)| ([number as u8; 32], key.clone()))
            .collect(),
        ..Snapshot::default()
    }
}

#[tokio::test]
async fn with_agent_keys_the_operator_names_somebody_whom_they_know() {
    let place = Place::new(|clock| Identity::keys(clock));
    let ended = UNIX_EPOCH + Duration::from_secs(BEGIN);
    let policy = keys(&[
        key("ann", &["eng"], &[], None),
        key("ann", &["ops", "eng"], &[], None),
        key("app", &["apps"], &["bob"], None),
        key("gone", &[], &[], Some(ended)),
    ]);
    let invite = |tenant, user| place.browsers.invite(Some(tenant), user, &policy);
    let link = invite("acme", Some("ann")).await.unwrap().token;
    let (id, browser) = place.browsers.sign_in(&link, &policy).await.unwrap();
    assert_eq!(&*browser.tenant, "acme");
    let groups: Vec<_> = browser.groups.iter().map(|group| &**group).collect();
    assert_eq!(groups, ["eng", "ops"]);
    // That a key may act for somebody gives him none of its groups.
    let link = invite("acme", Some("bob")).await.unwrap().token;
    let (_, bob) = place.browsers.sign_in(&link, &policy).await.unwrap();
    assert!(bob.groups.is_empty());
    for (tenant, user) in [
        ("acme", "eve"),
        ("other", "ann"),
        ("acme", "gone"),
        ("acme", ""),
    ] {
        let refused = invite(tenant, Some(user)).await.err().unwrap();
        assert!(matches!(refused, LoginError::UserUnknown { .. }), "{user}");
    }
    let refused = invite("acme", None).await.err().unwrap();
    assert!(matches!(refused, LoginError::UserMissing));
    // Who is taken out of the policy is signed out at once.
    let without = keys(&[key("bob", &[], &[], None)]);
    let refused = place.browsers.recognise(&id, &without).await;
    assert!(matches!(refused, Err(LoginError::SignedOut)));
    let everyone = keys(&[key("app", &[], &["*"], None)]);
    assert!(place.browsers.recognise(&id, &everyone).await.is_ok());
}

#[tokio::test]
async fn a_user_of_one_tenant_needs_no_tenant_named() {
    let place = Place::new(|clock| Identity::keys(clock));
    let of = |tenant: &str, mut key: Arc<Key>| {
        let subject = &mut Arc::get_mut(&mut key).unwrap().subject;
        Arc::get_mut(subject).unwrap().tenant = tenant.into();
        key
    };
    let policy = keys(&[
        of("acme", key("ana", &[], &[], None)),
        of("acme", key("bob", &[], &[], None)),
        of("beta", key("bob", &[], &[], None)),
    ]);
    let invite = |tenant, user| place.browsers.invite(tenant, Some(user), &policy);
    let ana = invite(None, "ana").await.unwrap().owner;
    assert_eq!((&*ana.tenant, &*ana.user), ("acme", "ana"));
    let bob = invite(Some("beta"), "bob").await.unwrap().owner;
    assert_eq!(&*bob.tenant, "beta");
    for (tenant, user, why) in [
        (
            None,
            "bob",
            "there is a user `bob` of the tenants `acme`, `beta`, expected one of them; name it with --tenant",
        ),
        (
            None,
            "eve",
            "user `eve` of the tenants `acme`, `beta` is not known, expected one that a key in keys.toml names or may act \
             for; name one of those",
        ),
        (
            Some("beta"),
            "ana",
            "user `ana` of tenant `beta` is not known, expected one that a key in keys.toml names or may act for; name one \
             of those",
        ),
    ] {
        let refused = invite(tenant, user).await.err().unwrap();
        assert_eq!(refused.to_string(), why);
    }
}

#[tokio::test]
async fn the_local_user_is_the_only_one() {
    let place = Place::local();
    let policy = Snapshot::default();
    for (tenant, user) in [
        (None, Some("bob")),
        (Some("other"), None),
        (Some("other"), Some("ann")),
    ] {
        let refused = place.browsers.invite(tenant, user, &policy).await;
        assert!(
            matches!(refused, Err(LoginError::NotLocal { .. })),
            "{user:?}"
        );
    }
    let named = place
        .browsers
        .invite(Some("default"), Some("ann"), &policy)
        .await;
    assert!(named.is_ok());
}

/// What is kept shows no token to whoever reads it.
#[tokio::test]
async fn the_database_holds_digests() {
    let place = Place::local();
    let link = place.link().await;
    let (id, browser) = place.sign_in().await;
    assert!(!format!("{browser:?}").contains(&id));
    let mut content = Vec::new();
    for file in ["tollgate.db", "tollgate.db-wal"] {
        content.extend(std::fs::read(place.folder.path().join(file)).unwrap());
    }
    for secret in [link, id] {
        let found = content
            .windows(64)
            .any(|window| window == secret.as_bytes());
        assert!(!found);
    }
}
