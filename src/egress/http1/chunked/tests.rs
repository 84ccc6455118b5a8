use proptest::prelude::*;

use super::*;

/// What `parts` are decoded to as they arrive, what is left behind the body, and whether it ended.
fn decoded<'a>(
    parts: impl IntoIterator<Item = &'a [u8]>,
) -> Result<(String, String, bool), String> {
    let (mut chunked, mut input, mut data) = (Chunked::default(), BytesMut::new(), Vec::new());
    // After all of them, a fault is told that came behind data.
    for part in parts.into_iter().chain([&b""[..]]) {
        input.extend_from_slice(part);
        let piece = chunked.decode(&mut input);
        data.extend_from_slice(&piece.map_err(|fault| fault.to_string())?);
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((text(&data), text(&input), chunked.is_ended()))
}

fn whole(text: &str) -> Result<(String, String, bool), String> {
    decoded([text.as_bytes()])
}

#[test]
fn chunks_become_one_piece_and_nothing_behind_them_is_touched() {
    for (text, data, rest, ended) in [
        ("2\r\nok\r\n0\r\n\r\n", "ok", "", true),
        (
            "2\r\nok\r\n3\r\n !!\r\n0\r\n\r\nHTTP",
            "ok !!",
            "HTTP",
            true,
        ),
        ("A\r\n0123456789\r\n", "0123456789", "", false),
        (
            "0000000000000002\r\nok\r\n0\r\nx: y\r\n\r\n",
            "ok",
            "",
            true,
        ),
        (
            "2;a=b\r\nok\r\n2 \t;c\r\nok\r\n2  \r\nok\r\n",
            "okokok",
            "",
            false,
        ),
        ("5\r\nok", "ok", "", false),
        ("2\r\nok\r\n1", "ok", "1", false),
        ("2\r\nok\r", "ok", "\r", false),
        ("0\r\n", "", "", false),
        ("", "", "", false),
    ] {
        let expected = (data.to_owned(), rest.to_owned(), ended);
        assert_eq!(whole(text), Ok(expected), "{text:?}");
    }
}

#[test]
fn what_two_readers_could_read_differently_is_refused() {
    const SIZE: &str = "the chunks are malformed: a size is no hexadecimal number";
    const LINE: &str = "the chunks are malformed: a line does not end in CRLF";
    const LONGER: &str = "the chunks are malformed: a chunk is longer than its size";
    for (text, fault) in [
        ("2\nok\r\n", LINE),
        ("2\r\nok\n0\r\n\r\n", LINE),
        ("2\r\r\nok", LINE),
        ("2;a\rb\r\nok", LINE),
        ("0\r\n\n", LINE),
        ("0\r\nx: y\n\r\n", LINE),
        ("2\r\nokay\r\n", LONGER),
        ("\r\n", SIZE),
        ("0x2\r\nok", SIZE),
        ("+2\r\nok", SIZE),
        ("-2\r\nok", SIZE),
        (" 2\r\nok", SIZE),
        ("2 2\r\nok", SIZE),
        ("2,2\r\nok", SIZE),
        ("g\r\n", SIZE),
        ("00000000000000002\r\nok", SIZE),
        ("10000000000000002\r\nok", SIZE),
    ] {
        assert_eq!(whole(text), Err(fault.to_owned()), "{text:?}");
    }
    // The largest size there is.
    let huge = whole("ffffffffffffffff\r\nok");
    assert_eq!(huge, Ok(("ok".to_owned(), String::new(), false)));
}

#[test]
fn what_came_before_a_fault_comes_before_it() {
    let mut chunked = Chunked::default();
    let mut input = BytesMut::from("2\r\nok\r\n2\r\n!!\r\nx\r\n");
    assert_eq!(
        chunked.decode(&mut input).ok().as_deref(),
        Some(&b"ok!!"[..])
    );
    for _ in 0..2 {
        assert!(chunked.decode(&mut input).is_err());
    }
}

#[test]
fn what_stands_beside_the_data_is_bounded() {
    let much = "the chunks are malformed: too much stands beside the data".to_owned();
    let long = "the chunks are malformed: a line is too long".to_owned();
    let line = "x".repeat(MAX_LINE);
    for (text, fault) in [
        (format!("1;{line}"), &long),
        (format!("0\r\n{line}"), &long),
        (format!("1;{}\r\na\r\n", &line[..4000]).repeat(5), &much),
        (
            format!("0\r\n{}", format!("{}\r\n", &line[..4000]).repeat(5)),
            &much,
        ),
    ] {
        assert_eq!(whole(&text), Err(fault.clone()), "{}", &text[..8]);
    }
    let fits = format!("1;{}\r\na\r\n", &line[..4000]).repeat(4);
    assert_eq!(whole(&fits), Ok(("aaaa".to_owned(), String::new(), false)));
    let padded = "5     \r\ndata!\r\n".repeat(10_000);
    let data = "data!".repeat(10_000);
    assert_eq!(whole(&padded), Ok((data, String::new(), false)));
}

proptest! {
    /// However a body is cut into chunks, and the chunks into reads, it stays the same.
    #[test]
    fn no_cut_matters(
        chunks in prop::collection::vec("[a-z\r\n0-9]{1,40}", 0..12),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let mut wire: Vec<u8> = Vec::new();
        for chunk in &chunks {
            wire.extend(format!("{:X}\r\n{chunk}\r\n", chunk.len()).bytes());
        }
        wire.extend(b"0\r\n\r\nnext");
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(wire.len())).collect();
        cuts.extend([0, wire.len()]);
        cuts.sort_unstable();
        let parts = cuts.windows(2).map(|cut| &wire[cut[0]..cut[1]]);
        prop_assert_eq!(decoded(parts), Ok((chunks.concat(), "next".to_owned(), true)));
    }

    /// Whatever comes, it is refused or read, and never more data comes out than went in.
    #[test]
    fn nothing_panics(bytes in prop::collection::vec(prop::sample::select(&b"0123afx; \t\r\n"[..]), 0..64)) {
        if let Ok((data, rest, _)) = decoded([&bytes[..]]) {
            prop_assert!(data.len() + rest.len() <= bytes.len());
        }
    }
}
