//! What arrives of a body.

use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};

use bytes::Bytes;
use http::header;
use tollgate::{
    egress::{Egress, Error},
    memory::Memory,
};

use super::{fetch, no_roots, permit, send, way_out};
use crate::support::{
    dialer::{RecordingDialer, TableResolver},
    permit::Maker,
    upstream::Upstream,
};

fn encoded(coding: &str, body: &[u8]) -> Vec<u8> {
    let mut answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-encoding: {coding}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    answer.extend_from_slice(body);
    answer
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn zstd(text: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(text, ruzstd::encoding::CompressionLevel::Fastest)
}

/// `hello`, as brotli stores it.
const BROTLI: &[u8] = &[0x0b, 0x02, 0x80, b'h', b'e', b'l', b'l', b'o', 0x03];
/// Ten mebibytes of zeros.
const BROTLI_BOMB: &[u8] = &[
    0xcb, 0xff, 0xff, 0x3f, 0xf8, 0x27, 0x00, 0xe2, 0xb1, 0x40, 0x20, 0xf7, 0xfe, 0x2f, 0xff, 0xff,
    0x3f, 0xf0, 0x4f, 0x00, 0xc4, 0x61, 0x11, 0x80, 0xee, 0xfd, 0x07,
];

#[tokio::test]
async fn codings_are_undone_and_their_headers_go() {
    for (coding, body) in [
        ("gzip", gzip(b"hello")),
        ("br", BROTLI.to_vec()),
        ("zstd", zstd(b"hello")),
    ] {
        let upstream = Upstream::always(encoded(coding, &body)).await;
        let (egress, _) = way_out(&upstream);
        let inbound = send(&egress, &permit()).await.unwrap();
        assert!(
            !inbound.headers.contains(&header::CONTENT_ENCODING),
            "{coding}"
        );
        assert!(
            !inbound.headers.contains(&header::CONTENT_LENGTH),
            "{coding}"
        );
        assert_eq!(
            inbound.body.collect(100).await.unwrap(),
            "hello",
            "{coding}"
        );
        assert_eq!(egress.idle(), 1, "{coding}");
    }
}

#[tokio::test]
async fn bombs_stop_at_the_cap_after_decoding() {
    let zeros = vec![0; 10 << 20];
    for (coding, body) in [
        ("gzip", gzip(&zeros)),
        ("br", BROTLI_BOMB.to_vec()),
        ("zstd", zstd(&zeros)),
    ] {
        let upstream = Upstream::always(encoded(coding, &body)).await;
        let (egress, _) = way_out(&upstream);
        let (code, _) = fetch(&egress, &permit()).await.unwrap_err();
        assert_eq!(code.as_str(), "egress.response_too_large", "{coding}");
    }
}

#[tokio::test]
async fn a_coding_that_is_unknown_stacked_or_untrue_is_refused() {
    for (coding, body) in [
        ("deflate", &b"x"[..]),
        ("gzip, gzip", b"x"),
        ("gzip", b"plain text"),
        ("br", &[0xff; 30]),
        ("zstd", b"plain text that is longer than a header"),
        ("gzip", &[0x1f, 0x8b, 0x08]),
    ] {
        let upstream = Upstream::always(encoded(coding, body)).await;
        let (egress, _) = way_out(&upstream);
        let (code, _) = fetch(&egress, &permit()).await.unwrap_err();
        assert_eq!(code.as_str(), "egress.response_encoding", "{coding}");
    }
}

#[tokio::test]
async fn a_body_shorter_than_announced_is_a_lost_connection() {
    let upstream = Upstream::plain(|mut connection| async move {
        connection.request().await;
        connection
            .write(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nfour")
            .await;
    })
    .await;
    let (egress, _) = way_out(&upstream);
    let (code, _) = fetch(&egress, &permit()).await.unwrap_err();
    assert_eq!(code.as_str(), "egress.connection_lost");
}

#[tokio::test]
async fn frames_that_are_ready_together_arrive_together() {
    let mut answer = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_owned();
    let mut expected = String::new();
    for number in 0..20 {
        let event = format!("data: {number}\n\n");
        answer.push_str(&format!("{:x}\r\n{event}\r\n", event.len()));
        expected.push_str(&event);
    }
    answer.push_str("0\r\n\r\n");
    let upstream = Upstream::always(answer).await;
    let (egress, _) = way_out(&upstream);
    let mut body = send(&egress, &permit()).await.unwrap().body;
    assert_eq!(body.next_ready().await.unwrap().unwrap(), expected);
    assert!(body.is_ended(), "the end is known with the last piece");
    assert_eq!(body.next_ready().await.unwrap(), None);
    assert_eq!(egress.idle(), 1);
}

#[tokio::test]
async fn a_piece_arrives_before_the_next_is_sent() {
    let (ask, asked) = tokio::sync::mpsc::unbounded_channel::<()>();
    let asked = std::sync::Arc::new(tokio::sync::Mutex::new(asked));
    let upstream = Upstream::plain(move |mut connection| {
        let asked = asked.clone();
        async move {
            connection.request().await;
            connection.write(b"HTTP/1.1 200 OK\r\n\r\n").await;
            for number in 0..3 {
                asked.lock().await.recv().await;
                connection
                    .write(format!("data: {number}\n\n").as_bytes())
                    .await;
            }
        }
    })
    .await;
    let (egress, _) = way_out(&upstream);
    let mut body = send(&egress, &permit()).await.unwrap().body;
    for number in 0..3 {
        ask.send(()).unwrap();
        assert_eq!(
            body.next_ready().await.unwrap().unwrap(),
            format!("data: {number}\n\n")
        );
    }
    assert_eq!(body.next_ready().await.unwrap(), None);
}

#[tokio::test]
async fn the_lower_of_both_caps_holds() {
    let upstream =
        Upstream::always("HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\nhello world").await;
    let (egress, _) = way_out(&upstream);
    let body = send(&egress, &permit()).await.unwrap().body;
    assert_eq!(
        body.collect(10).await.unwrap_err().code().as_str(),
        "egress.response_too_large"
    );
    let mut maker = Maker::new("http://api.test/mcp");
    maker.limits.response_bytes = 11;
    assert_eq!(
        fetch(&egress, &maker.permit()).await.unwrap(),
        "hello world"
    );
}

/// A way out whose answers share 150,000 bytes, before a server whose answers have 100,000.
async fn narrow() -> (Egress, Upstream) {
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n";
    let upstream = Upstream::always(format!("{head}{}", "x".repeat(100_000))).await;
    let egress = Egress::new(
        TableResolver::of(&[("api.test", &["1.1.1.1"])]),
        RecordingDialer::to(upstream.address),
        no_roots(),
        Memory::new(150_000),
        std::sync::Arc::default(),
    );
    (egress, upstream)
}

async fn whole(egress: &Egress) -> Result<Bytes, Error> {
    let mut maker = Maker::new("http://api.test/mcp");
    maker.limits.response_bytes = 100_000;
    let inbound = send(egress, &maker.permit()).await.unwrap();
    inbound.body.collect(usize::MAX).await
}

#[tokio::test]
async fn an_answer_counts_until_its_last_slice_is_dropped() {
    let (egress, _upstream) = narrow().await;
    let first = whole(&egress).await.unwrap();
    assert_eq!(first.len(), 100_000);
    let end = first.slice(99_999..);
    drop(first);
    let error = whole(&egress).await.unwrap_err();
    assert_eq!(error.code().as_str(), "egress.overloaded");
    assert_eq!(
        error.to_string(),
        "the call was made, but there is no room for the answer of `api.test`"
    );
    assert_eq!(end, "x");
    drop(end);
    assert_eq!(whole(&egress).await.unwrap().len(), 100_000);
}

#[tokio::test]
async fn what_a_reader_holds_of_a_body_counts_with_it() {
    let (egress, _upstream) = narrow().await;
    let mut maker = Maker::new("http://api.test/mcp");
    maker.limits.response_bytes = 100_000;
    let mut body = send(&egress, &maker.permit()).await.unwrap().body;
    body.hold(100_000).unwrap();
    assert_eq!(
        body.hold(100_000).unwrap_err().code().as_str(),
        "egress.overloaded"
    );
    assert!(whole(&egress).await.is_err());
    body.release_to(20_000);
    assert!(whole(&egress).await.is_ok());
    body.hold(80_000).unwrap();
    let made = body.attach(Bytes::from_static(b"made of it"), 0);
    drop(body);
    assert!(whole(&egress).await.is_err());
    assert_eq!(made, "made of it");
    drop(made);
    assert!(whole(&egress).await.is_ok());
}
