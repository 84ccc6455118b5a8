//! Arguments that are not what a tool takes: nothing is sent, asked or intended for them, and the model is told what is
//! wrong.

use serde_json::{Value, json};

use super::{Agent, before, stop};
use crate::support::{
    client::{Ask, Reply},
    sound,
    tools::{Seen, Step, Tools},
};

const WEATHER: &str = r#"{"name":"get_weather","inputSchema":{"type":"object"}}"#;
const MAIL: &str = concat!(
    r#"{"name":"send_mail","inputSchema":{"type":"object","required":["to"],"additionalProperties":false,"#,
    r#""properties":{"to":{"type":"array","items":{"type":"string"},"minItems":1},"copies":{"type":"integer","#,
    r#""minimum":0,"maximum":9007199254740992},"options":{"type":"object"}}}}"#
);
const BARE: &str = r#"{"name":"get_bare"}"#;
const UNKNOWN: &str = concat!(
    r#"{"name":"get_unknown","inputSchema":{"$schema":"https://example.com/dialect","#,
    r#""type":"object"}}"#
);

fn lists(tools: &[&str]) -> impl Fn(&Seen) -> Option<Vec<Step>> + use<> {
    let list = format!(r#"{{"tools":[{}]}}"#, tools.join(","));
    move |seen| (seen.method() == "tools/list").then(|| sound::result(seen.modern(), &list))
}

fn call(agent: &Agent, tool: &str, arguments: &str) -> Ask {
    agent.request(
        "1",
        "tools/call",
        &format!(r#""name":"{tool}","arguments":{arguments}"#),
    )
}

/// The words of a refusal, which must have the whole shape of one.
fn words(agent: &Agent, reply: &Reply) -> String {
    agent.refusal(reply);
    let text = reply.json()["result"]["content"][0]["text"].clone();
    text.as_str().expect("a text").to_owned()
}

fn calls(tools: &Tools) -> usize {
    tools.of("tools/call").len()
}

#[tokio::test]
async fn the_model_is_told_what_is_wrong_and_nothing_is_sent() {
    let (tools, gate) = before(lists(&[WEATHER, MAIL]), "").await;
    for agent in Agent::both("s", &gate).await {
        for (arguments, expected) in [
            ("{}", "the arguments: the required member `to` is missing"),
            (
                r#"{"to":"[\"ann\"]"}"#,
                r#"`/to`: found the string "[\"ann\"]", expected an array; this is a string of JSON: pass the array itself"#,
            ),
            (
                r#"{"to":["ann"],"copies":9007199254740993}"#,
                "`/copies`: found the number 9007199254740993, expected at most 9007199254740992",
            ),
            (
                r#"{"to":["ann"],"copies":"2","option":1}"#,
                concat!(
                    r#"(1) `/copies`: found the string "2", expected an integer; this is a number in a string: pass the "#,
                    r#"number itself; (2) the arguments: the member `option` (did you mean `options`?) is not known; "#,
                    r#"known are "copies", "options", "to""#
                ),
            ),
        ] {
            let reply = gate.send(call(&agent, "send_mail", arguments)).await;
            assert_eq!(
                words(&agent, &reply),
                format!(
                    "catalog.arguments_invalid: the arguments of `send_mail` do not fit its input schema: {expected}; \
                     correct the arguments and call again"
                )
            );
        }
        // Missing arguments are an empty object.
        let without = agent.request("1", "tools/call", r#""name":"send_mail""#);
        let reply = gate.send(without).await;
        assert!(words(&agent, &reply).contains("`to` is missing"));
        assert_eq!(calls(&tools), 0, "nothing was sent");
    }
    for agent in Agent::both("s", &gate).await {
        let before = calls(&tools);
        let arguments = r#"{ "to" : ["ann"], "copies":1.0 ,"options":{"x":[1e2]}}"#;
        let reply = gate.send(call(&agent, "send_mail", arguments)).await;
        assert_eq!(reply.json()["result"]["content"][0]["text"], "ok send_mail");
        let seen = tools.of("tools/call");
        assert_eq!(seen.len(), before + 1);
        assert!(seen[before].text.contains(arguments), "byte for byte");
    }
    let refused = "call refused catalog.arguments_invalid";
    let records = gate.stop().await;
    let ended = crate::support::gate::ends(&records);
    let mails: Vec<_> = ended.iter().filter(|end| end.starts_with("call")).collect();
    assert_eq!(mails[..10], [refused; 10]);
    assert_eq!(
        mails[10..],
        ["call intent", "call allowed", "call intent", "call allowed"]
    );
    let refused = records
        .iter()
        .find(|record| record["code"] == "catalog.arguments_invalid");
    let refused = refused.expect("a record");
    assert_eq!(refused["tool"], "send_mail");
    assert_eq!(refused["args"]["bytes"], 2);
    assert!(
        !serde_json::to_string(&records).unwrap().contains("ann\\\""),
        "no arguments"
    );
}

#[tokio::test]
async fn a_tool_whose_schema_cannot_be_used_is_refused_and_others_run() {
    let (tools, gate) = before(lists(&[WEATHER, BARE, UNKNOWN]), "").await;
    for agent in Agent::both("s", &gate).await {
        let reply = gate.send(call(&agent, "get_unknown", "{}")).await;
        assert_eq!(
            words(&agent, &reply),
            "catalog.schema_unusable: the input schema of `get_unknown` cannot be used: its `$schema` \
             \"https://example.com/dialect\" names no dialect that is known; ask the server's operator to correct the \
             tool's input schema"
        );
        let before = calls(&tools);
        for (tool, arguments) in [("get_weather", r#"{"any":1}"#), ("get_bare", r#"{"x":{}}"#)] {
            let reply = gate.send(call(&agent, tool, arguments)).await;
            assert_eq!(
                reply.json()["result"]["content"][0]["text"],
                format!("ok {tool}")
            );
        }
        assert_eq!(calls(&tools), before + 2);
    }
    let ended = stop(gate).await;
    assert_eq!(
        ended
            .iter()
            .filter(|end| end.contains("catalog.schema_unusable"))
            .count(),
        2,
        "{ended:?}"
    );
}

/// A canary stands where a schema says that the rest of it is to be found.
#[tokio::test]
async fn nothing_that_a_schema_refers_to_is_fetched() {
    let canary = Tools::start(|_| None).await;
    let [one, two] = ["$ref", "$dynamicRef"].map(|keyword| {
        format!(
            r#"{{"type":"object","properties":{{"a":{{"{keyword}":"http://{}/schema.json#/a"}}}}}}"#,
            canary.address
        )
    });
    let dialect = format!(r#"{{"$schema":"http://{}/dialect"}}"#, canary.address);
    let file = r#"{"allOf":[{"$ref":"file:///etc/hostname"}]}"#.to_owned();
    let schemas = [one, two, dialect, file];
    let listed: Vec<String> = schemas
        .iter()
        .enumerate()
        .map(|(at, schema)| format!(r#"{{"name":"get_{at}","inputSchema":{schema}}}"#))
        .collect();
    let listed: Vec<&str> = listed.iter().map(String::as_str).chain([WEATHER]).collect();
    let (tools, gate) = before(lists(&listed), "").await;
    for agent in Agent::both("s", &gate).await {
        for (at, schema) in schemas.iter().enumerate() {
            let reply = gate
                .send(call(&agent, &format!("get_{at}"), r#"{"a":1}"#))
                .await;
            let code = agent.refusal(&reply);
            assert_eq!(code, "catalog.schema_unusable", "{schema}");
        }
    }
    assert_eq!((calls(&tools), canary.connections()), (0, 0));
    stop(gate).await;
}

#[tokio::test]
async fn calls_that_are_answered_by_a_stream_are_checked_too() {
    let list = lists(&[WEATHER, MAIL]);
    let script = move |seen: &Seen| match seen.tool() {
        "send_mail" => {
            let message = sound::message(seen.modern(), &sound::text("sent"));
            Some(sound::events(&[&message]))
        }
        _ => list(seen),
    };
    let (tools, gate) = before(script, "").await;
    for agent in Agent::both("s", &gate).await {
        let before = calls(&tools);
        let reply = gate.send(call(&agent, "send_mail", r#"{"to":[]}"#)).await;
        assert!(
            words(&agent, &reply).contains("found an array of 0 items, expected at least 1 items")
        );
        assert_eq!(calls(&tools), before);
        let reply = gate
            .send(call(&agent, "send_mail", r#"{"to":["bob"]}"#))
            .await;
        assert!(reply.body.contains("sent"), "{}", reply.body);
        assert_eq!(calls(&tools), before + 1);
    }
    stop(gate).await;
}

/// The answers to a question come with the call once more, whose arguments are checked once more.
#[tokio::test]
async fn a_call_that_is_repeated_with_answers_is_checked_again() {
    let list = lists(&[
        WEATHER,
        r#"{"name":"get_fault","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}}}}"#,
    ]);
    let script = move |seen: &Seen| {
        if seen.tool() != "get_fault" {
            return list(seen);
        }
        let result = json!({ "resultType": "input_required", "requestState": "s", "inputRequests": {
            "who": { "method": "elicitation/create", "params": { "message": "who?", "requestedSchema": { "type": "object", "properties": {} } } } } });
        let message = json!({ "jsonrpc": "2.0", "id": "$ID", "result": result }).to_string();
        Some(sound::json(&message.replace("\"$ID\"", "$ID")))
    };
    let (tools, gate) = before(script, "").await;
    let agent = Agent::modern("s");
    let ask = |arguments: &str, more: &str| {
        let capabilities = r#"{"elicitation":{"form":{}}}"#;
        agent.post(&format!(
            r#"{{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{{"name":"get_fault","arguments":{arguments}{more},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{capabilities}}}}}}}"#
        ))
    };
    let reply = gate.send(ask(r#"{"n":1}"#, "")).await;
    let state: Value = reply.json()["result"]["requestState"].clone();
    let state = state.as_str().unwrap_or_else(|| panic!("{}", reply.body));
    let more =
        format!(r#","requestState":"{state}","inputResponses":{{"who":{{"action":"cancel"}}}}"#);
    let reply = gate.send(ask(r#"{"n":"1"}"#, &more)).await;
    assert!(words(&agent, &reply).starts_with("catalog.arguments_invalid: "));
    assert_eq!(calls(&tools), 1);
    let reply = gate.send(ask(r#"{"n":1}"#, &more)).await;
    assert_eq!(
        reply.json()["result"]["resultType"],
        "input_required",
        "{}",
        reply.body
    );
    assert_eq!(calls(&tools), 2);
    stop(gate).await;
}

#[tokio::test]
async fn large_arguments_are_checked_while_other_calls_go_on() {
    let list =
        r#"{"name":"get_rows","inputSchema":{"properties":{"rows":{"items":{"type":"integer"}}}}}"#;
    let (tools, gate) = before(lists(&[WEATHER, list]), "").await;
    let agent = Agent::modern("s");
    let rows = "1,".repeat(100_000);
    let fitting = gate.send(call(
        &agent,
        "get_rows",
        &format!(r#"{{"rows":[{rows}1]}}"#),
    ));
    let unfit = gate.send(call(
        &agent,
        "get_rows",
        &format!(r#"{{"rows":[{rows}"1"]}}"#),
    ));
    let (fitting, unfit, ()) = tokio::join!(fitting, unfit, agent.good(&gate));
    assert_eq!(
        fitting.json()["result"]["content"][0]["text"],
        "ok get_rows"
    );
    assert!(
        words(&agent, &unfit)
            .contains("`/rows/100000`: found the string \"1\", expected an integer")
    );
    assert_eq!(calls(&tools), 2);
    stop(gate).await;
}
