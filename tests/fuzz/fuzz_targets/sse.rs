//! A stream holds the same events however it arrives: those that a plain reading of the specification finds.
#![no_main]

use bytes::{Bytes, BytesMut};
use libfuzzer_sys::fuzz_target;
use tollgate::mcp::sse::{Event, Parser, encode};
use tollgate_fuzz::cut;

/// The most bytes of an event.
const MOST: usize = 256;

fuzz_target!(|input: &[u8]| {
    let Some((document, pieces)) = cut(input) else {
        return;
    };
    let whole = fed([document].into_iter(), MOST);
    assert_eq!(fed(pieces.iter().copied(), MOST), whole);
    assert_eq!(fed(document.chunks(1), MOST), whole);
    let (events, is_refused) = whole;
    let expected = read(document);
    if is_refused {
        assert_eq!(events, expected[..events.len().min(expected.len())]);
        assert_eq!(fed(pieces.iter().copied(), usize::MAX).0, expected);
    } else {
        assert_eq!(events, expected);
    }
    check_run(document, &pieces, &expected);
    for event in &expected {
        check_encoded(&event.data);
    }
});

/// The events of `pieces`, and whether one was refused.
fn fed<'a>(pieces: impl Iterator<Item = &'a [u8]>, max: usize) -> (Vec<Event>, bool) {
    let (mut parser, mut events) = (Parser::new(max), Vec::new());
    for piece in pieces {
        parser.push(Bytes::copy_from_slice(piece));
        loop {
            match parser.next_event() {
                Ok(Some(event)) => events.push(event),
                Ok(None) => break,
                Err(_) => return (events, true),
            }
        }
        assert!(parser.pending() <= max.saturating_mul(2).saturating_add(16));
    }
    (events, false)
}

/// WHATWG HTML, section 9.2.6, with a look at each line.
fn read(document: &[u8]) -> Vec<Event> {
    let document = document.strip_prefix(b"\xef\xbb\xbf").unwrap_or(document);
    let (mut events, mut event, mut data) = (Vec::new(), Event::default(), None::<Vec<u8>>);
    let mut rest = document;
    while let Some(end) = rest.iter().position(|byte| b"\r\n".contains(byte)) {
        let line = &rest[..end];
        let ending = if rest[end..].starts_with(b"\r\n") {
            2
        } else {
            1
        };
        rest = &rest[end + ending..];
        if line.is_empty() {
            let found = std::mem::take(&mut event);
            if let Some(data) = data.take().map(Bytes::from) {
                events.push(Event { data, ..found });
            }
            continue;
        }
        let colon = line
            .iter()
            .position(|byte| *byte == b':')
            .unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match &line[..colon] {
            b"event" => event.name = Some(Bytes::copy_from_slice(value)),
            b"id" if !value.contains(&0) => event.id = Some(Bytes::copy_from_slice(value)),
            b"data" => {
                data = Some(match data {
                    None => value.to_vec(),
                    Some(before) => [&before, &b"\n"[..], value].concat(),
                });
            }
            _ => {}
        }
    }
    events
}

/// Events that are taken as they stand are the same events.
fn check_run(document: &[u8], pieces: &[&[u8]], expected: &[Event]) {
    let (mut parser, mut events) = (Parser::new(usize::MAX), Vec::new());
    let takes = |data: &[u8]| data.len().is_multiple_of(2);
    for piece in pieces {
        parser.push(Bytes::copy_from_slice(piece));
        loop {
            let run = parser.run(takes).expect("it is large enough");
            let taken = read(&run);
            assert!(
                taken
                    .iter()
                    .all(|event| event.is_message() && event.id.is_none() && takes(&event.data))
            );
            assert!(document.windows(run.len().max(1)).any(|part| part == run) || run.is_empty());
            events.extend(taken);
            match parser.next_event().expect("it is large enough") {
                Some(event) => events.push(event),
                None => break,
            }
        }
    }
    assert_eq!(events, expected);
}

/// What is written comes back, with line feeds for carriage returns.
fn check_encoded(data: &[u8]) {
    let mut out = BytesMut::new();
    encode(&mut out, &[data]);
    let expected = Event {
        name: Some(Bytes::from_static(b"message")),
        data: Bytes::copy_from_slice(data),
        id: None,
    };
    assert_eq!(
        fed([&*out].into_iter(), usize::MAX),
        (vec![expected], false)
    );
}
