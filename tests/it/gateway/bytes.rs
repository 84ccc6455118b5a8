//! What goes through byte for byte.

use super::{before, sound, stop};
use crate::support::{agent::Agent, sound};

#[tokio::test]
async fn a_list_goes_through_less_what_is_hidden() {
    let (_tools, gate) = sound().await;
    for agent in Agent::both("s", &gate).await {
        let reply = gate.send(agent.request("1", "tools/list", "")).await;
        let kind = if agent.is_modern() {
            r#""ttlMs":0,"cacheScope":"private","resultType":"complete","#
        } else {
            ""
        };
        assert_eq!(reply.status, 200);
        assert_eq!(reply.header("content-type"), Some("application/json"));
        assert_eq!(
            reply.body,
            format!(
                concat!(
                    r#"{{"jsonrpc":"2.0","id":1,"result":{{{}"tools":["#,
                    r#"{{"name":"get_weather","inputSchema":{{"type":"object"}},"x-odd":1.0}},"#,
                    r#"{{"name":"get_fault","inputSchema":{{"type":"object"}}}},"#,
                    r#"{{"name":"send_mail","inputSchema":{{"type":"object"}}}},"#,
                    r#"{{"name":"delete_all","inputSchema":{{"type":"object"}}}}]}}}}"#
                ),
                kind
            )
        );
    }
    assert_eq!(
        stop(gate).await,
        [
            "request allowed",
            "request allowed",
            "list allowed",
            "list allowed"
        ]
    );
}

#[tokio::test]
async fn requests_keep_every_byte_but_id_capabilities_and_own_keys() {
    let (tools, gate) = sound().await;
    let arguments = r#"{ "n":1.50, "big":18446744073709551615,"low":-9223372036854775808 ,"s":"\u00e9\/é","deep":[{"k" : null}],"e":1E+2}"#;
    let modern = Agent::modern("s");
    let body = format!(
        r#"{{"x-unknown":[1 ,2],"jsonrpc":"2.0", "id" : "ag\u0065nt","method":"tools/call","params":{{"name":"get_weather","x":{{}},"arguments":{arguments},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{"sampling":{{}}}},"io.tollgate/turn":"t1","traceparent":"00-a","own/key":1}}}}}}"#
    );
    let reply = gate.send(modern.post(&body)).await;
    assert_eq!(
        reply.body,
        r#"{"jsonrpc":"2.0","id":"ag\u0065nt","result":{"resultType":"complete","content":[{"type":"text","text":"ok get_weather"}],"_meta":{"io.tollgate/untrusted":{"server":"s"}}}}"#
    );
    let seen = tools.of("tools/call").remove(0);
    let expected = body
        .replace(
            r#""id" : "ag\u0065nt""#,
            &format!(r#""id" : {}"#, seen.json["id"]),
        )
        .replace(r#"{"sampling":{}}"#, "{}")
        .replace(r#""t1""#, "null");
    assert!(seen.json["id"].is_u64());
    assert_eq!(seen.text, expected);

    let legacy = Agent::modern("s").legacy(&gate).await;
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":-7,"method":"tools/call","params":{{"arguments":{arguments},"name":"get_weather"}},"after":true}}"#
    );
    let reply = gate.send(legacy.post(&body)).await;
    assert_eq!(
        reply.body,
        r#"{"jsonrpc":"2.0","id":-7,"result":{"content":[{"type":"text","text":"ok get_weather"}],"_meta":{"io.tollgate/untrusted":{"server":"s"}}}}"#
    );
    let seen = tools.of("tools/call").remove(1);
    assert_eq!(seen.text, body.replace("-7", &seen.json["id"].to_string()));
    stop(gate).await;
}

#[tokio::test]
async fn answers_keep_every_byte_but_the_id() {
    const ODD: &str = r#"{ "x":[1 , 2.50],"result":{"content":[],"structuredContent":{"big":123456789012345678901234567890,"f":1E400,"k":1,"k":2,"s":"\ud800"},"_meta":{"a/b":"$"}} ,"id":$ID,"jsonrpc":"2.0","y":null}"#;
    let script = |seen: &_| match crate::support::tools::Seen::tool(seen) {
        "get_fault" => Some(sound::json(ODD)),
        _ => None,
    };
    let (_tools, gate) = before(script, "").await;
    for agent in Agent::both("s", &gate).await {
        let reply = gate.send(agent.call(r#""a""#, "get_fault")).await;
        // A modern result says what kind it is, and Tollgate says so where the server does not.
        let told = if agent.is_modern() {
            ODD.replacen(r#"{"content""#, r#"{"resultType":"complete","content""#, 1)
        } else {
            ODD.to_owned()
        };
        // Whose it is stands beside what the server says there.
        let mark = r#""_meta":{"io.tollgate/untrusted":{"server":"s"},"#;
        let told = told.replacen(r#""_meta":{"#, mark, 1);
        assert_eq!(reply.body, told.replace("$ID", r#""a""#));
    }
    stop(gate).await;
}

#[tokio::test]
async fn ids_of_every_kind_come_back_as_they_were_written() {
    let (tools, gate) = sound().await;
    let long = format!("\"{}\"", "x".repeat(1022));
    let ids = [
        "0",
        "-1",
        "9223372036854775807",
        "-9223372036854775808",
        "18446744073709551615",
        r#""""#,
        r#""7""#,
        r#""\"\\\/\n\u00e9""#,
        "\"é😀\"",
        r#""\ud83d\ude00""#,
        &long,
    ];
    for agent in Agent::both("s", &gate).await {
        for id in ids {
            let reply = gate.send(agent.call(id, "get_weather")).await;
            assert!(
                reply.body.contains(&format!(r#""id":{id},"#)),
                "{id}: {}",
                reply.body
            );
            assert_eq!(reply.status, 200);
        }
        let reply = gate
            .send(agent.call(&long.replacen('x', "xx", 1), "get_weather"))
            .await;
        assert_eq!(
            (reply.status, &reply.json()["error"]["code"]),
            (400, &(-32600).into())
        );
    }
    let mut sent: Vec<_> = tools
        .seen()
        .iter()
        .filter_map(|seen| seen.json["id"].as_u64())
        .collect();
    let all = sent.len();
    sent.sort_unstable();
    sent.dedup();
    assert_eq!(sent.len(), all, "an id was used twice");
    stop(gate).await;
}

#[tokio::test]
async fn errors_and_error_results_are_the_servers_own() {
    const ERROR: &str = r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32602,"message":"no such city","data":{"x":1}}}"#;
    let script = |seen: &_| match crate::support::tools::Seen::tool(seen) {
        "get_fault" => Some(sound::json(ERROR)),
        "send_mail" => Some(sound::json(
            r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","content":[],"isError":true}}"#,
        )),
        _ => None,
    };
    let (_tools, gate) = before(script, "").await;
    for agent in Agent::both("s", &gate).await {
        let reply = gate.send(agent.call("5", "get_fault")).await;
        assert_eq!((reply.status, reply.body), (200, ERROR.replace("$ID", "5")));
        let reply = gate.send(agent.call("6", "send_mail")).await;
        assert_eq!(
            reply.body,
            r#"{"jsonrpc":"2.0","id":6,"result":{"resultType":"complete","content":[],"isError":true,"_meta":{"io.tollgate/untrusted":{"server":"s"}}}}"#
        );
    }
    Agent::modern("s").good(&gate).await;
    let records = gate.stop().await;
    let is_error: Vec<_> = records
        .iter()
        .map(|record| record["result"]["is_error"].clone())
        .collect();
    assert_eq!(
        is_error
            .iter()
            .filter(|is_error| **is_error == true)
            .count(),
        4
    );
}
