//! What authorization servers answer, and what must follow: every case of `tests/corpus/oauth.jsonl`, through the real way
//! out, over TLS, from a policy as files say it.
//!
//! `TOLLGATE_OAUTH_CASES=FILE` runs the cases of another file of the same format.

mod case;
mod outcome;
mod silence;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use tollgate::{
    deadline::Deadline,
    egress::{Egress, TcpDialer},
    policy::{Auth, OAuth, Permit},
};

use self::case::Case;
use crate::{
    egress::{ample, no_roots},
    support::{
        certs::Authority,
        dialer::{RecordingDialer, TableResolver},
        permit::Maker,
        provider::{Answers, Provider},
    },
};

const SHIPPED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/oauth.jsonl");

/// The cases that this file knows how to run: those about flows and pages have runners of their own.
fn cases() -> Vec<Case> {
    let file = std::env::var("TOLLGATE_OAUTH_CASES").unwrap_or_else(|_| SHIPPED.to_owned());
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .filter(|line| {
            serde_json::from_str::<case::Kind>(line)
                .unwrap()
                .is_of_one_request()
        })
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

/// A way out on which every name of the case leads to `provider`.
fn way_out(case: &Case, provider: &Provider) -> Egress {
    let resolver = TableResolver::default();
    for (host, address) in case.hosts() {
        resolver.then(&host, &[&address]);
    }
    let dialer = RecordingDialer::to(provider.address);
    Egress::new(
        Arc::new(resolver),
        dialer,
        no_roots(),
        ample(),
        Arc::default(),
    )
}

#[tokio::test]
async fn every_case_comes_to_what_it_expects() {
    let authority = Authority::new();
    let (mut wrong, mut seen) = (Vec::new(), BTreeSet::new());
    for case in cases() {
        assert!(seen.insert(case.id.clone()), "{} stands twice", case.id);
        let hosts = case.hosts();
        let names: Vec<&str> = hosts.keys().map(String::as_str).collect();
        let acceptor = authority.acceptor(&names);
        let provider = Provider::start(Some(acceptor), case.answers.clone()).await;
        let egress = way_out(&case, &provider);
        let permit = case.permit(&authority.pem());
        let deadline = Deadline::after(Duration::from_millis(case.deadline_ms.unwrap_or(20_000)));
        let outcome = case.run(&egress, &permit, deadline).await;
        let asked = provider.asked();
        let fits = outcome::fits(&case.expect, &outcome);
        if !fits
            || case
                .asked
                .as_ref()
                .is_some_and(|expected| *expected != asked)
        {
            wrong.push(format!(
                "{} ({}, {}): {outcome}, asked {asked:?}",
                case.id, case.why, case.source
            ));
        }
    }
    assert!(!seen.is_empty(), "no case was run");
    assert!(
        wrong.is_empty(),
        "{} mismatches:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// A server and its provider at one plain port of this machine.
fn local(provider: &Provider, plain: bool) -> (Maker, String) {
    let origin = format!("http://{}", provider.address);
    let mut maker = Maker::new(&format!("{origin}/mcp"));
    maker.auth = Auth::OAuth(Box::new(OAuth {
        allow_http_loopback: plain,
        ..OAuth::default()
    }));
    (maker, origin)
}

fn documents(origin: &str) -> Answers {
    let document =
        |body: String| vec![serde_json::from_str(&format!(r#"{{"body":{body}}}"#)).unwrap()];
    Answers::from([
        (
            format!("GET {origin}/.well-known/oauth-protected-resource/mcp"),
            document(format!(
                r#"{{"resource":"{origin}/mcp","authorization_servers":["{origin}"]}}"#
            )),
        ),
        (
            format!("GET {origin}/.well-known/oauth-authorization-server"),
            document(format!(
                r#"{{"issuer":"{origin}","authorization_endpoint":"{origin}/a","token_endpoint":"{origin}/t","code_challenge_methods_supported":["S256"]}}"#
            )),
        ),
    ])
}

/// The real way out, which knows no names.
fn direct() -> Egress {
    let resolver = Arc::new(TableResolver::default());
    Egress::new(
        resolver,
        Arc::new(TcpDialer),
        no_roots(),
        ample(),
        Arc::default(),
    )
}

async fn found(permit: &Permit) -> Result<String, String> {
    let egress = direct();
    let deadline = Deadline::after(Duration::from_secs(20));
    let found =
        tollgate::connect::provider::discovery::discover(&egress, permit, None, None, deadline)
            .await;
    found
        .map(|found| found.issuer)
        .map_err(|error| error.code().as_str().to_owned())
}

#[tokio::test]
async fn a_provider_on_this_machine_needs_both_the_setting_and_the_grant() {
    let provider = Provider::start(None, Answers::new()).await;
    let (maker, origin) = local(&provider, true);
    provider.answer(documents(&origin));
    let granted = |maker: Maker| maker.granting_oauth("127.0.0.1").permit();
    assert_eq!(found(&granted(local(&provider, true).0)).await, Ok(origin));
    assert_eq!(provider.asked().len(), 2);
    let closed = found(&maker.permit()).await;
    assert_eq!(
        closed,
        Err("egress.address_blocked".into()),
        "without a grant"
    );
    let other = local(&provider, true).0.granting("127.0.0.1").permit();
    let closed = found(&other).await;
    assert_eq!(
        closed,
        Err("egress.address_blocked".into()),
        "a grant for the server is not one for this"
    );
    let closed = found(&granted(local(&provider, false).0)).await;
    assert_eq!(
        closed,
        Err("connect.unusable".into()),
        "without the setting"
    );
    assert_eq!(provider.asked().len(), 2, "nothing else was asked");
}
