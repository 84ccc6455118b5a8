//! Questions that nobody may be asked, and states that were not given for the request they come with.

use serde_json::{Value, json};

use super::{ALL, ANSWERS, CALL, FORM, OFFERED, again, ask, asking, call, patient, token};
use crate::{
    gateway::{before, stop},
    support::{
        agent::Agent,
        client::Reply,
        gate::{Gate, Policy, ends},
        sound as say,
        tools::{Seen, Step, Tools},
    },
};

const ANN: &str = "tg_ann_0123456789";
const ANN_TOO: &str = "tg_ann_9876543210";
const BOB: &str = "tg_bob_0123456789";
const EVE: &str = "tg_eve_0123456789";

/// Answers every call, in either form, with the result of its argument `say`.
fn echo(seen: &Seen) -> Option<Vec<Step>> {
    let said = seen.json["params"]["arguments"]["say"].as_str()?;
    let message = asking(said);
    Some(match seen.tool() {
        "get_fault" => say::json(&message),
        _ => say::events(&[&message]),
    })
}

async fn answer(gate: &Gate, tool: &str, capabilities: &str, said: &str) -> Reply {
    let arguments = json!({ "say": said });
    let params = format!(r#""name":"{tool}","arguments":{arguments}"#);
    let agent = Agent::modern("s");
    gate.send(ask(&agent, capabilities, "tools/call", &params))
        .await
}

/// A question with nothing in it but what decides.
fn question(method: &str, params: &str) -> String {
    format!(r#""inputRequests":{{"a":{{"method":"{method}","params":{params}}}}}"#)
}

#[tokio::test]
async fn only_what_is_offered_and_let_through_is_asked() {
    let form = question("elicitation/create", r#"{"message":"QQQ"}"#);
    let page = |url: &str| {
        let params =
            format!(r#"{{"message":"QQQ","mode":"url","elicitationId":"e","url":"{url}"}}"#);
        question("elicitation/create", &params)
    };
    let https = page("https://e.example/");
    let sample = question("sampling/createMessage", r#"{"x":"QQQ"}"#);
    let roots = question("roots/list", r#"{"x":"QQQ"}"#);
    let both = r#"{"elicitation":{"form":{},"url":{}}}"#;
    let (bare, only_page) = (r#"{"elicitation":{}}"#, r#"{"elicitation":{"url":{}}}"#);
    let everything = r#"{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}"#;
    let off = "[relay]\nelicitation = false\n";
    // What the operator lets through, what the client offers, what the server says, what it is offered, whether it asks.
    let cases = [
        ("", OFFERED, &form, both, true),
        ("", bare, &form, bare, true),
        ("", only_page, &form, only_page, false),
        ("", "{}", &form, "{}", false),
        (off, OFFERED, &form, "{}", false),
        ("", both, &https, both, true),
        ("", both, &page("http://127.0.0.1:1/"), both, true),
        ("", both, &page("http://e.example/"), both, false),
        ("", both, &page("javascript:x"), both, false),
        ("", bare, &https, bare, false),
        ("", OFFERED, &sample, both, false),
        ("", OFFERED, &roots, both, false),
        (ALL, OFFERED, &sample, everything, true),
        (ALL, OFFERED, &roots, everything, true),
        (
            ALL,
            r#"{"sampling":{}}"#,
            &roots,
            r#"{"sampling":{}}"#,
            false,
        ),
    ];
    for relay in ["", off, ALL] {
        let (tools, gate) = before(echo, relay).await;
        let mut expected = Vec::new();
        for (_, capabilities, said, offered, asked) in cases.iter().filter(|case| case.0 == relay) {
            for tool in ["get_fault", "get_weather"] {
                let reply = answer(&gate, tool, capabilities, said).await;
                let seen = tools.of("tools/call").pop().unwrap();
                let meta = &seen.json["params"]["_meta"];
                let offered: Value = serde_json::from_str(offered).unwrap();
                assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], offered);
                assert_eq!(reply.body.contains("QQQ"), *asked, "{}", reply.body);
                if *asked {
                    token(&reply);
                    expected.push("call allowed");
                } else {
                    let code = Agent::modern("s").refusal(&reply);
                    assert_eq!(code, "upstream.malformed", "{said}");
                    expected.push("call failed upstream.malformed");
                }
            }
        }
        assert_eq!(stop(gate).await, expected);
    }
}

#[tokio::test]
async fn questions_of_another_form_are_not_passed_on() {
    let (_tools, gate) = before(echo, ALL).await;
    let many: Vec<_> = (0..17)
        .map(|n| format!(r#""{n}":{{"method":"roots/list"}}"#))
        .collect();
    let state = |bytes: usize| {
        format!(
            r#""requestState":"{}""#,
            "QQQ".repeat(bytes / 3 + 1).split_at(bytes).0
        )
    };
    let long = state((32 << 10) - 1);
    for (said, why) in [
        (r#""x":"QQQ""#, "neither `inputRequests` nor `requestState`"),
        (
            r#""requestState":{"QQQ":1}"#,
            "`requestState` is not a string",
        ),
        (r#""requestState":"QQQ","requestState":"b""#, "stands twice"),
        (&*long, "`requestState` is longer than 32 KiB"),
        (r#""inputRequests":["QQQ"]"#, "expected an object"),
        (
            &format!(r#""inputRequests":{{{}}}"#, many.join(",")),
            "more than 16 questions at once",
        ),
        (
            &question("tools/call", r#""QQQ""#),
            "`params` that are no object",
        ),
        (
            &question("tools/call", r#"{"a":"QQQ"}"#),
            "a question that MCP does not know",
        ),
        (
            &question(
                "elicitation/create",
                r#"{"mode":"url","url":"x:QQQ","mode":"form"}"#,
            ),
            "stands twice",
        ),
    ] {
        for tool in ["get_fault", "get_weather"] {
            let reply = answer(&gate, tool, OFFERED, said).await;
            let code = Agent::modern("s").refusal(&reply);
            assert_eq!(code, "upstream.malformed", "{said}");
            assert!(reply.body.contains(why), "{}", reply.body);
            assert!(!reply.body.contains("QQQ"), "{}", reply.body);
        }
    }
    // The longest state, and as many questions as there may be.
    let longest = state((32 << 10) - 2);
    let most = format!(r#""inputRequests":{{{}}}"#, many[1..].join(","));
    for said in [&longest, &most] {
        let reply = answer(&gate, "get_fault", OFFERED, said).await;
        let params = format!(
            r#""name":"get_fault","arguments":{}"#,
            json!({ "say": said })
        );
        let params = again(&params, &token(&reply));
        let reply = gate.send(call(&Agent::modern("s"), &params)).await;
        token(&reply);
    }
    stop(gate).await;
}

#[tokio::test]
async fn no_other_method_may_ask() {
    let script = |seen: &Seen| {
        let other = seen.json["params"]["x"] == 1;
        let prompts = r#"{"prompts":[{"name":"p"}]}"#;
        if seen.method() == "prompts/list" && !other {
            return Some(say::result(true, prompts));
        }
        other.then(|| say::json(&asking(r#""requestState":"QQQ""#)))
    };
    let (_tools, gate) = before(script, "").await;
    for method in ["resources/list", "prompts/list", "completion/complete"] {
        let agent = Agent::modern("s");
        let params = r#""x":1,"ref":{"type":"ref/prompt","name":"p"}"#;
        let reply = gate.send(ask(&agent, OFFERED, method, params)).await;
        let code = &reply.json()["error"]["data"]["code"];
        assert_eq!(code, "upstream.malformed", "{method}: {}", reply.body);
        assert!(!reply.body.contains("QQQ"), "{}", reply.body);
    }
    stop(gate).await;
}

/// The refusal of a state, which must have the whole shape of one.
fn assert_invalid(reply: &Reply, about: &str) {
    let remedy = "send the request anew, without `requestState` and `inputResponses`";
    let message = format!(
        "mcp.round_invalid: `params.requestState` does not belong to this request; {remedy}"
    );
    assert_eq!(reply.status, 200, "{about}");
    assert_eq!(
        reply.json(),
        json!({"jsonrpc": "2.0", "id": "x", "error": {"code": -32602, "message": message,
            "data": {"code": "mcp.round_invalid", "remedy": remedy}}}),
        "{about}"
    );
}

#[tokio::test]
async fn a_state_serves_who_was_asked_and_nobody_else() {
    let tools = Tools::start(patient(FORM, 1)).await;
    let keys = [
        (ANN, "agent = \"a\"\nuser = \"ann\""),
        (ANN_TOO, "agent = \"a\"\nuser = \"ann\""),
        (BOB, "agent = \"a\"\nuser = \"bob\""),
        (EVE, "agent = \"a\"\nuser = \"ann\"\ntenant = \"other\""),
    ];
    let open = "access = \"everyone\"\ntenants = [\"default\", \"other\"]";
    let policy = Policy::keys(&keys, "")
        .server("s", tools.address, open, "")
        .server("t", tools.address, open, "");
    let gate = Gate::start(&policy);
    let ann = Agent::modern("s").with_key(ANN);
    let reply = gate.send(call(&ann, CALL)).await;
    let params = again(CALL, &token(&reply));
    for (server, key) in [("s", ANN_TOO), ("s", BOB), ("s", EVE), ("t", ANN)] {
        let other = Agent::modern(server).with_key(key);
        let reply = gate.send(call(&other, &params)).await;
        assert_invalid(&reply, key);
    }
    assert_eq!(tools.of("tools/call").len(), 1);
    let reply = gate.send(call(&ann, &params)).await;
    assert_eq!(reply.json()["result"]["content"][0]["text"], "ok get_fault");
    let mut expected = vec!["call refused mcp.round_invalid"; 6];
    (expected[0], expected[5]) = ("call allowed", "call allowed");
    let records = gate.stop().await;
    assert_eq!(ends(&records), expected);
    let calls: Vec<_> = records
        .iter()
        .filter(|record| record["kind"] == "call")
        .collect();
    assert!(calls.iter().all(|record| record["tool"] == "get_fault"));
}

#[tokio::test]
async fn a_state_serves_the_request_it_was_given_for_and_no_other() {
    let (tools, gate) = before(patient(FORM, 1), "").await;
    let agent = Agent::modern("s");
    let reply = gate.send(call(&agent, CALL)).await;
    let token = token(&reply);
    let tail = format!(r#""requestState":"{token}",{ANSWERS}"#);
    for params in [
        CALL.replace("get_fault", "get_weather"),
        CALL.replace("get_fault", "send_mail"),
        CALL.replace("bob", "eve"),
        CALL.replace("2.50", "2.5"),
        r#""name":"get_fault","arguments":{}"#.to_owned(),
        r#""name":"get_fault""#.to_owned(),
    ] {
        let reply = gate.send(call(&agent, &format!("{params},{tail}"))).await;
        assert_invalid(&reply, &params);
    }
    let cut = &token[..token.len() - 1];
    for state in [
        format!("\"{token}-TAMPERED\""),
        format!("\"{cut}\""),
        format!("\"{}\"", token.replacen('A', "B", 1)),
        "\"1\"".to_owned(),
        "\"\"".to_owned(),
        "7".to_owned(),
        "null".to_owned(),
    ] {
        let params = format!(r#"{CALL},"requestState":{state},{ANSWERS}"#);
        let reply = gate.send(call(&agent, &params)).await;
        assert_invalid(&reply, &state);
    }
    for answers in ["null", "7", "[]", "\"a\""] {
        for state in ["", &format!(r#","requestState":"{token}""#)] {
            let params = format!(r#"{CALL},"inputResponses":{answers}{state}"#);
            let reply = gate.send(call(&agent, &params)).await;
            let error = &reply.json()["error"];
            assert_eq!(error["code"], -32602, "{}", reply.body);
            assert_eq!(error["data"]["code"], "mcp.invalid_params");
        }
    }
    assert_eq!(tools.of("tools/call").len(), 1);
    // Written differently, and the token with escapes, it is the same request.
    let spelled = token.replacen('A', "\\u0041", 1);
    let params = format!(
        r#""requestState":"{spelled}","arguments":{{ "n" : [1 ,2.50],"to":"b\u006fb"}},"name":"get_fault",{ANSWERS}"#
    );
    let reply = gate.send(call(&agent, &params)).await;
    assert_eq!(reply.json()["result"]["content"][0]["text"], "ok get_fault");
    stop(gate).await;
}
