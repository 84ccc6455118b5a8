//! Cases of the corpus that are let through: what reaches the target of their bytes.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::{
    support::{
        gate::{Gate, Policy},
        tunnels::Client,
        upstream::Upstream,
    },
    tunnel::cases,
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
async fn what_is_let_through_reaches_the_target_without_what_is_the_proxys() {
    let upstream = Upstream::plain(|mut connection| async move {
        connection.request().await;
        connection.write(OK).await;
        connection.closed().await;
    })
    .await;
    let (cases, port) = (cases(), upstream.address.port());
    let gate = Gate::start(&policy(port));
    let head = |line: &str, rest: &str| {
        format!("{line} HTTP/1.1\r\nhost: {HOST}:{port}\r\nvia: 1.1 tollgate\r\n{rest}")
    };
    let plain = head("GET /", "\r\n");
    for (id, reaches) in [
        ("HTTP-001", &plain),
        ("HTTP-007", &plain),
        (
            "HTTP-016",
            &head("POST /", "transfer-encoding: chunked\r\n\r\n"),
        ),
        ("HTTP-017", &plain),
        ("HTTP-029", &plain),
        ("HTTP-031", &plain),
        ("HTTP-044", &plain),
    ] {
        let input = &cases[id]["input"];
        let raw = input["raw"].as_str().unwrap();
        let before = upstream.requests().len();
        let mut client = Client::new(&gate).await;
        client.send(said(raw, port)).await;
        let answer = client.head().await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{id}: {answer}");
        assert_eq!(upstream.requests()[before..], [reaches.as_str()], "{id}");
    }
    gate.stop().await;
}
