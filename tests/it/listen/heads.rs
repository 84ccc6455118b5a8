//! What the head alone decides.

use super::front::{Front, HEAD};

/// Sends a request that is refused: its status line, and the code of its one record.
async fn refused(request: &str) -> (String, String) {
    let front = Front::start();
    let answer = front.exchange(request).await;
    let status = answer.lines().next().unwrap_or_default().to_owned();
    let record = front.only_record().await;
    assert_eq!(record["kind"], "request");
    assert_eq!(record["outcome"], "refused");
    (status, record["code"].as_str().expect("a code").to_owned())
}

async fn assert_refused(request: &str, status: &str, code: &str) {
    let (found, recorded) = refused(request).await;
    assert_eq!((&*found, &*recorded), (status, code), "{request:.80}");
}

#[tokio::test]
async fn heads_that_are_no_http_are_refused() {
    for request in [
        "HELLO\r\n\r\n",
        "GET /mcp/demo HTTP/1.1\r\nhost: localhost\r\nbad header\r\n\r\n",
        "GET /mcp/demo HTTP/9.9\r\n\r\n",
        "POST /mcp/demo HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nx",
        "POST /mcp/demo HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n",
    ] {
        assert_refused(request, "HTTP/1.1 400 Bad Request", "listen.bad_head").await;
    }
}

#[tokio::test]
async fn heads_that_are_too_large_are_refused() {
    let status = "HTTP/1.1 431 Request Header Fields Too Large";
    let long = format!("{HEAD}x-long: {}\r\n\r\n", "x".repeat(66_000));
    assert_refused(&long, status, "listen.head_too_large").await;
    let many = format!("{HEAD}{}\r\n", "x-many: 1\r\n".repeat(100));
    assert_refused(&many, status, "listen.head_too_large").await;
    let target = format!(
        "GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n",
        "x".repeat(65_536)
    );
    let (_, code) = refused(&target).await;
    assert_eq!(code, "listen.head_too_large");
}

#[tokio::test]
async fn a_head_in_many_small_pieces_is_one_head() {
    let front = Front::start();
    let mut client = front.connect().await;
    for piece in HEAD.as_bytes().chunks(7) {
        client
            .send(std::str::from_utf8(piece).expect("ascii"))
            .await;
    }
    client.send("\r\n").await;
    assert!(client.answer().await.starts_with("HTTP/1.1 200 OK"));
    drop(client);
    assert!(front.records().await.is_empty());
}

#[tokio::test]
async fn a_forged_host_is_refused() {
    for host in ["evil.example", "127.0.0.2", "localhost.evil.example:80"] {
        let request =
            format!("POST /mcp/demo HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        assert_refused(&request, "HTTP/1.1 403 Forbidden", "listen.bad_host").await;
    }
    let absolute = "POST http://evil.example/mcp/demo HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    assert_refused(absolute, "HTTP/1.1 403 Forbidden", "listen.bad_host").await;
}

#[tokio::test]
async fn host_stands_exactly_once() {
    let status = "HTTP/1.1 400 Bad Request";
    let none = "POST /mcp/demo HTTP/1.1\r\nconnection: close\r\n\r\n";
    assert_refused(none, status, "listen.bad_head").await;
    let twice = "POST /mcp/demo HTTP/1.1\r\nhost: localhost\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    assert_refused(twice, status, "listen.bad_head").await;
}

#[tokio::test]
async fn a_foreign_origin_is_refused_and_a_listed_one_is_not() {
    for origin in ["http://evil.example", "http://localhost:3000", "null"] {
        let request = format!("{HEAD}origin: {origin}\r\nconnection: close\r\n\r\n");
        assert_refused(&request, "HTTP/1.1 403 Forbidden", "listen.bad_origin").await;
    }
    let front = Front::start();
    for origin in ["http://localhost", "https://app.example.com"] {
        let answer = front
            .exchange(&format!(
                "{HEAD}origin: {origin}\r\nconnection: close\r\n\r\n"
            ))
            .await;
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{origin}: {answer}");
    }
}

#[tokio::test]
async fn other_paths_and_methods_are_refused_with_a_way_on() {
    for path in [
        "/",
        "/mcp",
        "/mcp/",
        "/mcp/UPPER",
        "/mcp/a/b",
        "/mcp/-x",
        "/metrics",
        "/mcp/%64emo",
    ] {
        let request =
            format!("POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        assert_refused(&request, "HTTP/1.1 404 Not Found", "listen.not_found").await;
    }
    let front = Front::start();
    let put = "PUT /mcp/demo HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let answer = front.exchange(put).await;
    assert!(
        answer.contains("\r\nallow: POST, GET, DELETE\r\n"),
        "{answer}"
    );
    let record = front.only_record().await;
    assert_eq!(record["code"], "listen.method_not_allowed");
    assert_eq!(record["method"], "PUT");
}

#[tokio::test]
async fn protocol_headers_stand_once() {
    let request =
        format!("{HEAD}tollgate-turn: 1\r\ntollgate-turn: 1\r\nconnection: close\r\n\r\n");
    assert_refused(&request, "HTTP/1.1 400 Bad Request", "mcp.header_duplicate").await;
}

#[tokio::test]
async fn requests_follow_one_another_on_a_connection() {
    let front = Front::start();
    let mut client = front.connect().await;
    client
        .send(&format!("{HEAD}content-length: 2\r\n\r\n{{}}"))
        .await;
    assert!(
        client
            .answer()
            .await
            .ends_with(r#"{"bytes":2,"generation":1,"user":"alice"}"#)
    );
    // Two at once are answered one after the other; a refusal between them does not end the connection.
    client
        .send(&format!(
            "GET /nowhere HTTP/1.1\r\nhost: localhost\r\n\r\n{HEAD}\r\n"
        ))
        .await;
    assert!(client.answer().await.starts_with("HTTP/1.1 404 Not Found"));
    assert!(client.answer().await.starts_with("HTTP/1.1 200 OK"));
    drop(client);
    assert_eq!(front.only_record().await["code"], "listen.not_found");
}
