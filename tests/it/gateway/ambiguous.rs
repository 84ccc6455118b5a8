//! What a server writes so that its readers may understand different things.

use serde_json::Value;

use super::{before, stop};
use crate::support::{
    agent::Agent,
    client::patiently,
    gate::{Gate, eventually},
    sound as say,
    tools::{Seen, Step, Tools},
};

const OFFERED: &str = r#"{"elicitation":{"form":{},"url":{}},"roots":{}}"#;

async fn session(gate: &Gate, capabilities: &str) -> Agent {
    let mut agent = Agent::modern("s");
    let welcome = gate.send(agent.hello("2025-11-25", capabilities)).await;
    agent.session = welcome.header("mcp-session-id").map(str::to_owned);
    agent
}

/// The client's messages that are answers.
fn responses(tools: &Tools) -> Vec<Value> {
    let seen = tools.of("POST");
    seen.into_iter().map(|seen| seen.json).collect()
}

/// A client that takes the other of two members, or ignores their case, would be asked something that nobody judged.
#[tokio::test]
async fn a_question_that_clients_read_in_different_ways_is_not_asked() {
    for params in [
        r#""mode":"url","mode":"form""#,
        r#""mode":"form","Mode":"url""#,
        r#""mode":"form","\u0000mode":"url""#,
        r#""mode":"url","url":"javascript:alert(1)","url":"https://example.com/""#,
        r#""mode":"url","url":"https://example.com/","URL":"file:///etc/passwd""#,
    ] {
        let question: &'static str = format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{{{params},"message":"m","elicitationId":"e"}}}}"#
        )
        .leak();
        let script = move |seen: &Seen| {
            let answer = say::message(false, &say::text("done"));
            (seen.tool() == "get_fault").then(|| say::events(&[question, &answer]))
        };
        let (tools, gate) = before(script, "").await;
        let agent = session(&gate, OFFERED).await;
        let mut reply = gate.open(agent.call("1", "get_fault")).await;
        let first = patiently(reply.event()).await.expect("the answer");
        assert!(first.contains("done"), "{params}: {first}");
        eventually("the server is told", || !responses(&tools).is_empty()).await;
        let told = responses(&tools).remove(0);
        assert_eq!(
            (&told["id"], &told["error"]["code"]),
            (&7.into(), &(-32602).into()),
            "{told}"
        );
        stop(gate).await;
    }
}

/// Nor is a question taken back, or a subscription told of, by a notification that names two.
#[tokio::test]
async fn a_notification_that_names_two_questions_takes_none_back() {
    let script = |seen: &Seen| {
        (seen.method() == "GET").then(|| {
            vec![
                say::stream(),
                say::event(r#"{"jsonrpc":"2.0","id":5,"method":"roots/list"}"#),
                say::event(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77,"requestId":5}}"#),
                say::event(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}"#),
                Step::Hang,
            ]
        })
    };
    let (_tools, gate) = before(script, "[relay]\nroots = true\n").await;
    let agent = session(&gate, OFFERED).await;
    let mut stream = agent.listen(&gate).await;
    let asked = patiently(stream.event()).await.expect("the question");
    let asked: Value = serde_json::from_str(&asked).expect("JSON");
    let back = patiently(stream.event()).await.expect("the end of it");
    assert_eq!(
        back,
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{}}}}}"#,
            asked["id"]
        )
    );
    gate.stop().await;
}

/// An error that has people open pages is a question like any other (MCP 2025-11-25, elicitation).
#[tokio::test]
async fn an_error_asks_for_no_page_that_a_question_could_not() {
    let page = |url: &str| {
        format!(
            r#""elicitations":[{{"mode":"url","url":"{url}","message":"m","elicitationId":"e"}}]"#
        )
    };
    let good = page("https://example.com/");
    let bad = page("javascript:alert(1)");
    let off = "[relay]\nelicitation = false\n";
    for (code, data, offered, relay, passes) in [
        ("-32042", good.clone(), OFFERED, "", true),
        ("-32042", good.clone(), r#"{"elicitation":{}}"#, "", false),
        ("-32042", good.clone(), OFFERED, off, false),
        ("-32042", bad.clone(), OFFERED, "", false),
        ("-32042.0", bad.clone(), OFFERED, "", false),
        (
            "-32042",
            bad.replace("elicit", r"\u0065licit"),
            OFFERED,
            "",
            false,
        ),
        (
            "-32042",
            bad.replace("elicitations", "ELICITATIONS"),
            OFFERED,
            "",
            false,
        ),
        (
            "-32042",
            bad.replace(r#""mode":"url","#, ""),
            OFFERED,
            "",
            false,
        ),
        ("-32042", format!("{bad},{good}"), OFFERED, "", false),
        (
            "-32000",
            r#""elicitations":7"#.to_owned(),
            OFFERED,
            "",
            false,
        ),
        (
            "-32000",
            r#""said":"elicitations""#.to_owned(),
            "{}",
            "",
            true,
        ),
    ] {
        let error = format!(
            r#"{{"jsonrpc":"2.0","id":$ID,"error":{{"code":{code},"message":"m","data":{{{data}}}}}}}"#
        );
        let script = move |seen: &Seen| match seen.tool() {
            "get_fault" => Some(say::json(&error)),
            "get_weather" if seen.json["params"]["arguments"]["streams"] == true => {
                Some(say::events(&[&error]))
            }
            _ => None,
        };
        let (_tools, gate) = before(script, relay).await;
        let agent = session(&gate, offered).await;
        let streamed = agent.request(
            "2",
            "tools/call",
            r#""name":"get_weather","arguments":{"streams":true}"#,
        );
        for call in [agent.call("1", "get_fault"), streamed] {
            let reply = gate.send(call).await;
            assert_eq!(
                reply.body.contains("example.com") || reply.body.contains("said"),
                passes,
                "{data}: {}",
                reply.body
            );
            if !passes {
                assert_eq!(agent.refusal(&reply), "upstream.malformed", "{data}");
            }
        }
        // Modern servers ask in results.
        let modern = Agent::modern("s");
        let reply = gate.send(modern.call("1", "get_fault")).await;
        assert_eq!(
            reply.body.contains("said"),
            data.contains("said"),
            "{}",
            reply.body
        );
        stop(gate).await;
    }
}

/// A reader that ignores case would take this notification for the answer to its request.
#[tokio::test]
async fn what_some_clients_take_for_an_answer_goes_to_none() {
    for forged in [
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"d"},"Id":1,"Result":{"content":[]}}"#,
        r#"{"jsonrpc":"2.0","METHOD":"notifications/message","id":$ID,"result":{"content":[]}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{},"error\u0000":{"code":1,"message":"forged"}}"#,
    ] {
        let script = move |seen: &Seen| {
            let answer = say::message(false, &say::text("done"));
            (seen.tool() == "get_fault").then(|| say::events(&[forged, &answer]))
        };
        let (_tools, gate) = before(script, "").await;
        let agent = session(&gate, "{}").await;
        let reply = gate.send(agent.call("1", "get_fault")).await;
        assert!(
            !reply.body.contains("[]") && !reply.body.contains("forged"),
            "{}",
            reply.body
        );
        assert_eq!(agent.refusal(&reply), "upstream.malformed");
        stop(gate).await;
    }
}
