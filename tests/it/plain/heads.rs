//! Every head that the proxy writes is one that its own readers take.

use std::sync::{Arc, Mutex};

use bytes::BytesMut;
use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};
use tollgate::tunnel::{Body, Heads};

use super::Way;

/// A field: any name and value that are legal, names with a meaning of their own among them.
fn field() -> impl Strategy<Value = (String, String)> {
    let special = prop::sample::select(vec![
        "Connection",
        "Keep-Alive",
        "Proxy-Connection",
        "TE",
        "Trailer",
        "Upgrade",
        "Via",
        "Tollgate-User",
        "Forwarded",
        "Expect",
        "Cookie",
    ]);
    let name = prop_oneof![
        special.prop_map(str::to_owned),
        "X[!#$%&'*+.^_`|~0-9A-Za-z-]{0,12}"
    ];
    let value = prop_oneof![Just(String::new()), "[!-~]([ -~\t]{0,20}[!-~])?"];
    (name, value)
}

fn fields() -> impl Strategy<Value = Vec<(String, String)>> {
    // What `Connection` names has to be a name.
    let legal = |(name, value): &(String, String)| {
        name != "Connection" || value.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    prop::collection::vec(field().prop_filter("names", legal), 0..8)
}

fn lines(fields: &[(String, String)]) -> String {
    let lines = fields
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"));
    lines.collect()
}

/// Runs `check` for many inputs, one after the other.
fn for_many<S: Strategy>(strategy: &S, check: impl Fn(S::Value)) {
    let config = Config {
        cases: 64,
        failure_persistence: None,
        ..Config::default()
    };
    let checked = TestRunner::new(config).run(strategy, |value| {
        check(value);
        Ok(())
    });
    checked.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn request_heads_are_read_again() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let way = runtime.block_on(Way::always(super::OK));
    let body = prop::sample::select(vec![
        ("", "", Body::None),
        ("Content-Length: 3\r\n", "abc", Body::Length(3)),
        (
            "Transfer-Encoding: chunked\r\n",
            "3\r\nabc\r\n0\r\n\r\n",
            Body::Chunked,
        ),
    ]);
    let input = ("[A-Z]{3,8}", "/[!\"$-\\[\\]-~]{0,20}", fields(), body);
    for_many(
        &input,
        |(method, path, fields, (framing, body, expected))| {
            if method == "CONNECT" || method == "TRACE" || method == "HEAD" {
                return;
            }
            let seen = runtime.block_on(async {
                let mut client = way.client().await;
                let head = format!("{method} http://api.test{path} HTTP/1.1\r\nHost: api.test\r\n");
                client
                    .say(format!("{head}{}{framing}\r\n{body}", lines(&fields)))
                    .await;
                client.until("\r\n\r\n").await;
                let mut seen = way.upstream.requests();
                seen.retain(|text| text.contains(" HTTP/1.1\r\n"));
                seen.pop().unwrap()
            });
            // It is written in origin-form, and read in absolute-form.
            let mut text = BytesMut::from(&*seen.replacen(' ', " http://api.test", 1));
            let head = Heads::default().next(&mut text).unwrap().unwrap();
            head.check_host().unwrap();
            assert_eq!(
                (head.method.as_str(), head.path.as_deref()),
                (&*method, Some(&*path))
            );
            assert_eq!(head.body, expected);
            assert!(head.persists);
            assert!(
                !head
                    .headers
                    .keys()
                    .any(|name| name.as_str().starts_with("tollgate-"))
            );
        },
    );
}

#[test]
fn answer_heads_are_read_again() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let answer = Arc::new(Mutex::new(String::new()));
    let told = answer.clone();
    let way = runtime.block_on(Way::plain(move |mut connection| {
        let told = told.clone();
        async move {
            connection.request().await;
            let answer = told.lock().unwrap().clone();
            connection.write(answer.as_bytes()).await;
        }
    }));
    let ask = || {
        runtime.block_on(async {
            let mut client = way.client().await;
            client
                .say("GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n")
                .await;
            client.rest().await
        })
    };
    let body = prop::sample::select(vec![
        ("Content-Length: 3\r\n", "abc"),
        ("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\r\n"),
        ("", "abc"),
    ]);
    for_many(
        &(200_u16..600, fields(), body),
        |(status, fields, (framing, body))| {
            let first = format!(
                "HTTP/1.1 {status} x\r\n{}{framing}\r\n{body}",
                lines(&fields)
            );
            *answer.lock().unwrap() = first;
            let (once, is_clean) = ask();
            assert!(
                is_clean && once.starts_with(&format!("HTTP/1.1 {status} ")),
                "{once}"
            );
            // What was written is an answer itself, and all that happens to it is another name in `Via`.
            *answer.lock().unwrap() = once.clone();
            let (twice, is_clean) = ask();
            assert!(is_clean);
            let via = "via: 1.1 tollgate\r\n";
            assert_eq!(twice.replacen(via, "", 1), once);
        },
    );
}
