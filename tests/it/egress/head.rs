//! What the head of an answer may be.

use tollgate::egress::Error;

use super::{OK, fetch, permit, send, way_out};
use crate::support::upstream::Upstream;

async fn code(answer: impl Into<Vec<u8>>) -> &'static str {
    let upstream = Upstream::always(answer).await;
    let (egress, dialer) = way_out(&upstream);
    let (code, not_sent) = fetch(&egress, &permit()).await.unwrap_err();
    assert!(!not_sent);
    assert_eq!((dialer.dialled().len(), egress.idle()), (1, 0));
    code.as_str()
}

#[tokio::test]
async fn redirects_are_refused_and_tell_only_the_origin() {
    for (status, location, shown) in [
        (
            301,
            "location: https://u:p@elsewhere.test:8443/secret?token=1\r\n",
            "a place that is no valid URL",
        ),
        (
            302,
            "location: https://elsewhere.test:8443/secret?token=1\r\n",
            "https://elsewhere.test",
        ),
        (
            303,
            "location: http://169.254.169.254/latest\r\n",
            "http://169.254.169.254",
        ),
        (307, "location: /login?next=x\r\n", "another path on itself"),
        (
            308,
            "location: //elsewhere.test/x\r\n",
            "a place that is no valid URL",
        ),
        (300, "", "no other place"),
    ] {
        let upstream = Upstream::always(format!(
            "HTTP/1.1 {status} X\r\n{location}content-length: 0\r\n\r\n"
        ))
        .await;
        let (egress, dialer) = way_out(&upstream);
        let failed = send(&egress, &permit()).await.unwrap_err();
        assert_eq!(failed.error.code().as_str(), "egress.redirect_refused");
        assert_eq!(
            failed.error.to_string(),
            format!("`api.test` answered {status} and points to {shown}")
        );
        assert_eq!(dialer.dialled(), ["1.1.1.1:80"]);
    }
}

#[tokio::test]
async fn a_redirect_to_the_same_path_of_the_same_host_is_one_of_the_whole_server() {
    for (location, same) in [
        ("/mcp/", true),
        ("/mcp", true),
        ("https://api.test/mcp", true),
        ("http://api.test:8080/mcp/", true),
        ("/mcp//", false),
        ("/mcp/?next=x", false),
        ("/mcp/login", false),
        ("/", false),
        ("mcp/", false),
        ("//api.test/mcp/", false),
        ("https://login.test/mcp", false),
        ("\u{e9}", false),
    ] {
        let head = format!("HTTP/1.1 308 X\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n");
        let upstream = Upstream::always(head).await;
        let (egress, _) = way_out(&upstream);
        let failed = send(&egress, &permit()).await.unwrap_err();
        let Error::Redirect { moved, .. } = failed.error else {
            panic!("{:?}", failed.error);
        };
        assert_eq!(moved, same, "{location}");
    }
}

#[tokio::test]
async fn not_modified_and_errors_are_answers() {
    for status in [200, 201, 304, 400, 401, 404, 421, 500, 503] {
        let upstream =
            Upstream::always(format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n")).await;
        let (egress, _) = way_out(&upstream);
        assert_eq!(
            send(&egress, &permit()).await.unwrap().status.as_u16(),
            status
        );
    }
}

#[tokio::test]
async fn interim_answers_are_passed_over() {
    let interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";
    let upstream = Upstream::always(format!("{interim}{OK}")).await;
    let (egress, _) = way_out(&upstream);
    assert_eq!(fetch(&egress, &permit()).await.unwrap(), "ok");
}

#[tokio::test]
async fn an_upgrade_is_refused() {
    let answer =
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
    assert_eq!(code(answer).await, "egress.response_head_invalid");
}

#[tokio::test]
async fn floods_of_headers_are_refused() {
    let many = "x: y\r\n".repeat(101);
    assert_eq!(
        code(format!("HTTP/1.1 200 OK\r\n{many}\r\n")).await,
        "egress.response_head_invalid"
    );
    let long = "y".repeat(70_000);
    assert_eq!(
        code(format!("HTTP/1.1 200 OK\r\nx: {long}\r\n\r\n")).await,
        "egress.response_head_invalid"
    );
}

#[tokio::test]
async fn what_is_not_http_is_refused() {
    for answer in [
        "SSH-2.0-OpenSSH_9.2\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok",
        "HTTP/1.1 200 OK\r\ncontent-length: two\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nbad header: x\r\n\r\n",
    ] {
        assert_eq!(
            code(answer).await,
            "egress.response_head_invalid",
            "{answer}"
        );
    }
}

#[tokio::test]
async fn a_transfer_coding_beside_chunked_is_refused() {
    for coding in ["gzip, chunked", "gzip"] {
        let answer = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: {coding}\r\n\r\n0\r\n\r\n");
        assert_eq!(code(answer).await, "egress.response_encoding", "{coding}");
    }
}

#[tokio::test]
async fn a_length_over_the_cap_is_refused_before_the_body() {
    let upstream = Upstream::always("HTTP/1.1 200 OK\r\ncontent-length: 9999999\r\n\r\n").await;
    let (egress, _) = way_out(&upstream);
    let failed = send(&egress, &permit()).await.unwrap_err();
    assert!(matches!(
        failed.error,
        Error::TooLarge {
            limit: 1_048_576,
            ..
        }
    ));
}

#[tokio::test]
async fn a_challenge_is_an_answer_and_its_url_is_not_fetched() {
    let upstream = Upstream::always(
        "HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer resource_metadata=\"http://169.254.169.254/\"\r\ncontent-length: 0\r\n\r\n",
    )
    .await;
    let (egress, dialer) = way_out(&upstream);
    assert_eq!(send(&egress, &permit()).await.unwrap().status.as_u16(), 401);
    assert_eq!(dialer.dialled(), ["1.1.1.1:80"]);
}
