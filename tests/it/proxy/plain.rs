//! Plain requests through the listener: their verdicts, their records, and what a reload does to them.

use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::refused::told;
use crate::support::{
    client::patiently,
    gate::{Gate, Policy, eventually, write},
    tunnels::{Client, rule, target},
};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// Plain requests to a loopback port, by more rules if there are any.
fn plain(port: u16, more: &str) -> Policy {
    let rules = rule("127.0.0.1", port, &format!("scheme = \"http\"\n{more}"));
    Policy::local("").file("egress.toml", rules)
}

/// Reads a head from a client of the target.
async fn head(stream: &mut TcpStream) -> String {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        head.push(char::from(patiently(stream.read_u8()).await.unwrap()));
    }
    head
}

#[tokio::test]
async fn requests_of_one_connection_are_judged_one_by_one() {
    let (listener, address) = target().await;
    let gate = Gate::start(&plain(
        address.port(),
        "methods = [\"GET\"]\npaths = [\"/open/*\"]",
    ));
    let get = |path: &str| format!("GET http://{address}{path} HTTP/1.1\r\nHost: {address}\r\n");
    let mut client = Client::new(&gate).await;
    client
        .send(get("/open/a") + "Tollgate-Turn: t1\r\nProxy-Connection: keep-alive\r\n\r\n")
        .await;
    let (mut target, _) = patiently(listener.accept()).await.unwrap();
    let seen = head(&mut target).await;
    assert!(seen.starts_with("GET /open/a HTTP/1.1\r\n"), "{seen}");
    assert!(!seen.to_ascii_lowercase().contains("tollgate-"), "{seen}");
    target.write_all(OK.as_bytes()).await.unwrap();
    assert!(client.head().await.starts_with("HTTP/1.1 200 "));
    assert_eq!(client.exactly(2).await, b"ok");

    client.send(get("/shut") + "\r\n").await;
    let refused = client.head().await;
    assert!(
        refused.starts_with("HTTP/1.1 403 Forbidden (egress.request_not_allowed)\r\n"),
        "{refused}"
    );
    let length = refused
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    client.exactly(length.unwrap().parse().unwrap()).await;

    client.send(get("/open/b") + "\r\n").await;
    assert!(head(&mut target).await.starts_with("GET /open/b "));
    target.write_all(OK.as_bytes()).await.unwrap();
    assert!(client.head().await.starts_with("HTTP/1.1 200 "));
    client.exactly(2).await;

    let records = gate.stop().await;
    assert_eq!(
        told(&records),
        [
            "decision allowed",
            "outcome allowed",
            "decision refused egress.request_not_allowed",
            "decision allowed",
            "outcome allowed",
        ]
    );
    let end = records.iter().find(|it| it["phase"] == "outcome").unwrap();
    assert_eq!(end["method"], "GET");
    assert_eq!(end["turn"], "t1");
    assert_eq!(end["args"], json!({"bytes": 0}));
    assert_eq!(
        end["target"],
        json!({"host": "127.0.0.1", "port": address.port(), "addresses": ["127.0.0.1"], "pinned": true})
    );
}

#[tokio::test]
async fn what_follows_a_refused_request_and_may_be_part_of_it_is_no_request() {
    for (method, fields) in [
        ("POST", "Content-Length: 40"),
        ("GET", "Connection: Upgrade\r\nUpgrade: websocket"),
    ] {
        let gate = Gate::start(&Policy::local(""));
        let mut client = Client::new(&gate).await;
        client
            .send(format!(
                "{method} http://a.example.com/ HTTP/1.1\r\nHost: a.example.com\r\n{fields}\r\n\r\n\
                 GET http://b.example.com/ HTTP/1.1\r\n\r\n\r\n"
            ))
            .await;
        let answer = client.head().await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
        assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
        assert!(!client.rest().await.is_empty());
        let records = gate.stop().await;
        assert_eq!(told(&records), ["decision refused egress.host_not_allowed"]);
    }
}

#[tokio::test]
async fn what_is_said_to_the_proxy_is_heard_whatever_connection_says() {
    let gate = Gate::start(&plain(9, ""));
    let mut client = Client::new(&gate).await;
    client
        .send(
            "GET http://127.0.0.1:9/ HTTP/1.1\r\nHost: 127.0.0.1:9\r\nTollgate-Private: 1\r\n\
             Connection: close, Tollgate-Private\r\n\r\n",
        )
        .await;
    client.rest().await;
    let records = gate.stop().await;
    assert_eq!(told(&records), ["decision refused tunnel.private"]);
}

#[tokio::test]
async fn a_target_that_does_not_answer_is_told_as_such() {
    let (listener, address) = target().await;
    drop(listener);
    let gate = Gate::start(&plain(address.port(), ""));
    let mut client = Client::new(&gate).await;
    client
        .send(format!(
            "HEAD http://{address}/ HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
        ))
        .await;
    let answer = client.head().await;
    assert!(
        answer.starts_with("HTTP/1.1 502 Bad Gateway (egress.connect_failed)\r\n"),
        "{answer}"
    );
    assert_eq!(client.rest().await, b"", "an answer to HEAD has no body");
    gate.stop().await;
}

#[tokio::test]
async fn a_websocket_is_a_tunnel_that_a_reload_cuts() {
    let (listener, address) = target().await;
    let gate = Gate::start(&plain(address.port(), "paths = [\"/chat\"]"));
    let mut client = Client::new(&gate).await;
    client
        .send(format!(
            "GET http://{address}/chat HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        ))
        .await;
    let (mut target, _) = patiently(listener.accept()).await.unwrap();
    head(&mut target).await;
    let switched = "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
                    sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\nfirst";
    target.write_all(switched.as_bytes()).await.unwrap();
    assert!(client.head().await.starts_with("HTTP/1.1 101 "));
    assert_eq!(client.exactly(5).await, b"first");
    client.send("frames").await;
    let mut read = [0; 6];
    patiently(target.read_exact(&mut read)).await.unwrap();
    assert_eq!(&read, b"frames");
    eventually("it is listed", || gate.metric("tollgate_tunnel_open") == 1).await;

    let file = gate.folder().join("egress.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    write(&file, &text.replace("/chat", "/other"));
    gate.handle.reload();
    assert_eq!(client.rest().await, b"");
    let records = gate.stop().await;
    assert_eq!(
        told(&records),
        [
            "decision allowed",
            "outcome refused egress.request_not_allowed policy"
        ]
    );
    let end = records.iter().find(|it| it["phase"] == "outcome").unwrap();
    assert_eq!(end["tunnel"]["in"], 5);
    assert_eq!(end["tunnel"]["out"], 6);
}

#[tokio::test]
async fn an_answer_that_is_still_coming_is_cut_by_a_reload() {
    let (listener, address) = target().await;
    let gate = Gate::start(&plain(address.port(), ""));
    let mut client = Client::new(&gate).await;
    client
        .send(format!(
            "GET http://{address}/ HTTP/1.1\r\nHost: {address}\r\n\r\n"
        ))
        .await;
    let (mut target, _) = patiently(listener.accept()).await.unwrap();
    head(&mut target).await;
    let part = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\npart";
    target.write_all(part.as_bytes()).await.unwrap();
    client.head().await;
    assert_eq!(client.exactly(4).await, b"part");
    write(&gate.folder().join("egress.toml"), "");
    gate.handle.reload();
    assert_eq!(client.rest().await, b"");
    let records = gate.stop().await;
    assert_eq!(
        told(&records),
        [
            "decision allowed",
            "outcome refused egress.host_not_allowed"
        ]
    );
}
