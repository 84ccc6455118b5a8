//! Cases of the corpus through `send` itself: `redirect` with answers from a table, `dns` over the real resolver and a
//! name server on loopback. Every address leads to a server of the test, and every dial is remembered.
//!
//! `TOLLGATE_CORPUS=FILE` runs the cases of another file of the same format.

mod case;
mod served;

use std::{collections::HashSet, fmt::Write as _, sync::Arc};

use tollgate::{
    address::Rules,
    egress::{Dns, DnsSettings, Egress, Resolve},
    policy::{Permit, Trust},
};

use self::case::{Case, Response};
use crate::{
    egress::{ample, no_roots, send},
    support::{
        certs::Authority,
        dialer::{Behaviour, RecordingDialer, TableResolver},
        nameserver::NameServer,
        permit::Maker,
        upstream::Upstream,
    },
};

const SHIPPED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/egress.jsonl");

/// The cases of one kind.
fn cases(kind: &str) -> Vec<Case> {
    let file = std::env::var("TOLLGATE_CORPUS").unwrap_or_else(|_| SHIPPED.to_owned());
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .filter(|line| serde_json::from_str::<case::Kind>(line).unwrap().kind == kind)
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

/// What became of a request, in the words of the corpus.
async fn verdict(egress: &Egress, permit: &Permit) -> (&'static str, String) {
    match send(egress, permit).await {
        // `upstream` makes an error of it (`upstream.unauthorized`); its challenge is not followed here.
        Ok(inbound) if inbound.status.as_u16() == 401 => ("error", "401".to_owned()),
        Ok(inbound) => ("allow", inbound.status.to_string()),
        Err(failed) => {
            let code = failed.error.code().as_str();
            let blocked = ["egress.address_blocked", "egress.name_blocked"].contains(&code);
            (
                if blocked { "deny" } else { "error" },
                failed.error.to_string(),
            )
        }
    }
}

/// A server for the host of a case that gives these answers in order, the last for ever.
async fn server(case: &Case, authority: &Authority) -> Upstream {
    let answers: Arc<Vec<String>> = Arc::new(case.setup.responses.iter().map(answer).collect());
    let script = move |mut connection: crate::support::upstream::Connection| {
        let answers = answers.clone();
        async move {
            let mut number = 0;
            while connection.request().await.is_some() {
                let answer = answers.get(number).or_else(|| answers.last());
                let plain = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                connection
                    .write(answer.map_or(plain, String::as_str).as_bytes())
                    .await;
                number += 1;
            }
        }
    };
    match case.input.url.strip_prefix("https://") {
        Some(_) => Upstream::tls(authority.acceptor(&[&case.host()]), script).await,
        None => Upstream::plain(script).await,
    }
}

fn answer(response: &Response) -> String {
    let mut text = format!("HTTP/1.1 {} X\r\ncontent-length: 0\r\n", response.status);
    let location = response.location.iter().map(|to| ("location", to.as_str()));
    let others = response
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    for (name, value) in location.chain(others) {
        write!(text, "{name}: {value}\r\n").unwrap();
    }
    text + "\r\n"
}

fn permit(case: &Case, authority: &Authority, rules: Rules) -> Permit {
    let trust = Trust {
        roots: vec![authority.pem().into()],
        digest: [1; 32],
    };
    Maker {
        trust,
        rules,
        ..Maker::new(&case.input.url)
    }
    .permit()
}

fn way_out(
    case: &Case,
    upstream: &Upstream,
    resolver: Arc<dyn Resolve>,
) -> (Egress, Arc<RecordingDialer>) {
    let refusing = case.refusing();
    let refusing: Vec<_> = refusing
        .iter()
        .map(|address| (address.as_str(), Behaviour::Refuses))
        .collect();
    let dialer = RecordingDialer::with(Behaviour::Leads(upstream.address), &refusing);
    (
        Egress::new(
            resolver,
            dialer.clone(),
            no_roots(),
            ample(),
            Arc::default(),
        ),
        dialer,
    )
}

#[tokio::test]
async fn no_redirect_of_the_corpus_opens_a_second_connection() {
    let authority = Authority::new();
    let mut wrong = Vec::new();
    for case in cases("redirect") {
        let upstream = server(&case, &authority).await;
        let resolver = TableResolver::default();
        for (name, answer) in &case.setup.dns {
            let addresses: Vec<&str> = answer.addresses().collect();
            resolver.then(name, &addresses);
        }
        let (egress, dialer) = way_out(&case, &upstream, Arc::new(resolver));
        let (got, why) = verdict(&egress, &permit(&case, &authority, case.rules())).await;
        let dialled = dialer.dialled();
        let judged: HashSet<&str> = case
            .answer()
            .into_iter()
            .flat_map(case::Answer::addresses)
            .collect();
        let strays = dialled
            .iter()
            .filter(|address| !judged.contains(address.rsplit_once(':').unwrap().0))
            .count();
        if !case.accepts(got) || dialled.len() > 1 || strays > 0 || upstream.requests().len() > 1 {
            wrong.push(format!(
                "{}: {got} ({why}), dialled {dialled:?}; {}",
                case.id, case.reason
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} mismatches:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[tokio::test]
async fn dns_answers_of_the_corpus_get_their_verdict_over_a_real_resolver() {
    let authority = Authority::new();
    let mut wrong = Vec::new();
    for case in cases("dns").into_iter().filter(Case::is_listed) {
        let upstream = server(&case, &authority).await;
        let names = case.setup.dns.clone();
        let nameserver = NameServer::start(move |question| case::reply(&names, question)).await;
        let settings = DnsSettings {
            servers: vec![nameserver.address],
            zones: Vec::new(),
            patience: case::PATIENCE,
        };
        let resolver = || Arc::new(Dns::new(&settings).unwrap());
        let (egress, dialer) = way_out(&case, &upstream, resolver());
        let permit = permit(&case, &authority, case.rules());
        let mut last = verdict(&egress, &permit).await;
        let mut before = Vec::new();
        for _ in 1..case.requests() {
            before = dialer.dialled();
            // A fresh resolver remembers nothing, as if the time to live had passed.
            egress.use_resolver(resolver());
            last = verdict(&egress, &permit).await;
        }
        let (got, why) = last;
        let dialled = dialer.dialled();
        let fits = if got == "allow" {
            !dialled.is_empty()
        } else {
            dialled == before
        };
        if !case.accepts(got) || !fits {
            wrong.push(format!(
                "{}: {got} ({why}), dialled {dialled:?}; {}",
                case.id, case.reason
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} mismatches:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
