//! Tunnels that another policy forbids.

use std::fs;

use super::refused::told;
use crate::support::{
    client::patiently,
    gate::{Gate, Policy, eventually, write},
    tunnels::{Client, policy, rule, target},
};

const OPAQUE: &str = "tls = \"opaque\"";
const ANN: &str = "tg_annannannannannannannannannannannannann0";
const BOB: &str = "tg_bobbobbobbobbobbobbobbobbobbobbobbobbob0";

/// Puts `text` in place of a file, and reads the policy again.
fn change(gate: &Gate, file: &str, text: &str) {
    write(&gate.folder().join(file), text);
    let outcome = gate.handle.reload();
    let changed = matches!(outcome, tollgate::app::reload::Outcome::Changed { .. });
    assert!(changed, "{outcome:?}");
}

#[tokio::test]
async fn what_the_new_policy_refuses_is_cut_and_the_rest_stays() {
    let ((kept, at_kept), (cut, at_cut)) = (target().await, target().await);
    let rules = rule("127.0.0.1", at_kept.port(), OPAQUE);
    let both = format!("{rules}{}", rule("127.0.0.1", at_cut.port(), OPAQUE));
    let gate = Gate::start(&Policy::local("").file("egress.toml", both));
    let mut stays = Client::tunnel(&gate, &at_kept.to_string()).await;
    let mut goes = Client::tunnel(&gate, &at_cut.to_string()).await;
    let (mut target, _) = patiently(kept.accept()).await.unwrap();
    let _cut = patiently(cut.accept()).await.unwrap();
    change(&gate, "egress.toml", &rules);
    assert_eq!(goes.rest().await, b"");
    stays.send("still here").await;
    let mut read = [0; 10];
    patiently(tokio::io::AsyncReadExt::read_exact(&mut target, &mut read))
        .await
        .unwrap();
    eventually("it is recorded", || told(&gate.records()).len() == 3).await;
    assert_eq!(
        told(&gate.records())[2],
        "outcome refused egress.host_not_allowed policy"
    );
    drop(stays);
    gate.stop().await;
}

#[tokio::test]
async fn an_address_that_is_no_longer_open_is_cut() {
    let (listener, address) = target().await;
    let port = address.port();
    let gate = Gate::start(&policy("127.0.0.1", port, OPAQUE));
    let mut client = Client::tunnel(&gate, &address.to_string()).await;
    let _target = patiently(listener.accept()).await.unwrap();
    let without = format!("[[allow]]\nhost = \"127.0.0.1:{port}\"\n{OPAQUE}\n");
    change(&gate, "egress.toml", &without);
    assert_eq!(client.rest().await, b"");
    let records = gate.stop().await;
    assert_eq!(
        told(&records)[1],
        "outcome refused egress.address_blocked policy"
    );
}

#[tokio::test]
async fn an_opaque_tunnel_is_cut_where_only_tls_may_pass() {
    let (listener, address) = target().await;
    let gate = Gate::start(&policy("127.0.0.1", address.port(), OPAQUE));
    let mut client = Client::tunnel(&gate, &address.to_string()).await;
    let _target = patiently(listener.accept()).await.unwrap();
    change(&gate, "egress.toml", &rule("127.0.0.1", address.port(), ""));
    assert_eq!(client.rest().await, b"");
    let records = gate.stop().await;
    assert_eq!(told(&records)[1], "outcome refused tunnel.not_tls policy");
}

#[tokio::test]
async fn the_tunnels_of_a_key_that_is_gone_are_cut() {
    let (listener, address) = target().await;
    let keys = [
        (ANN, "agent = \"ci\"\nuser = \"ann\""),
        (BOB, "agent = \"ci\"\nuser = \"bob\""),
    ];
    let rules = rule("127.0.0.1", address.port(), OPAQUE);
    let gate = Gate::start(&Policy::keys(&keys, "").file("egress.toml", rules));
    let open = async |key| {
        let fields = format!("Proxy-Authorization: Bearer {key}\r\n");
        let (client, head) = Client::connect(&gate, &address.to_string(), &fields).await;
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        client
    };
    let (mut ann, bob) = (open(ANN).await, open(BOB).await);
    let file = fs::read_to_string(gate.folder().join("keys.toml")).unwrap();
    let second = file.rfind("[[key]]").unwrap();
    change(&gate, "keys.toml", &file[second..]);
    assert_eq!(ann.rest().await, b"");
    eventually("one is left", || gate.tunnels().len() == 1).await;
    assert_eq!(gate.tunnels()[0].user, "bob");
    eventually("it is recorded", || told(&gate.records()).len() == 3).await;
    assert_eq!(
        told(&gate.records())[2],
        "outcome refused identity.invalid credential"
    );
    drop((bob, listener));
    gate.stop().await;
}

#[tokio::test]
async fn what_goes_by_another_parent_proxy_than_now_is_cut() {
    let (listener, address) = target().await;
    let gate = Gate::start(&policy("127.0.0.1", address.port(), OPAQUE));
    let mut client = Client::tunnel(&gate, &address.to_string()).await;
    let _target = patiently(listener.accept()).await.unwrap();
    let settings = fs::read_to_string(gate.folder().join("tollgate.toml")).unwrap();
    let parent = "[egress.parent]\nurl = \"http://127.0.0.1:9\"\n";
    change(&gate, "tollgate.toml", &format!("{settings}\n{parent}"));
    assert_eq!(client.rest().await, b"");
    let records = gate.stop().await;
    assert_eq!(
        told(&records)[1],
        "outcome refused egress.parent_changed policy"
    );
}

/// A name that the parent proxy resolves: no address of it is known here, and its name alone is judged.
#[tokio::test]
async fn a_name_that_is_no_longer_open_is_cut_where_a_parent_resolves_it() {
    let (parent, at_parent) = target().await;
    let settings =
        format!("[egress.parent]\nurl = \"http://{at_parent}\"\nparent_resolves = true\n");
    let granted = rule("db.internal", 443, OPAQUE);
    let rules = format!("{granted}[[allow]]\nhost = \"public.example:443\"\n{OPAQUE}\n");
    let gate = Gate::start(&Policy::local(&settings).file("egress.toml", rules.clone()));
    let open = async |name: &str| {
        let (opened, accepted) = tokio::join!(Client::connect(&gate, name, ""), async {
            let (accepted, _) = patiently(parent.accept()).await.unwrap();
            let mut accepted = Client(accepted);
            let asked = accepted.head().await;
            assert!(asked.starts_with(&format!("CONNECT {name} ")), "{asked}");
            accepted.send("HTTP/1.1 200 OK\r\n\r\n").await;
            accepted
        });
        let (client, head) = opened;
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        (client, accepted)
    };
    let (mut goes, _held) = open("db.internal:443").await;
    let (mut stays, mut beyond) = open("public.example:443").await;
    change(
        &gate,
        "egress.toml",
        &rules.replace(
            "[[private]]\nhost = \"db.internal\"\nport = 443\nfor = [\"proxy\"]\n",
            "",
        ),
    );
    assert_eq!(goes.rest().await, b"");
    stays.send("still here").await;
    assert_eq!(beyond.exactly(10).await, b"still here");
    eventually("it is recorded", || told(&gate.records()).len() == 3).await;
    assert_eq!(
        told(&gate.records())[2],
        "outcome refused egress.name_blocked policy"
    );
    drop(stays);
    gate.stop().await;
}
