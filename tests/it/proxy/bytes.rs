//! Cases of the corpus about bytes, through the real listener: the answer, and what reaches the target.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::{
    support::{
        gate::{Gate, Policy},
        tunnels::Client,
        upstream::Upstream,
    },
    tunnel::{cases, large},
};

const KEY: &str = "tg_annannannannannannannannannannannannann0";
const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";
const HOST: &str = "api.example.net";

/// A rule for the host of the cases, which leads to `port` here.
fn policy(port: u16) -> Policy {
    let rules = format!(
        "[[allow]]\nhost = \"{HOST}:{port}\"\n[[private]]\nhost = \"{HOST}\"\nport = {port}\naddress = \"127.0.0.1\"\nfor = [\"proxy\"]\n"
    );
    let keys = [(KEY, "agent = \"ci\"\nuser = \"ann\"")];
    Policy::keys(&keys, "").file("egress.toml", rules)
}

/// The bytes of a case with the port and the credential of this test.
fn said(raw: &str, port: u16) -> String {
    let place = format!("{HOST}:{port}");
    let text = raw
        .replace(&format!("{HOST}:443"), HOST)
        .replace(HOST, &place);
    let text = text.replace("Proxy-Authorization: Basic eDp5\r\n", "");
    let basic = STANDARD.encode(format!(":{KEY}"));
    text.replacen(
        "\r\n",
        &format!("\r\nProxy-Authorization: Basic {basic}\r\n"),
        1,
    )
}

#[tokio::test]
async fn bytes_of_the_corpus() {
    let upstream = Upstream::plain(|mut connection| async move {
        connection.request().await;
        connection.write(OK).await;
        connection.closed().await;
    })
    .await;
    let port = upstream.address.port();
    let gate = Gate::start(&policy(port));
    let head = |line: &str, more: &str| {
        format!("{line} HTTP/1.1\r\nhost: {HOST}:{port}\r\n{more}via: 1.1 tollgate\r\n")
    };
    let plain = || Some(head("GET /", "") + "\r\n");
    let cases = cases();
    let mut tried = 0;
    for (id, status, reaches) in [
        ("HTTP-001", "200 OK", plain()),
        (
            "HTTP-002",
            "421 Misdirected Request (tunnel.host_mismatch)",
            None,
        ),
        ("HTTP-003", "403 Forbidden (egress.host_not_allowed)", None),
        ("HTTP-004", "400 Bad Request (tunnel.bad_target)", None),
        ("HTTP-005", "400 Bad Request (listen.bad_head)", None),
        (
            "HTTP-006",
            "421 Misdirected Request (tunnel.host_mismatch)",
            None,
        ),
        ("HTTP-007", "200 OK", plain()),
        ("HTTP-009", "400 Bad Request (listen.bad_head)", None),
        ("HTTP-010", "400 Bad Request (listen.bad_head)", None),
        ("HTTP-011", "400 Bad Request (listen.bad_head)", None),
        ("HTTP-012", "400 Bad Request (listen.bad_head)", None),
        ("HTTP-013", "400 Bad Request (listen.bad_head)", None),
        ("HTTP-014", "400 Bad Request (listen.body_broken)", None),
        ("HTTP-015", "400 Bad Request (listen.body_broken)", None),
        (
            "HTTP-016",
            "200 OK",
            Some(head("POST /", "") + "transfer-encoding: chunked\r\n\r\n"),
        ),
        ("HTTP-017", "200 OK", plain()),
        ("HTTP-018", "400 Bad Request (tunnel.early_data)", None),
        ("HTTP-029", "200 OK", plain()),
        ("HTTP-030", "400 Bad Request (listen.bad_head)", None),
        ("HTTP-031", "200 OK", plain()),
        ("HTTP-034", "400 Bad Request (listen.bad_head)", None),
        ("HTTP-035", "400 Bad Request (listen.bad_head)", None),
        (
            "HTTP-039",
            "431 Request Header Fields Too Large (listen.head_too_large)",
            None,
        ),
        (
            "HTTP-040",
            "431 Request Header Fields Too Large (listen.head_too_large)",
            None,
        ),
        (
            "HTTP-041",
            "414 URI Too Long (tunnel.target_too_long)",
            None,
        ),
        (
            "HTTP-042",
            "405 Method Not Allowed (tunnel.method_refused)",
            None,
        ),
        ("HTTP-044", "200 OK", plain()),
    ] {
        let input = &cases[id]["input"];
        let raw = input["raw"].as_str().map(str::to_owned);
        let raw = raw.or_else(|| large(input)).expect(id);
        let before = upstream.requests().len();
        let mut client = Client::new(&gate).await;
        client.send(said(&raw, port)).await;
        let answer = client.head().await;
        assert_eq!(
            answer.lines().next().unwrap(),
            format!("HTTP/1.1 {status}"),
            "{id}"
        );
        drop(client);
        let reached = upstream.requests();
        assert_eq!(reached.get(before), reaches.as_ref(), "{id}");
        tried += 1;
    }
    let ours = cases.values().map(|case| &case["input"]);
    let ours = ours.filter(|input| input.get("raw").is_some() || large(input).is_some());
    assert_eq!(ours.count(), tried);
    gate.stop().await;
}
