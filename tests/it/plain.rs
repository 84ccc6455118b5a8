//! Plain requests through the forward proxy, byte for byte on both sides.

mod framing;
mod heads;
mod waiting;

use std::{sync::Arc, time::Duration};

use tollgate::egress::Egress;

use crate::{
    egress::{ample, no_roots},
    support::{
        dialer::{RecordingDialer, TableResolver},
        forwarder::{Forwarder, Passes, Raw},
        upstream::{Connection, Upstream},
    },
};

/// Longer than any test waits.
const LONG: Duration = Duration::from_secs(60);
const GET: &str = "GET http://api.test/a?b=c HTTP/1.1\r\nHost: api.test\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// A target with its proxy.
struct Way {
    upstream: Upstream,
    egress: Egress,
    proxy: Forwarder,
}

impl Way {
    async fn to(upstream: Upstream) -> Self {
        Self::with(upstream, Passes::default(), LONG).await
    }

    async fn with(upstream: Upstream, passes: Passes, idle: Duration) -> Self {
        let dialer = RecordingDialer::to(upstream.address);
        let resolver = TableResolver::of(&[("api.test", &["1.1.1.1"])]);
        let egress = Egress::new(resolver, dialer, no_roots(), ample(), Arc::default());
        let proxy = Forwarder::start(egress.clone(), passes, idle).await;
        Self {
            upstream,
            egress,
            proxy,
        }
    }

    async fn always(answer: impl Into<Vec<u8>>) -> Self {
        Self::to(Upstream::always(answer).await).await
    }

    /// A target that answers the first request of each connection, and hangs up.
    async fn once(answer: String) -> Self {
        Self::plain(move |mut connection| {
            let answer = answer.clone();
            async move {
                connection.request().await;
                connection.write(answer.as_bytes()).await;
            }
        })
        .await
    }

    /// A target that does `script` on each connection.
    async fn plain<F>(script: impl Fn(Connection) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self::to(Upstream::plain(script).await).await
    }

    async fn client(&self) -> Raw {
        self.proxy.client().await
    }
}

#[tokio::test]
async fn requests_of_one_connection_share_one_to_the_target() {
    let way = Way::always(OK).await;
    let mut client = way.client().await;
    let expected = "HTTP/1.1 200 OK\r\nvia: 1.1 tollgate\r\ncontent-length: 2\r\n\r\n";
    for _ in 0..3 {
        client.say(GET).await;
        assert_eq!(client.answer().await, (expected.into(), "ok".into()));
    }
    assert_eq!((way.upstream.connections(), way.egress.idle()), (1, 1));
    let asked = "GET /a?b=c HTTP/1.1\r\nhost: api.test\r\nvia: 1.1 tollgate\r\n\r\n";
    assert_eq!(way.upstream.requests(), [asked; 3]);
    assert_eq!(way.proxy.ends(), ["Some(200) Keep"; 3]);
}

#[tokio::test]
async fn another_user_generation_or_answer_gets_another_connection() {
    let way = Way::always(OK).await;
    for (number, passes) in [
        Passes::default(),
        Passes {
            user: "bob",
            ..Passes::default()
        },
        Passes {
            generation: 2,
            ..Passes::default()
        },
    ]
    .into_iter()
    .enumerate()
    {
        let proxy = Forwarder::start(way.egress.clone(), passes, LONG).await;
        for _ in 0..2 {
            let mut client = proxy.client().await;
            client.say(GET).await;
            assert_eq!(client.answer().await.1, "ok");
        }
        assert_eq!(way.upstream.connections(), number + 1);
    }
    way.egress.retire(2);
    assert_eq!(way.egress.idle(), 1);
}

#[tokio::test]
async fn a_pooled_connection_that_was_closed_is_replaced_before_anything_is_sent() {
    let close = Arc::new(tokio::sync::Notify::new());
    let told = close.clone();
    let way = Way::plain(move |mut connection| {
        let told = told.clone();
        async move {
            connection.request().await;
            connection.write(OK.as_bytes()).await;
            told.notified().await;
        }
    })
    .await;
    let mut client = way.client().await;
    client.say(GET).await;
    assert_eq!(client.answer().await.1, "ok");
    close.notify_one();
    // The close reaches us at some time: until then a request meets it, and is not sent again.
    while way.upstream.requests().len() < 2 {
        client.say(GET).await;
        let (head, body) = client.answer().await;
        let lost = body.starts_with("egress.connection_lost\n");
        assert!(lost || head.starts_with("HTTP/1.1 200 "), "{head}{body}");
    }
    assert_eq!(way.upstream.connections(), 2);
}

#[tokio::test]
async fn a_request_that_nobody_answers_is_sent_once() {
    let way = Way::plain(|mut connection| async move {
        connection.request().await;
    })
    .await;
    let mut client = way.client().await;
    client.say(GET).await;
    assert_eq!(client.failure().await, "egress.connection_lost");
    // The connection to the client serves on.
    client.say(GET).await;
    assert_eq!(client.failure().await, "egress.connection_lost");
    assert_eq!(way.upstream.requests().len(), 2);
    assert_eq!(way.proxy.ends(), ["None Keep egress.connection_lost"; 2]);
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_their_order() {
    let way = Way::plain(|mut connection| async move {
        while let Some(request) = connection.request().await {
            let path = request.split(' ').nth(1).unwrap().to_owned();
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{path}",
                path.len()
            );
            connection.write(answer.as_bytes()).await;
        }
    })
    .await;
    let mut client = way.client().await;
    let get = |path: &str| format!("GET http://api.test{path} HTTP/1.1\r\nHost: api.test\r\n\r\n");
    client
        .say(get("/one") + &get("/two") + &get("/three"))
        .await;
    for path in ["/one", "/two", "/three"] {
        assert_eq!(client.answer().await.1, path);
    }
    assert_eq!(way.upstream.connections(), 1);
}

#[tokio::test]
async fn fields_about_a_hop_end_there_and_others_keep_their_order() {
    let answer = "HTTP/1.1 200 Fine\r\nSet-Cookie: a=1\r\nConnection: X-Hop, keep-alive\r\nX-Hop: 1\r\nKeep-Alive: timeout=9\r\n\
        Via: 1.0 other\r\nProxy-Authenticate: Basic\r\nTE: x\r\nTrailer: X\r\nUpgrade: h2c\r\nTollgate-Code: x\r\nSet-Cookie: b=2\r\n\
        Content-Length: 2\r\nContent-Encoding: gzip\r\n\r\nok";
    let way = Way::always(answer).await;
    let mut client = way.client().await;
    client
        .say(
            "GET http://api.test:80/ HTTP/1.1\r\nHost: api.test:80\r\nAccept-Encoding: gzip\r\nConnection: close, X-Mine\r\nX-Mine: 1\r\n\
             Proxy-Authorization: Basic eDp5\r\nProxy-Connection: keep-alive\r\nKeep-Alive: 5\r\nTE: trailers\r\nUpgrade: foo\r\n\
             Tollgate-User: bob\r\nX-Forwarded-For: 1.2.3.4\r\nVia: 1.1 first\r\nExpect: 100-continue\r\n\r\n",
        )
        .await;
    let (text, is_clean) = client.rest().await;
    assert!(is_clean);
    assert_eq!(
        text,
        "HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nVia: 1.0 other\r\nSet-Cookie: b=2\r\nContent-Encoding: gzip\r\n\
         via: 1.1 tollgate\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok"
    );
    let asked = way.upstream.requests().remove(0);
    let mut lines: Vec<_> = asked.trim_end().lines().collect();
    lines[2..].sort_unstable();
    assert_eq!(
        lines,
        [
            "GET / HTTP/1.1",
            "host: api.test",
            "accept-encoding: gzip",
            "via: 1.1 first",
            "via: 1.1 tollgate",
            "x-forwarded-for: 1.2.3.4"
        ]
    );
}

#[tokio::test]
async fn redirects_and_errors_are_the_clients() {
    for (status, reason) in [
        ("301", "Moved Permanently"),
        ("307", "Temporary Redirect"),
        ("401", "Unauthorized"),
        ("500", "Internal Server Error"),
        ("299", ""),
    ] {
        let fields = "location: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n";
        let way = Way::always(format!("HTTP/1.1 {status} x\r\n{fields}")).await;
        let mut client = way.client().await;
        client.say(GET).await;
        let expected = format!(
            "HTTP/1.1 {status} {reason}\r\nlocation: http://169.254.169.254/\r\nvia: 1.1 tollgate\r\ncontent-length: 0\r\n\r\n"
        );
        assert_eq!(client.answer().await.0, expected);
    }
}

#[tokio::test]
async fn through_a_parent_a_plain_request_goes_by_a_tunnel_of_its_own() {
    let upstream = Upstream::plain(|mut connection| async move {
        connection.request().await;
        connection.write(b"HTTP/1.1 200 OK\r\n\r\n").await;
        while connection.request().await.is_some() {
            connection.write(OK.as_bytes()).await;
        }
    })
    .await;
    let passes = Passes::default().through("http://10.0.0.9:3128", false);
    let way = Way::with(upstream, passes, LONG).await;
    let mut client = way.client().await;
    for _ in 0..2 {
        client.say(GET).await;
        assert_eq!(client.answer().await.1, "ok");
    }
    let get = "GET /a?b=c HTTP/1.1\r\nhost: api.test\r\nvia: 1.1 tollgate\r\n\r\n";
    let asked = "CONNECT 1.1.1.1:80 HTTP/1.1\r\nhost: 1.1.1.1:80\r\n\r\n";
    assert_eq!(way.upstream.requests(), [asked, get, get]);
}

#[tokio::test]
async fn a_tunnel_whose_end_the_parent_resolved_is_not_kept() {
    let upstream = Upstream::plain(|mut connection| async move {
        connection.request().await;
        connection.write(b"HTTP/1.1 200 OK\r\n\r\n").await;
        connection.request().await;
        connection.write(OK.as_bytes()).await;
        connection.closed().await;
    })
    .await;
    let passes = Passes::default().through("http://10.0.0.9:3128", true);
    let way = Way::with(upstream, passes, LONG).await;
    let mut client = way.client().await;
    for opened in 1..=2 {
        client.say(GET).await;
        assert_eq!(client.answer().await.1, "ok");
        assert_eq!((way.upstream.connections(), way.egress.idle()), (opened, 0));
    }
}

#[tokio::test]
async fn a_parent_that_speaks_before_it_is_asked_is_not_believed() {
    let upstream = Upstream::plain(|mut connection| async move {
        connection.request().await;
        connection
            .write(b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n")
            .await;
        connection.closed().await;
    })
    .await;
    let passes = Passes::default().through("http://10.0.0.9:3128", false);
    let way = Way::with(upstream, passes, LONG).await;
    let mut client = way.client().await;
    client.say(GET).await;
    assert_eq!(client.failure().await, "egress.connect_failed");
}
