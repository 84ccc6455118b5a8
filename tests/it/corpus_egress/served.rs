//! The `oauth` cases about what a connected server serves: the whole product stands between it and its client, and fetches
//! nothing that it names. (Those about the connection itself are in `corpus_oauth`.)

use serde::Deserialize;
use serde_json::{Value, json};

use super::SHIPPED;
use crate::support::{
    agent::Agent,
    gate::{Gate, Policy},
    sound as say,
    tools::{LIST, Seen, Step, Tools},
};

/// A line of the corpus.
#[derive(Deserialize)]
struct Case {
    id: String,
    kind: String,
    setup: Setup,
    expect: String,
    also_ok: Option<String>,
    reason: String,
}

#[derive(Deserialize)]
struct Setup {
    tool_result: Option<Value>,
    icons: Option<Value>,
    elicitation_url: Option<String>,
    sse_endpoint_event: Option<String>,
    openapi: Option<Value>,
}

/// What became of a case: its verdict, and why.
struct Verdict(&'static str, String);

impl Case {
    /// Runs it, where it is about what a server serves.
    async fn verdict(&self) -> Option<Verdict> {
        let setup = &self.setup;
        Some(if let Some(block) = &setup.tool_result {
            result(block).await
        } else if let Some(icons) = &setup.icons {
            self::icons(icons).await
        } else if let Some(url) = &setup.elicitation_url {
            page(url).await
        } else {
            return None;
        })
    }

    /// Whether it is about a server of a kind that this version does not have.
    fn is_later(&self) -> bool {
        self.setup.sse_endpoint_event.is_some() || self.setup.openapi.is_some()
    }
}

fn cases() -> Vec<Case> {
    let file = std::env::var("TOLLGATE_CORPUS").unwrap_or_else(|_| SHIPPED.to_owned());
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let cases = lines.map(|line| serde_json::from_str::<Case>(line).unwrap());
    cases.filter(|case| case.kind == "oauth").collect()
}

#[tokio::test]
async fn what_a_connected_server_names_is_never_fetched() {
    let (mut ran, mut later, mut wrong) = (Vec::new(), Vec::new(), Vec::new());
    let cases = cases();
    for case in &cases {
        if case.is_later() {
            later.push(&*case.id);
        }
        let Some(Verdict(got, why)) = case.verdict().await else {
            continue;
        };
        ran.push(&*case.id);
        if case.expect != got && case.also_ok.as_deref() != Some(got) {
            wrong.push(format!("{}: {got} ({why}); {}", case.id, case.reason));
        }
    }
    assert!(wrong.is_empty(), "mismatches:\n{}", wrong.join("\n"));
    if std::env::var_os("TOLLGATE_CORPUS").is_none() {
        assert_eq!(ran, ["OAU-042", "OAU-043", "OAU-044"]);
        assert_eq!(later, ["OAU-039", "OAU-040", "OAU-041"]);
        assert_eq!(cases.len() - ran.len() - later.len(), 25);
    }
}

/// A tool's result holds this block.
async fn result(block: &Value) -> Verdict {
    let mut named = block.clone();
    named["name"] = "x".into();
    let said = json!({ "content": [named] }).to_string();
    let reply =
        served(move |seen| (seen.tool() == "get_weather").then(|| say::result(true, &said))).await;
    passed(&reply, block["uri"].as_str().unwrap())
}

/// The server and its tools have these icons.
async fn icons(icons: &Value) -> Verdict {
    let mut list: Value = serde_json::from_str(LIST).unwrap();
    list["tools"][0]["icons"] = icons.clone();
    let list = list.to_string();
    let greeting = json!({
        "supportedVersions": ["2026-07-28"],
        "capabilities": { "tools": {} },
        "serverInfo": { "name": "t", "version": "1", "icons": icons },
    })
    .to_string();
    let reply = served(move |seen| match seen.method() {
        "tools/list" => Some(say::result(true, &list)),
        "server/discover" => Some(say::result(true, &greeting)),
        _ => None,
    })
    .await;
    passed(&reply, "ok get_weather")
}

/// The server wants its person to open this page.
async fn page(url: &str) -> Verdict {
    let params = json!({ "message": "m", "mode": "url", "elicitationId": "e", "url": url });
    let question = json!({ "method": "elicitation/create", "params": params });
    let members = json!({ "a": question });
    let message = format!(
        r#"{{"jsonrpc":"2.0","id":$ID,"result":{{"resultType":"input_required","inputRequests":{members}}}}}"#
    );
    let reply =
        served(move |seen| (seen.tool() == "get_weather").then(|| say::json(&message))).await;
    passed(&reply, url)
}

/// What a client reads that lists and then calls `get_weather`, where the server does what `script` says, else its part.
async fn served(script: impl Fn(&Seen) -> Option<Vec<Step>> + Send + Sync + 'static) -> String {
    let tools = Tools::start(script).await;
    let gate = Gate::start(&Policy::local("").server("s", tools.address, "", ""));
    let agent = Agent::modern("s");
    let list = gate.send(agent.request("0", "tools/list", "")).await;
    assert_eq!(list.status, 200, "{}", list.body);
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_weather","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{},"url":{}}}}}}"#;
    let reply = gate.send(agent.post(body)).await;
    // One connection, to the server; and nothing else was even judged.
    let opened = gate.metric(r#"tollgate_egress_connections_total{reused="false"}"#);
    assert_eq!(opened, 1);
    let metrics = gate.handle.metrics();
    assert!(
        !metrics.contains("tollgate_egress_blocked_total{"),
        "{metrics}"
    );
    gate.stop().await;
    reply.body
}

fn passed(reply: &str, expected: &str) -> Verdict {
    let verdict = if reply.contains(expected) {
        "allow"
    } else {
        "error"
    };
    Verdict(verdict, reply.to_owned())
}
