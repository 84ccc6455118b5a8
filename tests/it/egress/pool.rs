//! Which requests share a connection.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tollgate::{egress::Egress, policy::Trust};

use super::{OK, ample, fetch, no_roots, permit, send, way_out};
use crate::support::{
    certs::Authority,
    dialer::{RecordingDialer, TableResolver},
    permit::Maker,
    upstream::Upstream,
};

#[tokio::test]
async fn a_second_request_uses_the_first_ones_connection() {
    let upstream = Upstream::always(OK).await;
    let (egress, dialer) = way_out(&upstream);
    for _ in 0..3 {
        assert_eq!(fetch(&egress, &permit()).await.unwrap(), "ok");
    }
    assert_eq!(dialer.dialled(), ["1.1.1.1:80"]);
    assert_eq!(egress.idle(), 1);
    let request = &upstream.requests()[0];
    assert!(request.starts_with("POST /mcp HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("\r\nhost: api.test\r\n"), "{request}");
    assert!(
        request.contains("\r\naccept-encoding: identity\r\n"),
        "{request}"
    );
}

#[tokio::test]
async fn requests_at_the_same_time_have_connections_of_their_own() {
    let upstream = Upstream::always(OK).await;
    let (egress, _) = way_out(&upstream);
    let permit = permit();
    let (one, two) = tokio::join!(fetch(&egress, &permit), fetch(&egress, &permit));
    assert_eq!(
        (one.unwrap(), two.unwrap()),
        ("ok".to_owned(), "ok".to_owned())
    );
    assert_eq!((upstream.connections(), egress.idle()), (2, 2));
}

#[tokio::test]
async fn another_user_tenant_or_generation_gets_another_connection() {
    let upstream = Upstream::always(OK).await;
    let (egress, _) = way_out(&upstream);
    let url = "http://api.test/mcp";
    fetch(&egress, &permit()).await.unwrap();
    for (number, maker) in [
        Maker {
            user: "bob",
            ..Maker::new(url)
        },
        Maker {
            tenant: "other",
            ..Maker::new(url)
        },
        Maker {
            generation: 2,
            ..Maker::new(url)
        },
    ]
    .iter()
    .enumerate()
    {
        fetch(&egress, &maker.permit()).await.unwrap();
        assert_eq!(upstream.connections(), number + 2);
    }
}

#[tokio::test]
async fn another_port_or_trust_gets_another_connection() {
    let authority = Authority::new();
    let acceptor = authority.acceptor(&["api.test"]);
    let upstream = Upstream::tls(acceptor, |mut connection| async move {
        while connection.request().await.is_some() {
            connection.write(OK.as_bytes()).await;
        }
    })
    .await;
    let (egress, dialer) = way_out(&upstream);
    let mut maker = Maker::new("https://api.test/mcp");
    maker.trust = Trust {
        roots: vec![authority.pem().into()],
        digest: [1; 32],
    };
    fetch(&egress, &maker.permit()).await.unwrap();
    maker.trust.digest = [2; 32];
    fetch(&egress, &maker.permit()).await.unwrap();
    maker.url = "https://api.test:8443/mcp".to_owned();
    fetch(&egress, &maker.permit()).await.unwrap();
    fetch(&egress, &maker.permit()).await.unwrap();
    assert_eq!(
        dialer.dialled(),
        ["1.1.1.1:443", "1.1.1.1:443", "1.1.1.1:8443"]
    );
}

#[tokio::test]
async fn a_new_answer_is_judged_anew_and_leaves_the_old_connection_alone() {
    let upstream = Upstream::always(OK).await;
    let dialer = RecordingDialer::to(upstream.address);
    let resolver = TableResolver::of(&[("api.test", &["1.1.1.1"])]);
    resolver.then("api.test", &["9.9.9.9"]);
    resolver.then("api.test", &["1.1.1.1", "10.0.0.1"]);
    let egress = Egress::new(
        resolver,
        dialer.clone(),
        no_roots(),
        ample(),
        Arc::default(),
    );
    fetch(&egress, &permit()).await.unwrap();
    fetch(&egress, &permit()).await.unwrap();
    assert_eq!(dialer.dialled(), ["1.1.1.1:80", "9.9.9.9:80"]);

    let failed = send(&egress, &permit()).await.unwrap_err();
    assert_eq!(failed.error.code().as_str(), "egress.address_blocked");
    assert!(failed.not_sent);
    assert_eq!(dialer.dialled().len(), 2);
    assert_eq!(upstream.requests().len(), 2);
}

#[tokio::test]
async fn retiring_a_generation_closes_its_connections() {
    let upstream = Upstream::always(OK).await;
    let (egress, _) = way_out(&upstream);
    fetch(&egress, &permit()).await.unwrap();
    egress.retire(2);
    assert_eq!(egress.idle(), 0);
    fetch(&egress, &permit()).await.unwrap();
    assert_eq!(
        egress.idle(),
        0,
        "a connection of a retired generation is not kept"
    );
}

#[tokio::test]
async fn a_connection_that_its_peer_closed_is_replaced_before_anything_is_sent() {
    let close = Arc::new(tokio::sync::Notify::new());
    let closed = Arc::new(tokio::sync::Notify::new());
    let (told, tell) = (close.clone(), closed.clone());
    let upstream = Upstream::plain(move |mut connection| {
        let (told, tell) = (told.clone(), tell.clone());
        async move {
            connection.request().await;
            connection.write(OK.as_bytes()).await;
            told.notified().await;
            drop(connection);
            tell.notify_one();
        }
    })
    .await;
    let (egress, _) = way_out(&upstream);
    fetch(&egress, &permit()).await.unwrap();
    assert_eq!(egress.idle(), 1);
    close.notify_one();
    closed.notified().await;
    // A whole exchange on another connection: the close has arrived before its answer.
    let other = Maker {
        user: "bob",
        ..Maker::new("http://api.test/mcp")
    };
    fetch(&egress, &other.permit()).await.unwrap();
    fetch(&egress, &permit()).await.unwrap();
    assert_eq!((upstream.connections(), upstream.requests().len()), (3, 3));
}

#[tokio::test]
async fn an_answer_that_says_close_or_has_junk_behind_it_ends_the_connection() {
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nkeep-alive: timeout=1\r\n\r\nok",
        "HTTP/1.1 200 OK\r\ncontent-length: 9\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        "HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
    ] {
        let upstream = Upstream::always(answer).await;
        let (egress, _) = way_out(&upstream);
        assert_eq!(fetch(&egress, &permit()).await.unwrap(), "ok", "{answer}");
        assert_eq!(egress.idle(), 0, "{answer}");
        assert_eq!(fetch(&egress, &permit()).await.unwrap(), "ok", "{answer}");
        assert_eq!(upstream.connections(), 2, "{answer}");
    }
}

/// Of an answer with a length and with chunks nobody knows where its next reader sees the end, whatever its coding.
#[tokio::test]
async fn a_coding_hides_no_doubtful_end() {
    let head = "HTTP/1.1 200 OK\r\ncontent-encoding: br\r\ncontent-length: 19\r\ntransfer-encoding: chunked\r\n\r\n9\r\n";
    // `hello`, as brotli stores it.
    let body = b"\x0b\x02\x80hello\x03\r\n0\r\n\r\n";
    let upstream = Upstream::always([head.as_bytes(), body].concat()).await;
    let (egress, _) = way_out(&upstream);
    assert_eq!(fetch(&egress, &permit()).await.unwrap(), "hello");
    assert_eq!(egress.idle(), 0);
}

#[tokio::test]
async fn an_answer_without_a_body_gives_its_connection_back_at_once() {
    for answer in [
        "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 204 No Content\r\n\r\n",
    ] {
        let upstream = Upstream::always(answer).await;
        let (egress, _) = way_out(&upstream);
        drop(send(&egress, &permit()).await.unwrap());
        assert_eq!(egress.idle(), 1, "{answer}");
    }
}

#[tokio::test]
async fn a_body_dropped_midway_closes_its_connection() {
    let (ended, mut end) = tokio::sync::mpsc::unbounded_channel();
    let upstream = Upstream::plain(move |mut connection| {
        let ended = ended.clone();
        async move {
            connection.request().await;
            connection
                .write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf")
                .await;
            connection.closed().await;
            ended.send(()).unwrap();
        }
    })
    .await;
    let (egress, _) = way_out(&upstream);
    let mut inbound = send(&egress, &permit()).await.unwrap();
    assert_eq!(inbound.body.next_ready().await.unwrap().unwrap(), "half");
    drop(inbound);
    end.recv().await.unwrap();
    assert_eq!(egress.idle(), 0);
}

#[tokio::test(start_paused = true)]
async fn idle_connections_expire_and_are_swept() {
    let answers = Arc::new(Mutex::new(vec![
        OK.to_owned(),
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nkeep-alive: timeout=30\r\n\r\nok".to_owned(),
    ]));
    let upstream = Upstream::plain(move |mut connection| {
        let answers = answers.clone();
        async move {
            while connection.request().await.is_some() {
                let answer = answers.lock().unwrap().pop().unwrap();
                connection.write(answer.as_bytes()).await;
            }
        }
    })
    .await;
    let (egress, _) = way_out(&upstream);
    fetch(&egress, &permit()).await.unwrap();
    tokio::time::advance(Duration::from_secs(28)).await;
    egress.sweep();
    assert_eq!(egress.idle(), 1, "the peer announced 30 s");
    fetch(&egress, &permit()).await.unwrap();
    assert_eq!(upstream.connections(), 1);
    tokio::time::advance(Duration::from_secs(4)).await;
    egress.sweep();
    assert_eq!(egress.idle(), 0, "no announcement: 4 s");
}
