//! What Tollgate fetches itself for the OAuth of a server.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Method, header::ACCEPT};
use tollgate::{
    address::{Grant, Leg, Port, Rules, Target},
    deadline::Deadline,
    egress::{Egress, Failed, Fetch, Fetched, FieldLines, Tls},
    policy::{Auth, LegPermit, OAuth, Trust},
};

use super::{OK, ample, no_roots};
use crate::support::{
    certs::Authority,
    dialer::{RecordingDialer, TableResolver},
    permit::Maker,
    upstream::{Connection, Upstream},
};

const TOKEN: &str = "https://auth.test/token?x=1";

/// An authorization server at `auth.test`, and the way to it.
struct Place {
    authority: Authority,
    upstream: Upstream,
    dialer: Arc<RecordingDialer>,
    egress: Egress,
    rules: Rules,
}

impl Place {
    /// It is at 1.1.1.1 and gives every connection to `script`.
    async fn new<F>(script: impl Fn(Connection) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self::at(&["1.1.1.1"], script).await
    }

    /// It answers every request with `answer`.
    async fn always(answer: impl Into<Vec<u8>>) -> Self {
        Self::new(always(answer)).await
    }

    async fn at<F>(addresses: &[&str], script: impl Fn(Connection) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let authority = Authority::new();
        let upstream = Upstream::tls(authority.acceptor(&["auth.test", "api.test"]), script).await;
        let dialer = RecordingDialer::to(upstream.address);
        let resolver = TableResolver::of(&[("api.test", &["1.1.1.1"])]);
        for address in addresses {
            resolver.then("auth.test", &[address]);
        }
        let egress = Egress::new(
            resolver,
            dialer.clone(),
            no_roots(),
            ample(),
            Arc::default(),
        );
        Self {
            authority,
            upstream,
            dialer,
            egress,
            rules: Rules::default(),
        }
    }

    /// Opens `auth.test` for a leg.
    fn granting(mut self, leg: Leg) -> Self {
        self.rules.grants.push(grant("auth.test", leg));
        self
    }

    fn maker(&self) -> Maker {
        Maker {
            trust: Trust {
                roots: vec![self.authority.pem().into()],
                digest: [7; 32],
            },
            rules: self.rules.clone(),
            ..Maker::new("https://api.test/mcp")
        }
    }

    fn permit(&self, url: &str) -> LegPermit {
        self.maker().permit().fetch(url).unwrap()
    }

    async fn fetch(&self, url: &str) -> Result<Fetched, Failed> {
        post(&self.egress, &self.permit(url), 1024).await
    }

    /// The code of the failure, and whether nothing was sent.
    async fn fails(&self, url: &str) -> (&'static str, bool) {
        let failed = self.fetch(url).await.unwrap_err();
        (failed.error.code().as_str(), failed.not_sent)
    }
}

fn grant(host: &str, leg: Leg) -> Grant {
    let target = Target::from_operator(&format!("https://{host}/")).unwrap();
    Grant {
        host: target.host().clone(),
        port: Port::Exact(443),
        addresses: Vec::new(),
        address: None,
        legs: vec![leg],
        origin: "egress.toml:1: [[private]]".into(),
    }
}

fn always(
    answer: impl Into<Vec<u8>>,
) -> impl Fn(Connection) -> futures_util::future::BoxFuture<'static, ()> + Send + 'static {
    let answer = Arc::new(answer.into());
    move |mut connection| {
        let answer = answer.clone();
        Box::pin(async move {
            while connection.request().await.is_some() {
                connection.write(&answer).await;
            }
        })
    }
}

async fn post(egress: &Egress, permit: &LegPermit, cap: usize) -> Result<Fetched, Failed> {
    post_until(egress, permit, cap, Duration::from_secs(60)).await
}

async fn post_until(
    egress: &Egress,
    permit: &LegPermit,
    response_bytes: usize,
    limit: Duration,
) -> Result<Fetched, Failed> {
    let mut fields = FieldLines::new();
    fields.add(&ACCEPT, &HeaderValue::from_static("application/json"));
    egress
        .fetch(Fetch {
            permit,
            method: Method::POST,
            fields,
            body: Bytes::from_static(b"grant_type=x"),
            response_bytes,
            deadline: Deadline::after(limit),
        })
        .await
}

#[tokio::test]
async fn the_whole_answer_comes_whatever_its_status() {
    let place = Place::always("HTTP/1.1 400 No\r\nx: y\r\ncontent-length: 3\r\n\r\nbad").await;
    let fetched = place.fetch(TOKEN).await.unwrap();
    assert_eq!(fetched.status.as_u16(), 400);
    assert_eq!(fetched.body, "bad");
    let name = http::HeaderName::from_static("x");
    assert_eq!(fetched.headers.get(&name), Some(&b"y"[..]));
    assert_eq!(&*fetched.destination.host, "auth.test");
    assert_eq!(fetched.destination.port, 443);
    assert_eq!(
        place.upstream.requests(),
        [
            "POST /token?x=1 HTTP/1.1\r\nhost: auth.test\r\naccept-encoding: identity\r\naccept: application/json\r\n\
             content-length: 12\r\n\r\ngrant_type=x"
        ]
    );
    assert_eq!(place.dialer.dialled(), ["1.1.1.1:443"]);
    let sent = place.upstream.names();
    assert_eq!(sent, [Some("auth.test".to_owned())], "the name is kept");
}

#[tokio::test]
async fn a_coded_answer_is_decoded() {
    // `hello`, as brotli stores it.
    let head = "HTTP/1.1 200 OK\r\ncontent-encoding: br\r\ncontent-length: 9\r\n\r\n";
    let place = Place::always([head.as_bytes(), b"\x0b\x02\x80hello\x03"].concat()).await;
    assert_eq!(place.fetch(TOKEN).await.unwrap().body, "hello");
}

#[tokio::test]
async fn a_redirect_is_refused_and_not_followed() {
    for status in [301, 302, 303, 307, 308] {
        let place = Place::always(format!(
            "HTTP/1.1 {status} X\r\nlocation: https://evil.test/steal?code=s3cret\r\ncontent-length: 0\r\n\r\n"
        ))
        .await;
        let failed = place.fetch(TOKEN).await.unwrap_err();
        assert_eq!(failed.error.code().as_str(), "egress.redirect_refused");
        assert_eq!(
            failed.error.to_string(),
            format!("`auth.test` answered {status} and points to https://evil.test")
        );
        assert!(!failed.not_sent);
        assert_eq!(place.dialer.dialled(), ["1.1.1.1:443"]);
    }
}

#[tokio::test]
async fn an_answer_over_the_cap_is_refused_however_it_is_framed() {
    let long = "a".repeat(1025);
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 50000000\r\n\r\n".to_owned(),
        format!("HTTP/1.1 200 OK\r\ncontent-length: 1025\r\n\r\n{long}"),
        format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n401\r\n{long}\r\n0\r\n\r\n"),
    ] {
        let place = Place::always(answer).await;
        let failed = place.fails(TOKEN).await;
        assert_eq!(failed, ("egress.response_too_large", false));
        assert_eq!(place.egress.idle(), 0);
    }
    let whole = "a".repeat(1024);
    let place = Place::always(format!(
        "HTTP/1.1 200 OK\r\ncontent-length: 1024\r\n\r\n{whole}"
    ))
    .await;
    assert_eq!(place.fetch(TOKEN).await.unwrap().body, whole);
}

#[tokio::test]
async fn a_private_address_is_reached_only_by_a_grant_for_this_servers_oauth() {
    for (leg, opens) in [
        (None, false),
        (Some(Leg::Server("demo".into())), false),
        (Some(Leg::OAuth("other".into())), false),
        (Some(Leg::Proxy), false),
        (Some(Leg::OAuth("demo".into())), true),
    ] {
        let place = Place::at(&["10.0.0.7"], always(OK)).await;
        let place = leg
            .clone()
            .into_iter()
            .fold(place, |place, leg| place.granting(leg));
        if opens {
            let fetched = place.fetch(TOKEN).await.unwrap();
            let grant = fetched.destination.grant.unwrap();
            assert_eq!(&*grant, "egress.toml:1: [[private]]");
            assert_eq!(place.dialer.dialled(), ["10.0.0.7:443"]);
        } else {
            let failed = place.fails(TOKEN).await;
            assert_eq!(failed, ("egress.address_blocked", true), "{leg:?}");
            assert_eq!(place.dialer.dialled(), [""; 0], "{leg:?}");
        }
    }
}

#[tokio::test]
async fn a_metadata_service_is_never_reached() {
    let oauth = || Leg::OAuth("demo".into());
    for (url, answer) in [
        (TOKEN, "169.254.169.254"),
        (TOKEN, "::ffff:169.254.169.254"),
        (TOKEN, "fd00:ec2::254"),
        ("https://169.254.169.254/latest", "1.1.1.1"),
        ("https://[fd00:ec2::254]/latest", "1.1.1.1"),
        ("https://metadata.google.internal/", "1.1.1.1"),
    ] {
        let mut place = Place::at(&[answer], always(OK)).await.granting(oauth());
        let target = Target::from_operator(url).unwrap();
        place
            .rules
            .grants
            .push(grant(&target.host().to_string(), oauth()));
        let (code, not_sent) = place.fails(url).await;
        assert!(
            ["egress.address_blocked", "egress.name_blocked"].contains(&code),
            "{url}: {code}"
        );
        assert!(not_sent);
        assert_eq!(place.dialer.dialled(), [""; 0], "{url}");
    }
}

#[tokio::test]
async fn a_name_is_judged_anew_for_every_request_whatever_stands_idle() {
    let place = Place::at(&["1.1.1.1", "127.0.0.1"], always(OK)).await;
    place.fetch(TOKEN).await.unwrap();
    assert_eq!(place.egress.idle(), 1);
    assert_eq!(place.fails(TOKEN).await, ("egress.address_blocked", true));
    assert_eq!(place.dialer.dialled(), ["1.1.1.1:443"]);
}

#[tokio::test]
async fn the_servers_own_roots_are_trusted_and_no_others() {
    let place = Place::always(OK).await;
    let stranger = Maker {
        trust: Trust::default(),
        ..place.maker()
    };
    let permit = stranger.permit().fetch(TOKEN).unwrap();
    let failed = post(&place.egress, &permit, 1024).await.unwrap_err();
    assert_eq!(
        failed.error.to_string(),
        "no trusted connection to `auth.test`: its certificate is signed by an unknown authority"
    );
    assert!(failed.not_sent);
    let other = Place::always(OK).await;
    let egress = Egress::new(
        TableResolver::of(&[("other.test", &["1.1.1.1"])]),
        RecordingDialer::to(other.upstream.address),
        Tls::with_roots(rustls::RootCertStore::empty()),
        ample(),
        Arc::default(),
    );
    let failed = post(&egress, &other.permit("https://other.test/"), 1024).await;
    assert_eq!(
        failed.unwrap_err().error.to_string(),
        "no trusted connection to `other.test`: its certificate is for another name"
    );
}

#[tokio::test]
async fn a_kept_connection_serves_again_but_never_the_server_itself() {
    let place = Place::always(OK).await;
    let same_host = "https://api.test/token";
    place.fetch(same_host).await.unwrap();
    place.fetch(same_host).await.unwrap();
    assert_eq!(place.upstream.connections(), 1);
    let inbound = super::send(&place.egress, &place.maker().permit()).await;
    inbound.unwrap().body.collect(10).await.unwrap();
    assert_eq!((place.upstream.connections(), place.egress.idle()), (2, 2));
    let another = Maker {
        user: "bob",
        ..place.maker()
    };
    let permit = another.permit().fetch(same_host).unwrap();
    post(&place.egress, &permit, 1024).await.unwrap();
    assert_eq!(place.upstream.connections(), 3, "nor another user");
}

#[tokio::test]
async fn a_request_is_repeated_only_if_no_byte_of_it_left() {
    // The first answer is the only one: what follows on its connection is taken and never answered.
    let place = Place::new(|mut connection| async move {
        connection.request().await;
        connection.write(OK.as_bytes()).await;
        connection.head().await;
    })
    .await;
    place.fetch(TOKEN).await.unwrap();
    let failed = place.fails(TOKEN).await;
    assert_eq!(failed, ("egress.connection_lost", false));
    assert_eq!(place.upstream.connections(), 1, "it was not sent again");
}

#[tokio::test]
async fn a_kept_connection_that_its_peer_closed_costs_nothing() {
    let (closed, mut close) = tokio::sync::mpsc::unbounded_channel();
    let place = Place::new(move |mut connection| {
        let closed = closed.clone();
        async move {
            connection.request().await;
            connection.write(OK.as_bytes()).await;
            drop(connection);
            closed.send(()).unwrap();
        }
    })
    .await;
    place.fetch(TOKEN).await.unwrap();
    close.recv().await.unwrap();
    // A whole exchange on another connection: the close has arrived before its answer.
    place.fetch("https://api.test/token").await.unwrap();
    place.fetch(TOKEN).await.unwrap();
    assert_eq!(place.upstream.requests().len(), 3);
}

#[tokio::test]
async fn the_deadline_ends_it_in_every_phase() {
    for begun in ["", "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf"] {
        let place = Place::new(move |mut connection| async move {
            connection.request().await;
            connection.write(begun.as_bytes()).await;
            connection.hang().await;
        })
        .await;
        let permit = place.permit(TOKEN);
        let short = Duration::from_millis(500);
        let failed = post_until(&place.egress, &permit, 1024, short).await;
        let failed = failed.unwrap_err();
        assert_eq!(failed.error.code().as_str(), "egress.call_timeout");
        assert!(!failed.not_sent);
    }
}

#[tokio::test]
async fn plain_http_to_loopback_takes_the_operators_word_and_a_grant() {
    let upstream = Upstream::always(OK).await;
    let url = format!("http://{}/token", upstream.address);
    let mut maker = Maker::new("https://api.test/mcp");
    let refusal = maker.permit().fetch(&url).unwrap_err();
    assert_eq!(refusal.code.as_str(), "connect.unusable");
    maker.auth = Auth::OAuth(Box::new(OAuth {
        allow_http_loopback: true,
        ..OAuth::default()
    }));
    let egress = Egress::new(
        TableResolver::of(&[]),
        Arc::new(tollgate::egress::TcpDialer),
        no_roots(),
        ample(),
        Arc::default(),
    );
    let permit = maker.permit().fetch(&url).unwrap();
    let failed = post(&egress, &permit, 1024).await.unwrap_err();
    assert_eq!(failed.error.code().as_str(), "egress.address_blocked");
    maker.rules.grants.push(Grant {
        port: Port::Any,
        ..grant("127.0.0.1", Leg::OAuth("demo".into()))
    });
    let permit = maker.permit().fetch(&url).unwrap();
    assert_eq!(post(&egress, &permit, 1024).await.unwrap().body, "ok");
    let refusal = maker.permit().fetch("http://auth.test/token").unwrap_err();
    assert_eq!(
        refusal.public,
        "a URL of the OAuth of server `demo` is not used: `auth.test` is named with plain http, expected https"
    );
}
