//! A server that stops at each phase of its answer, and one that never stops.

use std::time::Duration;

use super::{fetch, permit, way_out};
use crate::support::{permit::Maker, upstream::Upstream};

const SHORT: Duration = Duration::from_millis(50);
/// Connecting and sending fit into it.
const WHOLE: Duration = Duration::from_secs(1);

/// Says `first` to a request, then nothing.
async fn stops_after(first: &'static str) -> Upstream {
    Upstream::plain(move |mut connection| async move {
        connection.request().await;
        connection.write(first.as_bytes()).await;
        connection.hang().await;
    })
    .await
}

async fn code(upstream: &Upstream, change: impl Fn(&mut Maker)) -> &'static str {
    let (egress, _) = way_out(upstream);
    let mut maker = Maker::new("http://api.test/mcp");
    change(&mut maker);
    let (code, not_sent) = fetch(&egress, &maker.permit()).await.unwrap_err();
    assert!(!not_sent, "the request was handed to the connection");
    assert_eq!(egress.idle(), 0);
    code.as_str()
}

#[tokio::test]
async fn accepts_and_never_answers() {
    for begun in ["", "HTTP/1.1 200 OK\r\ncontent-le"] {
        let upstream = stops_after(begun).await;
        let code = code(&upstream, |maker| maker.limits.first_byte = SHORT).await;
        assert_eq!(code, "egress.first_byte_timeout", "after `{begun}`");
    }
}

#[tokio::test]
async fn stops_within_its_body() {
    for begun in [
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: 1\n\n",
    ] {
        let upstream = stops_after(begun).await;
        let code = code(&upstream, |maker| maker.limits.idle = SHORT).await;
        assert_eq!(code, "egress.idle_timeout", "after `{begun}`");
    }
}

#[tokio::test]
async fn the_whole_call_has_an_end_in_every_phase() {
    for begun in ["", "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf"] {
        let upstream = stops_after(begun).await;
        let code = code(&upstream, |maker| maker.limits.call = WHOLE).await;
        assert_eq!(code, "egress.call_timeout", "after `{begun}`");
    }
}

#[tokio::test]
async fn a_stream_that_drips_ends_with_the_call() {
    let upstream = Upstream::plain(|mut connection| async move {
        connection.request().await;
        connection.write(b"HTTP/1.1 200 OK\r\n\r\n").await;
        loop {
            connection.write(b":").await;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    let code = code(&upstream, |maker| maker.limits.call = WHOLE).await;
    assert_eq!(code, "egress.call_timeout");
}

#[tokio::test]
async fn endless_interim_answers_end_with_the_first_byte_limit() {
    let upstream = Upstream::plain(|mut connection| async move {
        connection.request().await;
        loop {
            connection.write(b"HTTP/1.1 103 Early Hints\r\n\r\n").await;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    let code = code(&upstream, |maker| maker.limits.first_byte = SHORT).await;
    assert_eq!(code, "egress.first_byte_timeout");
}

#[tokio::test]
async fn a_tls_server_that_does_not_shake_hands_meets_the_connect_limit() {
    let upstream = stops_after("").await;
    let (egress, _) = way_out(&upstream);
    let mut maker = Maker::new("https://api.test/mcp");
    maker.limits.connect = SHORT;
    let (code, not_sent) = fetch(&egress, &maker.permit()).await.unwrap_err();
    assert_eq!((code.as_str(), not_sent), ("egress.connect_timeout", true));
}

#[tokio::test]
async fn resets_before_and_within_its_answer() {
    for begun in [
        "",
        "HTTP/1.1 200 OK\r\ncontent-le",
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n",
    ] {
        let upstream = Upstream::plain(move |mut connection| async move {
            connection.request().await;
            connection.write(begun.as_bytes()).await;
        })
        .await;
        let (egress, _) = way_out(&upstream);
        let (code, not_sent) = fetch(&egress, &permit()).await.unwrap_err();
        assert_eq!(
            (code.as_str(), not_sent),
            ("egress.connection_lost", false),
            "after `{begun}`"
        );
        assert_eq!(upstream.connections(), 1, "never repeated");
    }
}

#[tokio::test]
async fn an_endless_body_stops_at_the_cap() {
    let upstream = Upstream::plain(|mut connection| async move {
        connection.request().await;
        connection.write(b"HTTP/1.1 200 OK\r\n\r\n").await;
        for _ in 0..1000 {
            connection.write(&[b'x'; 16 * 1024]).await;
        }
    })
    .await;
    assert_eq!(code(&upstream, |_| {}).await, "egress.response_too_large");
}
