//! What holds for every head.

use proptest::{collection::vec, prelude::*, sample::select};

use super::*;

/// What of a request's head, or the words of its refusal, comes of `pieces` one after another; and how much is left.
fn fed<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Option<Result<String, String>>, usize) {
    let (mut heads, mut input, mut result) = (Heads::default(), BytesMut::new(), None);
    for piece in pieces {
        input.extend_from_slice(piece);
        if result.is_none() {
            let next = heads.next(&mut input).map(|head| head.as_ref().map(shown));
            result = next.map_err(|error| error.to_string()).transpose();
        }
    }
    (result, input.len())
}

/// Writes a head as it goes to the next proxy.
fn written(head: &Head) -> Vec<u8> {
    let authority = head.target.authority();
    let mut text = match &head.path {
        None => format!("CONNECT {}:{}", head.target.host(), head.target.port()),
        Some(path) if path == "*" => format!("OPTIONS http://{authority}"),
        Some(path) => format!("{} http://{authority}{path}", head.method),
    };
    text += &format!(" HTTP/1.1\r\nhost: {authority}\r\n");
    text += match head.body {
        Body::None => "",
        Body::Length(_) => "content-length: ",
        Body::Chunked => "transfer-encoding: chunked\r\n",
    };
    if let Body::Length(length) = head.body {
        text += &format!("{length}\r\n");
    }
    text += if head.websocket {
        "upgrade: websocket\r\nconnection: upgrade\r\n"
    } else {
        ""
    };
    text += if head.persists {
        ""
    } else {
        "connection: close\r\n"
    };
    let mut bytes = text.into_bytes();
    for (name, value) in &head.headers {
        bytes.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    bytes.extend(b"\r\n");
    bytes
}

/// Heads that are nearly right, or right.
fn head() -> impl Strategy<Value = Vec<u8>> {
    let line = select(vec![
        "GET http://a.example/ HTTP/1.1",
        "GET http://a.example:80/x?y HTTP/1.0",
        "POST http://A.example?z HTTP/1.1",
        "OPTIONS http://a.example HTTP/1.1",
        "CONNECT a.example:443 HTTP/1.1",
        "CONNECT a.example:80 HTTP/1.0",
        "GET / HTTP/1.1",
        "TRACE http://a.example/ HTTP/1.1",
    ]);
    let field = select(vec![
        "Host: a.example",
        "host:A.EXAMPLE. ",
        "Host: b.example",
        "Content-Length: 5",
        "Content-Length: 0",
        "Transfer-Encoding: chunked",
        "Transfer-Encoding: gzip",
        "Connection: close",
        "Connection: upgrade, x-a",
        "Connection: Host",
        "Upgrade: websocket",
        "Upgrade: h2c",
        "X-A: 1",
        "X-B:\t2 3 ",
        "X-C: \u{e9}",
        "Proxy-Authorization: Basic eDp5",
        " folded",
        "spaced : 1",
        "",
    ]);
    let end = select(vec![
        "\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\n", "\r",
    ]);
    (line, vec((field, end), 0..6)).prop_map(|(line, fields)| {
        let host = if line.ends_with('1') {
            "Host: a.example\r\n"
        } else {
            ""
        };
        let fields: String = fields
            .into_iter()
            .flat_map(|(field, end)| [field, end])
            .collect();
        format!("{line}\r\n{host}{fields}\r\nrest").into_bytes()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn pieces_make_no_difference(head in head(), cuts in vec(1_usize..40, 0..40)) {
        let (mut rest, mut pieces) = (&*head, Vec::new());
        for cut in cuts {
            let (piece, others) = rest.split_at(cut.min(rest.len()));
            pieces.push(piece);
            rest = others;
        }
        pieces.push(rest);
        let whole = fed([&*head]);
        let (result, left) = fed(pieces);
        prop_assert_eq!(&result, &whole.0);
        if matches!(result, Some(Ok(_))) {
            prop_assert_eq!(left, whole.1);
        }
        prop_assert_eq!(fed(head.chunks(1)).0, whole.0);
    }

    #[test]
    fn what_is_accepted_means_the_same_when_it_is_written_again(head in head()) {
        if let Ok(Some(head)) = Heads::default().next(&mut BytesMut::from(&*head)) {
            let again = Heads::default().next(&mut BytesMut::from(&*written(&head)));
            let again = again.expect("it is accepted again").expect("it is whole");
            prop_assert_eq!(shown(&again), shown(&head));
            prop_assert!(again.authorization.is_none());
        }
    }

    #[test]
    fn nothing_panics(bytes in vec(any::<u8>(), 0..300)) {
        let _ = fed([&*bytes]);
        let _ = fed([b"GET http://a.example/ HTTP/1.1\r\n", &*bytes, b"\r\n\r\n"]);
    }

    #[test]
    fn no_change_of_a_head_panics(mut head in head(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let at = at.index(head.len());
        head[at] = byte;
        prop_assert_eq!(fed([&*head]).0, fed(head.chunks(7)).0);
    }
}

#[test]
fn a_long_head_in_small_pieces_is_searched_once() {
    let mut heads = Heads::default();
    let mut input = BytesMut::from("GET http://a.example/ HTTP/1.1\r\n");
    while input.len() < 60_000 {
        assert!(heads.next(&mut input).unwrap().is_none());
        assert_eq!(heads.searched, input.len());
        input.extend_from_slice(b"x");
    }
}
