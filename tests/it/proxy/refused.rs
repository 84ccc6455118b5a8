//! What is refused: before a tunnel is open, with an answer; within it, with its end. Each with a record.

use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;

use crate::support::{
    certs::Authority,
    client::patiently,
    gate::{Gate, Policy},
    tunnels::{Client, policy, rule, target},
};

/// The records of the forward proxy: `phase outcome code closed_by`.
pub(super) fn told(records: &[Value]) -> Vec<String> {
    let of_proxy = records.iter().filter(|it| it["kind"] == "egress");
    of_proxy
        .map(|it| {
            let words = [
                &it["phase"],
                &it["outcome"],
                &it["code"],
                &it["tunnel"]["closed_by"],
            ];
            let words: Vec<_> = words.iter().filter_map(|word| word.as_str()).collect();
            words.join(" ")
        })
        .collect()
}

#[tokio::test]
async fn a_host_that_no_rule_names_is_refused_with_code_and_remedy() {
    let gate = Gate::start(&Policy::local(""));
    let (mut client, head) = Client::connect(&gate, "api.example.com:443", "").await;
    assert!(
        head.starts_with("HTTP/1.1 403 Forbidden (egress.host_not_allowed)\r\n"),
        "{head}"
    );
    let body = client.rest().await;
    assert_eq!(
        String::from_utf8_lossy(&body),
        "egress.host_not_allowed: `https://api.example.com` is not allowed through the proxy for this caller; ask the \
         operator whether egress.toml should allow this host and port\ndecided by default\n"
    );
    let fields = "Accept: application/json\r\n";
    let (mut client, _) = Client::connect(&gate, "api.example.com:443", fields).await;
    let body: Value = serde_json::from_slice(&client.rest().await).unwrap();
    assert_eq!(body["error"]["code"], "egress.host_not_allowed");
    assert_eq!(body["error"]["rule"], "default");
    let records = gate.stop().await;
    let refused = "decision refused egress.host_not_allowed";
    assert_eq!(told(&records), [refused, refused]);
    let first = records.iter().find(|it| it["kind"] == "egress").unwrap();
    assert_eq!(
        first["target"],
        json!({"host": "api.example.com", "port": 443})
    );
    assert_eq!(first["rules"], json!(["default"]));
}

#[tokio::test]
async fn forbidden_addresses_are_refused_even_where_a_rule_names_the_host() {
    let text = "[[allow]]\nhost = \"127.0.0.1:9\"\n";
    let gate = Gate::start(&Policy::local("").file("egress.toml", text));
    let (mut client, head) = Client::connect(&gate, "127.0.0.1:9", "").await;
    assert!(
        head.starts_with("HTTP/1.1 403 Forbidden (egress.address_blocked)\r\n"),
        "{head}"
    );
    client.rest().await;
    let records = gate.stop().await;
    assert_eq!(
        told(&records),
        ["decision allowed", "outcome refused egress.address_blocked"]
    );
}

#[tokio::test]
async fn what_cannot_be_reached_is_502_with_the_cause() {
    let (listener, address) = target().await;
    drop(listener);
    let gate = Gate::start(&policy("127.0.0.1", address.port(), ""));
    let (mut client, head) = Client::connect(&gate, &address.to_string(), "").await;
    assert!(
        head.starts_with("HTTP/1.1 502 Bad Gateway (egress.connect_failed)\r\n"),
        "{head}"
    );
    client.rest().await;
    let records = gate.stop().await;
    assert_eq!(
        told(&records),
        ["decision allowed", "outcome failed egress.connect_failed"]
    );
    let end = records.iter().rfind(|it| it["kind"] == "egress").unwrap();
    assert_eq!(end["target"]["addresses"], json!(["127.0.0.1"]));
}

#[tokio::test]
async fn a_host_field_that_names_another_host_is_refused() {
    let gate = Gate::start(&policy("127.0.0.1", 9, ""));
    let mut client = Client::new(&gate).await;
    client
        .send("CONNECT 127.0.0.1:9 HTTP/1.1\r\nHost: example.com\r\n\r\n")
        .await;
    assert!(client.head().await.starts_with("HTTP/1.1 421 "));
    let records = gate.stop().await;
    assert_eq!(told(&records), ["decision refused tunnel.host_mismatch"]);
}

#[tokio::test]
async fn bytes_before_the_answer_are_refused() {
    let (listener, address) = target().await;
    let gate = Gate::start(&policy("127.0.0.1", address.port(), "tls = \"opaque\""));
    let mut client = Client::new(&gate).await;
    client
        .send(format!(
            "CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n\r\nGET / HTTP/1.1\r\n"
        ))
        .await;
    let head = client.head().await;
    assert!(
        head.starts_with("HTTP/1.1 400 Bad Request (tunnel.early_data)\r\n"),
        "{head}"
    );
    drop(listener);
    let records = gate.stop().await;
    assert_eq!(told(&records), ["decision refused tunnel.early_data"]);
}

#[tokio::test]
async fn malformed_heads_are_told_and_recorded() {
    let gate = Gate::start(&Policy::local(""));
    for (bytes, status, code) in [
        (
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            400,
            "tunnel.bad_target",
        ),
        (
            "GET http://a.test/ HTTP/1.1\r\nHost: a.test\n\r\n",
            400,
            "listen.bad_head",
        ),
        (
            "CONNECT a.test HTTP/1.1\r\nHost: a.test\r\n\r\n",
            400,
            "tunnel.bad_target",
        ),
        ("\x16\x03\x01\x02\x00", 400, "listen.bad_head"),
        (
            "TRACE http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
            405,
            "tunnel.method_refused",
        ),
    ] {
        let mut client = Client::new(&gate).await;
        client.send(bytes).await;
        let head = client.head().await;
        assert!(
            head.starts_with(&format!("HTTP/1.1 {status} ")),
            "{bytes:?}: {head}"
        );
        assert!(head.contains(code), "{bytes:?}: {head}");
        client.rest().await;
    }
    let records = gate.stop().await;
    assert_eq!(told(&records).len(), 5);
}

#[tokio::test]
async fn a_tunnel_begins_with_the_tls_of_its_host() {
    let (listener, address) = target().await;
    let authority = Authority::new();
    let rules = rule("127.0.0.1", address.port(), "");
    let gate = Gate::start(&Policy::local("").file("egress.toml", rules)).over_tls(authority.der());
    let authority = address.to_string();

    let mut plain = Client::tunnel(&gate, &authority).await;
    plain.send("GET / HTTP/1.1\r\n\r\n").await;
    let told_inside = plain.head().await;
    assert!(
        told_inside.starts_with("HTTP/1.1 403 Forbidden (tunnel.not_tls)\r\n"),
        "{told_inside}"
    );
    plain.rest().await;
    let (mut met, _) = patiently(listener.accept()).await.unwrap();
    assert_eq!(met.read_to_end(&mut Vec::new()).await.unwrap(), 0);

    // TLS that asks for `localhost` in a tunnel to its address.
    let other = Client::tunnel(&gate, &authority).await;
    let error = gate.within_tls(other.0).await.unwrap_err();
    assert!(error.to_string().contains("UnrecognisedName"), "{error}");
    let (mut met, _) = patiently(listener.accept()).await.unwrap();
    assert_eq!(met.read_to_end(&mut Vec::new()).await.unwrap(), 0);

    // What is neither TLS nor HTTP is told nothing.
    let mut other = Client::tunnel(&gate, &authority).await;
    other.send("SSH-2.0-x\r\n").await;
    assert_eq!(other.rest().await, b"");

    let silent = Client::tunnel(&gate, &authority).await;
    drop(silent);
    let records = gate.stop().await;
    let mut ends = told(&records);
    ends.retain(|end| end.starts_with("outcome"));
    ends.sort();
    assert_eq!(
        ends,
        [
            "outcome allowed client",
            "outcome refused tunnel.not_tls hello",
            "outcome refused tunnel.not_tls hello",
            "outcome refused tunnel.sni_mismatch hello",
        ]
    );
}

#[tokio::test]
async fn a_private_conversation_gets_nothing() {
    let gate = Gate::start(&policy("127.0.0.1", 9, ""));
    let (_, head) = Client::connect(&gate, "127.0.0.1:9", "Tollgate-Private: 1\r\n").await;
    assert!(
        head.starts_with("HTTP/1.1 403 Forbidden (tunnel.private)\r\n"),
        "{head}"
    );
    let records = gate.stop().await;
    assert_eq!(told(&records), ["decision refused tunnel.private"]);
}

#[tokio::test]
async fn what_would_be_refused_is_recorded_while_a_rule_only_reports() {
    let (listener, address) = target().await;
    let more = "who = { users = [\"bob\"] }\ntls = \"opaque\"\nreport_until = 2999-01-01";
    let gate = Gate::start(&policy("127.0.0.1", address.port(), more));
    let client = Client::tunnel(&gate, &address.to_string()).await;
    drop((client, listener));
    let records = gate.stop().await;
    assert_eq!(
        told(&records)[0],
        "decision would_refuse egress.host_not_allowed"
    );
}
