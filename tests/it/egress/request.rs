//! How a request gets onto the wire.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::Notify;

use super::{OK, fetch, permit, post, way_out};
use crate::support::{permit::Maker, upstream::Upstream};

/// More than the buffers of a connection hold.
const LARGE: usize = 16 << 20;

fn body(length: usize) -> Bytes {
    vec![b'x'; length].into()
}

#[tokio::test]
async fn bodies_of_any_length_arrive_whole() {
    let upstream = Upstream::always(OK).await;
    let (egress, _) = way_out(&upstream);
    for length in [0, 1, 16 << 10, (16 << 10) + 1, LARGE] {
        let inbound = post(&egress, &permit(), body(length)).await.unwrap();
        assert_eq!(inbound.body.collect(10).await.unwrap(), "ok");
        let request = upstream.requests().pop().unwrap();
        let (head, sent) = request.split_once("\r\n\r\n").unwrap();
        assert_eq!(sent.len(), length);
        let field = format!("\r\ncontent-length: {length}");
        assert_eq!(head.matches(&field).count(), 1, "{head}");
        assert!(head.starts_with("POST /mcp HTTP/1.1\r\nhost: api.test\r\n"));
    }
    assert_eq!(upstream.connections(), 1);
}

/// A server may answer before it has read the request, and never read it (RFC 9112, section 9.5).
#[tokio::test]
async fn an_early_answer_is_an_answer_and_ends_the_connection() {
    const REFUSED: &[u8] = b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno";
    let upstream = Upstream::plain(|mut connection| async move {
        connection.head().await;
        connection.write(REFUSED).await;
        std::future::pending::<()>().await;
    })
    .await;
    let (egress, _) = way_out(&upstream);
    let inbound = post(&egress, &permit(), body(LARGE)).await.unwrap();
    assert_eq!(inbound.status, 413);
    assert_eq!(inbound.body.collect(10).await.unwrap(), "no");
    assert_eq!(egress.idle(), 0);
}

/// A server may also begin to answer and still want the whole request, as proxies do that pass on what they have.
#[tokio::test]
async fn the_rest_of_a_request_follows_an_early_head() {
    let upstream = Upstream::plain(|mut connection| async move {
        while let Some((_, length)) = connection.head().await {
            connection
                .write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n")
                .await;
            if connection.body(length).await.is_some() {
                connection.write(b"ok").await;
            }
        }
    })
    .await;
    let (egress, _) = way_out(&upstream);
    for _ in 0..2 {
        let inbound = post(&egress, &permit(), body(LARGE)).await.unwrap();
        assert_eq!(inbound.body.collect(10).await.unwrap(), "ok");
    }
    assert_eq!((upstream.connections(), egress.idle()), (1, 1));
}

/// Of a body that only the end of its connection ends, a reset is no end.
#[tokio::test]
async fn a_reset_is_not_the_end_of_an_answer() {
    let upstream = Upstream::plain(|mut connection| async move {
        connection.head().await;
        connection.write(b"HTTP/1.1 200 OK\r\n\r\nhalf").await;
        // It closes with most of the request unread: the kernel resets the connection.
    })
    .await;
    let (egress, _) = way_out(&upstream);
    let error = match post(&egress, &permit(), body(LARGE)).await {
        Ok(inbound) => inbound.body.collect(10).await.unwrap_err(),
        Err(failed) => failed.error,
    };
    assert_eq!(error.code().as_str(), "egress.connection_lost");
}

/// What a server says between two requests would be taken for the answer to the second.
#[tokio::test]
async fn an_answer_that_nobody_asked_for_answers_nothing() {
    const EVIL: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil";
    let (say, said) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (told, tell) = (say.clone(), said.clone());
    let upstream = Upstream::plain(move |mut connection| {
        let (told, tell) = (told.clone(), tell.clone());
        async move {
            while connection.request().await.is_some() {
                connection.write(OK.as_bytes()).await;
                told.notified().await;
                connection.write(EVIL).await;
                tell.notify_one();
            }
        }
    })
    .await;
    let (egress, _) = way_out(&upstream);
    assert_eq!(fetch(&egress, &permit()).await.unwrap(), "ok");
    assert_eq!(egress.idle(), 1);
    say.notify_one();
    said.notified().await;
    // A whole exchange on another connection: by then the words have arrived.
    let other = Maker {
        user: "bob",
        ..Maker::new("http://api.test/mcp")
    };
    fetch(&egress, &other.permit()).await.unwrap();
    assert_eq!(fetch(&egress, &permit()).await.unwrap(), "ok");
    assert_eq!((upstream.connections(), upstream.requests().len()), (3, 3));
}
