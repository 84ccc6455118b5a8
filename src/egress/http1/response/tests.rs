use std::error::Error as _;

use http::header::{CONTENT_LENGTH, COOKIE, SET_COOKIE};

use super::*;

/// What is read of `text` as the response to a `method` request: status, framing, whether the connection persists, and
/// what is left of it; or the fault.
fn read_as(method: &Method, text: &str) -> Result<Option<(u16, String, bool, String)>, String> {
    let mut input = BytesMut::from(text);
    let head = Heads::default().next(method, &mut input);
    let head = head.map_err(|fault| match fault.source() {
        Some(source) => format!("{fault}: {source}"),
        None => fault.to_string(),
    })?;
    Ok(head.map(|head| {
        let framing = match head.framing {
            Framing::Length(length) => length.to_string(),
            Framing::Chunked(_) => "chunked".to_owned(),
            Framing::Close => "close".to_owned(),
        };
        let rest = String::from_utf8_lossy(&input).into_owned();
        (head.status.as_u16(), framing, head.persists, rest)
    }))
}

fn read(text: &str) -> Result<Option<(u16, String, bool, String)>, String> {
    read_as(&Method::POST, text)
}

fn head(fields: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{fields}\r\nrest")
}

#[test]
fn the_end_of_a_body_is_told_as_the_specification_says() {
    for (fields, framing, persists) in [
        ("content-length: 5\r\n", "5", true),
        ("Content-Length: 5\r\ncontent-length: 5, 5\r\n", "5", true),
        (
            "content-length: 18446744073709551615\r\n",
            "18446744073709551615",
            true,
        ),
        ("transfer-encoding: chunked\r\n", "chunked", true),
        ("Transfer-Encoding: gzip, Chunked\r\n", "chunked", true),
        (
            "transfer-encoding: chunked\r\ncontent-length: 5\r\n",
            "chunked",
            false,
        ),
        (
            "transfer-encoding: gzip\r\ncontent-length: 5\r\n",
            "close",
            false,
        ),
        ("", "close", false),
        ("content-length: 5\r\nconnection: Close\r\n", "5", false),
        (
            "content-length: 5\r\nconnection: keep-alive, close\r\n",
            "5",
            false,
        ),
        ("content-length: 5\r\nconnection: closed\r\n", "5", true),
    ] {
        let expected = (200, framing.to_owned(), persists, "rest".to_owned());
        assert_eq!(read(&head(fields)), Ok(Some(expected)), "{fields:?}");
    }
}

#[test]
fn some_responses_have_no_body_whatever_they_say() {
    for (status, fields, persists) in [
        (204, "", true),
        (204, "content-length: 0\r\n", true),
        // What follows may be a body after all.
        (204, "content-length: 5\r\n", false),
        (204, "transfer-encoding: chunked\r\n", false),
        (304, "content-length: 5\r\n", true),
        (304, "transfer-encoding: chunked\r\n", false),
    ] {
        let text = format!("HTTP/1.1 {status} X\r\n{fields}\r\nrest");
        let expected = (status, "0".to_owned(), persists, "rest".to_owned());
        assert_eq!(read(&text), Ok(Some(expected)), "{status} {fields}");
    }
    let text = head("transfer-encoding: chunked\r\n");
    let expected = (200, "0".to_owned(), true, "rest".to_owned());
    assert_eq!(read_as(&Method::HEAD, &text), Ok(Some(expected)));
}

#[test]
fn an_old_server_closes_behind_its_answer() {
    let text = "HTTP/1.0 200 OK\r\ncontent-length: 5\r\nconnection: keep-alive\r\n\r\n";
    assert_eq!(
        read(text),
        Ok(Some((200, "5".to_owned(), false, String::new())))
    );
    let text = "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    assert_eq!(
        read(text),
        Err("the response is ambiguous: HTTP/1.0 has no chunks".to_owned())
    );
}

#[test]
fn what_two_readers_could_read_differently_is_refused() {
    const CRLF: &str = "the response is ambiguous: a line does not end in CRLF";
    const NUMBER: &str = "the response is ambiguous: its length is no number";
    for (text, fault) in [
        (
            "HTTP/1.1 200 OK\ncontent-length: 5\r\n\r\n".to_owned(),
            CRLF,
        ),
        (head("content-length: 5\n"), CRLF),
        (head("x: y\n\ncontent-length: 5\r\n"), CRLF),
        (
            head("x: y\rcontent-length: 5\r\n"),
            "the head is malformed: invalid header value",
        ),
        (
            head("content-length: 5\r\ncontent-length: 6\r\n"),
            "the response is ambiguous: it has two lengths",
        ),
        (
            head("content-length: 5, 6\r\n"),
            "the response is ambiguous: it has two lengths",
        ),
        (head("content-length: +5\r\n"), NUMBER),
        (head("content-length: -5\r\n"), NUMBER),
        (head("content-length: 0x5\r\n"), NUMBER),
        (head("content-length: 5 5\r\n"), NUMBER),
        (head("content-length:\r\n"), NUMBER),
        (head("content-length: 18446744073709551616\r\n"), NUMBER),
        (
            head("x: y\r\n folded\r\n"),
            "the head is malformed: invalid header name",
        ),
        (
            head("content-length : 5\r\n"),
            "the head is malformed: invalid header name",
        ),
        (
            head(": 5\r\n"),
            "the head is malformed: invalid header name",
        ),
        (
            head("x: \0\r\n"),
            "the head is malformed: invalid header value",
        ),
        (
            "HTTP/2 200 OK\r\n\r\n".to_owned(),
            "the head is malformed: invalid HTTP version",
        ),
        (
            "HTTP/1.1 2000 OK\r\n\r\n".to_owned(),
            "the head is malformed: invalid response status",
        ),
        (
            "\r\n\r\nHTTP/1.1 200 OK\r\n\r\n".to_owned(),
            "the response is ambiguous: an empty line within the head",
        ),
    ] {
        assert_eq!(read(&text), Err(fault.to_owned()), "{text:?}");
    }
}

#[test]
fn interim_heads_are_passed_over_and_count() {
    let interim = "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";
    let text = format!("{interim}{interim}{}", head("content-length: 5\r\n"));
    let expected = (200, "5".to_owned(), true, "rest".to_owned());
    assert_eq!(read(&text), Ok(Some(expected)));
    assert_eq!(read(interim), Ok(None));
    let upgrade = "HTTP/1.1 101 Switching Protocols\r\n\r\n";
    assert!(read(upgrade).is_ok_and(|head| head.is_some_and(|head| head.0 == 101)));
    let flood = interim.repeat(MAX_HEAD / interim.len() + 1);
    assert_eq!(
        read(&flood),
        Err("the head is longer than 65536 bytes".to_owned())
    );
}

#[test]
fn a_head_that_drips_in_is_the_same_head() {
    let text = format!(
        "HTTP/1.1 100 Continue\r\n\r\n{}",
        head("content-length: 4\r\n")
    );
    let (mut heads, mut input) = (Heads::default(), BytesMut::new());
    let mut found = None;
    for byte in text.bytes() {
        input.extend_from_slice(&[byte]);
        if found.is_none() {
            found = heads.next(&Method::POST, &mut input).ok().flatten();
        }
    }
    assert_eq!(found.map(|head| head.status), Some(StatusCode::OK));
    assert_eq!(&input[..], b"rest");
}

#[test]
fn fields_are_found_by_name_and_never_shown() {
    let text = head("Set-Cookie: a=secret\r\nX: 1\r\nset-cookie:  b \r\ncontent-length: 0\r\n");
    let mut input = BytesMut::from(text.as_str());
    let found = Heads::default().next(&Method::POST, &mut input);
    let mut fields = found.ok().flatten().expect("a head").headers;
    let values: Vec<&[u8]> = fields.all(&SET_COOKIE).collect();
    assert_eq!(values, [&b"a=secret"[..], b"b"]);
    assert_eq!(fields.get(&SET_COOKIE), Some(&b"a=secret"[..]));
    assert_eq!(fields.get(&COOKIE), None);
    assert_eq!(
        format!("{fields:?}"),
        r#"{"Set-Cookie", "X", "set-cookie", "content-length"}"#
    );
    fields.remove(&SET_COOKIE);
    assert!(!fields.contains(&SET_COOKIE));
    assert_eq!(fields.get(&CONTENT_LENGTH), Some(&b"0"[..]));
}
