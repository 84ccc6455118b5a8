//! A request head says the same however it arrives, leaves what follows it alone, and means the same to the next proxy.
#![no_main]

use bytes::BytesMut;
use http::header::{
    CONNECTION, CONTENT_LENGTH, HOST, HeaderName, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE,
    TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use libfuzzer_sys::fuzz_target;
use tollgate::tunnel::{Body, Head, HeadError, Heads};
use tollgate_fuzz::cut;

fuzz_target!(|input: &[u8]| {
    let Some((document, pieces)) = cut(input) else {
        return;
    };
    let (whole, rest) = fed([document].into_iter());
    let (cut, cut_rest) = fed(pieces.into_iter());
    let (bytes, bytes_rest) = fed(document.chunks(1));
    let shown = show(&whole);
    assert_eq!(shown, show(&cut));
    assert_eq!(shown, show(&bytes));
    if let Some(Ok(head)) = whole {
        assert!(document.ends_with(&rest));
        assert_eq!((&rest, &rest), (&cut_rest, &bytes_rest));
        check(&head, &document[..document.len() - rest.len()]);
    }
});

/// What a reader takes.
const MAX_FIELDS: usize = 100;
const MAX_LINE: usize = 16 * 1024;
/// Lines that [`written`] may add: host, length or coding, connection, upgrade.
const OWN_LINES: usize = 4;

type Read = Option<Result<Head, HeadError>>;

/// The first head of `pieces`, and what is left once they have all come.
fn fed<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Read, BytesMut) {
    let (mut heads, mut input, mut read) = (Heads::default(), BytesMut::new(), None);
    for piece in pieces {
        input.extend_from_slice(piece);
        if read.is_none() {
            read = heads.next(&mut input).transpose();
        }
    }
    (read, input)
}

fn show(read: &Read) -> Option<Result<String, String>> {
    read.as_ref().map(|read| match read {
        Ok(head) => Ok(text(head)),
        Err(error) => Err(error.to_string()),
    })
}

/// Everything that a head says.
fn text(head: &Head) -> String {
    let fields = head
        .headers
        .iter()
        .map(|(name, value)| (name, value.as_bytes()));
    let fields: Vec<_> = fields.collect();
    let secret = head.authorization.as_ref().map(|value| value.as_bytes());
    format!(
        "{head:?} {:?} {fields:?} {secret:?} {}",
        head.path,
        head.check_host().is_ok()
    )
}

fn check(head: &Head, bytes: &[u8]) {
    check_bytes(bytes);
    let own = [
        "keep-alive",
        "proxy-connection",
        "proxy-authentication-info",
        "http2-settings",
    ];
    let own = own.map(HeaderName::from_static);
    let hop = [
        CONNECTION,
        CONTENT_LENGTH,
        HOST,
        PROXY_AUTHENTICATE,
        PROXY_AUTHORIZATION,
        TE,
        TRAILER,
        TRANSFER_ENCODING,
        UPGRADE,
    ];
    for name in own.iter().chain(&hop) {
        assert!(!head.headers.contains_key(name), "{name} is forwarded");
    }
    assert_eq!(head.path.is_none(), head.method == "CONNECT");
    assert!(
        head.path
            .as_ref()
            .is_none_or(|path| path.starts_with('/') || path == "*")
    );
    let written = written(head);
    let again = match Heads::default().next(&mut BytesMut::from(&*written)) {
        Ok(Some(again)) => again,
        // What came with as much as fits may not fit beside the lines that a proxy writes itself.
        Err(HeadError::ManyFields) if head.headers.len() > MAX_FIELDS - OWN_LINES => return,
        Err(HeadError::LongHead | HeadError::LongLine) if written.len() > MAX_LINE => return,
        other => panic!("it is not accepted again: {other:?}"),
    };
    assert!(again.authorization.is_none() && again.check_host().is_ok());
    let same = |head: &Head| {
        // Those of one name keep their order; the names have none.
        let mut fields: Vec<_> = head.headers.iter().collect();
        fields.sort_by_key(|(name, _)| name.as_str());
        // A field of this name is told from the option where `Connection` stands in HTTP/1.1 only.
        fields.retain(|(name, _)| *name != "close");
        let fields = format!("{fields:?}");
        (
            head.method.clone(),
            head.target.clone(),
            head.path.clone(),
            head.body,
            head.websocket,
            head.persists,
            fields,
        )
    };
    assert_eq!(same(head), same(&again));
}

/// What no reader may be in doubt about, looked for in another way.
fn check_bytes(bytes: &[u8]) {
    let text: String = bytes.iter().map(|byte| char::from(*byte)).collect();
    let text = text
        .strip_suffix("\r\n\r\n")
        .expect("an empty line at the end");
    let lines: Vec<&str> = text.split("\r\n").collect();
    assert!(
        lines
            .iter()
            .all(|line| !line.is_empty() && !line.contains(['\r', '\n', '\0']))
    );
    let count = |name: &str| {
        let named = |line: &&&str| {
            line.split(':')
                .next()
                .is_some_and(|found| found.eq_ignore_ascii_case(name))
        };
        lines[1..].iter().filter(named).count()
    };
    assert!(lines[1..].iter().all(|line| !line.starts_with([' ', '\t'])));
    assert!(count("host") == 1 || count("host") == 0 && lines[0].ends_with("HTTP/1.0"));
    assert!(count("content-length") + count("transfer-encoding") <= 1);
}

/// Writes a head as it goes to the next proxy.
fn written(head: &Head) -> Vec<u8> {
    let authority = head.target.authority();
    let line = match head.path.as_deref() {
        None => format!("CONNECT {}:{}", head.target.host(), head.target.port()),
        Some("*") => format!("OPTIONS http://{authority}"),
        Some(path) => format!("{} http://{authority}{path}", head.method),
    };
    let mut text = format!("{line} HTTP/1.1\r\nhost: {authority}\r\n");
    match head.body {
        Body::None => {}
        Body::Length(length) => text += &format!("content-length: {length}\r\n"),
        Body::Chunked => text += "transfer-encoding: chunked\r\n",
    }
    match (head.websocket, head.persists) {
        (true, true) => text += "connection: upgrade\r\n",
        (true, false) => text += "connection: upgrade, close\r\n",
        (false, true) => {}
        (false, false) => text += "connection: close\r\n",
    }
    if head.websocket {
        text += "upgrade: websocket\r\n";
    }
    let mut bytes = text.into_bytes();
    for (name, value) in &head.headers {
        bytes.extend([name.as_str().as_bytes(), b":", value.as_bytes(), b"\r\n"].concat());
    }
    bytes.extend(b"\r\n");
    bytes
}
