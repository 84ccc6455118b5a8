//! First flights that are refused.

use super::*;
use crate::refusal::{Code, Refusal};

fn error(input: &[u8]) -> HelloError {
    read(input).expect_err("refused")
}

/// The error of a message in one record.
fn of_message(message: &[u8]) -> HelloError {
    error(&records(message, 16_384))
}

fn of(parts: &Parts) -> HelloError {
    of_message(&parts.message())
}

#[track_caller]
fn assert_malformed(error: HelloError, what: &str) {
    assert_eq!(
        error.to_string(),
        format!("the TLS ClientHello is malformed: {what}")
    );
    assert_eq!(error.code(), Code::HelloInvalid);
}

#[test]
fn what_is_not_tls() {
    for input in [
        &b"SSH-2.0-x\r\n"[..],
        b"G",
        b"GET / HTTP/1.1\r\n",
        // SSL 2, an alert, application data, another major version.
        &[0x80, 0x2e, 1, 3, 1],
        &[21, 3, 1, 0, 2],
        &[23, 3, 3],
        &[22, 2],
        &[22, 4, 0],
        &[0],
    ] {
        assert_eq!(error(input), HelloError::NotTls, "{input:?}");
    }
    assert_eq!(read(&[22]), Ok(None));
    assert_eq!(read(&[22, 3]), Ok(None));
    assert_eq!(HelloError::NotTls.code().as_str(), "tunnel.not_tls");
    assert_eq!(
        Refusal::from(HelloError::NotTls).text(),
        "tunnel.not_tls: the tunnel does not begin with TLS; \
         speak TLS in the tunnel, or ask the operator for tls = \"opaque\""
    );
}

#[test]
fn records_that_do_not_hold_it() {
    assert_malformed(error(&[22, 3, 1, 0, 0]), "a record is empty");
    assert_malformed(
        error(&[22, 3, 1, 0x40, 1]),
        "a record is longer than 16 KiB",
    );
    let message = Parts::default().message();
    let (first, second) = message.split_at(20);
    for between in [&[22, 3, 1, 0, 0][..], &[20, 3, 3, 0, 1, 1], &[21], &[22, 2]] {
        let input = [&records(first, 20), between, &records(second, 16_384)].concat();
        let what = if between[..2.min(between.len())] == [22, 3] {
            "a record is empty"
        } else {
            "another record lies within it"
        };
        assert_malformed(error(&input), what);
    }
    // Another message of the handshake, before and behind.
    assert_malformed(of_message(&[2, 0, 0]), "it is another handshake message");
    let more = [&*message, &[20]].concat();
    assert_malformed(of_message(&more), "more follows in its record");
}

#[test]
fn bodies_that_end_early_or_late() {
    let body = Parts::default().body();
    for (length, what) in [
        (0, "it ends before its version"),
        (1, "it ends before its version"),
        (2, "it ends within its random bytes"),
        (33, "it ends within its random bytes"),
        (34, "it ends within its session id"),
        (66, "it ends within its session id"),
        (67, "it ends within its cipher suites"),
        (70, "it ends within its cipher suites"),
        (71, "it ends within its compression methods"),
        (72, "it ends within its compression methods"),
        (74, "it ends within its extensions"),
        (body.len() - 1, "it ends within its extensions"),
    ] {
        assert_malformed(of_message(&message(&body[..length])), what);
    }
    let more = [&*body, &[0]].concat();
    assert_malformed(of_message(&message(&more)), "more follows its extensions");
    // A ClientHello of TLS 1.2 may end before its extensions.
    assert_eq!(of_message(&message(&body[..73])), HelloError::NoName);
}

#[test]
fn parts_that_are_wrong() {
    let parts = Parts::default;
    for (parts, what) in [
        (
            Parts {
                version: [2, 0],
                ..parts()
            },
            "its version is not of TLS",
        ),
        (
            Parts {
                session: vec![0; 33],
                ..parts()
            },
            "its session id is too long",
        ),
        (
            Parts {
                suites: Vec::new(),
                ..parts()
            },
            "its cipher suites are no list of numbers",
        ),
        (
            Parts {
                suites: vec![1; 3],
                ..parts()
            },
            "its cipher suites are no list of numbers",
        ),
        (
            Parts {
                compression: Vec::new(),
                ..parts()
            },
            "it has no compression method",
        ),
    ] {
        assert_malformed(of(&parts), what);
    }
    // An extension longer than the list.
    let mut body = Parts::with(&[(21, &[0; 4])]).body();
    let length = body.len() - 5;
    body[length] = 5;
    assert_malformed(of_message(&message(&body)), "it ends within an extension");
}

#[test]
fn names_that_are_none_or_many() {
    const SHORT: &str = "it ends within its server name";
    let of = |data: &[u8]| of(&Parts::with(&[(0, data)]));
    assert_malformed(of(&[]), SHORT);
    assert_malformed(of(&[0]), SHORT);
    assert_malformed(of(&[0, 9, 0, 0, 1, b'a']), SHORT);
    assert_malformed(of(&[0, 4, 0, 0, 2, b'a']), SHORT);
    assert_malformed(of(&[0, 0]), "its list of server names is empty");
    assert_malformed(
        of(&server_name(&[(1, b"a.example")])),
        "its server name is of an unknown type",
    );
    let more = [&*server_name(&[(0, b"a.example")]), &[0]].concat();
    assert_malformed(of(&more), "more follows its server name");
    for names in [
        &[(0, &b"a.example"[..]), (0, b"b.example")][..],
        &[(0, b"a.example"), (0, b"a.example")],
        &[(0, b"a.example"), (1, b"b.example")],
    ] {
        assert_eq!(of(&server_name(names)), HelloError::SeveralNames);
    }
}

#[test]
fn names_that_are_no_hosts() {
    let of = |name: &[u8]| of(&Parts::with(&[(0, &server_name(&[(0, name)]))]));
    for (name, words) in [
        (
            &b""[..],
            "the TLS server name is refused: host `` is empty; name a host",
        ),
        (
            b"a b",
            "the TLS server name is refused: host `a b` contains ` `; letters, digits, `-`, `_` and `.` may stand in a host",
        ),
        (
            b"a.example:443",
            "the TLS server name is refused: host `a.example:443` contains `:`; letters, digits, `-`, `_` and `.` may stand in a host",
        ),
        (
            b"a.example\0.evil.test",
            "the TLS server name is refused: host `a.example\\0.evil.test` contains `\\0`; letters, digits, `-`, `_` and `.` may stand in a host",
        ),
        (
            b"a..example",
            "the TLS server name is refused: host `a..example` has a label that is empty or longer than 63 octets",
        ),
        (
            "bücher.example".as_bytes(),
            "the TLS server name is refused: host `bücher.example` contains `ü`; letters, digits, `-`, `_` and `.` may stand in a host",
        ),
        (
            b"2130706433",
            "the TLS server name is refused: host `2130706433` ends in a number but is not an IPv4 address; write four decimal numbers without leading zeros",
        ),
        (
            b"\xff",
            "the TLS ClientHello is malformed: its server name is not ASCII",
        ),
        (
            b"a.example.",
            "the TLS ClientHello is malformed: its server name ends in a dot",
        ),
        (b"192.0.2.1", "the TLS server name is an address"),
        (b"[2001:db8::1]", "the TLS server name is an address"),
    ] {
        let error = of(name);
        assert_eq!(
            (error.code(), &*error.to_string()),
            (Code::HelloInvalid, words)
        );
    }
}

#[test]
fn extensions_stand_once() {
    let name = server_name(&[(0, b"a.example")]);
    let twice = Parts::with(&[(0, &name), (43, &[]), (0, &name)]);
    assert_eq!(of(&twice), HelloError::Doubled(0));
    let noise = Parts::with(&[(0x0a0a, &[]), (0, &name), (0x1a1a, &[]), (0x0a0a, &[])]);
    assert_eq!(
        of(&noise).to_string(),
        "the TLS ClientHello has extension 2570 more than once"
    );
    assert_eq!(of(&noise).code(), Code::HelloInvalid);
}

#[test]
fn a_name_has_to_stand_in_the_clear() {
    for (extensions, error, words) in [
        (
            &[][..],
            HelloError::NoName,
            "the TLS ClientHello asks for no server name",
        ),
        (
            &[(43, &[2, 3, 4][..])],
            HelloError::NoName,
            "the TLS ClientHello asks for no server name",
        ),
        (
            &[(0xfe0d, &[0; 50])],
            HelloError::OnlyEncrypted,
            "the TLS ClientHello shows no server name, only an encrypted one",
        ),
    ] {
        let found = of(&Parts::with(extensions));
        assert_eq!(found, error);
        assert_eq!(
            (found.code().as_str(), &*found.to_string()),
            ("tunnel.sni_missing", words)
        );
    }
    let both = Parts::with(&[
        (0xfe0d, &[0; 50]),
        (0, &server_name(&[(0, b"outer.example")])),
    ]);
    assert_eq!(
        name(&records(&both.message(), 16_384)),
        Some(("outer.example".to_owned(), true))
    );
}
