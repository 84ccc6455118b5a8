//! Heads that no request comes of.

use super::*;
use crate::refusal::{Code, Refusal};

/// A request with these fields beside `Host`.
fn fields(fields: &str) -> HeadError {
    refused(&with(fields))
}

/// A request with this request line and the matching `Host`.
fn line(line: &str) -> HeadError {
    refused(&format!("{line}\r\nHost: a.example\r\n\r\n"))
}

#[track_caller]
fn assert_refused(error: HeadError, code: Code, words: &str) {
    assert_eq!((error.code(), error.to_string().as_str()), (code, words));
}

#[test]
fn lines_that_readers_split_differently() {
    const CRLF: &str = "a line of the request head does not end in CRLF";
    const FOLDED: &str = "a header field is folded over several lines";
    const CONTROL: &str = "a header field contains a control character";
    const COLON: &str = "whitespace stands between a header's name and its colon";
    let bad = |error, words| assert_refused(error, Code::BadHead, words);
    bad(
        refused("GET http://a.example/ HTTP/1.1\nHost: a.example\r\n\r\n"),
        CRLF,
    );
    bad(refused("\n"), CRLF);
    bad(fields("X: y\n"), CRLF);
    bad(fields("X: y\n\nZ: 1\r\n"), CRLF);
    bad(fields("X: y\n\r\n"), CRLF);
    bad(
        refused("\r\nGET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n"),
        "an empty line stands before the request line",
    );
    bad(fields("X: y\r\n folded\r\n"), FOLDED);
    bad(fields("X: y\r\n\tfolded\r\n"), FOLDED);
    bad(fields("X: y\r\n \r\n"), FOLDED);
    bad(
        refused("GET http://a.example/ HTTP/1.1\r\n Host: a.example\r\n\r\n"),
        FOLDED,
    );
    bad(fields("X-A: b\rX-B: c\r\n"), CONTROL);
    bad(fields("X-A: b\r\r\n"), CONTROL);
    bad(fields("\rX-A: b\r\n"), CONTROL);
    bad(fields("X-A: b\0c\r\n"), CONTROL);
    bad(fields("X-A: b\x7fc\r\n"), CONTROL);
    bad(fields("X-A: b\x0bc\r\n"), CONTROL);
    bad(fields("X\0A: b\r\n"), CONTROL);
    bad(fields("Transfer-Encoding : chunked\r\n"), COLON);
    bad(fields("Transfer-Encoding\t: chunked\r\n"), COLON);
    bad(
        fields("Transfer-Encoding\r\n"),
        "a header line has no colon",
    );
    for name in ["", "a b", "a\tb", "a(b)", "\u{e9}", "a,b", "a/b"] {
        bad(
            fields(&format!("{name}: 1\r\n")),
            "the request head is malformed",
        );
    }
}

#[test]
fn what_the_parser_says_is_a_detail() {
    let refusal = Refusal::from(fields("a b: 1\r\n"));
    assert_eq!(refusal.code.status(), 400);
    assert_eq!(refusal.public, "the request head is malformed");
    assert_eq!(refusal.detail.as_deref(), Some("invalid header name"));
}

#[test]
fn request_lines_that_are_none() {
    for text in [
        "GET  http://a.example/ HTTP/1.1",
        "GET http://a.example/  HTTP/1.1",
        "GET\thttp://a.example/ HTTP/1.1",
        " GET http://a.example/ HTTP/1.1",
        "GET http://a.example/ HTTP/1.1 ",
        "GET http://a.example/ x HTTP/1.1",
        "GET http://a.example/\r HTTP/1.1",
        "GET http://a.example/\0 HTTP/1.1",
        "GE\rT http://a.example/ HTTP/1.1",
        "GET http://a.example/ HTTP/2.0",
        "GET http://a.example/ HTTP/1.2",
        "GET http://a.example/ HTTP/0.9",
        "GET http://a.example/ http/1.1",
        "GET http://a.example/",
        "GET",
        "G(T http://a.example/ HTTP/1.1",
        "G\u{e9}T http://a.example/ HTTP/1.1",
        "PRI * HTTP/2.0",
    ] {
        assert_refused(line(text), Code::BadHead, "the request head is malformed");
    }
    assert_refused(
        refused("\x16\x03\x01"),
        Code::BadHead,
        "TLS was spoken where a request head belongs; write the proxy's URL with `http://`",
    );
    assert_refused(
        refused("SSH-2.0-x\r\n\r\n"),
        Code::BadHead,
        "the request head is malformed",
    );
}

#[test]
fn what_is_wrong_with_a_target_is_told_without_its_secrets() {
    for target in [
        "http://ann:SECRET@a.example/",
        "http://ann:SECRET@a.example/\\",
        "http://a.example/\u{e9}?token=SECRET",
        "http://a.example/#token=SECRET",
        "http://a.example:x/?token=SECRET",
        "http://a.example/?token=SECRET\\",
        "a.example/?token=SECRET",
        "ann:SECRET@a.example/",
        "/?token=SECRET",
        "https://a.example/?token=SECRET",
        "ftp://ann:SECRET@a.example/",
    ] {
        let error = line(&format!("GET {target} HTTP/1.1"));
        let told = format!("{error} {error:?}") + &format!("{:?}", Refusal::from(error));
        assert!(!told.contains("SECRET"), "{told}");
    }
}

#[test]
fn targets_that_are_not_forwarded_to() {
    let bad = |text: &str, words| assert_refused(line(text), Code::ProxyTarget, words);
    const OWN: &str = "this is a forward proxy and serves no paths of its own";
    bad("GET / HTTP/1.1", OWN);
    bad("GET //a.example/ HTTP/1.1", OWN);
    bad("OPTIONS * HTTP/1.1", OWN);
    bad(
        "GET https://a.example/ HTTP/1.1",
        "an https URL was asked for without a tunnel; send `CONNECT a.example:443` first",
    );
    bad(
        "GET ftp://a.example/ HTTP/1.1",
        "scheme `ftp` is neither http nor https",
    );
    bad(
        "GET a.example:80 HTTP/1.1",
        "the URL is not absolute; write `https://host/path`",
    );
    bad(
        "connect a.example:443 HTTP/1.1",
        "the URL is not absolute; write `https://host/path`",
    );
    bad(
        "GET http://u:p@a.example/ HTTP/1.1",
        "a user name or password stands before the host; leave it out and configure credentials instead",
    );
    bad(
        "GET http://a.example/#f HTTP/1.1",
        "a fragment (`#…`) is never sent; leave it out",
    );
    bad(
        "GET http://a.example/\u{e9} HTTP/1.1",
        "the target contains `é`; percent-encode it in a path, leave it out of a host",
    );
    bad(
        "GET http://2130706433/ HTTP/1.1",
        "host `2130706433` ends in a number but is not an IPv4 address; write four decimal numbers without leading zeros",
    );
    bad(
        "CONNECT a.example HTTP/1.1",
        "`a.example` has no port; write `host:port`",
    );
    bad(
        "CONNECT a.example:0 HTTP/1.1",
        "port `0` is not a number from 1 to 65535",
    );
    bad(
        "CONNECT https://a.example:443 HTTP/1.1",
        "port `//a.example:443` is not a number from 1 to 65535",
    );
    bad(
        "CONNECT [a.example]:443 HTTP/1.1",
        "host `[a.example]` is not an IPv6 address in brackets; write `[2001:db8::1]` without a zone",
    );
    assert_refused(
        line("TRACE http://a.example/ HTTP/1.1"),
        Code::MethodRefused,
        "`TRACE` is not forwarded",
    );
}

#[test]
fn hosts_that_are_not_the_targets() {
    let host = |fields: &str| refused(&format!("GET http://a.example/ HTTP/1.1\r\n{fields}\r\n"));
    let differs = |text: &str| {
        let head = Heads::default().next(&mut BytesMut::from(text)).unwrap();
        head.unwrap().check_host().unwrap_err()
    };
    for fields in [
        "Host: 169.254.169.254\r\n",
        "Host:\r\n",
        "Host: a.example:81\r\n",
        "Host: a.example:\r\n",
        "Host: a.example/x\r\n",
        "Host: u@a.example\r\n",
        "Host: a.example, b.example\r\n",
        "Host: a.example b.example\r\n",
        "Host: b.example\r\n",
        "Host: \u{e9}.example\r\n",
    ] {
        assert_refused(
            differs(&format!("GET http://a.example/ HTTP/1.1\r\n{fields}\r\n")),
            Code::HostMismatch,
            "`Host` does not name the target, `a.example`",
        );
    }
    assert_refused(host(""), Code::HostMismatch, "the request has no `Host`");
    for twice in [
        "Host: a.example\r\nHost: b.example\r\n",
        "Host: a.example\r\nhost: a.example\r\n",
    ] {
        assert_refused(host(twice), Code::BadHead, "`Host` stands more than once");
    }
    assert_refused(
        differs("CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:8443\r\n\r\n"),
        Code::HostMismatch,
        "`Host` does not name the target, `a.example`",
    );
    assert_refused(
        differs("GET http://a.example/ HTTP/1.0\r\nHost: b.example\r\n\r\n"),
        Code::HostMismatch,
        "`Host` does not name the target, `a.example`",
    );
    assert_eq!(Code::HostMismatch.status(), 421);
}

#[test]
fn bodies_whose_end_is_not_clear() {
    const NUMBER: &str = "the end of the body is not clear: its length is no number";
    const CODING: &str = "the end of the body is not clear: its transfer coding is not `chunked`";
    for (text, words) in [
        (
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
            "the end of the body is not clear: it has a length and a transfer coding",
        ),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
            "`Transfer-Encoding` stands more than once",
        ),
        ("Transfer-Encoding: xchunked\r\n", CODING),
        ("Transfer-Encoding: gzip, chunked\r\n", CODING),
        ("Transfer-Encoding: chunked, chunked\r\n", CODING),
        ("Transfer-Encoding: chunked;x=y\r\n", CODING),
        ("Transfer-Encoding: identity\r\n", CODING),
        ("Transfer-Encoding: \"chunked\"\r\n", CODING),
        ("Transfer-Encoding:\r\n", CODING),
        (
            "Content-Length: 5\r\nContent-Length: 6\r\n",
            "`Content-Length` stands more than once",
        ),
        (
            "Content-Length: 5\r\nContent-Length: 5\r\n",
            "`Content-Length` stands more than once",
        ),
        ("Content-Length: 5, 5\r\n", NUMBER),
        ("Content-Length: +5\r\n", NUMBER),
        ("Content-Length: -5\r\n", NUMBER),
        ("Content-Length: 0x5\r\n", NUMBER),
        ("Content-Length: 5 5\r\n", NUMBER),
        ("Content-Length:\r\n", NUMBER),
        ("Content-Length: 18446744073709551616\r\n", NUMBER),
        ("Content-Length: \u{665}\r\n", NUMBER),
        (
            "Proxy-Authorization: Basic eDp5\r\nProxy-Authorization: Basic eDp5\r\n",
            "`Proxy-Authorization` stands more than once",
        ),
    ] {
        assert_refused(fields(text), Code::BadHead, words);
    }
    assert_refused(
        refused("POST http://a.example/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"),
        Code::BadHead,
        "the end of the body is not clear: HTTP/1.0 has no transfer codings",
    );
    for body in ["Content-Length: 1", "Transfer-Encoding: chunked"] {
        assert_refused(
            refused(&format!(
                "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n{body}\r\n\r\n"
            )),
            Code::BadHead,
            "the end of the body is not clear: `CONNECT` has no body",
        );
    }
}

#[test]
fn connection_removes_nothing_that_must_arrive() {
    for options in [
        "X-Forwarded-For, Host",
        "content-length",
        "close, Transfer-Encoding",
        "a b",
        "\u{e9}",
        "a/b",
    ] {
        assert_refused(
            fields(&format!("Connection: {options}\r\n")),
            Code::BadHead,
            "`Connection` names a field that must not be removed, or none at all",
        );
    }
}

#[test]
fn heads_are_bounded() {
    let status = |error: HeadError| (error.code().as_str(), error.code().status());
    let large = ("listen.head_too_large", 431);
    // As long as allowed, and one byte longer.
    let padded = |length: usize| {
        let pad = length - with("X: \r\n").len();
        with(&format!("X: {}\r\n", "x".repeat(pad)))
    };
    assert!(read(&padded(65_536)).unwrap().is_some());
    assert_eq!(status(refused(&padded(65_537))), large);
    assert!(read(&padded(65_537)[..65_535]).unwrap().is_none());
    assert_eq!(status(refused(&padded(65_537)[..65_536])), large);
    assert_eq!(
        refused(&padded(70_000)).to_string(),
        "the request head is longer than 65536 bytes"
    );

    let many = |count: usize| with(&"X: y\r\n".repeat(count - 1));
    assert!(read(&many(100)).unwrap().is_some());
    assert_eq!(status(refused(&many(101))), large);
    assert_eq!(
        refused(&many(2000)).to_string(),
        "the request head has more than 100 header fields"
    );

    let long = |length: usize| {
        let path = "x".repeat(length - "GET http://a.example/ HTTP/1.1\r".len());
        format!("GET http://a.example/{path} HTTP/1.1\r\nHost: a.example\r\n\r\n")
    };
    assert!(read(&long(16_383)).unwrap().is_some());
    assert_eq!(
        status(refused(&long(16_384))),
        ("tunnel.target_too_long", 414)
    );
    assert_eq!(
        refused(&"x".repeat(16_384)).to_string(),
        "the request line is longer than 16384 bytes"
    );
    assert!(read(&"x".repeat(16_383)).unwrap().is_none());
}
