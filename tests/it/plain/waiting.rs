//! Who is waited for, and for how long; and WebSockets.

use std::time::Duration;

use bytes::BytesMut;
use rustls::pki_types::ServerName;
use tokio::{
    io::{AsyncReadExt as _, DuplexStream, duplex},
    task::JoinHandle,
    time::Instant,
};
use tokio_rustls::client::TlsStream;
use tollgate::{
    refusal::Code,
    tunnel::{Bounds, Forwarded, Heads, Source, forward},
};

use super::{GET, LONG, OK, Way};
use crate::support::{
    certs::{Authority, trusting},
    client::patiently,
    forwarder::Passes,
    upstream::{Connection, Upstream},
};

/// A proxy that waits for little.
async fn hurried<F>(script: impl Fn(Connection) -> F + Send + 'static) -> Way
where
    F: Future<Output = ()> + Send + 'static,
{
    let upstream = Upstream::plain(script).await;
    Way::with(upstream, Passes::default(), Duration::from_millis(500)).await
}

#[tokio::test]
async fn a_target_that_says_nothing_is_told() {
    let way = hurried(|mut connection| async move {
        connection.request().await;
        connection.hang().await;
    })
    .await;
    let mut client = way.client().await;
    client.say(GET).await;
    assert_eq!(client.failure().await, "egress.first_byte_timeout");
}

#[tokio::test]
async fn a_target_that_stops_within_its_answer_is_cut() {
    let way = hurried(|mut connection| async move {
        connection.request().await;
        connection
            .write(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello")
            .await;
        connection.hang().await;
    })
    .await;
    let mut client = way.client().await;
    client.say(GET).await;
    client.until("hello").await;
    assert!(!client.rest().await.1);
    assert_eq!(way.proxy.ends(), ["Some(200) Cut egress.idle_timeout"]);
}

#[tokio::test]
async fn a_client_that_stops_within_its_body_is_told() {
    let way = hurried(|mut connection| async move {
        connection.head().await;
        connection.closed().await;
    })
    .await;
    let mut client = way.client().await;
    client
        .say("POST http://api.test/ HTTP/1.1\r\nHost: api.test\r\nContent-Length: 5\r\n\r\nhel")
        .await;
    assert_eq!(client.failure().await, "listen.slow_body");
    assert_eq!(way.proxy.ends(), ["None Close listen.slow_body"]);
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_cut() {
    let way = hurried(|mut connection| async move {
        connection.request().await;
        connection.write(b"HTTP/1.1 200 OK\r\n\r\n").await;
        connection.write(&vec![0; 64 << 20]).await;
    })
    .await;
    let mut client = way.client().await;
    client.say(GET).await;
    while way.proxy.ends().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(way.proxy.ends(), ["Some(200) Cut listen.client_gone"]);
}

/// A client that speaks TLS over a pipe which holds little, and what becomes of its request; it says and reads nothing yet.
async fn over_tls(way: &Way, idle: Duration) -> (TlsStream<DuplexStream>, JoinHandle<Forwarded>) {
    let authority = Authority::new();
    let (near, far) = duplex(4096);
    let acceptor = authority.acceptor(&["localhost"]);
    let connector = trusting(authority.der());
    let name = ServerName::try_from("localhost").unwrap();
    let (client, proxy) = tokio::join!(connector.connect(name, near), acceptor.accept(far));
    let (egress, mut proxy) = (way.egress.clone(), proxy.unwrap());
    let forwarded = tokio::spawn(async move {
        let mut input = BytesMut::from(GET);
        let head = Heads::default().next(&mut input).unwrap().unwrap();
        let permit = Passes::default().permit(&head.target);
        let source = Source {
            io: &mut proxy,
            input: &mut input,
        };
        let until = Instant::now() + LONG;
        forward(
            &egress,
            &permit,
            &head,
            source,
            Bounds { idle, until },
            |_, _| {},
        )
        .await
    });
    (client.unwrap(), forwarded)
}

#[tokio::test]
async fn what_tls_holds_back_goes_out_before_more_comes() {
    let way = Way::plain(|mut connection| async move {
        connection.request().await;
        connection.write(b"HTTP/1.1 200 OK\r\n\r\n").await;
        connection.write(&[b'x'; 32 * 1024]).await;
        connection.hang().await;
    })
    .await;
    let (mut client, _forwarded) = over_tls(&way, LONG).await;
    let mut body = 0;
    while body < 32 * 1024 {
        let byte = patiently(client.read_u8()).await.unwrap();
        body += usize::from(byte == b'x');
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_the_end_within_tls_is_cut() {
    let body = "x".repeat(32 * 1024);
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let way = Way::always(answer).await;
    let (_client, forwarded) = over_tls(&way, Duration::from_millis(50)).await;
    let forwarded = patiently(forwarded).await.unwrap();
    assert_eq!(forwarded.error.unwrap().code(), Code::ClientGone);
    assert_eq!(format!("{:?}", forwarded.next), "Cut");
}

const WEBSOCKET: &str = "GET http://api.test/ws HTTP/1.1\r\nHost: api.test\r\nConnection: Upgrade, x\r\nUpgrade: WebSocket\r\n\
    Sec-WebSocket-Key: eHh4\r\nX: 1\r\n\r\n";

#[tokio::test]
async fn a_websocket_is_opened_and_nothing_of_it_goes_on_before() {
    let way = Way::plain(|mut connection| async move {
        let (head, _) = connection.head().await.unwrap();
        assert!(head.ends_with("\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"), "{head}");
        assert!(head.contains("\r\nsec-websocket-key: eHh4\r\n") && !head.contains("\r\nx:"), "{head}");
        let answer = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: y\r\n\r\nhi";
        connection.write(answer.as_bytes()).await;
        let said = connection.body(5).await.unwrap();
        connection.write(said.as_bytes()).await;
    })
    .await;
    let mut client = way.client().await;
    client.say(format!("{WEBSOCKET}early")).await;
    let expected = "HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: y\r\nvia: 1.1 tollgate\r\n\
        connection: upgrade\r\nupgrade: websocket\r\n\r\n";
    assert_eq!(client.until("\r\n\r\n").await, expected);
    assert_eq!(client.until("hiearly").await, "hiearly");
    assert_eq!(way.proxy.ends(), ["Some(101) Tunnel"]);
}

#[tokio::test]
async fn a_websocket_that_is_declined_is_an_ordinary_answer() {
    let way = Way::always(OK).await;
    let mut client = way.client().await;
    client.say(format!("{WEBSOCKET}{GET}")).await;
    let (text, is_clean) = client.rest().await;
    let expected =
        "HTTP/1.1 200 OK\r\nvia: 1.1 tollgate\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";
    assert_eq!((text.as_str(), is_clean), (expected, true));
    assert_eq!(way.upstream.requests().len(), 1);
}

#[tokio::test]
async fn another_protocol_than_the_one_asked_for_is_no_answer() {
    for upgrade in [
        "",
        "upgrade: h2c\r\n",
        "upgrade: websocket\r\nupgrade: h2c\r\n",
    ] {
        let answer = format!("HTTP/1.1 101 Switching Protocols\r\n{upgrade}\r\n");
        let way = Way::with(Upstream::always(answer).await, Passes::default(), LONG).await;
        let mut client = way.client().await;
        client.say(WEBSOCKET).await;
        assert!(
            client
                .answer()
                .await
                .1
                .starts_with("egress.response_head_invalid\n"),
            "{upgrade}"
        );
    }
}
