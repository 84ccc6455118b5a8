//! Evidence on the head, before any byte of the body.

use super::front::{Front, HEAD, policy};

async fn assert_refused(evidence: &str, challenge: &str, code: &str) {
    let front = Front::start();
    front.swap(policy(7, &["tg_alice", "tg_old"]));
    // The body is announced and never sent: who is refused is not waited for.
    let head = "POST /mcp/demo HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: 9\r\n";
    let answer = front.exchange(&format!("{head}{evidence}\r\n")).await;
    assert!(
        answer.starts_with("HTTP/1.1 401 Unauthorized\r\n"),
        "{answer}"
    );
    assert!(
        answer.contains(&format!("\r\nwww-authenticate: {challenge}\r\n")),
        "{answer}"
    );
    let record = front.only_record().await;
    assert_eq!(record["code"], code);
    assert_eq!(record["server"], "demo");
    assert_eq!(record["generation"], 7);
    assert_eq!(record.get("user"), None);
}

#[tokio::test]
async fn evidence_that_fails_is_challenged_and_recorded() {
    let invalid = "Bearer error=\"invalid_token\"";
    assert_refused("", "Bearer", "identity.missing").await;
    assert_refused(
        "authorization: Bearer tg_wrong\r\n",
        invalid,
        "identity.invalid",
    )
    .await;
    assert_refused("authorization: Basic dGc6\r\n", invalid, "identity.invalid").await;
    let twice = "authorization: Bearer tg_alice\r\nauthorization: Bearer tg_alice\r\n";
    assert_refused(twice, invalid, "identity.invalid").await;
    assert_refused(
        "authorization: Bearer tg_old\r\n",
        invalid,
        "identity.expired",
    )
    .await;
}

#[tokio::test]
async fn acting_for_another_without_leave_is_refused() {
    let front = Front::start();
    let answer = front
        .exchange(&format!(
            "{HEAD}tollgate-user: bob\r\nconnection: close\r\n\r\n"
        ))
        .await;
    assert!(answer.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{answer}");
    assert_eq!(front.only_record().await["code"], "identity.acting_refused");
}

#[tokio::test]
async fn a_key_that_is_withdrawn_ends_with_the_request_that_used_it() {
    let front = Front::start();
    let mut client = front.connect().await;
    client
        .send(&format!("{}\r\n", HEAD.replace("/demo", "/wait")))
        .await;
    front.stand.entered.notified().await;
    front.swap(policy(2, &["tg_other"]));
    front.stand.go_on.notify_one();
    // The request that was under way is judged by the policy it came under, to its end.
    assert!(
        client
            .answer()
            .await
            .ends_with(r#""generation":1,"user":"alice"}"#)
    );
    client.send(&format!("{HEAD}\r\n")).await;
    assert!(
        client
            .answer()
            .await
            .starts_with("HTTP/1.1 401 Unauthorized")
    );
    drop(client);
    let record = front.only_record().await;
    assert_eq!(record["code"], "identity.invalid");
    assert_eq!(record["generation"], 2);
}
