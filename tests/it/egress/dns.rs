//! The real resolver against a real name server on loopback.

use std::{sync::Arc, time::Duration};

use hickory_proto::{op::ResponseCode, rr::RecordType};
use tollgate::{
    address::{Host, Name, Target},
    egress::{
        Answer, Dns, DnsSettings, Egress, Family, LeftOut, Patience, Resolve as _, ResolveError,
        Zone,
    },
};

use super::{OK, ample, no_roots, send};
use crate::support::{
    dialer::RecordingDialer,
    nameserver::{NameServer, Question, Reply},
    permit::Maker,
    upstream::Upstream,
};

const SHORT: Patience = Patience {
    whole: Duration::from_secs(2),
    behind: Duration::from_millis(500),
};

fn name(text: &str) -> Name {
    match Target::from_operator(&format!("https://{text}/"))
        .unwrap()
        .host()
    {
        Host::Name(name) => name.clone(),
        Host::Ip(address) => panic!("{address} is no name"),
    }
}

fn dns(server: &NameServer, patience: Patience) -> Dns {
    let settings = DnsSettings {
        servers: vec![server.address],
        zones: Vec::new(),
        patience,
    };
    Dns::new(&settings).unwrap()
}

async fn ask(
    answer: impl Fn(&Question) -> Reply + Send + Sync + 'static,
    patience: Patience,
) -> (Result<Answer, ResolveError>, Vec<Question>) {
    let server = NameServer::start(answer).await;
    let result = dns(&server, patience).resolve(&name("api.test")).await;
    (result, server.seen())
}

fn addresses(answer: &Answer) -> Vec<String> {
    answer.addresses.iter().map(ToString::to_string).collect()
}

/// One reply for each family.
fn families(v4: Reply, v6: Reply) -> impl Fn(&Question) -> Reply + Send + Sync + 'static {
    move |question| match question.records {
        RecordType::A => v4.clone(),
        RecordType::AAAA => v6.clone(),
        other => panic!("{other} must not be asked for"),
    }
}

#[tokio::test]
async fn both_families_make_one_answer_in_turn() {
    let (answer, seen) = ask(
        families(
            Reply::of(&["1.1.1.1", "9.9.9.9"]),
            Reply::of(&["2606:4700:4700::1111"]),
        ),
        Patience::default(),
    )
    .await;
    let answer = answer.unwrap();
    assert_eq!(
        addresses(&answer),
        ["2606:4700:4700::1111", "1.1.1.1", "9.9.9.9"]
    );
    assert_eq!(answer.left_out, None);
    assert_eq!(seen.len(), 2);
    assert!(
        seen.iter().all(|question| question.name == "api.test."),
        "{seen:?}"
    );
}

#[tokio::test]
async fn an_empty_family_is_part_of_the_answer() {
    let (answer, _) = ask(
        families(Reply::of(&["1.1.1.1"]), Reply::nothing()),
        Patience::default(),
    )
    .await;
    let answer = answer.unwrap();
    assert_eq!(
        (addresses(&answer), answer.left_out),
        (vec!["1.1.1.1".to_owned()], None)
    );
}

#[tokio::test]
async fn a_family_that_fails_is_left_out_and_named() {
    let broken = Reply::Code(ResponseCode::ServFail);
    let (answer, _) = ask(families(Reply::of(&["1.1.1.1"]), broken), SHORT).await;
    let answer = answer.unwrap();
    assert_eq!(addresses(&answer), ["1.1.1.1"]);
    let left_out = answer.left_out.unwrap();
    assert_eq!(
        left_out,
        LeftOut {
            family: Family::V6,
            why: "the name servers failed"
        }
    );
    assert_eq!(
        left_out.to_string(),
        "AAAA left out: the name servers failed"
    );
}

#[tokio::test]
async fn a_family_that_is_late_is_left_out_and_named() {
    let (answer, _) = ask(
        families(Reply::Silence, Reply::of(&["2606:4700:4700::1111"])),
        SHORT,
    )
    .await;
    let answer = answer.unwrap();
    assert_eq!(addresses(&answer), ["2606:4700:4700::1111"]);
    let why = "the name servers were too slow";
    assert_eq!(
        answer.left_out,
        Some(LeftOut {
            family: Family::V4,
            why
        })
    );
}

#[tokio::test]
async fn names_without_an_answer_are_told_apart() {
    let api = name("api.test");
    for (reply, error, code) in [
        (
            Reply::Code(ResponseCode::NXDomain),
            ResolveError::NoName(api.clone()),
            "egress.name_unresolved",
        ),
        (
            Reply::nothing(),
            ResolveError::NoAddress(api.clone()),
            "egress.name_unresolved",
        ),
        (
            Reply::Code(ResponseCode::ServFail),
            ResolveError::Failed(api.clone()),
            "egress.dns_failed",
        ),
        (
            Reply::Code(ResponseCode::Refused),
            ResolveError::Failed(api.clone()),
            "egress.dns_failed",
        ),
        (
            Reply::Silence,
            ResolveError::Timeout(api.clone()),
            "egress.dns_timeout",
        ),
    ] {
        let (answer, _) = ask(families(reply.clone(), reply), SHORT).await;
        let found = answer.unwrap_err();
        assert_eq!(found.code().as_str(), code);
        assert_eq!(found, error);
    }
}

#[tokio::test]
async fn an_empty_family_does_not_hide_that_the_other_failed() {
    let broken = Reply::Code(ResponseCode::ServFail);
    let (answer, _) = ask(families(Reply::nothing(), broken), SHORT).await;
    assert_eq!(answer, Err(ResolveError::Failed(name("api.test"))));
}

#[tokio::test]
async fn a_truncated_answer_is_asked_again_over_tcp() {
    let (answer, seen) = ask(
        |question| match (question.records, question.tcp) {
            (RecordType::A, false) => Reply::Truncated(Vec::new()),
            (RecordType::A, true) => Reply::of(&["1.1.1.1"]),
            _ => Reply::nothing(),
        },
        Patience::default(),
    )
    .await;
    assert_eq!(addresses(&answer.unwrap()), ["1.1.1.1"]);
    assert!(seen.iter().any(|question| question.tcp));
}

#[tokio::test]
async fn aliases_are_followed_within_an_answer_and_across_answers() {
    let whole = Reply::of(&[
        "api.test.>b.test.",
        "b.test.>c.test.",
        "c.test.=1.1.1.1",
        "stray.test.=9.9.9.9",
    ]);
    let (answer, _) = ask(families(whole, Reply::nothing()), Patience::default()).await;
    assert_eq!(
        addresses(&answer.unwrap()),
        ["1.1.1.1"],
        "records of other names are ignored"
    );

    let (answer, _) = ask(
        |question| match (question.name.as_str(), question.records) {
            ("api.test.", _) => Reply::of(&["api.test.>b.test."]),
            ("b.test.", RecordType::A) => Reply::of(&["1.1.1.1"]),
            _ => Reply::nothing(),
        },
        Patience::default(),
    )
    .await;
    assert_eq!(addresses(&answer.unwrap()), ["1.1.1.1"]);
}

#[tokio::test]
async fn too_many_aliases_are_an_error() {
    let chain = |length: usize| {
        let mut records: Vec<String> = (1..length)
            .map(|at| format!("a{at}.test.>a{}.test.", at + 1))
            .collect();
        records.insert(0, "api.test.>a1.test.".to_owned());
        records.push(format!("a{length}.test.=1.1.1.1"));
        Reply::Records(records, 60)
    };
    let (answer, _) = ask(families(chain(8), Reply::nothing()), Patience::default()).await;
    assert_eq!(addresses(&answer.unwrap()), ["1.1.1.1"]);
    let (answer, _) = ask(families(chain(9), Reply::nothing()), Patience::default()).await;
    assert_eq!(answer, Err(ResolveError::TooManyAliases(name("api.test"))));
}

#[tokio::test]
async fn too_many_addresses_are_an_error() {
    let many =
        |count: usize| Reply::Records((0..count).map(|at| format!("1.1.1.{at}")).collect(), 60);
    let (answer, _) = ask(families(many(32), Reply::nothing()), Patience::default()).await;
    assert_eq!(answer.unwrap().addresses.len(), 32);
    let (answer, _) = ask(families(many(33), Reply::nothing()), Patience::default()).await;
    assert_eq!(
        answer,
        Err(ResolveError::TooManyAddresses(name("api.test")))
    );
}

#[tokio::test]
async fn answers_are_remembered_and_missing_names_too() {
    let server = NameServer::start(
        |question| match (question.name.as_str(), question.records) {
            ("api.test.", RecordType::A) => Reply::of(&["1.1.1.1"]),
            ("api.test.", _) => Reply::nothing(),
            _ => Reply::Code(ResponseCode::NXDomain),
        },
    )
    .await;
    let dns = dns(&server, Patience::default());
    for _ in 0..3 {
        dns.resolve(&name("api.test")).await.unwrap();
        assert_eq!(
            dns.resolve(&name("gone.test")).await,
            Err(ResolveError::NoName(name("gone.test")))
        );
    }
    assert_eq!(server.seen().len(), 4);
}

#[tokio::test]
async fn questions_at_the_same_time_are_asked_once() {
    let server = NameServer::start(families(
        Reply::of(&["1.1.1.1"]),
        Reply::Code(ResponseCode::ServFail),
    ))
    .await;
    let dns = dns(&server, SHORT);
    let (api, other) = (name("api.test"), name("other.test"));
    drop(dns.resolve(&api));
    let (one, two, three) = tokio::join!(dns.resolve(&api), dns.resolve(&api), dns.resolve(&other));
    assert_eq!(one.unwrap(), two.unwrap());
    assert_eq!(addresses(&three.unwrap()), ["1.1.1.1"]);
    let asked = |name: &str| {
        let questions = server.seen();
        let like =
            |question: &&Question| question.name == name && question.records == RecordType::A;
        questions.iter().filter(like).count()
    };
    assert_eq!((asked("api.test."), asked("other.test.")), (1, 1));
}

#[tokio::test]
async fn a_zone_has_servers_of_its_own() {
    let inside = NameServer::start(families(Reply::of(&["10.0.0.1"]), Reply::nothing())).await;
    let deeper = NameServer::start(families(Reply::of(&["10.0.0.2"]), Reply::nothing())).await;
    let outside = NameServer::start(families(Reply::of(&["1.1.1.1"]), Reply::nothing())).await;
    let zone = |suffix: &str, server: &NameServer| Zone {
        suffix: suffix.to_owned(),
        servers: vec![server.address],
    };
    let dns = Dns::new(&DnsSettings {
        servers: vec![outside.address],
        zones: vec![
            zone("corp.test", &inside),
            zone(".Deep.corp.test.", &deeper),
        ],
        patience: Patience::default(),
    })
    .unwrap();
    for (text, address) in [
        ("corp.test", "10.0.0.1"),
        ("a.b.corp.test", "10.0.0.1"),
        ("x.deep.corp.test", "10.0.0.2"),
        ("notcorp.test", "1.1.1.1"),
    ] {
        assert_eq!(
            addresses(&dns.resolve(&name(text)).await.unwrap()),
            [address],
            "{text}"
        );
    }
}

#[tokio::test]
async fn a_rebound_name_is_judged_anew() {
    let server = NameServer::start(|question| match (question.records, question.earlier) {
        (RecordType::A, 0) => Reply::Records(vec!["1.1.1.1".to_owned()], 0),
        (RecordType::A, _) => Reply::Records(vec!["127.0.0.1".to_owned()], 0),
        _ => Reply::nothing(),
    })
    .await;
    let upstream = Upstream::always(OK).await;
    let dialer = RecordingDialer::to(upstream.address);
    let resolver = Arc::new(dns(&server, Patience::default()));
    let egress = Egress::new(
        resolver,
        dialer.clone(),
        no_roots(),
        ample(),
        Arc::default(),
    );
    let permit = Maker::new("http://api.test/mcp").permit();
    send(&egress, &permit)
        .await
        .unwrap()
        .body
        .collect(10)
        .await
        .unwrap();
    // A time to live of 0 is taken for a second; a fresh resolver stands for the time after it.
    egress.use_resolver(Arc::new(dns(&server, Patience::default())));
    let failed = send(&egress, &permit).await.unwrap_err();
    assert_eq!(failed.error.code().as_str(), "egress.address_blocked");
    assert_eq!(dialer.dialled(), ["1.1.1.1:80"]);
}

#[test]
fn without_a_server_there_is_no_resolver() {
    let error = Dns::new(&DnsSettings::default()).err().unwrap();
    assert_eq!(
        error.to_string(),
        "no name server for `.`; set `[dns] servers`"
    );
}
