use std::sync::Arc;

use proptest::prelude::*;

use super::*;

fn parse(chunks: &[&[u8]]) -> Vec<Event> {
    let mut parser = Parser::new(1 << 16);
    let mut events = Vec::new();
    for chunk in chunks {
        parser.push(Bytes::copy_from_slice(chunk));
        while let Some(event) = parser.next_event().expect("small events") {
            events.push(event);
        }
    }
    events
}

fn event(name: Option<&'static str>, data: &'static str, id: Option<&'static str>) -> Event {
    Event {
        name: name.map(Bytes::from),
        data: Bytes::from(data),
        id: id.map(Bytes::from),
    }
}

const STREAM: &[u8] = b"\xef\xbb\xbf: hello\r\n\r\nevent: message\r\ndata: {\"a\":\r\ndata: 1}\r\nid: 7\r\n\r\n\
retry: 250\rdata:x\r\r:\n\nevent: ping\n\nid: only\n\ndata\n\ndata: y\nunknown: z\n\n\ndata:  two\n\ndata: cut off";

fn stream_events() -> Vec<Event> {
    vec![
        event(Some("message"), "{\"a\":\n1}", Some("7")),
        event(None, "x", None),
        event(None, "", None),
        event(None, "y", None),
        event(None, " two", None),
    ]
}

#[test]
fn every_line_ending_and_field_is_understood() {
    assert_eq!(parse(&[STREAM]), stream_events());
    let mut parser = Parser::new(100);
    parser.push(Bytes::from_static(
        b"retry: 250\nretry: 1x\nid: a\0b\nevent: m\ndata: 1\n\n",
    ));
    let first = parser.next_event().expect("small").expect("whole");
    assert_eq!(
        (parser.retry(), first.id.clone(), first.is_message()),
        (Some(250), None, false)
    );
    parser.push(Bytes::from_static(
        b"data: 1
",
    ));
    assert_eq!(parser.next_event(), Ok(None));
}

#[test]
fn chunks_may_be_cut_anywhere() {
    for cut in 0..=STREAM.len() {
        let (left, right) = STREAM.split_at(cut);
        assert_eq!(parse(&[left, right]), stream_events(), "cut at {cut}");
    }
    let bytes: Vec<&[u8]> = STREAM.chunks(1).collect();
    assert_eq!(parse(&bytes), stream_events());
}

#[test]
fn an_event_within_one_chunk_is_not_copied() {
    let chunk = Bytes::from_static(b"event: message\ndata: {\"jsonrpc\":\"2.0\"}\n\n");
    let mut parser = Parser::new(1000);
    parser.push(chunk.clone());
    let event = parser.next_event().expect("small").expect("whole");
    assert_eq!(event.data.as_ptr(), chunk[21..].as_ptr());
}

#[test]
fn large_events_are_refused_however_they_come() {
    let refused = |chunks: &[&[u8]]| {
        let mut parser = Parser::new(100);
        chunks.iter().find_map(|chunk| {
            parser.push(Bytes::copy_from_slice(chunk));
            loop {
                match parser.next_event() {
                    Ok(Some(_)) => {}
                    Ok(None) => return None,
                    Err(refusal) => return Some(refusal.code),
                }
            }
        })
    };
    let long = [b"data: ".as_slice(), &[b'x'; 101]].concat();
    let lines = b"data: 0123456789\n".repeat(10);
    let endless = vec![b"data: x\n".as_slice(); 200];
    let fits = [b"data: ".as_slice(), &[b'x'; 99], b"\n\n"].concat();
    assert_eq!(refused(&[&long]), Some(Code::UpstreamEventTooLarge));
    assert_eq!(refused(&[&lines]), Some(Code::UpstreamEventTooLarge));
    assert_eq!(refused(&endless), Some(Code::UpstreamEventTooLarge));
    assert_eq!(
        refused(&vec![b"xxxxxxxxxx".as_slice(); 20]),
        Some(Code::UpstreamEventTooLarge)
    );
    assert_eq!(refused(&vec![fits.as_slice(); 50]), None);
    assert_eq!(refused(&vec![b": comment\n".as_slice(); 500]), None);
}

#[test]
fn encoded_events_are_one_event_each() {
    assert_eq!(&frame(b"{}")[..], b"event: message\ndata: {}\n\n");
    assert_eq!(
        &frame(b"{\n\"a\":1\r\n}")[..],
        b"event: message\ndata: {\ndata: \"a\":1\ndata: }\n\n"
    );
    let mut out = BytesMut::new();
    encode(&mut out, &["{\"id\":", "7\r", "\n}"]);
    assert_eq!(&out[..], b"event: message\ndata: {\"id\":7\ndata: }\n\n");
}

proptest! {
    #[test]
    fn what_is_encoded_comes_back(data in "[ -~\n\u{e9}]{0,60}", cuts in proptest::collection::vec(0usize..90, 0..4)) {
        let bytes = frame(data.as_bytes());
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        let events = parse(&chunks);
        prop_assert_eq!(events.len(), 1);
        prop_assert_eq!(&events[0].data[..], data.as_bytes());
    }

    #[test]
    fn borders_of_chunks_do_not_matter(text in "(data: ?|event|id|:|\r|\n|\r\n|x| ){0,40}", cut in 0usize..120) {
        let (left, right) = text.as_bytes().split_at(cut.min(text.len()));
        prop_assert_eq!(parse(&[left, right]), parse(&[text.as_bytes()]));
    }

    /// A byte at a time, no event is ever seen whole.
    #[test]
    fn events_seen_whole_are_read_as_any_other(text in "(event: message\n|data: |\n\n|id: 1\n|event: x\n|data|:|\r|\n|x|abcd){0,24}", max in 0usize..12) {
        let read = |chunks: Vec<&[u8]>| {
            let (mut parser, mut events) = (Parser::new(max), Vec::new());
            for chunk in chunks {
                parser.push(Bytes::copy_from_slice(chunk));
                loop {
                    match parser.next_event() {
                        Ok(Some(event)) => events.push(event),
                        Ok(None) => break,
                        Err(refusal) => return (events, Some(refusal.code)),
                    }
                }
            }
            (events, None)
        };
        let text = format!(":\n\n{text}");
        prop_assert_eq!(read(vec![text.as_bytes()]), read(text.as_bytes().chunks(1).collect()));
    }
}

#[test]
fn a_run_is_taken_as_it_stands() {
    let ours = "event: message\ndata: 1\n\nevent: message\ndata: 1\n\n";
    for other in [
        "event: message\ndata: 2\n\n",
        "data: 1\n\n",
        "event: message\r\ndata: 1\r\n\r\n",
        "event: message\nid: 1\ndata: 1\n\n",
        "event: message\ndata: 1\ndata: 1\n\n",
        "event: message\ndata: 1\n",
        "event: other\ndata: 1\n\n",
        ":\n\n",
    ] {
        let mut parser = Parser::new(9);
        parser.push(format!("data: 0\n\n{ours}{other}").into());
        assert_eq!(parser.next_event(), Ok(Some(event(None, "0", None))));
        let run = parser.run(|data| data == b"1").expect("small events");
        assert_eq!(run, ours, "{other:?}");
        assert_eq!(parser.run(|data| data == b"1"), Ok(Bytes::new()));
        parser.push("\n\nevent: message\ndata: end\n\n".into());
        let mut last = None;
        while let Ok(Some(event)) = parser.next_event() {
            last = Some(event.data);
        }
        assert_eq!(last, Some("end".into()), "{other:?}");
    }
    let mut parser = Parser::new(9);
    parser.push("data: 0\n\nevent: message\ndata: 123456789\n\n".into());
    parser.next_event().expect("a small event");
    assert!(parser.run(|_| true).is_err());
}

/// Whoever counts what is held counts what has begun, not the chunks that it came in.
#[test]
fn an_event_that_has_begun_keeps_no_chunk() {
    let mut parser = Parser::new(1 << 20);
    for begun in ["data: d\n", "id: 7\n", "event: e\n", "data: more\nx", "y\n"] {
        let owner = Arc::new(begun.to_owned());
        parser.push(Bytes::from_owner(Owner(owner.clone())));
        assert_eq!(parser.next_event(), Ok(None));
        assert_eq!(Arc::strong_count(&owner), 1, "{begun}");
    }
    parser.push(Bytes::from_static(b"\n"));
    let event = parser.next_event().unwrap().unwrap();
    assert_eq!(event.data, "d\nmore");
    assert_eq!((event.id, event.name), (Some("7".into()), Some("e".into())));
}

struct Owner(Arc<String>);

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}
