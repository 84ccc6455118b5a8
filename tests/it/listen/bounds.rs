//! Bounds of size and time.

use std::time::Duration;

use tollgate::{listen::Limits, memory::Memory};

use super::front::{Front, HEAD, Plan};

/// Long enough for a loopback exchange, short enough for a test.
const SHORT: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_body_announced_too_large_is_not_asked_for() {
    let front = Front::start();
    let answer = front
        .exchange(&format!(
            "{HEAD}expect: 100-continue\r\ncontent-length: 1025\r\n\r\n"
        ))
        .await;
    assert!(
        answer.starts_with("HTTP/1.1 413 Payload Too Large\r\n"),
        "{answer}"
    );
    assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
    let record = front.only_record().await;
    assert_eq!(record["code"], "listen.body_too_large");
    assert_eq!(record["user"], "alice");
}

#[tokio::test]
async fn a_body_found_too_large_is_refused_and_the_connection_goes_on() {
    let front = Front::start();
    let mut client = front.connect().await;
    client
        .send(&format!(
            "{HEAD}transfer-encoding: chunked\r\n\r\n800\r\n{}\r\n0\r\n\r\n",
            "x".repeat(0x800)
        ))
        .await;
    assert!(
        client
            .answer()
            .await
            .starts_with("HTTP/1.1 413 Payload Too Large\r\n")
    );
    client
        .send(&format!(
            "{HEAD}content-length: 1024\r\n\r\n{}",
            "x".repeat(1024)
        ))
        .await;
    assert!(client.answer().await.starts_with("HTTP/1.1 200 OK\r\n"));
    drop(client);
    assert_eq!(front.only_record().await["code"], "listen.body_too_large");
}

/// A request that is being answered keeps its body; what is small needs no room.
#[tokio::test]
async fn bodies_that_find_no_room_beside_others_are_refused() {
    let front = Front::with(Plan {
        request_bytes: 100_000,
        bodies: Memory::new(150_000),
        ..Plan::default()
    });
    let ask = |server: &str, length: usize| {
        let head = HEAD.replace("demo", server);
        let body = "x".repeat(length);
        format!("{head}connection: close\r\ncontent-length: {length}\r\n\r\n{body}")
    };
    let mut first = front.connect().await;
    first.send(&ask("wait", 100_000)).await;
    front.stand.entered.notified().await;
    let refused = front.exchange(&ask("demo", 100_000)).await;
    assert!(
        refused.starts_with("HTTP/1.1 503 Service Unavailable\r\n"),
        "{refused}"
    );
    assert!(refused.contains("\r\nretry-after: 1\r\n"), "{refused}");
    assert!(refused.ends_with(
        r#"{"error":{"code":"listen.overloaded","message":"too many large requests are on their way","remedy":"try again later, and reuse open connections"}}"#
    ));
    for length in [16_384, 80_000] {
        let answer = front.exchange(&ask("demo", length)).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    }
    front.stand.go_on.notify_one();
    assert!(first.rest().await.starts_with("HTTP/1.1 200 OK\r\n"));
    let answer = front.exchange(&ask("demo", 100_000)).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    let record = front.only_record().await;
    assert_eq!(record["code"], "listen.overloaded");
    assert_eq!(record["user"], "alice");
}

#[tokio::test]
async fn a_body_that_is_wanted_is_asked_for() {
    let front = Front::start();
    let mut client = front.connect().await;
    client
        .send(&format!(
            "{HEAD}expect: 100-continue\r\ncontent-length: 2\r\n\r\n"
        ))
        .await;
    assert_eq!(client.head().await, "HTTP/1.1 100 Continue\r\n\r\n");
    client.send("{}").await;
    assert!(
        client
            .answer()
            .await
            .ends_with(r#"{"bytes":2,"generation":1,"user":"alice"}"#)
    );
}

#[tokio::test]
async fn a_body_that_is_framed_wrongly_is_refused() {
    let front = Front::start();
    let answer = front
        .exchange(&format!(
            "{HEAD}transfer-encoding: chunked\r\n\r\nnonsense\r\n"
        ))
        .await;
    assert!(
        answer.starts_with("HTTP/1.1 400 Bad Request\r\n"),
        "{answer}"
    );
    assert_eq!(front.only_record().await["code"], "listen.body_broken");
}

#[tokio::test]
async fn a_client_that_leaves_within_its_body_is_recorded() {
    let front = Front::start();
    let mut client = front.connect().await;
    client
        .send(&format!(
            "{HEAD}expect: 100-continue\r\ncontent-length: 9\r\n\r\n"
        ))
        .await;
    client.head().await;
    client.send("{").await;
    drop(client);
    let record = front.only_record().await;
    assert_eq!(record["code"], "listen.client_gone");
    assert_eq!(record["server"], "demo");
}

#[tokio::test]
async fn a_client_that_leaves_within_its_head_is_recorded() {
    let front = Front::start();
    let mut client = front.connect().await;
    // In one piece with a request that is answered, so that the listener has read it before the end.
    client.send(&format!("{HEAD}\r\nGET /mcp")).await;
    client.answer().await;
    drop(client);
    front.quiet().await;
    assert_eq!(front.only_record().await["code"], "listen.client_gone");
}

#[tokio::test]
async fn a_slow_body_is_answered_408() {
    let front = Front::with(Plan {
        body: SHORT,
        ..Plan::default()
    });
    let answer = front
        .exchange(&format!("{HEAD}content-length: 9\r\n\r\n{{"))
        .await;
    assert!(
        answer.starts_with("HTTP/1.1 408 Request Timeout\r\n"),
        "{answer}"
    );
    assert_eq!(front.only_record().await["code"], "listen.slow_body");
}

fn hasty() -> Front {
    Front::with(Plan {
        limits: Limits {
            head: SHORT,
            stall: SHORT,
            ..Limits::default()
        },
        ..Plan::default()
    })
}

#[tokio::test]
async fn a_slow_head_is_closed_and_recorded() {
    let front = hasty();
    assert_eq!(
        front.exchange("POST /mcp/demo HTTP/1.1\r\nhost: loc").await,
        ""
    );
    assert_eq!(front.only_record().await["code"], "listen.slow_head");
}

#[tokio::test]
async fn a_second_head_that_is_slow_is_closed_and_recorded() {
    let front = hasty();
    let mut client = front.connect().await;
    client.send(&format!("{HEAD}\r\n")).await;
    client.answer().await;
    client.send("POST /mcp").await;
    assert_eq!(client.rest().await, "");
    assert_eq!(front.only_record().await["code"], "listen.slow_head");
}

#[tokio::test]
async fn silence_is_closed_without_a_record() {
    let front = Front::with(Plan {
        limits: Limits {
            head: SHORT,
            idle: SHORT,
            ..Limits::default()
        },
        ..Plan::default()
    });
    assert_eq!(front.exchange("").await, "");
    let mut client = front.connect().await;
    client.send(&format!("{HEAD}\r\n")).await;
    client.answer().await;
    assert_eq!(client.rest().await, "");
    assert!(front.records().await.is_empty());
}

#[tokio::test]
async fn a_client_that_does_not_read_is_let_go() {
    let front = hasty();
    let mut client = front.connect().await;
    client
        .send(&format!("{}\r\n", HEAD.replace("/demo", "/endless")))
        .await;
    front.stand.entered.notified().await;
    // The listener ends only once this connection has, which the client does not help with.
    assert_eq!(front.only_record().await["code"], "listen.client_gone");
    drop(client);
}

#[tokio::test]
async fn connections_beyond_the_bound_are_turned_away() {
    let front = Front::with(Plan {
        limits: Limits {
            connections: 1,
            ..Limits::default()
        },
        ..Plan::default()
    });
    let mut first = front.connect().await;
    first.send(&format!("{HEAD}\r\n")).await;
    first.answer().await;
    let answer = front.exchange("").await;
    assert!(
        answer.starts_with("HTTP/1.1 503 Service Unavailable\r\n"),
        "{answer}"
    );
    assert!(answer.contains(r#""code":"listen.overloaded""#), "{answer}");
    first.send(&format!("{HEAD}\r\n")).await;
    assert!(first.answer().await.starts_with("HTTP/1.1 200 OK"));
    drop(first);
    assert!(
        front
            .metrics()
            .contains("tollgate_listen_turned_away_total 1\n")
    );
}
