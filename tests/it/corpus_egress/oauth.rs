//! The `oauth` cases: a whole connection is made over real TLS, a real name server and the real judge, as far as the case
//! lets it be, and what stops it is the verdict.

mod served;
mod walk;

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

use super::{SHIPPED, case};

/// A line of the corpus; a key that is not known here fails the test.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    id: String,
    input: Input,
    setup: Setup,
    allowlist: Vec<String>,
    expect: String,
    also_ok: Option<String>,
    reason: String,
    #[serde(rename = "kind")]
    _kind: String,
    #[serde(default, rename = "source")]
    _source: Value,
    #[serde(default, rename = "tag")]
    _tag: Value,
}

/// What is done; one of these.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Somebody connects to this server.
    mcp_url: Option<String>,
    /// A connection is refreshed.
    refresh: Option<String>,
    /// The client is known by this document.
    cimd: Option<String>,
    /// A server is described by an OpenAPI document.
    openapi_url: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Setup {
    #[serde(default)]
    dns: HashMap<String, case::Answer>,
    /// The `WWW-Authenticate` of the server.
    challenge: Option<String>,
    /// The metadata of the protected resource.
    prm: Option<Value>,
    /// That of the authorization server.
    #[serde(rename = "as")]
    metadata: Option<Value>,
    #[serde(default)]
    as_body_bytes: usize,
    as_content_type: Option<String>,
    #[serde(default)]
    responses: Vec<Response>,
    stored_token_endpoint: Option<String>,
    client_id_metadata_url: Option<String>,
    tool_result: Option<Value>,
    icons: Option<Value>,
    elicitation_url: Option<String>,
    sse_endpoint_event: Option<String>,
    #[serde(rename = "openapi")]
    _openapi: Option<Value>,
}

/// An answer that stands in place of the usual one.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Response {
    url: String,
    status: u16,
    location: String,
}

/// What became of a case: its verdict, and why.
struct Verdict(&'static str, String);

impl Case {
    /// Whether it is about servers of a kind that this version does not have.
    fn is_later(&self) -> bool {
        self.input.openapi_url.is_some() || self.setup.sse_endpoint_event.is_some()
    }

    async fn verdict(&self) -> Verdict {
        let setup = &self.setup;
        if let Some(result) = &setup.tool_result {
            return served::result(result).await;
        }
        if let Some(icons) = &setup.icons {
            return served::icons(icons).await;
        }
        if let Some(url) = &setup.elicitation_url {
            return served::page(url).await;
        }
        if let Some(url) = self.input.cimd.as_ref() {
            assert_eq!(setup.client_id_metadata_url.as_ref(), Some(url));
            return walk::document(url);
        }
        walk::connect(self).await
    }

    fn accepts(&self, verdict: &str) -> bool {
        self.expect == verdict || self.also_ok.as_deref() == Some(verdict)
    }
}

fn cases() -> Vec<Case> {
    let file = std::env::var("TOLLGATE_CORPUS").unwrap_or_else(|_| SHIPPED.to_owned());
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let ours =
        lines.filter(|line| serde_json::from_str::<case::Kind>(line).unwrap().kind == "oauth");
    ours.map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

#[tokio::test]
async fn oauth_cases_of_the_corpus_get_their_verdict() {
    let mut wrong = Vec::new();
    for case in cases().into_iter().filter(|case| !case.is_later()) {
        let Verdict(got, why) = case.verdict().await;
        if !case.accepts(got) {
            wrong.push(format!(
                "{}: expected {}, got {got} ({why}); {}",
                case.id, case.expect, case.reason
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

#[test]
fn what_is_left_out_of_the_shipped_corpus_is_three_cases_of_a_later_version() {
    let cases = cases();
    let later: Vec<&str> = cases
        .iter()
        .filter(|case| case.is_later())
        .map(|case| &*case.id)
        .collect();
    if std::env::var_os("TOLLGATE_CORPUS").is_none() {
        assert_eq!(later, ["OAU-039", "OAU-040", "OAU-041"]);
        assert_eq!(cases.len(), 31);
    }
}
