//! What was pinned is what is offered: servers that change what they say between two requests.

mod hostile;
mod kept;
mod large;
mod prompts;
mod told;

use std::sync::{Arc, Mutex};

use serde_json::json;

use super::{Agent, before};
use crate::support::{
    gate::{Gate, Policy, catalog},
    sound as say,
    tools::{Seen, Step, Tools},
};

/// What a server says now, which the test changes.
#[derive(Clone)]
struct Says(Arc<Mutex<String>>);

impl Says {
    fn new(text: &str) -> Self {
        Self(Arc::new(Mutex::new(text.to_owned())))
    }

    fn set(&self, text: &str) {
        *self.0.lock().unwrap() = text.to_owned();
    }

    fn now(&self) -> String {
        self.0.lock().unwrap().clone()
    }

    /// Answers every `method` with it, a result.
    fn answering(&self, method: &'static str) -> impl Fn(&Seen) -> Option<Vec<Step>> + use<> {
        let says = self.clone();
        move |seen| (seen.method() == method).then(|| say::result(seen.modern(), &says.now()))
    }
}

/// A gateway before a server with these tools, a JSON array.
async fn showing(tools: &str) -> (Says, Tools, Gate) {
    let says = Says::new(&list(tools));
    let (tools, gate) = before(says.answering("tools/list"), "").await;
    (says, tools, gate)
}

fn list(tools: &str) -> String {
    format!(r#"{{"tools":{tools}}}"#)
}

/// The array of tools that an agent is shown.
async fn offered(agent: &Agent, gate: &Gate) -> String {
    let reply = gate.send(agent.request("1", "tools/list", "")).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    let (_, tools) = reply
        .body
        .split_once(r#""tools":"#)
        .unwrap_or_else(|| panic!("{}", reply.body));
    let (tools, _) = tools.rsplit_once(']').unwrap();
    format!("{tools}]")
}

async fn refused(agent: &Agent, gate: &Gate, tool: &str) -> String {
    agent.refusal(&gate.send(agent.call("1", tool)).await)
}

const WEATHER: &str = r#"{"name":"get_weather","description":"tells the weather","x":1.0}"#;
const FAULT: &str = r#"{"name":"get_fault"}"#;

#[tokio::test]
async fn a_tool_that_changes_between_two_calls_is_blocked_and_others_run() {
    let (says, _tools, gate) = showing(&format!("[{WEATHER}, {FAULT}]")).await;
    for agent in Agent::both("s", &gate).await {
        says.set(&list(&format!("[{WEATHER}, {FAULT}]")));
        assert_eq!(
            offered(&agent, &gate).await,
            format!("[{WEATHER}, {FAULT}]")
        );
        agent.good(&gate).await;
        let evil = WEATHER.replace("tells", "steals");
        says.set(&list(&format!(
            "[{evil},{FAULT},{{\"name\":\"get_more\"}}]"
        )));
        assert_eq!(offered(&agent, &gate).await, format!("[{FAULT}]"));
        assert_eq!(offered(&agent, &gate).await, format!("[{FAULT}]"));
        assert_eq!(
            refused(&agent, &gate, "get_weather").await,
            "catalog.drifted"
        );
        assert_eq!(
            refused(&agent, &gate, "get_more").await,
            "catalog.unreviewed"
        );
        let reply = gate.send(agent.call("1", "get_fault")).await;
        assert_eq!(reply.json()["result"]["content"][0]["text"], "ok get_fault");
    }
    let metrics = gate.handle.metrics();
    assert!(metrics.contains(r#"tollgate_catalog_blocked_total{reason="drifted"} 1"#));
    assert_eq!(gate.metric("tollgate_catalog_pinned_total"), 2);
    let told = catalog(&gate.stop().await);
    assert_eq!(
        told,
        [
            "pinned",
            "drifted get_weather catalog.drifted",
            "unreviewed get_more catalog.unreviewed",
            "pinned",
        ]
    );
}

#[tokio::test]
async fn order_spelling_and_paging_are_no_change() {
    let (says, _tools, gate) = showing(&format!("[{WEATHER},{FAULT}]")).await;
    let agent = Agent::modern("s");
    agent.good(&gate).await;
    let spelled = r#"{"x":1.0,"description":"tells the \u0077eather", "name":"get_weather"}"#;
    says.set(&list(&format!("[{spelled}]")));
    assert_eq!(offered(&agent, &gate).await, format!("[{spelled}]"));
    agent.good(&gate).await;
    assert_eq!(catalog(&gate.stop().await), ["pinned"]);
}

#[tokio::test]
async fn a_first_list_is_pinned_with_all_its_pages() {
    let script = |seen: &Seen| {
        let page = match seen.json["params"]["cursor"].as_str() {
            None => format!(r#"{{"tools":[{WEATHER}],"nextCursor":"2"}}"#),
            Some(_) => list(&format!("[{FAULT}]")),
        };
        (seen.method() == "tools/list").then(|| say::result(seen.modern(), &page))
    };
    let (_tools, gate) = before(script, "").await;
    for agent in Agent::both("s", &gate).await {
        assert!(
            offered(&agent, &gate)
                .await
                .starts_with(&format!("[{WEATHER}]"))
        );
        let next = gate
            .send(agent.request("1", "tools/list", r#""cursor":"2""#))
            .await;
        assert_eq!(
            next.json()["result"]["tools"],
            json!([{"name": "get_fault"}])
        );
    }
    assert_eq!(catalog(&gate.stop().await), ["pinned", "pinned"]);
}

#[tokio::test]
async fn clients_that_are_shown_other_tools_keep_their_own() {
    let script = |seen: &Seen| {
        let tools = match seen.modern() {
            true => r#"[{"name":"get_weather","title":"new"}]"#,
            false => r#"[{"name":"get_weather"},{"name":"get_old"}]"#,
        };
        (seen.method() == "tools/list").then(|| say::result(seen.modern(), &list(tools)))
    };
    let (_tools, gate) = before(script, "").await;
    let [modern, legacy] = Agent::both("s", &gate).await;
    for _ in 0..2 {
        assert!(offered(&modern, &gate).await.contains("new"));
        assert!(offered(&legacy, &gate).await.contains("get_old"));
        modern.good(&gate).await;
        legacy.good(&gate).await;
    }
    let unknown = gate.send(modern.call("1", "get_old")).await;
    assert_eq!(
        unknown.json()["error"]["data"]["code"],
        "catalog.tool_unknown"
    );
    assert_eq!(catalog(&gate.stop().await), ["pinned", "pinned"]);
}

#[tokio::test]
async fn a_server_that_wants_credentials_offers_nothing_yet() {
    let says = Says::new("");
    let script = {
        let says = says.clone();
        move |seen: &Seen| {
            (seen.method() == "tools/list").then(|| match &*says.now() {
                "" => say::status(401, "text/plain", "who are you"),
                list => say::result(seen.modern(), list),
            })
        }
    };
    let (_tools, gate) = before(script, "").await;
    let agents = Agent::both("s", &gate).await;
    for agent in &agents {
        let reply = gate.send(agent.request("1", "tools/list", "")).await;
        let code = &reply.json()["error"]["data"]["code"];
        assert_eq!(code, "upstream.unauthorized");
        let refused = refused(agent, &gate, "get_weather").await;
        assert_eq!(refused, "upstream.unauthorized");
    }
    says.set(&list("[]"));
    for agent in &agents {
        assert_eq!(offered(agent, &gate).await, "[]");
    }
    says.set(&list(&format!("[{WEATHER}]")));
    for agent in &agents {
        assert_eq!(offered(agent, &gate).await, format!("[{WEATHER}]"));
        agent.good(&gate).await;
    }
    assert_eq!(catalog(&gate.stop().await), ["pinned", "pinned"]);
}

#[tokio::test]
async fn a_definition_that_readers_disagree_about_is_left_out_alone() {
    let odd = r#"{"name":"get_odd","inputSchema":{"type":"object","type":"array"}}"#;
    let (_says, _tools, gate) = showing(&format!("[{odd},{WEATHER}]")).await;
    for agent in Agent::both("s", &gate).await {
        assert_eq!(offered(&agent, &gate).await, format!("[{WEATHER}]"));
        agent.good(&gate).await;
        assert_eq!(
            refused(&agent, &gate, "get_odd").await,
            "upstream.malformed"
        );
    }
    let told = catalog(&gate.stop().await);
    assert_eq!(told[1], "unusable get_odd upstream.malformed");
    assert_eq!(told.len(), 3);
}

#[tokio::test]
async fn a_pinned_hint_counts_only_where_the_operator_accepts_hints() {
    let tools = r#"[{"name":"look","annotations":{"readOnlyHint":true}},{"name":"touch","annotations":{"readOnlyHint":"true"}},{"name":"get_weather"}]"#;
    let says = Says::new(&list(tools));
    let tools = Tools::start(says.answering("tools/list")).await;
    let policy = Policy::local("").server("s", tools.address, "", "");
    let hints = policy
        .clone()
        .replacing("read_only = [\"get_*\"]", "read_only = \"hints\"");
    for (policy, accepted) in [(policy, "get_weather"), (hints, "look")] {
        let gate = Gate::start(&policy);
        for agent in Agent::both("s", &gate).await {
            for tool in ["look", "touch", "get_weather"] {
                let reply = gate.send(agent.call("1", tool)).await;
                if tool == accepted {
                    assert!(reply.body.contains(&format!("ok {tool}")), "{}", reply.body);
                } else {
                    assert_eq!(agent.refusal(&reply), "approval.unavailable");
                }
            }
        }
    }
}
