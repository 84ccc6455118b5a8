//! Modern servers that answer with questions, and clients that repeat their requests with the answers.

mod refused;

use serde_json::{Value, json};
use tollgate::app::reload::Outcome;

use super::{before, stop};
use crate::support::{
    agent::Agent,
    client::{Ask, Reply},
    gate::{Gate, Policy, ends, write},
    sound as say,
    tools::{Seen, Step, Tools},
};

const ALL: &str = "[relay]\nsampling = true\nroots = true\n";
const OFFERED: &str = r#"{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}"#;
const FORM: &str = r#""inputRequests": {"who":{"method":"elicitation/create","params":{"message":"who?","requestedSchema":{"type":"object","properties":{"n":{"type":"number","x":1.0}}}}}}"#;
const ANSWERS: &str =
    r#""inputResponses":{"who":{"action":"accept","content":{"n":1.50}},"x":{"y":[]}}"#;
const CALL: &str = r#""name":"get_fault","arguments":{"to":"bob","n":[1,2.50]}"#;
const STATE: &str = r#""s\u0074ate \"1\"""#;

/// The message in which a server asks; `members` are those of its result.
fn asking(members: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":$ID,"result":{{"_meta":{{"n":1.0}},"resultType":"input_required",{members}}}}}"#
    )
}

/// A request of a client that offers `capabilities`; `params` are its members without the braces.
fn ask(agent: &Agent, capabilities: &str, method: &str, params: &str) -> Ask {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":"x","method":"{method}","params":{{{params},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{capabilities}}}}}}}"#
    );
    let uri = serde_json::from_str::<Value>(&body).unwrap()["params"]["uri"].clone();
    match uri.as_str() {
        Some(uri) => agent.post(&body).with("Mcp-Name", uri),
        None => agent.post(&body),
    }
}

/// A call by a client that offers everything.
fn call(agent: &Agent, params: &str) -> Ask {
    ask(agent, OFFERED, "tools/call", params)
}

/// What the client repeats of `reply`.
fn token(reply: &Reply) -> String {
    let result = &reply.json()["result"];
    assert_eq!(result["resultType"], "input_required", "{}", reply.body);
    let state = result["requestState"].as_str();
    state.unwrap_or_else(|| panic!("{}", reply.body)).to_owned()
}

/// The call once more, with answers.
fn again(call: &str, token: &str) -> String {
    format!(r#"{call},"requestState":"{token}",{ANSWERS}"#)
}

/// A server that asks in `last` rounds; its state counts. The weather it just tells.
fn patient(members: &'static str, last: usize) -> impl Fn(&Seen) -> Option<Vec<Step>> {
    move |seen| {
        let said = seen.json["params"]["requestState"].as_str();
        let round = said.map_or(0, |said| said.parse().unwrap());
        match seen.method() {
            _ if seen.tool() == "get_weather" => None,
            "tools/call" | "prompts/get" | "resources/read" if round < last => {
                let state = format!(r#"{members},"requestState":"{}""#, round + 1);
                Some(say::json(&asking(&state)))
            }
            "prompts/get" | "resources/read" => Some(say::result(true, r#"{"done":true}"#)),
            _ => None,
        }
    }
}

/// Nothing of what either side says changes but the id, the capabilities, and the state on its way.
#[tokio::test]
async fn a_question_and_its_answer_go_through_byte_for_byte() {
    let script = |seen: &Seen| {
        let asked = asking(&format!(r#"{FORM} , "requestState" : {STATE},"y":[ ]"#));
        let done = say::message(true, &say::text("done"));
        let message = match seen.json["params"]["requestState"].as_str() {
            Some(_) => done,
            None => asked,
        };
        match seen.json["params"]["arguments"]["to"].as_str() {
            Some("json") => Some(say::json(&message)),
            Some("events") => Some(say::events(&[&message])),
            _ => None,
        }
    };
    let (tools, gate) = before(script, "").await;
    let agent = Agent::modern("s");
    for form in ["json", "events"] {
        let params = CALL.replace("bob", form);
        let reply = gate.send(call(&agent, &params)).await;
        let token = token(&reply);
        let text = reply.body.trim();
        let text = text.split_once("data: ").map_or(text, |(_, data)| data);
        assert_eq!(
            text.replace(r#""id":"x""#, r#""id":$ID"#)
                .replace(&format!("\"{token}\""), STATE)
                .replace(r#""io.tollgate/untrusted":{"server":"s"},"#, ""),
            asking(&format!(r#"{FORM} , "requestState" : {STATE},"y":[ ]"#))
        );
        let reply = gate.send(call(&agent, &again(&params, &token))).await;
        assert_eq!(reply.json()["result"]["content"][0]["text"], "done");
        let seen = tools.of("tools/call");
        let [first, second] = &seen[seen.len() - 2..] else {
            panic!("two calls");
        };
        assert_ne!(first.json["id"], second.json["id"]);
        let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{},"url":{}}}}"#;
        assert_eq!(
            second.text,
            format!(
                r#"{{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{{{params},"requestState":{STATE},{ANSWERS},{meta}}}}}"#,
                second.json["id"]
            )
        );
    }
    assert_eq!(stop(gate).await, ["call allowed"; 4]);
}

/// Beside `task`, which goes too, and in whichever place.
#[tokio::test]
async fn a_server_without_state_is_told_none() {
    let script = |seen: &Seen| {
        let answered = seen.json["params"]["inputResponses"].is_object();
        (seen.tool() == "get_fault" && !answered).then(|| say::json(&asking(FORM)))
    };
    let (tools, gate) = before(script, "").await;
    let agent = Agent::modern("s");
    let reply = gate.send(call(&agent, CALL)).await;
    let token = token(&reply);
    let result = reply.json()["result"].clone();
    assert_eq!(
        result["_meta"],
        json!({ "n": 1.0, "io.tollgate/untrusted": { "server": "s" } })
    );
    assert_eq!(result["inputRequests"]["who"]["params"]["message"], "who?");
    let state = format!(r#""requestState":"{token}""#);
    for params in [
        format!("{state},{CALL},{ANSWERS}"),
        format!("{CALL},{ANSWERS},{state}"),
        format!(r#"{CALL},"task":{{}},{state},{ANSWERS}"#),
        format!(r#"{state} , "task":{{}},{CALL},{ANSWERS}"#),
        format!(r#"{CALL},{ANSWERS},{state},"task":{{}}"#),
        // A client that lost it may begin again, with answers at hand.
        format!("{CALL},{ANSWERS}"),
    ] {
        let reply = gate.send(call(&agent, &params)).await;
        let said = &reply.json()["result"]["content"][0]["text"];
        assert_eq!(said, "ok get_fault", "{}", reply.body);
        let seen = tools.of("tools/call").pop().unwrap();
        let mut params = seen.json["params"].clone();
        params.as_object_mut().unwrap().remove("_meta");
        let expected = format!("{{{CALL},{ANSWERS}}}");
        let expected: Value = serde_json::from_str(&expected).unwrap();
        assert_eq!(params, expected, "{}", seen.text);
    }
    stop(gate).await;
}

#[tokio::test]
async fn rounds_follow_one_another_up_to_the_eighth() {
    let eight = Tools::start(patient(FORM, 8)).await;
    let nine = Tools::start(patient(FORM, 9)).await;
    let policy =
        Policy::local("")
            .server("s", eight.address, "", "")
            .server("t", nine.address, "", "");
    let gate = Gate::start(&policy);
    for (server, completes) in [("s", true), ("t", false)] {
        let agent = Agent::modern(server);
        let mut params = CALL.to_owned();
        for _ in 0..8 {
            let reply = gate.send(call(&agent, &params)).await;
            params = again(CALL, &token(&reply));
        }
        let reply = gate.send(call(&agent, &params)).await;
        if completes {
            assert_eq!(reply.json()["result"]["content"][0]["text"], "ok get_fault");
        } else {
            assert_eq!(agent.refusal(&reply), "gateway.rounds");
            assert!(!reply.body.contains("who?"), "{}", reply.body);
        }
    }
    let seen = eight.of("tools/call").pop().unwrap();
    assert_eq!(seen.json["params"]["requestState"], "8");
    let ended = ends(&gate.stop().await);
    let mut expected = vec!["call allowed"; 18];
    expected[17] = "call failed gateway.rounds";
    assert_eq!(ended, expected);
}

#[tokio::test]
async fn prompts_and_resources_may_ask_too() {
    let (tools, gate) = before(patient(FORM, 1), "").await;
    let agent = Agent::modern("s");
    for (method, params, other) in [
        (
            "prompts/get",
            r#""name":"p","arguments":{"a":"1"}"#,
            r#""name":"q","arguments":{"a":"1"}"#,
        ),
        ("resources/read", r#""uri":"memo:a""#, r#""uri":"memo:b""#),
    ] {
        let reply = gate.send(ask(&agent, OFFERED, method, params)).await;
        let result = &reply.json()["result"];
        assert!(
            result.get("ttlMs").is_none(),
            "only what is complete is kept"
        );
        let token = token(&reply);
        let stolen = again(other, &token);
        let reply = gate.send(ask(&agent, OFFERED, method, &stolen)).await;
        assert_eq!(reply.json()["error"]["data"]["code"], "mcp.round_invalid");
        let params = again(params, &token);
        let reply = gate.send(ask(&agent, OFFERED, method, &params)).await;
        assert_eq!(reply.json()["result"]["done"], true, "{}", reply.body);
        assert_eq!(tools.of(method).len(), 2);
    }
    let each = [
        "request allowed",
        "request refused mcp.round_invalid",
        "request allowed",
    ];
    assert_eq!(stop(gate).await, [each, each].concat());
}

#[tokio::test]
async fn every_round_of_a_side_effect_is_recorded_before_it_is_sent() {
    let (tools, gate) = before(patient(FORM, 2), "").await;
    let agent = Agent::modern("s");
    let mail = r#""name":"send_mail","arguments":{}"#;
    let mut params = mail.to_owned();
    for round in 1..=2 {
        let reply = gate.send(call(&agent, &params)).await;
        // Read at once: what was answered is on disk.
        let ended = ends(&gate.records());
        assert_eq!(ended, ["call intent", "call allowed"].repeat(round));
        params = again(mail, &token(&reply));
    }
    let reply = gate.send(call(&agent, &params)).await;
    assert_eq!(reply.json()["result"]["content"][0]["text"], "ok send_mail");
    assert_eq!(tools.of("tools/call").len(), 3);
    let expected = ["call intent", "call allowed"].repeat(3);
    assert_eq!(stop(gate).await, expected);
}

#[tokio::test]
async fn every_round_is_judged_anew() {
    let (tools, gate) = before(patient(FORM, 2), "").await;
    let agent = Agent::modern("s");
    let mail = r#""name":"send_mail","arguments":{}"#;
    let reply = gate.send(call(&agent, mail)).await;
    let params = again(mail, &token(&reply));
    let file = gate.folder().join("servers/s.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    write(
        &file,
        &text.replace("approval = \"never\"", "approval = \"ask\""),
    );
    assert!(matches!(gate.handle.reload(), Outcome::Changed { .. }));
    let reply = gate.send(call(&agent, &params)).await;
    assert_eq!(agent.refusal(&reply), "approval.unavailable");
    assert_eq!(tools.of("tools/call").len(), 1);
    stop(gate).await;
}

#[tokio::test]
async fn a_round_outlives_a_restart() {
    let (tools, gate) = before(patient(FORM, 1), "").await;
    let agent = Agent::modern("s");
    let reply = gate.send(call(&agent, CALL)).await;
    let params = again(CALL, &token(&reply));
    let gate = gate.restart().await;
    let reply = gate.send(call(&agent, &params)).await;
    assert_eq!(reply.json()["result"]["content"][0]["text"], "ok get_fault");
    let seen = tools.of("tools/call").pop().unwrap();
    assert_eq!(seen.json["params"]["requestState"], "1");
    stop(gate).await;
}

/// Sessions know no rounds: the members mean nothing there, and go through as they are, marked as any result.
#[tokio::test]
async fn sessions_have_no_rounds() {
    const RESULT: &str =
        r#"{"resultType":"input_required","inputRequests":[],"requestState":7,"content":[]}"#;
    let script = |seen: &Seen| {
        let body = format!(r#"{{"jsonrpc":"2.0","id":$ID,"result":{RESULT}}}"#);
        match (seen.tool(), seen.modern()) {
            ("get_fault", false) => Some(say::json(&body)),
            ("get_fault", true) => Some(say::json(&asking(FORM))),
            _ => None,
        }
    };
    let (tools, gate) = before(script, "").await;
    let reply = gate.send(call(&Agent::modern("s"), CALL)).await;
    let token = token(&reply);
    let session = Agent::modern("s").legacy(&gate).await;
    for state in ["7", &format!("\"{token}\"")] {
        let params = format!(r#"{CALL},"inputResponses":7,"requestState":{state}"#);
        let reply = gate.send(session.request("1", "tools/call", &params)).await;
        let mut expected: Value = serde_json::from_str(RESULT).unwrap();
        expected["_meta"] = json!({ "io.tollgate/untrusted": { "server": "s" } });
        assert_eq!(reply.json()["result"], expected, "{}", reply.body);
        let seen = tools.of("tools/call").pop().unwrap();
        assert!(seen.text.contains(&params), "{}", seen.text);
    }
    stop(gate).await;
}
