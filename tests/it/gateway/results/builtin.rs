//! Tollgate's own server, and its tools beside those of others.

use serde_json::{Value, json};

use super::{
    Agent, Gate, Policy, SMALL, answering, before, called, offering, read_on, result, text,
};
use crate::support::{
    client::Ask,
    sound as say,
    tools::{Seen, Tools},
};

fn names(list: &Value) -> Vec<&str> {
    let tools = list["tools"].as_array().unwrap();
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn the_tool_stands_behind_the_last_of_every_list() {
    let script = |seen: &Seen| {
        let page = match seen.json["params"]["cursor"].as_str() {
            None => r#"{"tools":[{"name":"get_a"},{"name":"tollgate__get_b"}],"nextCursor":"2"}"#,
            Some(_) => r#"{"tools":[]}"#,
        };
        (seen.method() == "tools/list").then(|| say::result(seen.modern(), page))
    };
    let tools = Tools::start(script).await;
    let policy = Policy::local("").server("s", tools.address, "builtin = true", "");
    let gate = Gate::start(&policy);
    for agent in Agent::both("s", &gate).await {
        let first = result(&gate.send(agent.request("1", "tools/list", "")).await);
        assert_eq!(names(&first), ["get_a"]);
        let last = result(
            &gate
                .send(agent.request("1", "tools/list", r#""cursor":"2""#))
                .await,
        );
        assert_eq!(names(&last), ["tollgate__read_result"]);
        assert_eq!(last["tools"][0]["annotations"]["readOnlyHint"], true);
        // The prefix is nobody else's.
        let reply = gate.send(agent.call("1", "tollgate__get_b")).await;
        assert_eq!(
            reply.json()["error"]["data"]["code"],
            "catalog.tool_unknown"
        );
    }
    assert_eq!(tools.of("tools/call").len(), 0);
    gate.stop().await;
}

#[tokio::test]
async fn a_handle_is_its_callers_alone() {
    let whole = json!({ "content": [text(&"x".repeat(20_000))] });
    let tools = Tools::start(answering(whole)).await;
    let who = |user: &str| format!("agent = \"a\"\nuser = \"{user}\"\n");
    let keys = [("tg_ann", who("ann")), ("tg_bob", who("bob"))];
    let keys: Vec<_> = keys.iter().map(|(key, who)| (*key, &**who)).collect();
    let policy = Policy::keys(&keys, "").server(
        "s",
        tools.address,
        "builtin = true\naccess = \"everyone\"",
        SMALL,
    );
    let gate = Gate::start(&policy);
    let [ann, bob] = ["tg_ann", "tg_bob"].map(|key| Agent::modern("s").with_key(key));
    let cut = called(&gate, &ann, "json").await;
    let handle = &cut["_meta"]["io.tollgate/cut"]["handle"];
    let own = result(&read_on(&gate, &ann, &json!({ "handle": handle, "length": 10 })).await);
    assert_eq!(own["content"][0]["text"], "xxxxxxxxxx");
    for (agent, arguments, code) in [
        (&bob, json!({ "handle": handle }), "budget.handle_unknown"),
        (&ann, json!({ "handle": "0" }), "budget.handle_unknown"),
        (&ann, json!({}), "catalog.arguments_invalid"),
        (
            &ann,
            json!({ "handle": handle, "offset": -1 }),
            "catalog.arguments_invalid",
        ),
        (
            &ann,
            json!({ "handle": handle, "length": 0 }),
            "catalog.arguments_invalid",
        ),
        (
            &ann,
            json!({ "handle": handle, "offset": null }),
            "catalog.arguments_invalid",
        ),
        (&ann, json!([handle]), "catalog.arguments_invalid"),
        (
            &ann,
            json!({ "handle": handle, "more": 1 }),
            "catalog.arguments_invalid",
        ),
    ] {
        let reply = read_on(&gate, agent, &arguments).await;
        assert_eq!(agent.refusal(&reply), code, "{arguments}");
    }
    gate.stop().await;
}

#[tokio::test]
async fn numbers_are_read_as_schemas_mean_them_and_never_guessed() {
    let whole = json!({ "content": [text(&"x".repeat(20_000))] });
    let (_tools, gate) = offering(whole, "", SMALL).await;
    let agent = Agent::modern("s");
    let cut = called(&gate, &agent, "json").await;
    let handle = &cut["_meta"]["io.tollgate/cut"]["handle"];
    let read = async |numbers: &str| {
        let arguments = format!(r#"{{"handle":{handle},{numbers}}}"#);
        let params = format!(r#""name":"tollgate__read_result","arguments":{arguments}"#);
        gate.send(agent.request("2", "tools/call", &params)).await
    };
    for numbers in [r#""offset":2.0,"length":3.0"#, r#""offset":1e2,"length":3"#] {
        let piece = result(&read(numbers).await);
        assert_eq!(piece["content"][0]["text"], "xxx", "{numbers}");
    }
    let beyond = result(&read(r#""offset":1e300"#).await);
    assert_eq!(beyond["content"][0]["text"], "");
    let said = read(r#""offset":"5""#).await.json();
    let said = said["result"]["content"][0]["text"].as_str().unwrap();
    for word in [
        "catalog.arguments_invalid: ",
        "/offset",
        "a number in a string",
    ] {
        assert!(said.contains(word), "{said}");
    }
    gate.stop().await;
}

/// The whole is read at Tollgate's own server then.
#[tokio::test]
async fn by_setting_nothing_stands_beside_a_servers_own() {
    let whole = json!({ "content": [text(&"x".repeat(20_000))] });
    let (tools, gate) = before(answering(whole), SMALL).await;
    for agent in Agent::both("s", &gate).await {
        let list = result(&gate.send(agent.request("1", "tools/list", "")).await);
        assert!(!names(&list).contains(&"tollgate__read_result"));
        let cut = called(&gate, &agent, "json").await;
        let mark = &cut["_meta"]["io.tollgate/cut"];
        assert_eq!(mark["tool"], "read_result");
        assert_eq!(mark["endpoint"], "/mcp/tollgate");
        let arguments = json!({ "handle": mark["handle"], "length": 4 });
        let reply = read_on(&gate, &agent, &arguments).await;
        assert_eq!(
            reply.json()["error"]["data"]["code"],
            "catalog.tool_unknown"
        );
        let params = format!(r#""name":"read_result","arguments":{arguments}"#);
        let own = Agent::modern("tollgate");
        let piece = result(&gate.send(own.request("1", "tools/call", &params)).await);
        assert_eq!(piece["content"][0]["text"], "xxxx");
    }
    assert!(
        tools
            .of("tools/call")
            .iter()
            .all(|seen| seen.tool() == "get_fault")
    );
    gate.stop().await;
}

/// Clients ask for tools where the server says that it has some; the tool is answered, and told of, all the same.
#[tokio::test]
async fn a_server_without_tools_is_given_none() {
    let error = r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":"no tools"}}"#;
    let said = json!({ "contents": [{ "uri": "a:b", "text": "x".repeat(20_000) }] }).to_string();
    let script = move |seen: &Seen| match seen.method() {
        "tools/list" => Some(say::json(error)),
        "resources/read" => Some(say::result(seen.modern(), &said)),
        _ => None,
    };
    let tools = Tools::start(script).await;
    let policy = Policy::local("").server("s", tools.address, "builtin = true", SMALL);
    let gate = Gate::start(&policy);
    for agent in Agent::both("s", &gate).await {
        let reply = gate.send(agent.request("1", "tools/list", "")).await;
        assert_eq!(reply.json()["error"]["code"], -32601);
        let mut ask = agent.request("1", "resources/read", r#""uri":"a:b""#);
        if agent.is_modern() {
            ask = ask.with("Mcp-Name", "a:b");
        }
        let cut = result(&gate.send(ask).await);
        let handle = &cut["_meta"]["io.tollgate/cut"]["handle"];
        let piece = read_on(&gate, &agent, &json!({ "handle": handle, "length": 5 })).await;
        assert_eq!(result(&piece)["content"][0]["text"], "xxxxx");
    }
    gate.stop().await;
}

#[tokio::test]
async fn the_server_of_that_name_speaks_both_eras() {
    let whole = json!({ "content": [text(&"x".repeat(20_000))] });
    let (_tools, gate) = offering(whole, "", SMALL).await;
    let cut = called(&gate, &Agent::modern("s"), "json").await;
    let handle = &cut["_meta"]["io.tollgate/cut"]["handle"];
    let modern = Agent::modern("tollgate");
    let found = result(&gate.send(modern.request("1", "server/discover", "")).await);
    assert_eq!(found["supportedVersions"][0], "2026-07-28");
    // It has no sessions: who initializes is told no id, and names none.
    let welcome = gate.send(modern.initialize("2025-06-18")).await;
    assert_eq!(
        (
            welcome.header("mcp-session-id"),
            &result(&welcome)["protocolVersion"]
        ),
        (None, &json!("2025-06-18"))
    );
    let path = "/mcp/tollgate";
    let legacy = |body: &str| Ask::post(path, body).with("MCP-Protocol-Version", "2025-06-18");
    let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(gate.send(legacy(ready)).await.status, 202);
    let ping = gate
        .send(legacy(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#))
        .await;
    assert_eq!(result(&ping), json!({}));
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    assert_eq!(
        names(&result(&gate.send(legacy(list)).await)),
        ["read_result"]
    );
    assert_eq!(
        names(&result(
            &gate.send(modern.request("1", "tools/list", "")).await
        )),
        ["read_result"]
    );
    let params = format!(r#""name":"read_result","arguments":{{"handle":{handle},"length":5}}"#);
    let call = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{{params}}}}}"#);
    for ask in [modern.request("1", "tools/call", &params), legacy(&call)] {
        assert_eq!(result(&gate.send(ask).await)["content"][0]["text"], "xxxxx");
    }
    let other = gate.send(modern.call("1", "get_weather")).await;
    assert_eq!(
        other.json()["error"]["data"]["code"],
        "catalog.tool_unknown"
    );
    let other = gate.send(modern.request("1", "prompts/list", "")).await;
    assert_eq!(
        (other.status, &other.json()["error"]["code"]),
        (404, &json!(-32601))
    );
    assert_eq!(gate.send(Ask::bare("GET", path)).await.status, 405);
    gate.stop().await;
}
