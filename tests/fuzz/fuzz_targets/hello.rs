//! A ClientHello says the same however it arrives, and rustls reads the same name in it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rustls::server::Acceptor;
use tollgate::{
    address::Host,
    tunnel::{Hello, HelloError, HelloReader},
};
use tollgate_fuzz::cut;

fuzz_target!(|input: &[u8]| {
    let Some((document, pieces)) = cut(input) else {
        return;
    };
    let whole = HelloReader::default().read(document);
    assert_eq!(fed(document, pieces.iter().map(|piece| piece.len())), whole);
    assert_eq!(fed(document, document.iter().map(|_| 1)), whole);
    match &whole {
        Ok(None) => check_bounded(document),
        Ok(Some(hello)) => {
            let lengths = pieces.iter().map(|piece| piece.len());
            check_accepted(document, hello, lengths.max().unwrap_or(1));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});

/// What comes of `document` when it arrives in pieces of these lengths.
fn fed(document: &[u8], lengths: impl Iterator<Item = usize>) -> Result<Option<Hello>, HelloError> {
    let (mut reader, mut end) = (HelloReader::default(), 0);
    for length in lengths {
        end += length;
        match reader.read(&document[..end]) {
            Ok(None) => {}
            result => return result,
        }
    }
    Ok(None)
}

/// Whatever follows, something is decided within 32 KiB.
fn check_bounded(document: &[u8]) {
    let mut longer = document.to_vec();
    longer.resize(32 * 1024, 1);
    assert_ne!(HelloReader::default().read(&longer), Ok(None));
}

fn check_accepted(document: &[u8], hello: &Hello, length: usize) {
    let host = Host::from_url(hello.name.as_str()).expect("a name");
    assert_eq!(hello.check(&host), Ok(()));
    let other = Host::from_url("other.invalid").expect("a name");
    assert_eq!(hello.check(&other).is_ok(), other == host);
    // In records of another length, as long as there are not too many of them.
    let message = message(document);
    let again: Vec<u8> = message.chunks(length).flat_map(record).collect();
    if again.len() < 32 * 1024 {
        assert_eq!(
            HelloReader::default().read(&again).as_ref(),
            Ok(&Some(hello.clone()))
        );
    }
    check_rustls(document, hello);
}

/// The payloads of the records up to the end of the message.
fn message(document: &[u8]) -> Vec<u8> {
    let (mut message, mut rest) = (Vec::new(), document);
    while let [22, 3, _, high, low, after @ ..] = rest {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let (payload, next) = after.split_at(length.min(after.len()));
        message.extend_from_slice(payload);
        rest = next;
        let [_, high, middle, low, body @ ..] = &*message else {
            continue;
        };
        if body.len() >= u32::from_be_bytes([0, *high, *middle, *low]) as usize {
            break;
        }
    }
    message
}

fn record(payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len())
        .expect("it is short")
        .to_be_bytes();
    [&[22, 3, 1][..], &length, payload].concat()
}

/// A server that can read it is asked for the same name.
fn check_rustls(document: &[u8], hello: &Hello) {
    let (mut acceptor, mut rest) = (Acceptor::default(), document);
    while !rest.is_empty() {
        if !acceptor.read_tls(&mut rest).is_ok_and(|read| read > 0) {
            return;
        }
        match acceptor.accept() {
            Ok(Some(accepted)) => {
                if let Some(name) = accepted.client_hello().server_name() {
                    assert!(name.eq_ignore_ascii_case(hello.name.as_str()));
                }
                return;
            }
            Ok(None) => {}
            Err(_) => return,
        }
    }
}
