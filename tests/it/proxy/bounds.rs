//! What tunnels may take.

use tokio::io::AsyncWriteExt as _;

use super::refused::told;
use crate::support::{
    client::patiently,
    gate::{Gate, Policy, eventually},
    tunnels::{Client, rule, target},
};

/// A policy with a `[tunnels]` table.
fn bounded(port: u16, tunnels: &str) -> Policy {
    let rules = rule("127.0.0.1", port, "tls = \"opaque\"");
    Policy::local("").file("egress.toml", format!("[tunnels]\n{tunnels}\n{rules}"))
}

#[tokio::test]
async fn a_caller_has_so_many_tunnels_and_no_more() {
    let (listener, address) = target().await;
    let gate = Gate::start(&bounded(address.port(), "per_caller = 2"));
    let authority = address.to_string();
    let first = Client::tunnel(&gate, &authority).await;
    let _second = Client::tunnel(&gate, &authority).await;
    let (mut third, head) = Client::connect(&gate, &authority, "").await;
    assert!(
        head.starts_with("HTTP/1.1 429 Too Many Requests (tunnel.limit)\r\n"),
        "{head}"
    );
    assert!(head.contains("\r\nretry-after: 1\r\n"), "{head}");
    third.rest().await;
    assert_eq!(gate.metric("tollgate_tunnel_open"), 2);
    drop((first, patiently(listener.accept()).await.unwrap()));
    eventually("a seat is free", || {
        gate.metric("tollgate_tunnel_open") == 1
    })
    .await;
    let _third = Client::tunnel(&gate, &authority).await;
    drop(listener);
    gate.stop().await;
}

#[tokio::test]
async fn new_tunnels_come_no_faster_than_they_may() {
    let (listener, address) = target().await;
    let gate = Gate::start(&bounded(address.port(), "per_second = 1\nburst = 2"));
    let authority = address.to_string();
    for expected in ["200", "200", "429"] {
        let (_, head) = Client::connect(&gate, &authority, "").await;
        assert!(head.starts_with(&format!("HTTP/1.1 {expected} ")), "{head}");
    }
    drop(listener);
    let records = gate.stop().await;
    assert!(told(&records).contains(&"decision refused tunnel.rate".to_owned()));
}

#[tokio::test]
async fn time_and_bytes_end_a_tunnel() {
    for (tunnels, bytes, expected) in [
        ("idle = \"50ms\"", 0, "outcome allowed idle"),
        ("lifetime = \"50ms\"", 0, "outcome allowed lifetime"),
        ("bytes = 1000", 2000, "outcome allowed bytes"),
    ] {
        let (listener, address) = target().await;
        let gate = Gate::start(&bounded(address.port(), tunnels));
        let mut client = Client::tunnel(&gate, &address.to_string()).await;
        let (mut target, _) = patiently(listener.accept()).await.unwrap();
        target.write_all(&vec![b'x'; bytes]).await.unwrap();
        client.rest().await;
        let records = gate.stop().await;
        assert_eq!(told(&records)[1], expected);
    }
}

#[tokio::test]
async fn a_head_that_trickles_is_a_fault_and_silence_is_none() {
    let gate = Gate::start(&Policy::local(""));
    let mut client = Client::new(&gate).await;
    client.send("CONNECT exa").await;
    drop(client);
    eventually("it is recorded", || {
        told(&gate.records()) == ["decision refused listen.client_gone"]
    })
    .await;
    drop(Client::new(&gate).await);
    let records = gate.stop().await;
    assert_eq!(told(&records).len(), 1);
}
