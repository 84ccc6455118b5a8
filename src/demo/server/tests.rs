use std::time::Duration;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{Message, ToolServer};

/// Sends one request as it is written, and reads the whole answer.
#[expect(
    clippy::disallowed_methods,
    reason = "connects to the server under test, on loopback"
)]
async fn exchange(server: &ToolServer, head: &str, body: &str) -> (String, String) {
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    let request = format!(
        "{head}\r\nHost: demo\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_lowercase(), body.to_owned())
}

const POST: &str = "POST /mcp HTTP/1.1\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream";

async fn modern(
    server: &ToolServer,
    method: &str,
    name: &str,
    mut params: Value,
) -> (String, String) {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "progressToken": "p",
    });
    let head = format!(
        "{POST}\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\nMcp-Name: {name}"
    );
    let body = json!({ "jsonrpc": "2.0", "id": "a", "method": method, "params": params });
    exchange(server, &head, &body.to_string()).await
}

fn json_of(answer: &(String, String)) -> Value {
    serde_json::from_str(&answer.1).unwrap()
}

#[tokio::test]
async fn modern_clients_need_no_session() {
    let server = ToolServer::start(Duration::ZERO).await.unwrap();
    let discovered = json_of(&modern(&server, "server/discover", "", json!({})).await);
    assert_eq!(
        discovered["result"]["supportedVersions"],
        json!(["2026-07-28", "2025-11-25"])
    );
    let list = json_of(&modern(&server, "tools/list", "", json!({})).await);
    assert_eq!(list["result"]["tools"][3]["name"], "send_message");
    assert_eq!(list["result"]["resultType"], "complete");
    let weather = json!({ "name": "get_weather", "arguments": { "city": "Lisbon" } });
    let answer = json_of(&modern(&server, "tools/call", "get_weather", weather).await);
    assert_eq!(
        answer,
        json!({ "jsonrpc": "2.0", "id": "a", "result": {
            "content": [{ "type": "text", "text": "Lisbon: 21 degrees, light wind from the west" }],
            "isError": false, "resultType": "complete",
        }})
    );
    let (head, _) = modern(&server, "ping", "", json!({})).await;
    assert!(head.starts_with("http/1.1 404"), "{head}");
    let (head, _) = modern(
        &server,
        "tools/call",
        "other",
        json!({ "name": "get_time" }),
    )
    .await;
    assert!(head.starts_with("http/1.1 400"), "{head}");
    let unknown = json_of(&modern(&server, "tools/call", "x", json!({ "name": "x" })).await);
    assert_eq!(unknown["error"]["code"], -32602);
}

#[tokio::test]
async fn counting_streams_progress_and_then_the_answer() {
    let server = ToolServer::start(Duration::ZERO).await.unwrap();
    let params = json!({ "name": "count_slowly", "arguments": { "to": 2 } });
    let (head, body) = modern(&server, "tools/call", "count_slowly", params).await;
    assert!(head.contains("content-type: text/event-stream"), "{head}");
    let data: Vec<Value> = body
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).unwrap())
        .collect();
    assert_eq!(data.len(), 3);
    assert_eq!(
        data[1]["params"],
        json!({ "progressToken": "p", "progress": 2, "total": 2, "message": "counted 2 of 2" })
    );
    assert_eq!(data[2]["result"]["content"][0]["text"], "counted to 2");
    let too_far = json!({ "name": "count_slowly", "arguments": { "to": 21 } });
    let refused = json_of(&modern(&server, "tools/call", "count_slowly", too_far).await);
    assert_eq!(refused["result"]["isError"], true);
}

#[tokio::test]
async fn legacy_clients_keep_a_session_and_messages_are_kept() {
    let server = ToolServer::start(Duration::ZERO).await.unwrap();
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
    let (head, body) = exchange(&server, POST, initialize).await;
    assert!(body.contains(r#""protocolVersion":"2025-11-25""#), "{body}");
    let session = head
        .lines()
        .find_map(|line| line.strip_prefix("mcp-session-id: "))
        .unwrap();
    let post = format!("{POST}\r\nMCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: {session}");
    let (head, _) = exchange(
        &server,
        &post,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    )
    .await;
    assert!(head.starts_with("http/1.1 202"), "{head}");
    let send = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"send_message","arguments":{"to":"ada","text":"hi"}}}"#;
    let sent = json_of(&exchange(&server, &post, send).await);
    assert_eq!(
        sent["result"],
        json!({ "content": [{ "type": "text", "text": "sent to ada" }], "isError": false })
    );
    assert_eq!(
        server.sent(),
        [Message {
            to: "ada".into(),
            text: "hi".into()
        }]
    );

    let ping = r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#;
    assert_eq!(
        exchange(&server, &post, ping).await.1,
        r#"{"jsonrpc":"2.0","id":3,"result":{}}"#
    );
    assert!(
        exchange(&server, POST, ping)
            .await
            .0
            .starts_with("http/1.1 400")
    );
    let end = format!("DELETE /mcp HTTP/1.1\r\nMcp-Session-Id: {session}");
    assert!(
        exchange(&server, &end, "")
            .await
            .0
            .starts_with("http/1.1 204")
    );
    assert!(
        exchange(&server, &post, ping)
            .await
            .0
            .starts_with("http/1.1 404")
    );
    assert!(
        exchange(
            &server,
            "GET /mcp HTTP/1.1\r\nAccept: text/event-stream",
            ""
        )
        .await
        .0
        .starts_with("http/1.1 405")
    );
}
