//! The end: what runs is finished, nothing new is taken.

use super::front::{Front, HEAD};

#[tokio::test]
async fn a_drain_finishes_what_runs_and_closes_what_is_idle() {
    let front = Front::start();
    let mut idle = front.connect().await;
    idle.send(&format!("{HEAD}\r\n")).await;
    idle.answer().await;
    front.stand.entered.notified().await;
    let mut busy = front.connect().await;
    busy.send(&format!("{}\r\n", HEAD.replace("/demo", "/wait")))
        .await;
    front.stand.entered.notified().await;

    front.drain.cancel();
    assert_eq!(idle.rest().await, "");
    assert!(!front.task.is_finished());
    front.stand.go_on.notify_one();
    let answer = busy.rest().await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
    assert!(front.records().await.is_empty());
}

#[tokio::test]
async fn a_drain_ends_streams_that_have_no_end_of_their_own() {
    let front = Front::start();
    let mut client = front.connect().await;
    client
        .send(&format!(
            "{}\r\n",
            HEAD.replace("POST /mcp/demo", "GET /mcp/endless")
        ))
        .await;
    client.head().await;
    front.drain.cancel();
    let body = client.rest().await;
    assert!(
        body.ends_with("0\r\n\r\n"),
        "the stream ends as a whole answer does"
    );
    assert!(front.records().await.is_empty());
}
