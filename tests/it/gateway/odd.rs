//! Servers that are sound and unusual.

use serde_json::json;

use super::{Agent, before, stop};
use crate::support::{
    sound as say,
    tools::{Seen, Step},
};

/// Every form that the event stream format allows, and a chunk for each byte.
#[tokio::test]
async fn streams_of_every_legal_form_are_read() {
    let script = |seen: &Seen| {
        let answer = say::message(seen.modern(), &say::text("done"))
            .replace("$ID", &seen.json["id"].to_string());
        let (first, rest) = answer.split_at(answer.find(',').unwrap() + 1);
        let text = format!(
            "\u{feff}: a comment\r\n\r\nid: 1\rretry: 5\rdata\r\revent: other\ndata: {{\"no\":1}}\n\nevent: message\ndata:{first}\r\ndata: {rest}\r\n\r\n: the end\n"
        );
        let bytes = text.into_bytes();
        (seen.tool() == "get_fault").then(|| {
            let mut steps = vec![say::stream()];
            steps.extend(
                bytes
                    .iter()
                    .map(|byte| Step::Say([b"1\r\n".as_slice(), &[*byte], b"\r\n"].concat())),
            );
            steps.push(say::end());
            steps
        })
    };
    let (_tools, gate) = before(script, "").await;
    for agent in Agent::both("s", &gate).await {
        let mut reply = gate.open(agent.call("1", "get_fault")).await;
        let answer: serde_json::Value =
            serde_json::from_str(&reply.event().await.unwrap()).unwrap();
        assert_eq!(answer["result"]["content"][0]["text"], "done");
        assert_eq!(reply.event().await, None);
    }
    stop(gate).await;
}

/// A server that keeps no sessions gives no id, and is not asked for another.
#[tokio::test]
async fn a_server_without_session_ids_is_used_as_it_is() {
    let script = |seen: &Seen| match (seen.method(), seen.tool()) {
        ("initialize", _) => {
            let welcome =
                r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{}}"#;
            Some(say::events(&[&say::message(false, welcome)]))
        }
        (_, "get_fault") => Some(say::status(404, "text/plain", "")),
        _ => None,
    };
    let (tools, gate) = before(script, "").await;
    let agent = Agent::modern("s").legacy(&gate).await;
    agent.good(&gate).await;
    let reply = gate.send(agent.call("1", "get_fault")).await;
    assert_eq!(agent.refusal(&reply), "upstream.status");
    assert_eq!(gate.send(agent.bare("DELETE")).await.status, 200);
    assert_eq!(
        (tools.of("initialize").len(), tools.of("DELETE").len()),
        (1, 0)
    );
    stop(gate).await;
}

#[tokio::test]
async fn welcomes_that_cannot_be_used_open_no_session() {
    for (welcome, status, code) in [
        (
            say::json(r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"full"}}"#),
            200,
            None,
        ),
        (
            say::result(false, r#"{"capabilities":{}}"#),
            200,
            Some("upstream.malformed"),
        ),
        (
            say::welcome("two words", "2025-11-25"),
            200,
            Some("upstream.malformed"),
        ),
        (
            say::status(503, "text/html", "down"),
            200,
            Some("upstream.status"),
        ),
        (vec![Step::Reset], 200, Some("egress.connection_lost")),
    ] {
        let script = move |seen: &Seen| (seen.method() == "initialize").then(|| welcome.clone());
        let (_tools, gate) = before(script, "").await;
        let reply = gate.send(Agent::modern("s").initialize("2025-11-25")).await;
        assert_eq!(
            (reply.status, reply.header("mcp-session-id")),
            (status, None),
            "{}",
            reply.body
        );
        assert_eq!(reply.json()["id"], "i");
        assert_eq!(
            reply.json()["error"]["data"]["code"].as_str(),
            code,
            "{}",
            reply.body
        );
        assert_eq!(gate.metric("tollgate_mcp_sessions"), 0);
        stop(gate).await;
    }
}

/// Where there is no id to answer under, the status says that it did not work.
#[tokio::test]
async fn what_fails_without_an_id_fails_by_its_status() {
    let script = |seen: &Seen| match seen.method() {
        "GET" | "DELETE" | "notifications/initialized" => Some(say::status(500, "text/plain", "")),
        _ => None,
    };
    let (_tools, gate) = before(script, "").await;
    let agent = Agent::modern("s");
    let welcome = gate.send(agent.initialize("2025-11-25")).await;
    let session = welcome.header("mcp-session-id").map(str::to_owned);
    let agent = Agent { session, ..agent };
    let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    for ask in [agent.post(ready), agent.bare("GET")] {
        let reply = gate.send(ask).await;
        assert_eq!(reply.status, 502, "{}", reply.body);
        assert_eq!(reply.json()["error"]["data"]["code"], "upstream.status");
    }
    agent.good(&gate).await;
    // The client's word ends the session, whatever the server says.
    assert_eq!(gate.send(agent.bare("DELETE")).await.status, 200);
    assert_eq!(gate.send(agent.call("1", "get_weather")).await.status, 404);
    stop(gate).await;
}

/// Built anew: nothing else of the agent's goes along.
#[tokio::test]
async fn the_server_sees_these_headers_and_no_others() {
    let (tools, gate) = before(|_| None, "").await;
    for agent in Agent::both("s", &gate).await {
        let ask = agent
            .call("1", "get_weather")
            .with("Mcp-Param-City", "Lisbon")
            .with("Last-Event-ID", "7")
            .with(
                "Traceparent",
                "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            )
            .with("Tollgate-Conversation", "c1")
            .with("Connection", "keep-alive, X-Hop")
            .with("X-Hop", "1")
            .with("Accept-Language", "pt");
        // The modern era has no sessions, and an id of one means nothing.
        let ask = match agent.is_modern() {
            true => ask.with("Mcp-Session-Id", "the-clients"),
            false => ask,
        };
        assert_eq!(gate.send(ask).await.status, 200);
    }
    let own = [
        "accept",
        "content-length",
        "content-type",
        "host",
        "mcp-protocol-version",
        "user-agent",
    ];
    let modern = ["mcp-method", "mcp-name", "mcp-param-city"];
    for (seen, more) in tools
        .of("tools/call")
        .iter()
        .zip([&modern[..], &["mcp-session-id"]])
    {
        let names = seen
            .head
            .lines()
            .skip(1)
            .filter_map(|line| line.split_once(':'));
        let mut names: Vec<_> = names.map(|(name, _)| name.to_ascii_lowercase()).collect();
        names.retain(|name| name != "accept-encoding");
        names.sort();
        let mut expected = [&own[..], more].concat();
        expected.sort_unstable();
        assert_eq!(names, expected);
        assert_eq!(seen.header("host"), Some(&*tools.address.to_string()));
        assert_eq!(
            seen.header("user-agent"),
            Some(concat!("tollgate/", env!("CARGO_PKG_VERSION")))
        );
        let own = (!seen.modern()).then_some("up-1");
        assert_eq!(seen.header("mcp-session-id"), own);
    }
    stop(gate).await;
}

/// A server cannot set the agent's cookies, nor speak as Tollgate.
#[tokio::test]
async fn the_agent_sees_these_headers_and_no_others() {
    const LADEN: &str = "Set-Cookie: a=b\r\nWWW-Authenticate: Bearer\r\nAccess-Control-Allow-Origin: *\r\nMcp-Session-Id: up\r\nX-Odd: 1\r\nConnection: X-Odd\r\n";
    let script = |seen: &Seen| {
        let answer = say::message(seen.modern(), &say::text("done"));
        let steps = match seen.json["params"]["arguments"]["as"].as_str()? {
            "json" => say::json(&answer),
            _ => say::events(&[&answer]),
        };
        let laden = steps.into_iter().map(|step| match step {
            Step::Say(head) if head.starts_with(b"HTTP") => {
                let head = String::from_utf8(head).unwrap();
                Step::Say(
                    head.replacen("\r\n", &format!("\r\n{LADEN}"), 1)
                        .into_bytes(),
                )
            }
            other => other,
        });
        Some(laden.collect())
    };
    let (_tools, gate) = before(script, "").await;
    for agent in Agent::both("s", &gate).await {
        for (form, expected) in [
            ("json", &["content-length", "content-type", "date"][..]),
            (
                "events",
                &[
                    "cache-control",
                    "content-type",
                    "date",
                    "transfer-encoding",
                    "x-accel-buffering",
                ],
            ),
        ] {
            let params = format!(r#""name":"get_fault","arguments":{{"as":"{form}"}}"#);
            let reply = gate.send(agent.request("1", "tools/call", &params)).await;
            let names = reply
                .head
                .lines()
                .skip(1)
                .filter_map(|line| line.split_once(':'));
            let mut names: Vec<_> = names.map(|(name, _)| name.to_ascii_lowercase()).collect();
            names.sort();
            assert_eq!(names, expected);
        }
    }
    stop(gate).await;
}

#[tokio::test]
async fn a_record_says_who_what_and_where() {
    let (tools, gate) = before(|_| None, "").await;
    let agent = Agent::modern("s");
    let ask = agent.request(
        "1",
        "tools/call",
        r#""name":"get_weather","arguments":{"city":"x"}"#,
    );
    gate.send(
        ask.with("Tollgate-Conversation", "c1")
            .with("Tollgate-Turn", "t1"),
    )
    .await;
    let legacy = agent.legacy(&gate).await;
    legacy.good(&gate).await;
    gate.send(legacy.request("1", "ping", "")).await;
    gate.send(legacy.bare("DELETE")).await;
    let mut records = gate.stop().await;
    records.retain(|record| record["kind"] != "lifecycle" && record["kind"] != "catalog");
    let methods: Vec<_> = records
        .iter()
        .map(|record| record["method"].as_str().unwrap())
        .collect();
    assert_eq!(
        methods,
        [
            "tools/call",
            "initialize",
            "notifications/initialized",
            "tools/call",
            "ping",
            "DELETE"
        ]
    );
    assert!(
        records[3]["conversation"]
            .as_str()
            .unwrap()
            .starts_with("session-")
    );
    let first = records[0].as_object_mut().unwrap();
    for varying in ["id", "time", "ms", "request_id", "seq", "prev", "hash"] {
        assert!(first.remove(varying).is_some(), "{varying}");
    }
    assert_eq!(
        records[0],
        json!({"kind":"call","phase":"outcome","outcome":"allowed","tenant":"default","agent":"local","user":"ann",
            "conversation":"c1","turn":"t1","server":"s","method":"tools/call","tool":"get_weather","generation":1,
            "target":{"host":"127.0.0.1","port":tools.address.port(),"addresses":["127.0.0.1"],"pinned":true},
            "args":{"bytes":12},"result":{"bytes":111,"is_error":false}})
    );
}

#[tokio::test]
async fn answers_of_every_legal_http_form_are_read() {
    let script = |seen: &Seen| {
        let body = say::message(seen.modern(), &say::text("done"))
            .replace("$ID", &seen.json["id"].to_string());
        let kind = "content-type: Application/JSON; charset=utf-8";
        let length = body.len();
        let text = match seen.json["params"]["arguments"]["as"].as_str()? {
            "interim" => format!(
                "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n{kind}\r\nContent-Length: {length}\r\n\r\n{body}"
            ),
            "closing" => format!("HTTP/1.1 200\r\n{kind}\r\nConnection: close\r\n\r\n{body}"),
            "old" => format!("HTTP/1.0 200 OK\r\n{kind}\r\n\r\n{body}"),
            _ => format!(
                "HTTP/1.1 200 OK\r\n{kind}\r\nTransfer-Encoding: chunked\r\n\r\n{length:x};x=y\r\n{body}\r\n0\r\nTrailer: z\r\n\r\n"
            ),
        };
        Some(vec![Step::Say(text.into_bytes()), Step::Close])
    };
    let (_tools, gate) = before(script, "").await;
    for agent in Agent::both("s", &gate).await {
        for form in ["interim", "closing", "old", "trailer"] {
            let params = format!(r#""name":"get_fault","arguments":{{"as":"{form}"}}"#);
            let reply = gate.send(agent.request("1", "tools/call", &params)).await;
            assert_eq!(
                reply.json()["result"]["content"][0]["text"],
                "done",
                "{form}: {}",
                reply.body
            );
        }
    }
    stop(gate).await;
}
