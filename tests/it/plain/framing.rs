//! Bodies of every framing, both ways, and where they end.

use super::{OK, Way};
use crate::support::upstream::Connection;

fn get(path: &str) -> String {
    format!("GET http://api.test{path} HTTP/1.1\r\nHost: api.test\r\n\r\n")
}

fn post(fields: &str, body: &str) -> String {
    format!("POST http://api.test/ HTTP/1.1\r\nHost: api.test\r\n{fields}\r\n{body}")
}

/// The head that a client gets, with these fields behind `Via`.
fn head(status: &str, fields: &str) -> String {
    format!("HTTP/1.1 {status}\r\nvia: 1.1 tollgate\r\n{fields}\r\n")
}

/// The head of a POST, and as many bytes as its body has with its framing.
async fn take(connection: &mut Connection, body: usize) -> Option<String> {
    let (head, _) = connection.head().await?;
    Some(head + &connection.body(body).await?)
}

#[tokio::test]
async fn answers_are_framed_anew() {
    let chunked = "transfer-encoding: chunked\r\n";
    for (answer, fields, body, end) in [
        (
            "content-length: 5\r\n\r\nhello",
            "content-length: 5\r\n",
            "hello",
            "Keep",
        ),
        (
            "content-length: 5, 5\r\n\r\nhello",
            "content-length: 5\r\n",
            "hello",
            "Keep",
        ),
        (
            "content-length: 0\r\n\r\n",
            "content-length: 0\r\n",
            "",
            "Keep",
        ),
        (
            "transfer-encoding: chunked\r\n\r\n3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\nX-Trailer: 1\r\n\r\n",
            chunked,
            "5\r\nhello\r\n0\r\n\r\n",
            "Keep",
        ),
        (
            "transfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            chunked,
            "0\r\n\r\n",
            "Keep",
        ),
        ("\r\nhello", chunked, "5\r\nhello\r\n0\r\n\r\n", "Keep"),
        // Two framings: the chunks count, and the other goes no further (RFC 9112, section 6.3).
        (
            "content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            chunked,
            "5\r\nhello\r\n0\r\n\r\n",
            "Keep",
        ),
    ] {
        let answer = format!("HTTP/1.1 200 OK\r\n{answer}");
        let way = Way::once(answer).await;
        let mut client = way.client().await;
        client.say(get("/")).await;
        client.hang_up().await;
        let expected = head("200 OK", fields) + body;
        assert_eq!(client.rest().await, (expected, true));
        let ends = way.proxy.ends();
        assert!(
            ends[0] == format!("Some(200) {end}") || ends[0] == "Some(200) Close",
            "{ends:?}"
        );
    }
}

#[tokio::test]
async fn a_client_of_the_old_version_gets_no_chunks() {
    let way =
        Way::always("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
            .await;
    let mut client = way.client().await;
    client.say("GET http://api.test/ HTTP/1.0\r\n\r\n").await;
    let expected = head("200 OK", "connection: close\r\n") + "hello";
    assert_eq!(client.rest().await, (expected, true));
}

#[tokio::test]
async fn answers_without_a_body_have_none() {
    for (method, answer, expected) in [
        (
            "HEAD",
            "200 OK\r\ncontent-length: 9\r\n",
            head("200 OK", "content-length: 9\r\n"),
        ),
        (
            "HEAD",
            "200 OK\r\ntransfer-encoding: chunked\r\n",
            head("200 OK", ""),
        ),
        ("GET", "204 No Content\r\n", head("204 No Content", "")),
        (
            "GET",
            "304 Not Modified\r\ncontent-length: 9\r\n",
            head("304 Not Modified", "content-length: 9\r\n"),
        ),
    ] {
        let way = Way::always(format!("HTTP/1.1 {answer}\r\n")).await;
        let mut client = way.client().await;
        for _ in 0..2 {
            client
                .say(format!(
                    "{method} http://api.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n"
                ))
                .await;
            assert_eq!(client.until("\r\n\r\n").await, expected, "{method}");
        }
        assert_eq!(way.upstream.connections(), 1, "{answer}");
    }
}

#[tokio::test]
async fn requests_are_framed_anew() {
    for (said, framed) in [
        (
            post("Content-Length: 5\r\n", "hello"),
            "content-length: 5\r\n\r\nhello",
        ),
        (
            post("Content-Length: 0\r\n", ""),
            "content-length: 0\r\n\r\n",
        ),
        (
            post(
                "Transfer-Encoding: chunked\r\n",
                "3;x=\"y\"\r\nhel\r\n2\r\nlo\r\n0\r\nHost: evil.test\r\n\r\n",
            ),
            "transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        ),
        (post("", ""), "\r\n"),
    ] {
        let length = framed
            .split_once("\r\n\r\n")
            .map_or(0, |(_, body)| body.len());
        let way = Way::plain(move |mut connection| async move {
            while let Some(text) = take(&mut connection, length).await {
                let answer = format!(
                    "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{text}",
                    text.len()
                );
                connection.write(answer.as_bytes()).await;
            }
        })
        .await;
        let mut client = way.client().await;
        // Behind the request stands the next one.
        client.say(format!("{said}{said}")).await;
        let expected =
            format!("POST / HTTP/1.1\r\nhost: api.test\r\nvia: 1.1 tollgate\r\n{framed}");
        for _ in 0..2 {
            assert_eq!(client.answer().await.1, expected, "{said}");
        }
        assert_eq!(way.upstream.connections(), 1);
    }
}

#[tokio::test]
async fn a_body_that_is_malformed_from_the_start_is_never_begun() {
    for body in [
        "5;x=\n\r\nhello\r\n0\r\n\r\n",
        "5\nhello\r\n0\r\n\r\n",
        "5 \r\nhello\r\n0\r\n\r\n",
        "+5\r\nhello\r\n0\r\n\r\n",
        "0x5\r\nhello\r\n0\r\n\r\n",
        "FFFFFFFFFFFFFFFF1\r\n",
        "\r\n5\r\nhello\r\n",
    ] {
        let way = Way::always(OK).await;
        let mut client = way.client().await;
        client
            .say(post("Transfer-Encoding: chunked\r\n", body))
            .await;
        assert!(
            client.answer().await.1.starts_with("listen.body_broken\n"),
            "{body:?}"
        );
        assert_eq!(client.rest().await, (String::new(), true));
        assert_eq!(way.upstream.connections(), 0);
    }
}

#[tokio::test]
async fn a_body_that_turns_malformed_ends_the_request() {
    for rest in ["x", "\n", "hellox", "hello\n"] {
        let way = Way::plain(|mut connection| async move {
            take(&mut connection, 0).await;
            connection.closed().await;
        })
        .await;
        let mut client = way.client().await;
        client.say(post("Transfer-Encoding: chunked\r\n", "")).await;
        client
            .say(if rest.starts_with("hello") {
                "5\r\n"
            } else {
                "5"
            })
            .await;
        client.say(format!("{rest}\r\n")).await;
        assert!(
            client.answer().await.1.starts_with("listen.body_broken\n"),
            "{rest:?}"
        );
        assert_eq!(client.rest().await, (String::new(), true));
    }
}

#[tokio::test]
async fn a_client_that_leaves_within_its_body_ends_the_request() {
    let way = Way::plain(|mut connection| async move {
        connection.head().await;
        // What has come of it is passed on, and no end.
        connection.closed().await;
        connection.write(OK.as_bytes()).await;
    })
    .await;
    let mut client = way.client().await;
    client.say(post("Content-Length: 5\r\n", "hel")).await;
    client.hang_up().await;
    assert_eq!(client.failure().await, "listen.client_gone");
    assert_eq!(way.proxy.ends(), ["None Close listen.client_gone"]);
}

#[tokio::test]
async fn an_early_answer_goes_out_while_the_body_still_comes() {
    let way = Way::plain(|mut connection| async move {
        connection.head().await;
        connection.write(b"HTTP/1.1 200 OK\r\n\r\n").await;
        for _ in 0..3 {
            let piece = connection.body(9).await.unwrap();
            connection.write(piece.as_bytes()).await;
        }
    })
    .await;
    let mut client = way.client().await;
    client.say(post("Transfer-Encoding: chunked\r\n", "")).await;
    let fields = "transfer-encoding: chunked\r\nconnection: close\r\n";
    assert_eq!(client.until("\r\n\r\n").await, head("200 OK", fields));
    for piece in ["aaaa", "bbbb", "cccc"] {
        client.say(format!("4\r\n{piece}\r\n")).await;
        assert_eq!(
            client.until("\r\n\r\n").await,
            format!("9\r\n4\r\n{piece}\r\n\r\n")
        );
    }
    assert_eq!(client.rest().await, ("0\r\n\r\n".to_owned(), true));
    assert_eq!(way.proxy.ends(), ["Some(200) Close"]);
}

#[tokio::test]
async fn a_final_answer_before_the_body_closes_both_connections() {
    let way = Way::plain(|mut connection| async move {
        connection.head().await;
        connection
            .write(b"HTTP/1.1 413 Large\r\ncontent-length: 2\r\n\r\nno")
            .await;
        connection.closed().await;
    })
    .await;
    let mut client = way.client().await;
    client
        .say(post(
            "Content-Length: 1000000\r\nExpect: 100-continue\r\n",
            "",
        ))
        .await;
    let fields = "content-length: 2\r\nconnection: close\r\n";
    let expected = head("413 Content Too Large", fields) + "no";
    let expected = expected.replace(
        "Content Too Large",
        http::StatusCode::PAYLOAD_TOO_LARGE
            .canonical_reason()
            .unwrap(),
    );
    assert_eq!(client.rest().await, (expected, true));
    assert_eq!(
        (way.egress.idle(), way.proxy.ends()),
        (0, vec!["Some(413) Close".to_owned()])
    );
}

#[tokio::test]
async fn an_expectation_and_its_answer_go_through() {
    let way = Way::plain(|mut connection| async move {
        let (head, length) = connection.head().await.unwrap();
        assert!(head.contains("\r\nexpect: 100-continue\r\n"), "{head}");
        connection
            .write(b"HTTP/1.1 103 Hints\r\nlink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n")
            .await;
        let body = connection.body(length).await.unwrap();
        assert_eq!(body, "hello");
        connection.write(b"HTTP/1.1 100 Continue\r\n\r\n").await;
        connection.write(OK.as_bytes()).await;
        connection.closed().await;
    })
    .await;
    let mut client = way.client().await;
    client
        .say(post("Content-Length: 5\r\nExpect: 100-continue\r\n", ""))
        .await;
    assert_eq!(
        client.until("\r\n\r\n").await,
        "HTTP/1.1 100 Continue\r\n\r\n"
    );
    client.say("hello").await;
    assert_eq!(
        client.answer().await,
        (head("200 OK", "content-length: 2\r\n"), "ok".to_owned())
    );
    assert_eq!(way.proxy.ends(), ["Some(200) Keep"]);
}

#[tokio::test]
async fn interim_answers_without_end_are_no_answer() {
    let way = Way::always("HTTP/1.1 100 Continue\r\n\r\n".repeat(10_000)).await;
    let mut client = way.client().await;
    client.say(get("/")).await;
    assert_eq!(client.failure().await, "egress.response_head_invalid");
}

#[tokio::test]
async fn a_large_body_streams_both_ways() {
    const SIZE: usize = 3_000_000;
    let way = Way::plain(|mut connection| async move {
        let (_, length) = connection.head().await.unwrap();
        let body = connection.body(length).await.unwrap();
        connection.write(b"HTTP/1.1 200 OK\r\n\r\n").await;
        connection.write(body.as_bytes()).await;
    })
    .await;
    let body: String = (0..SIZE)
        .map(|at| char::from(b'a' + (at % 26) as u8))
        .collect();
    let mut client = way.client().await;
    client.say("POST http://api.test/ HTTP/1.0\r\n").await;
    client
        .say(format!("Content-Length: {SIZE}\r\n\r\n{body}"))
        .await;
    let (text, is_clean) = client.rest().await;
    let (_, came) = text.split_once("\r\n\r\n").unwrap();
    assert!(is_clean && came == body);
}

#[tokio::test]
async fn an_answer_that_breaks_off_does_not_look_whole() {
    for (answer, came) in [
        (
            "content-length: 9\r\n\r\nhello",
            "content-length: 9\r\n\r\nhello",
        ),
        (
            "transfer-encoding: chunked\r\n\r\n9\r\nhello",
            "transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
        ),
        (
            "transfer-encoding: chunked\r\n\r\n5\r\nhello\n0\r\n\r\n",
            "transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
        ),
    ] {
        let answer = format!("HTTP/1.1 200 OK\r\n{answer}");
        let way = Way::once(answer).await;
        let mut client = way.client().await;
        client.say(get("/")).await;
        let expected = format!("HTTP/1.1 200 OK\r\nvia: 1.1 tollgate\r\n{came}");
        assert_eq!(
            client.until("hello").await,
            expected.split_inclusive("hello").next().unwrap()
        );
        let (rest, is_clean) = client.rest().await;
        assert!(!is_clean && !rest.contains('0'), "{rest:?}");
        assert_eq!(way.proxy.ends(), ["Some(200) Cut egress.connection_lost"]);
    }
}

#[tokio::test]
async fn heads_that_readers_could_read_differently_are_no_answer() {
    for answer in [
        "HTTP/1.1 200 OK\r\nX-A: b\nSet-Cookie: x=1\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX-A: b\r\n folded\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\r\n",
    ] {
        let way = Way::always(answer).await;
        let mut client = way.client().await;
        client.say(get("/")).await;
        assert!(
            client
                .answer()
                .await
                .1
                .starts_with("egress.response_head_invalid\n"),
            "{answer}"
        );
    }
    let way =
        Way::always("HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n").await;
    let mut client = way.client().await;
    client.say(get("/")).await;
    assert_eq!(client.failure().await, "egress.response_encoding");
}
