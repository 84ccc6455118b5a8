//! A round opens for its own request, within its time, and for nothing else.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::{address::Target, subject::Scopes, vault::Keyring};

fn sealer() -> Sealer {
    let folder = tempfile::tempdir().expect("a folder");
    let keyring = Keyring::open(&folder.path().join("keyring")).expect("a keyring");
    keyring.sealer("rounds")
}

fn subject() -> Subject {
    Subject {
        tenant: "default".into(),
        agent: "agent".into(),
        user: "ann".into(),
        groups: Arc::new([]),
        scopes: Scopes::CALL,
        conversation: None,
        turn: None,
        acting: None,
        evidence: "key:1".into(),
    }
}

fn endpoint(origin: &str, path: &str) -> Endpoint {
    let target = Target::from_wire(origin).expect("a target");
    Endpoint::new(target, path).expect("an endpoint")
}

fn time(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

fn round(state: Option<&str>) -> Round {
    Round::after(None, state, time(1_000)).expect("the first")
}

/// A request that a test changes in one place.
#[derive(Clone)]
struct Request {
    subject: Subject,
    server: &'static str,
    endpoint: Endpoint,
    method: &'static str,
    named: Option<&'static str>,
    arguments: Option<&'static str>,
}

impl Request {
    fn new() -> Self {
        Self {
            subject: subject(),
            server: "demo",
            endpoint: endpoint("https://a.example/", "/mcp?a=b"),
            method: "tools/call",
            named: Some("send"),
            arguments: Some(r#"{"to":"bob","n":[1,2.50]}"#),
        }
    }

    fn with(change: impl FnOnce(&mut Self)) -> Self {
        let mut request = Self::new();
        change(&mut request);
        request
    }

    fn token<'s>(&self, sealer: &'s Sealer) -> Token<'s> {
        let binding = Binding {
            subject: &self.subject,
            server: self.server,
            endpoint: &self.endpoint,
            method: self.method,
            named: self.named,
            arguments: self.arguments,
        };
        Token::new(sealer, &binding).expect("arguments that read alike")
    }
}

#[test]
fn what_was_sealed_comes_back() {
    let sealer = sealer();
    let token = Request::new().token(&sealer);
    for state in [None, Some("\"\""), Some(r#""s\u0074 \" ü""#)] {
        let text = token.seal(&round(state));
        let opened = token.open(&text).expect("its own");
        assert_eq!((opened.number, opened.ends), (1, 2_800));
        assert_eq!(opened.state(), state);
    }
}

#[test]
fn every_other_request_is_refused() {
    let sealer = sealer();
    let sealed = Request::new().token(&sealer).seal(&round(None));
    let others: [fn(&mut Request); 19] = [
        |other| other.subject.tenant = "other".into(),
        |other| other.subject.user = "bob".into(),
        |other| other.subject.agent = "agent2".into(),
        |other| other.subject.evidence = "key:2".into(),
        |other| other.server = "demo2",
        |other| other.endpoint = endpoint("http://a.example/", "/mcp?a=b"),
        |other| other.endpoint = endpoint("https://b.example/", "/mcp?a=b"),
        |other| other.endpoint = endpoint("https://a.example:444/", "/mcp?a=b"),
        |other| other.endpoint = endpoint("https://a.example/", "/mcp?a=c"),
        |other| other.method = "prompts/get",
        |other| other.named = Some("Send"),
        |other| other.named = None,
        |other| other.arguments = None,
        |other| other.arguments = Some("{}"),
        |other| other.arguments = Some(r#"{"to":"eve","n":[1,2.50]}"#),
        |other| other.arguments = Some(r#"{"to":"bob","n":[2.50,1]}"#),
        |other| other.arguments = Some(r#"{"to":"bob","n":[1,2.5]}"#),
        |other| other.arguments = Some(r#"{"to":"bob","n":[1,2.50],"x":null}"#),
        // The same text across the border of two parts.
        |other| {
            other.subject.tenant = "defaulta".into();
            other.subject.user = "nn".into();
        },
    ];
    for (at, change) in others.into_iter().enumerate() {
        let other = Request::with(change);
        assert!(other.token(&sealer).open(&sealed).is_none(), "change {at}");
    }
}

#[test]
fn the_same_request_may_be_written_differently() {
    let sealer = sealer();
    let sealed = Request::new().token(&sealer).seal(&round(None));
    let same: [fn(&mut Request); 5] = [
        |same| same.arguments = Some(r#"{"n":[1,2.50],"to":"bob"}"#),
        |same| same.arguments = Some("{ \"to\" :\n\"b\\u006fb\", \"n\":[ 1 , 2.50 ] }"),
        // Groups, scopes and conversations are judged anew each time.
        |same| same.subject.groups = Arc::new(["g".into()]),
        |same| same.subject.conversation = Some("c".into()),
        |same| same.subject.turn = Some("t".into()),
    ];
    for (at, change) in same.into_iter().enumerate() {
        let same = Request::with(change);
        assert!(same.token(&sealer).open(&sealed).is_some(), "change {at}");
    }
}

#[test]
fn what_reads_differently_to_others_has_no_round() {
    let sealer = sealer();
    let request = Request::with(|request| request.arguments = Some(r#"{"a":1,"a":2}"#));
    let binding = Binding {
        subject: &request.subject,
        server: request.server,
        endpoint: &request.endpoint,
        method: request.method,
        named: request.named,
        arguments: request.arguments,
    };
    assert!(Token::new(&sealer, &binding).is_err());
}

#[test]
fn other_keyrings_and_other_forms_open_nothing() {
    let sealer = sealer();
    let token = Request::new().token(&sealer);
    let sealed = token.seal(&round(Some("\"s\"")));
    assert!(
        Request::new()
            .token(&self::sealer())
            .open(&sealed)
            .is_none()
    );
    for odd in [
        "",
        "x",
        "=",
        &sealed[1..],
        &format!("{sealed}-TAMPERED"),
        &format!("{sealed}="),
    ] {
        assert!(token.open(odd).is_none(), "{odd}");
    }
    for plain in [
        &b""[..],
        b"\x01",
        b"\x01\x01\0\0\0\0\0\0\0",
        b"\x03\x01\0\0\0\0\0\0\0\0",
        b"\x01\x01\0\0\0\0\0\0\0\0\xff",
    ] {
        assert!(Round::from_bytes(plain).is_none(), "{plain:?}");
    }
}

#[test]
fn a_round_lasts_half_an_hour() {
    let round = round(None);
    assert!(!round.is_over(time(1_000)));
    assert!(!round.is_over(time(2_800)));
    assert!(round.is_over(time(2_801)));
}

#[test]
fn the_ninth_question_is_one_too_many() {
    let mut last = None;
    for number in 1..=8 {
        last = Round::after(last.as_ref(), None, time(number * 10_000));
        let round = last.as_ref().expect("within the cap");
        assert_eq!(u64::from(round.number), number);
        assert_eq!(round.ends, number * 10_000 + 1_800, "each has its own time");
    }
    assert!(Round::after(last.as_ref(), None, time(0)).is_none());
}

proptest! {
    #[test]
    fn a_changed_bit_opens_nothing(state in "\"[a-z]{0,40}\"", at: prop::sample::Index, bit in 0..7_u32) {
        let sealer = sealer();
        let token = Request::new().token(&sealer);
        let sealed = token.seal(&round(Some(&state)));
        let mut changed = sealed.clone().into_bytes();
        let at = at.index(changed.len());
        changed[at] ^= 1 << bit;
        let changed = String::from_utf8(changed).expect("ASCII");
        prop_assert!(token.open(&changed).is_none());
        let opened = token.open(&sealed).expect("its own");
        prop_assert_eq!(opened.state(), Some(&*state));
    }
}
