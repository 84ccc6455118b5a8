//! Tunnels that are let through: what they carry, and how they end.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{
    certs::Authority,
    client::patiently,
    gate::{Gate, eventually},
    tunnels::{Client, policy, target},
};

const OPAQUE: &str = "tls = \"opaque\"";

#[tokio::test]
async fn an_opaque_tunnel_carries_bytes_both_ways_and_each_end_alone() {
    let (listener, address) = target().await;
    let gate = Gate::start(&policy("127.0.0.1", address.port(), OPAQUE));
    let mut client = Client::tunnel(&gate, &address.to_string()).await;
    let (mut target, _) = patiently(listener.accept()).await.unwrap();
    client.send("ping").await;
    let mut read = [0; 4];
    patiently(target.read_exact(&mut read)).await.unwrap();
    assert_eq!(&read, b"ping");

    client.0.shutdown().await.unwrap();
    let mut rest = Vec::new();
    patiently(target.read_to_end(&mut rest)).await.unwrap();
    assert_eq!(rest, b"");
    target.write_all(b"more than that").await.unwrap();
    assert_eq!(client.exactly(14).await, b"more than that");
    drop(target);
    assert_eq!(client.rest().await, b"");

    let records = gate.stop().await;
    let of_proxy: Vec<_> = records.iter().filter(|it| it["kind"] == "egress").collect();
    let [verdict, end] = &*of_proxy else {
        panic!("{of_proxy:#?}")
    };
    let port = address.port();
    assert_eq!(verdict["phase"], "decision");
    assert_eq!(verdict["outcome"], "allowed");
    assert_eq!(verdict["method"], "CONNECT");
    assert_eq!(verdict["user"], "ann");
    assert_eq!(
        verdict["rules"],
        serde_json::json!(["egress.toml:1: [[allow]]"])
    );
    assert_eq!(
        verdict["target"],
        serde_json::json!({"host": "127.0.0.1", "port": port})
    );
    assert_eq!(end["phase"], "outcome");
    assert_eq!(end["outcome"], "allowed");
    assert_eq!(end["request_id"], verdict["request_id"]);
    assert_eq!(
        end["target"],
        serde_json::json!({"host": "127.0.0.1", "port": port, "addresses": ["127.0.0.1"], "pinned": true})
    );
    assert_eq!(
        end["tunnel"],
        serde_json::json!({"in": 14, "out": 4, "closed_by": "client"})
    );
    assert!(end["ms"]["total"].is_number());
}

#[tokio::test]
async fn tls_goes_through_to_the_host_that_it_names() {
    let authority = Authority::new();
    let acceptor = authority.acceptor(&["localhost"]);
    let (listener, address) = target().await;
    let gate = Gate::start(&policy("localhost", address.port(), "")).over_tls(authority.der());
    let serving = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = acceptor.accept(stream).await.unwrap();
        let mut read = [0; 5];
        stream.read_exact(&mut read).await.unwrap();
        stream.write_all(&read).await.unwrap();
        stream.shutdown().await.unwrap();
    });
    let client = Client::tunnel(&gate, &format!("localhost:{}", address.port())).await;
    let mut stream = gate.within_tls(client.0).await.unwrap();
    stream.write_all(b"hello").await.unwrap();
    let mut read = [0; 5];
    patiently(stream.read_exact(&mut read)).await.unwrap();
    assert_eq!(&read, b"hello");
    drop(stream);
    patiently(serving).await.unwrap();
    eventually("the tunnel is gone", || {
        gate.metric("tollgate_tunnel_open") == 0
    })
    .await;
    gate.stop().await;
}

#[tokio::test]
async fn much_goes_through_unchanged_to_a_slow_reader() {
    let (listener, address) = target().await;
    let gate = Gate::start(&policy("127.0.0.1", address.port(), OPAQUE));
    let mut client = Client::tunnel(&gate, &address.to_string()).await;
    let (target, _) = patiently(listener.accept()).await.unwrap();
    let bytes: Vec<u8> = (0..8_u32 << 20)
        .map(|at| (at * 7 + at / 251) as u8)
        .collect();
    let (mut reading, mut writing) = target.into_split();
    let sent = bytes.clone();
    let writer = tokio::spawn(async move {
        writing.write_all(&sent).await.unwrap();
        writing.shutdown().await.unwrap();
    });
    let (mut from, mut to) = client.0.split();
    let expected = bytes.len();
    let mut back = Vec::new();
    let (out, read) = tokio::join!(to.write_all(&bytes), async {
        let mut there = vec![0; expected];
        reading.read_exact(&mut there).await.unwrap();
        from.read_to_end(&mut back).await.unwrap();
        there
    });
    out.unwrap();
    assert!(read == bytes && back == bytes);
    writer.await.unwrap();
    gate.stop().await;
}

#[tokio::test]
async fn what_a_target_said_before_it_went_arrives_whole() {
    let (listener, address) = target().await;
    let gate = Gate::start(&policy("127.0.0.1", address.port(), OPAQUE));
    let mut client = Client::tunnel(&gate, &address.to_string()).await;
    let (mut target, _) = patiently(listener.accept()).await.unwrap();
    client.send("nobody reads this").await;
    patiently(target.peek(&mut [0])).await.unwrap();
    let said: Vec<u8> = (0..1_u32 << 20).map(|at| (at / 251) as u8).collect();
    patiently(target.write_all(&said)).await.unwrap();
    let carried = said.len() as u64;
    eventually("it is on its way", || gate.tunnels()[0].bytes_in == carried).await;
    // A close with bytes unread is a reset.
    drop(target);
    let mut came = Vec::new();
    while came.len() < said.len() {
        client.offer("more for nobody").await;
        let mut piece = vec![0; 4 << 10];
        match patiently(client.0.read(&mut piece)).await {
            Ok(read @ 1..) => came.extend_from_slice(&piece[..read]),
            _ => break,
        }
    }
    assert!(came == said, "{} bytes of {}", came.len(), said.len());
    assert_eq!(client.rest().await, b"");
    drop(client);
    let records = gate.stop().await;
    let end = records.iter().rfind(|it| it["kind"] == "egress").unwrap();
    assert_eq!(end["tunnel"]["closed_by"], "target");
}

#[tokio::test]
async fn a_client_that_is_gone_ends_a_tunnel_whose_target_goes_on() {
    let (listener, address) = target().await;
    let gate = Gate::start(&policy("127.0.0.1", address.port(), OPAQUE));
    for reset in [false, true] {
        let client = Client::tunnel(&gate, &address.to_string()).await;
        let (mut target, _) = patiently(listener.accept()).await.unwrap();
        if reset {
            // It closes with a byte unread.
            target.write_all(b"!").await.unwrap();
            patiently(client.0.peek(&mut [0])).await.unwrap();
        }
        drop(client);
        let piece = [0; 1024];
        let talking = async { while target.write_all(&piece).await.is_ok() {} };
        patiently(talking).await;
        eventually("the tunnel is gone", || gate.tunnels().is_empty()).await;
    }
    let records = gate.stop().await;
    let ends: Vec<_> = records
        .iter()
        .filter_map(|record| record["tunnel"]["closed_by"].as_str())
        .collect();
    assert_eq!(ends, ["client", "client"]);
}

#[tokio::test]
async fn open_tunnels_are_listed() {
    let (listener, address) = target().await;
    let gate = Gate::start(&policy("127.0.0.1", address.port(), OPAQUE));
    let mut client = Client::tunnel(&gate, &address.to_string()).await;
    let (mut target, _) = patiently(listener.accept()).await.unwrap();
    client.send("abc").await;
    target.read_exact(&mut [0; 3]).await.unwrap();
    eventually("the bytes are counted", || {
        gate.tunnels().iter().any(|tunnel| tunnel.bytes_out == 3)
    })
    .await;
    let [tunnel] = &*gate.tunnels() else {
        panic!("one tunnel")
    };
    assert_eq!(tunnel.target, address.to_string());
    assert_eq!(tunnel.address, Some(address.ip()));
    assert_eq!((&*tunnel.user, &*tunnel.agent), ("ann", "local"));
    assert_eq!(tunnel.rule, "egress.toml:1: [[allow]]");
    drop((client, target));
    eventually("it is gone", || gate.tunnels().is_empty()).await;
    gate.stop().await;
}

#[tokio::test]
async fn a_drain_ends_quiet_tunnels_with_a_record() {
    let (listener, address) = target().await;
    let gate = Gate::start(&policy("127.0.0.1", address.port(), OPAQUE));
    let mut client = Client::tunnel(&gate, &address.to_string()).await;
    let target = patiently(listener.accept()).await.unwrap();
    let records = gate.stop().await;
    assert_eq!(client.rest().await, b"");
    drop(target);
    let end = records.iter().rfind(|it| it["kind"] == "egress").unwrap();
    assert_eq!(end["tunnel"]["closed_by"], "drain");
    assert_eq!(end["outcome"], "allowed");
}

#[tokio::test]
async fn the_listener_speaks_tls_where_it_has_a_certificate() {
    let (listener, address) = target().await;
    let authority = Authority::new();
    let (certificate, key) = authority.leaf_and_key(&["localhost"]);
    let policy = policy("127.0.0.1", address.port(), OPAQUE)
        .file("tls.crt", certificate)
        .file("tls.key", key);
    let listen = r#"tls = { cert = "file:tls.crt", key = "file:tls.key" }"#;
    let gate = Gate::start_with(&policy, 1, listen).over_tls(authority.der());
    let client = Client::new(&gate).await;
    let mut client = gate.within_tls(client.0).await.unwrap();
    let head = format!("CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    client.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 39];
    patiently(client.read_exact(&mut answer)).await.unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200 "));
    let (mut target, _) = patiently(listener.accept()).await.unwrap();
    let bytes = vec![b'x'; 300_000];
    let (sent, read) = tokio::join!(target.write_all(&bytes), async {
        let mut read = vec![0; bytes.len()];
        patiently(client.read_exact(&mut read)).await.unwrap();
        read
    });
    sent.unwrap();
    assert!(read == bytes);
    drop((client, target));
    gate.stop().await;
}
