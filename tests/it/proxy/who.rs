//! Who asks: keys, for whom they act, and that they are shown nowhere.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::refused::told;
use crate::support::{
    gate::{Gate, Policy},
    tunnels::{Client, rule, target},
};

const ANN: &str = "tg_annannannannannannannannannannannannann0";
const APP: &str = "tg_appappappappappappappappappappappappapp0";
const LIST: &str = "tg_listlistlistlistlistlistlistlistlistlist";

fn keys(port: u16) -> Policy {
    let keys = [
        (ANN, "agent = \"ci\"\nuser = \"ann\""),
        (
            APP,
            "agent = \"app\"\nuser = \"app\"\nscopes = [\"act-for\"]\nmay_act_for = [\"bob\"]",
        ),
        (
            LIST,
            "agent = \"old\"\nuser = \"old\"\nexpires = 2001-01-01",
        ),
    ];
    Policy::keys(&keys, "").file("egress.toml", rule("127.0.0.1", port, "tls = \"opaque\""))
}

fn basic(user: &str, key: &str) -> String {
    let encoded = STANDARD.encode(format!("{user}:{key}"));
    format!("Proxy-Authorization: Basic {encoded}\r\n")
}

#[tokio::test]
async fn keys_name_their_callers() {
    let (listener, address) = target().await;
    let gate = Gate::start(&keys(address.port()));
    let authority = address.to_string();
    let bearer = format!("Proxy-Authorization: Bearer {ANN}\r\n");
    for fields in [basic("", ANN), bearer, basic("bob", APP)] {
        let (client, head) = Client::connect(&gate, &authority, &fields).await;
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        drop(client);
    }
    drop(listener);
    let records = gate.stop().await;
    let callers: Vec<_> = records
        .iter()
        .filter(|it| it["kind"] == "egress" && it["phase"] == "decision")
        .map(|it| (it["agent"].as_str().unwrap(), it["user"].as_str().unwrap()))
        .collect();
    assert_eq!(callers, [("ci", "ann"), ("ci", "ann"), ("app", "bob")]);
}

#[tokio::test]
async fn missing_and_bad_credentials_are_407_and_others_403() {
    let gate = Gate::start(&keys(9));
    for (fields, expected) in [
        (
            String::new(),
            "407 Proxy Authentication Required (tunnel.credential_missing)",
        ),
        (
            basic("", "tg_unknown"),
            "407 Proxy Authentication Required (tunnel.credential_invalid)",
        ),
        (
            basic("", "other"),
            "407 Proxy Authentication Required (tunnel.credential_invalid)",
        ),
        (
            basic(ANN, ""),
            "407 Proxy Authentication Required (tunnel.credential_invalid)",
        ),
        (
            basic("", LIST),
            "407 Proxy Authentication Required (identity.expired)",
        ),
        (basic("", APP), "403 Forbidden (identity.scope)"),
        (basic("eve", APP), "403 Forbidden (identity.acting_refused)"),
        (basic("bob", ANN), "403 Forbidden (identity.acting_refused)"),
    ] {
        let (mut client, head) = Client::connect(&gate, "127.0.0.1:9", &fields).await;
        assert!(
            head.starts_with(&format!("HTTP/1.1 {expected}\r\n")),
            "{head}"
        );
        let asks = head.contains("\r\nproxy-authenticate: Basic realm=\"Tollgate\"\r\n");
        assert_eq!(asks, expected.starts_with("407"), "{head}");
        client.rest().await;
    }
    let records = gate.stop().await;
    assert_eq!(told(&records).len(), 8);
}

#[tokio::test]
async fn a_local_user_needs_no_credential_and_none_is_taken_for_one() {
    let policy = Policy::local("").file("egress.toml", rule("127.0.0.1", 9, ""));
    let gate = Gate::start(&policy);
    let (_, head) = Client::connect(&gate, "127.0.0.1:9", &basic("", ANN)).await;
    assert!(head.starts_with("HTTP/1.1 407 "), "{head}");
    gate.stop().await;
}

#[tokio::test]
async fn a_key_is_shown_nowhere() {
    let gate = Gate::start(&keys(9));
    let mut shown = String::new();
    for fields in [
        basic("", ANN),
        basic(ANN, ""),
        basic("eve", APP),
        basic("", "tg_unknown0"),
    ] {
        let (mut client, head) = Client::connect(&gate, "127.0.0.1:9", &fields).await;
        shown.push_str(&head);
        shown.push_str(&String::from_utf8_lossy(&client.rest().await));
        shown.push_str(
            &fields
                .replace("Proxy-Authorization", "")
                .replace(|c: char| c != '\n', ""),
        );
    }
    for record in gate.stop().await {
        shown.push_str(&record.to_string());
    }
    for secret in [ANN, APP, "tg_unknown0", "Basic dGdf"] {
        assert!(!shown.contains(secret), "{secret}");
    }
}
