mod properties;
mod refused;

use super::*;

/// All that a head says, as text, and what is left of the input.
fn read(text: &str) -> Result<Option<(String, String)>, HeadError> {
    let mut input = BytesMut::from(text);
    let head = Heads::default().next(&mut input)?;
    if let Some(head) = &head {
        head.check_host()?;
    }
    Ok(head.map(|head| (shown(&head), String::from_utf8_lossy(&input).into_owned())))
}

fn shown(head: &Head) -> String {
    let field = |(name, value): (&HeaderName, &HeaderValue)| {
        format!(" {name}={}", String::from_utf8_lossy(value.as_bytes()))
    };
    let mut text = format!("{} {}", head.method, head.target);
    text += &head
        .path
        .as_ref()
        .map_or(String::new(), |path| format!(" {path}"));
    text += &match head.body {
        Body::None => String::new(),
        Body::Length(length) => format!(" length {length}"),
        Body::Chunked => " chunked".to_owned(),
    };
    text.extend(head.websocket.then_some(" websocket"));
    text.extend((!head.persists).then_some(" closes"));
    // The order of fields of different names means nothing (RFC 9110, section 5.3).
    let mut fields: Vec<_> = head.headers.iter().collect();
    fields.sort_by_key(|(name, _)| name.as_str());
    text.extend(fields.into_iter().map(field));
    text
}

/// The error of an input that is refused.
fn refused(text: &str) -> HeadError {
    read(text).expect_err(text)
}

#[test]
fn a_head_says_where_to_and_what_for() {
    for (head, expected) in [
        (
            "GET http://Api.Example.NET/a?b=c HTTP/1.1\r\nHost: api.example.net\r\nAccept: */*\r\n\r\n",
            "GET http://api.example.net /a?b=c accept=*/*",
        ),
        (
            "GET HTTP://api.example.net HTTP/1.1\r\nhost: API.example.net:80\r\n\r\n",
            "GET http://api.example.net /",
        ),
        (
            "GET http://api.example.net:8080?x HTTP/1.1\r\nHost:api.example.net:8080 \r\n\r\n",
            "GET http://api.example.net:8080 /?x",
        ),
        (
            "GET http://[2606:4700::1]/%2e/../a HTTP/1.1\r\nHost: [2606:4700::1]\r\n\r\n",
            "GET http://[2606:4700::1] /%2e/../a",
        ),
        (
            "GET ws://api.example.net/a HTTP/1.1\r\nHost: api.example.net\r\n\r\n",
            "GET http://api.example.net /a",
        ),
        (
            "OPTIONS http://api.example.net HTTP/1.1\r\nHost: api.example.net\r\n\r\n",
            "OPTIONS http://api.example.net *",
        ),
        (
            "OPTIONS http://api.example.net/ HTTP/1.1\r\nHost: api.example.net\r\n\r\n",
            "OPTIONS http://api.example.net /",
        ),
        (
            "get http://api.example.net/ HTTP/1.1\r\nHost: api.example.net\r\n\r\n",
            "get http://api.example.net /",
        ),
        (
            "CONNECT api.example.net:443 HTTP/1.1\r\nHost: api.example.net:443\r\n\r\n",
            "CONNECT https://api.example.net",
        ),
        (
            "CONNECT API.example.net:8443 HTTP/1.1\r\nHost: api.example.net\r\ncontent-length: 0\r\nUser-Agent: x\r\n\r\n",
            "CONNECT https://api.example.net:8443 length 0 user-agent=x",
        ),
        (
            "CONNECT 192.0.2.1:443 HTTP/1.0\r\n\r\n",
            "CONNECT https://192.0.2.1 closes",
        ),
        (
            "GET http://api.example.net/ HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
            "GET http://api.example.net / closes",
        ),
        (
            "GET http://api.example.net/ HTTP/1.1\r\nHost: api.example.net\r\nConnection: x, Close\r\n\r\n",
            "GET http://api.example.net / closes",
        ),
        (
            "POST http://api.example.net/ HTTP/1.1\r\nHost: api.example.net\r\nContent-Length: 5\r\n\r\n",
            "POST http://api.example.net / length 5",
        ),
        (
            "POST http://api.example.net/ HTTP/1.1\r\nHost: api.example.net\r\nContent-Length: 18446744073709551615\r\n\r\n",
            "POST http://api.example.net / length 18446744073709551615",
        ),
        (
            "POST http://api.example.net/ HTTP/1.1\r\nHost: api.example.net\r\nTransfer-Encoding: Chunked \r\n\r\n",
            "POST http://api.example.net / chunked",
        ),
        (
            "GET http://api.example.net/ HTTP/1.1\r\nHost: api.example.net\r\nA:\t1 \t\r\nB:\r\nA: 2\t3 4\r\nC: caf\u{e9}\r\n\r\n",
            "GET http://api.example.net / a=1 a=2\t3 4 b= c=caf\u{e9}",
        ),
    ] {
        let expected = (expected.to_owned(), "rest".to_owned());
        assert_eq!(
            read(&format!("{head}rest")).unwrap(),
            Some(expected),
            "{head:?}"
        );
    }
}

#[test]
fn heads_follow_one_another_and_what_is_not_whole_waits() {
    let head = "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n";
    let mut input = BytesMut::from(&*format!("{head}{head}GET http://a"));
    let mut heads = Heads::default();
    for _ in 0..2 {
        assert_eq!(
            heads
                .next(&mut input)
                .unwrap()
                .as_ref()
                .map(shown)
                .as_deref(),
            Some("GET http://a.example /")
        );
    }
    assert!(heads.next(&mut input).unwrap().is_none());
    assert_eq!(&*input, b"GET http://a");
    input.extend_from_slice(b".example/x HTTP/1.0\r\n\r\n");
    assert_eq!(
        heads
            .next(&mut input)
            .unwrap()
            .as_ref()
            .map(shown)
            .as_deref(),
        Some("GET http://a.example /x closes")
    );
    assert!(input.is_empty());
}

fn with(fields: &str) -> String {
    format!("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n{fields}\r\n")
}

#[test]
fn what_ends_at_the_proxy_is_folded_away() {
    for (fields, expected) in [
        (
            "Proxy-Authorization: Basic eDp5\r\nProxy-Connection: keep-alive\r\nTE: gzip\r\nKeep-Alive: 5\r\n",
            "GET http://a.example /",
        ),
        (
            "Trailer: Authorization\r\nProxy-Authenticate: x\r\nProxy-Authentication-Info: x\r\nAccept: a\r\n",
            "GET http://a.example / accept=a",
        ),
        (
            "Connection: close, Authorization\r\nAuthorization: Bearer x\r\nCookie: a\r\n",
            "GET http://a.example / closes cookie=a",
        ),
        (
            "Connection: X-A,,\t x-b \r\nX-A: 1\r\nx-a: 2\r\nConnection: X-C\r\nX-B: 3\r\nX-C: 4\r\nX-D: 5\r\n",
            "GET http://a.example / x-d=5",
        ),
        (
            "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n",
            "GET http://a.example /",
        ),
        ("HTTP2-Settings: AAMAAABk\r\n", "GET http://a.example /"),
        (
            "Connection: Tollgate-Private, x-a\r\nTollgate-Private: 1\r\nX-A: 1\r\n",
            "GET http://a.example / tollgate-private=1",
        ),
        (
            "Max-Forwards: 3\r\nVia: 1.1 x\r\n",
            "GET http://a.example / max-forwards=3 via=1.1 x",
        ),
    ] {
        let found = read(&with(fields)).unwrap().unwrap().0;
        assert_eq!(found, expected, "{fields:?}");
    }
}

#[test]
fn of_upgrades_only_that_to_a_websocket_counts() {
    let get = "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n";
    for (head, expected) in [
        (
            format!("{get}Upgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\nSec-WebSocket-Version: 13\r\n\r\n"),
            "GET http://a.example / websocket closes sec-websocket-version=13",
        ),
        (format!("{get}Upgrade: websocket\r\n\r\n"), "GET http://a.example /"),
        (
            format!("{get}Upgrade: websocket, h2c\r\nConnection: upgrade\r\n\r\n"),
            "GET http://a.example /",
        ),
        (
            format!("{get}Upgrade: websocket\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n"),
            "GET http://a.example /",
        ),
        (format!("{get}Upgrade: foo\r\nConnection: Upgrade\r\n\r\n"), "GET http://a.example /"),
        (format!("{get}Connection: Upgrade\r\n\r\n"), "GET http://a.example /"),
        (
            format!("{get}Upgrade: websocket\r\nConnection: upgrade\r\nContent-Length: 1\r\n\r\n"),
            "GET http://a.example / length 1",
        ),
        (
            "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n".to_owned(),
            "POST http://a.example /",
        ),
        (
            "GET http://a.example/ HTTP/1.0\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n".to_owned(),
            "GET http://a.example / closes",
        ),
    ] {
        assert_eq!(read(&head).unwrap().unwrap().0, expected, "{head:?}");
    }
}

#[test]
fn the_credential_is_taken_out_and_nothing_secret_is_shown() {
    let text = "GET http://a.example/?token=hunter2 HTTP/1.1\r\nHost: a.example\r\nProxy-Authorization: Basic hunter2\r\n\
                Authorization: hunter2\r\n\r\n";
    let head = Heads::default()
        .next(&mut BytesMut::from(text))
        .unwrap()
        .unwrap();
    assert_eq!(
        head.authorization.as_ref().unwrap().as_bytes(),
        b"Basic hunter2"
    );
    assert_eq!(format!("{:?}", head.authorization), "Some(Sensitive)");
    assert!(!head.headers.contains_key("proxy-authorization"));
    let debug = format!("{head:?}");
    assert!(
        debug.starts_with("Head { method: GET") && !debug.contains("hunter2"),
        "{debug}"
    );
}
