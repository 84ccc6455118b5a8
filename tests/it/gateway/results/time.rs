//! What time ends: a result that is kept, and the budget of turns that nobody names. It is moved on, not waited for.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time;

use super::{Agent, answering, before, result, text};
use crate::{
    gateway::{SHORT, quiet},
    support::{
        client::Ask,
        pipeline::{Door, Pipeline},
        sound as say,
        tools::{Seen, Step, Tools},
    },
};

async fn passes(time: Duration) {
    time::pause();
    time::advance(time).await;
    time::resume();
}

async fn send(door: Door, ask: Ask) -> Value {
    result(&door.open(ask).await.whole().await)
}

#[tokio::test]
async fn a_result_is_kept_for_ten_minutes() {
    let whole = json!({ "content": [text(&"x".repeat(100_000))] });
    let tools = Tools::start(answering(whole)).await;
    let pipeline = Pipeline::new();
    let door = pipeline.listen(quiet::policy(&tools));
    for agent in [Agent::modern("demo"), quiet::session(door).await] {
        let cut = send(door, agent.call("1", "get_fault")).await;
        let handle = &cut["_meta"]["io.tollgate/cut"]["handle"];
        let params = format!(
            r#""name":"tollgate__read_result","arguments":{{"handle":{handle},"length":3}}"#
        );
        let ask = || agent.request("2", "tools/call", &params);
        passes(Duration::from_secs(590)).await;
        assert_eq!(send(door, ask()).await["content"][0]["text"], "xxx");
        passes(Duration::from_secs(10)).await;
        let reply = door.open(ask()).await.whole().await;
        assert_eq!(agent.refusal(&reply), "budget.handle_unknown");
    }
}

#[tokio::test]
async fn results_without_a_turn_share_a_budget_of_a_minute() {
    let whole = json!({ "content": [text(&"x".repeat(40_000))] });
    let tools = Tools::start(answering(whole)).await;
    let pipeline = Pipeline::new();
    let mut policy = quiet::policy(&tools);
    policy.calls.turn_bytes = 65_536;
    let door = pipeline.listen(policy);
    let agent = Agent::modern("demo");
    let spent = async || {
        let result = send(door, agent.call("1", "get_fault")).await;
        let said = result["content"][0]["text"].as_str().unwrap_or_default();
        said.starts_with("[budget.turn_spent: ")
    };
    for expected in [false, false, true] {
        assert_eq!(spent().await, expected);
    }
    passes(Duration::from_secs(60)).await;
    assert!(!spent().await);
}

/// A model that is told of a timeout must not make up what the tool would have said.
#[tokio::test]
async fn what_did_not_come_in_time_is_not_to_be_invented() {
    let script = |seen: &Seen| match seen.tool() {
        "get_fault" => Some(vec![Step::Hang]),
        "send_mail" => Some(vec![say::stream(), Step::Hang]),
        _ => None,
    };
    let (_tools, gate) = before(script, SHORT).await;
    for agent in Agent::both("s", &gate).await {
        for (tool, code) in [
            ("get_fault", "egress.first_byte_timeout"),
            ("send_mail", "egress.idle_timeout"),
        ] {
            let told = result(&gate.send(agent.call("1", tool)).await);
            let said = told["content"][0]["text"].as_str().unwrap();
            assert!(
                said.starts_with(code)
                    && said.contains("the result is incomplete: do not invent it"),
                "{said}"
            );
            assert_eq!(told["isError"], true);
        }
    }
    gate.stop().await;
}
