//! Forms and heads that stall, that are too long or break off, too many connections, and TLS of the pages' own.
//!
//! Where something is late, the clock stands and moves on by itself as soon as nothing else happens.

use std::{net::SocketAddr, time::Duration};

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::{io::AsyncWriteExt as _, time};
use tollgate::{config::Endpoint, identity::Identity, listen::Limits};

use super::{
    house::{House, LOCAL, Page, field, form, read},
    product::{LISTEN, begin, end, folder, login, write},
};
use crate::{
    listen::front::{Client, dial},
    support::{certs, certs::Authority},
};

/// A form whose body is still to come.
const FORM: &str = "POST /login HTTP/1.1\r\nhost: 127.0.0.1:8703\r\n\
    content-type: application/x-www-form-urlencoded\r\n";

fn begins(answer: &str, status: &str, code: &str) {
    assert!(answer.starts_with(status), "{answer}");
    assert!(answer.contains(code), "{answer}");
}

#[tokio::test]
async fn a_form_that_stalls_is_answered_and_let_go() {
    let house = House::local().await;
    let mut whole = house.connect().await;
    time::pause();
    whole
        .send(&format!("{FORM}content-length: 69\r\n\r\ntoken="))
        .await;
    let answer = whole.rest().await;
    begins(
        &answer,
        "HTTP/1.1 408 Request Timeout\r\n",
        "listen.slow_body",
    );
    assert!(answer.contains("The form did not arrive within 10 s"));
    time::resume();

    // A byte now and then does not put the end off.
    let mut slow = house.connect().await;
    slow.send(&format!("{FORM}content-length: 69\r\n\r\n"))
        .await;
    time::pause();
    for _ in 0..9 {
        slow.send("x").await;
        time::sleep(Duration::from_secs(1)).await;
    }
    let begun = time::Instant::now();
    let answer = slow.rest().await;
    begins(
        &answer,
        "HTTP/1.1 408 Request Timeout\r\n",
        "listen.slow_body",
    );
    assert!(begun.elapsed() <= Duration::from_secs(2));
    time::resume();
    assert_eq!(
        house.records().await,
        ["request POST refused listen.slow_body"; 2]
    );
}

#[tokio::test]
async fn a_head_that_stalls_is_closed_and_recorded() {
    let house = House::local().await;
    let mut slow = house.connect().await;
    time::pause();
    slow.send("GET / HTTP/1.1\r\nhost: 127.0").await;
    assert_eq!(slow.rest().await, "");
    // One that says nothing is no fault of anybody's.
    assert_eq!(house.connect().await.rest().await, "");
    time::resume();
    assert_eq!(
        house.records().await,
        ["request - refused listen.slow_head"]
    );
}

#[tokio::test]
async fn a_form_without_an_end_is_cut_off() {
    let house = House::local().await;
    let mut endless = house.connect().await;
    endless
        .send(&format!("{FORM}transfer-encoding: chunked\r\n\r\n"))
        .await;
    let piece = format!("8000\r\n{}\r\n", "x".repeat(0x8000));
    let mut sent = 0;
    // Nobody reads on once a mebibyte has come.
    while sent < 64 << 20 && endless.0.write_all(piece.as_bytes()).await.is_ok() {
        sent += 0x8000;
    }
    assert!(sent < 64 << 20, "{sent}");
    let records = house.records().await;
    assert_eq!(records, ["request POST refused listen.body_too_large"]);
}

#[tokio::test]
async fn a_form_that_is_announced_too_long_is_answered_before_it_comes() {
    let house = House::local().await;
    let mut large = house.connect().await;
    large
        .send(&format!(
            "{FORM}content-length: 4294967296\r\n\r\n{}",
            "x".repeat(0x9000)
        ))
        .await;
    let answer = large.rest().await;
    begins(
        &answer,
        "HTTP/1.1 413 Payload Too Large\r\n",
        "listen.body_too_large",
    );
    assert!(answer.contains("The form is larger than 32768 bytes."));
}

#[tokio::test]
async fn a_form_that_breaks_off_changes_nothing_and_is_recorded() {
    let house = House::local().await;
    let link = house.web.invite(None, None).await.unwrap().invitation.token;
    let mut gone = house.connect().await;
    let body = format!("token={link}");
    let more = body.len() + 1;
    gone.send(&format!("{FORM}content-length: {more}\r\n\r\n{body}"))
        .await;
    gone.0.shutdown().await.unwrap();
    gone.rest().await;
    house.stranger().sign_in(&link).await;
    let records = house.records().await;
    assert_eq!(
        records,
        [
            "request POST refused listen.body_broken",
            "admin sign_in allowed -"
        ]
    );
}

#[tokio::test]
async fn heads_that_are_too_long_are_refused() {
    let house = House::local().await;
    let mut long = house.connect().await;
    let filler = "x".repeat(70_000);
    long.send(&format!(
        "GET / HTTP/1.1\r\nhost: 127.0.0.1:8703\r\nfiller: {filler}\r\n\r\n"
    ))
    .await;
    let answer = long.rest().await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    assert_eq!(
        house.records().await,
        ["request - refused listen.head_too_large"]
    );
}

#[tokio::test]
async fn connections_beyond_the_bound_are_turned_away() {
    let limits = Limits {
        connections: 1,
        ..Limits::default()
    };
    let house = House::within(limits, LOCAL, |_| Identity::local("ann", "default")).await;
    let mut first = house.connect().await;
    let get = "GET /nothing HTTP/1.1\r\nhost: 127.0.0.1:8703\r\n\r\n";
    first.send(get).await;
    begins(
        &first.answer().await,
        "HTTP/1.1 404 Not Found\r\n",
        "web.not_found",
    );
    let turned_away = house.connect().await.rest().await;
    begins(
        &turned_away,
        "HTTP/1.1 503 Service Unavailable\r\n",
        r#""code":"listen.overloaded""#,
    );
    first.send(get).await;
    first.answer().await;
    assert!(
        house
            .metrics()
            .contains("tollgate_listen_turned_away_total 1\n")
    );
}

/// A request over TLS, to `localhost`.
async fn secure(address: SocketAddr, root: &Authority, request: Request<Full<Bytes>>) -> Page {
    let name = ServerName::try_from("localhost").unwrap();
    let connecting = certs::trusting(root.der()).connect(name, dial(address).await);
    read(TokioIo::new(connecting.await.unwrap()), request).await
}

#[tokio::test]
async fn pages_speak_tls_where_the_listeners_do() {
    let authority = Authority::new();
    let (certificate, key) = authority.leaf_and_key(&["localhost"]);
    let dir = folder(&format!(
        "public_url = \"https://localhost\"\n{LISTEN}web = \"127.0.0.1:0\"\n\
         tls = {{ cert = \"file:tls.crt\", key = \"file:tls.key\" }}\n[identity.local]\nuser = \"ann\"\n"
    ));
    let policy = dir.path().join("policy");
    for (name, pem) in [("tls.crt", certificate), ("tls.key", key)] {
        write(&policy.join(name), &pem);
    }
    let running = begin(dir.path());
    let Some(Endpoint::Tcp(address)) = running.web().cloned() else {
        panic!("a TCP listener");
    };
    let (_, said, _) = login(dir.path(), &[]).await;
    let (_, url) = said.trim_end().split_once('\n').unwrap();
    let token = url.strip_prefix("https://localhost/login?token=").unwrap();

    let mut request = form("localhost", "/login", &[field("token", token)]);
    let origin = "https://localhost".parse().unwrap();
    request.headers_mut().insert("origin", origin);
    let page = secure(address, &authority, request).await;
    assert_eq!(page.status, 303, "{}", page.body);
    let cookie = page.cookies()[0];
    assert!(cookie.starts_with("__Host-tollgate"), "{cookie}");
    assert!(cookie.contains("; Secure"), "{cookie}");
    let (cookie, _) = cookie.split_once(';').unwrap();
    let home = Request::get("/").header("host", "localhost");
    let home = home.header("cookie", cookie).body(Full::default()).unwrap();
    let page = secure(address, &authority, home).await;
    assert_eq!(page.status, 200, "{}", page.body);

    let mut plain = Client(dial(address).await);
    plain
        .send("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await;
    assert!(!plain.rest().await.contains("HTTP/1.1"));
    end(running).await;
    let records = crate::audit::records(&dir.path().join("state/audit"));
    let refused = records.iter().filter(|record| record["kind"] == "request");
    let refused: Vec<_> = refused.map(|record| record["code"].clone()).collect();
    assert_eq!(refused, ["listen.tls_failed"]);
}
