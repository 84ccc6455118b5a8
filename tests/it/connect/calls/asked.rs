//! How callers without a connection are sent to the page: by a question where they answer such, else in words.

use serde_json::json;

use super::PAGE;
use crate::support::{
    agent::Agent,
    client::Ask,
    gate::{Policy, ends},
    protected::{Doorkeeper, House},
    tools::Tools,
};

const OPENS: &str = r#"{"elicitation":{"url":{}}}"#;
const WHY: &str =
    "you are not connected to server `s`; open the link and connect there, then call again";
const WORDS: &str = "connect.required: you are not connected to server `s`: https://gate.example/connect/s; open the link and connect there, then call again";

async fn house(tables: &str) -> (Tools, House) {
    let keeper = Doorkeeper::letting(&["Bearer good"]);
    let tools = Tools::start(move |seen| keeper.says("authorization", seen)).await;
    let tables = format!("[auth]\nmode = \"bearer\"\n{tables}");
    let policy = Policy::local("").server("s", tools.address, "", &tables);
    (tools, House::of_ann(&policy))
}

/// A modern request of a client of these capabilities; `params` are its members without braces.
fn modern(capabilities: &str, method: &str, params: &str) -> Ask {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":"x","method":"{method}","params":{{{params},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{capabilities}}}}}}}"#
    );
    Agent::modern("s").post(&body)
}

const CALL: &str = r#""name":"get_weather","arguments":{"to":"bob"}"#;

#[tokio::test]
async fn sessions_are_asked_in_an_error() {
    // What servers may ask is another matter.
    let (tools, house) = house("[relay]\nelicitation = false\n").await;
    let agent = house.session(Agent::modern("s"), OPENS).await;
    for ask in [
        agent.call("7", "get_weather"),
        agent.request("7", "prompts/get", r#""name":"p""#),
        agent.request("7", "resources/list", ""),
    ] {
        let reply = house.send(ask).await;
        assert_eq!(reply.status, 200);
        let body = reply.json();
        let error = &body["error"];
        assert_eq!((&body["id"], &error["code"]), (&json!(7), &json!(-32042)));
        assert_eq!(error["message"], WORDS);
        let [page] = &error["data"]["elicitations"].as_array().unwrap()[..] else {
            panic!("{}", reply.body);
        };
        assert_eq!(page["mode"], "url");
        assert_eq!(page["url"], PAGE);
        assert_eq!(page["message"], WHY);
        assert!(
            page["elicitationId"]
                .as_str()
                .unwrap()
                .starts_with("connect-")
        );
    }
    assert!(
        tools.seen().is_empty(),
        "nothing is sent for whom nothing can be shown"
    );
    let records = house.pipeline.records().await;
    let ended = ends(&records);
    assert_eq!(ended[ended.len() - 3], "call refused connect.required");
}

#[tokio::test]
async fn clients_that_open_no_page_are_told_in_words() {
    let (_tools, house) = house("").await;
    let form = r#"{"elicitation":{"form":{}}}"#;
    let agent = house.session(Agent::modern("s"), form).await;
    let older = {
        let mut agent = Agent::modern("s");
        let welcome = house.send(agent.hello("2025-06-18", OPENS)).await;
        assert_eq!(welcome.json()["result"]["protocolVersion"], "2025-06-18");
        agent.session = welcome.header("mcp-session-id").map(str::to_owned);
        agent
    };
    for ask in [
        agent.call("7", "get_weather"),
        older
            .call("7", "get_weather")
            .set("MCP-Protocol-Version", "2025-06-18"),
        modern("{}", "tools/call", CALL),
        modern(form, "tools/call", CALL),
    ] {
        let reply = house.send(ask).await;
        assert_eq!(super::text(&reply), WORDS);
    }
    // Only these may be answered with a question.
    let reply = house
        .send(modern(OPENS, "resources/list", r#""x":1"#))
        .await;
    assert_eq!(reply.json()["error"]["message"], WORDS);
}

#[tokio::test]
async fn modern_clients_are_asked_in_a_result_and_go_on() {
    let (tools, house) = house("").await;
    let asked = house.send(modern(OPENS, "tools/call", CALL)).await;
    let result = &asked.json()["result"];
    assert_eq!(result["resultType"], "input_required");
    assert_eq!(
        result["inputRequests"],
        json!({ "io.tollgate/connect": { "method": "elicitation/create", "params": { "mode": "url", "message": WHY, "url": PAGE } } })
    );
    let state = result["requestState"].as_str().unwrap().to_owned();
    let again = |action: &str| {
        let answers =
            format!(r#""inputResponses":{{"io.tollgate/connect":{{"action":"{action}"}}}}"#);
        format!(r#"{CALL},"requestState":"{state}",{answers}"#)
    };
    // Who is asked once is not asked again.
    let declined = house
        .send(modern(OPENS, "tools/call", &again("decline")))
        .await;
    assert_eq!(super::text(&declined), WORDS);
    // Who has just opened the page is waited for.
    let accepted = again("accept");
    let going_on = house.send(modern(OPENS, "tools/call", &accepted));
    let connecting = house.enter("ann", "s", "good");
    let (reply, ()) = tokio::join!(going_on, connecting);
    assert_eq!(
        reply.json()["result"]["content"][0]["text"],
        "ok get_weather"
    );
    let [call] = &tools.of("tools/call")[..] else {
        panic!("one call");
    };
    let params = &call.json["params"];
    assert_eq!(params["inputResponses"], json!({}));
    assert_eq!(params["requestState"], json!(null));
    assert_eq!(params["arguments"], json!({ "to": "bob" }));
    // A state goes with its own request only.
    let other = accepted.replace("bob", "eve");
    let reply = house.send(modern(OPENS, "tools/call", &other)).await;
    assert_eq!(reply.json()["error"]["data"]["code"], "mcp.round_invalid");
}
