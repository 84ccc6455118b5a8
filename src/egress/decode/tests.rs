use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};

use super::*;

const TEXT: &str = "hello hello hello, tollgate\n";
const BROTLI: &str = "8b0d8068656c6c6f2068656c6c6f2068656c6c6f2c20746f6c6c676174650a03";
/// Ten mebibytes of zeros.
const BROTLI_BOMB: &str = "cbffff3ff82700e2b14020f7fe2fffff3ff04f00c4611180eefd07";
/// `data: one\n\n`, flushed, the stream left open.
const BROTLI_OPEN: &str = "0b0580646174613a206f6e650a0a";
/// With a checksum, as the reference encoder writes it.
const ZSTD: &str = "28b52ffd0468bd00008868656c6c6f202c20746f6c6c676174650a0100314a11c752a705";

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
        .collect()
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn decoder(coding: &str, cap: usize) -> Decoder {
    let values = [coding.as_bytes()].into_iter();
    Decoder::of(values, cap).unwrap().unwrap()
}

fn all(coding: &str, input: &[u8], step: usize, cap: usize) -> Result<Vec<u8>, DecodeError> {
    let mut decoder = decoder(coding, cap);
    let mut out = Vec::new();
    for piece in input.chunks(step) {
        out.extend(decoder.push(piece)?);
    }
    out.extend(decoder.finish()?);
    Ok(out)
}

#[test]
fn each_coding_is_decoded_whole_and_byte_by_byte() {
    for (coding, input) in [
        ("gzip", gzip(TEXT.as_bytes())),
        ("X-GZIP", gzip(TEXT.as_bytes())),
        ("br", bytes(BROTLI)),
        ("zstd", bytes(ZSTD)),
    ] {
        for step in [1, 7, 4096] {
            let out = all(coding, &input, step, 1024).unwrap();
            assert_eq!(
                String::from_utf8(out).unwrap(),
                TEXT,
                "{coding} in steps of {step}"
            );
        }
    }
}

#[test]
fn a_stream_cut_short_is_an_error() {
    for (coding, input) in [
        ("gzip", gzip(TEXT.as_bytes())),
        ("br", bytes(BROTLI)),
        ("zstd", bytes(ZSTD)),
    ] {
        for length in 0..input.len() {
            if coding == "gzip" && length == 0 {
                continue;
            }
            let result = all(coding, &input[..length], 4096, 1024);
            if length == 0 && coding == "zstd" {
                assert!(result.unwrap().is_empty());
                continue;
            }
            assert!(
                matches!(result, Err(DecodeError::Bad(_))),
                "{coding} cut at {length}: {result:?}"
            );
        }
    }
}

#[test]
fn junk_is_an_error() {
    for coding in ["gzip", "br", "zstd"] {
        let result = all(coding, &[0xff; 64], 16, 1024);
        assert!(
            matches!(result, Err(DecodeError::Bad(_))),
            "{coding}: {result:?}"
        );
    }
}

#[test]
fn junk_after_the_end_is_an_error() {
    for (coding, mut input) in [
        ("gzip", gzip(TEXT.as_bytes())),
        ("br", bytes(BROTLI)),
        ("zstd", bytes(ZSTD)),
    ] {
        input.extend_from_slice(b"<html>trailing</html>");
        let result = all(coding, &input, 4096, 1024);
        assert!(
            matches!(result, Err(DecodeError::Bad(_))),
            "{coding}: {result:?}"
        );
    }
}

#[test]
fn a_bomb_stops_at_the_cap() {
    let zeros = vec![0; 10 << 20];
    let zstd =
        ruzstd::encoding::compress_to_vec(&zeros[..], ruzstd::encoding::CompressionLevel::Fastest);
    for (coding, input) in [
        ("gzip", gzip(&zeros)),
        ("br", bytes(BROTLI_BOMB)),
        ("zstd", zstd),
    ] {
        let result = all(coding, &input, 4096, 1 << 20);
        assert!(
            matches!(result, Err(DecodeError::TooLarge)),
            "{coding}: {result:?}"
        );
        assert_eq!(
            all(coding, &input, 4096, 10 << 20).unwrap().len(),
            10 << 20,
            "{coding}"
        );
    }
}

#[test]
fn members_and_frames_follow_one_another() {
    let mut input = gzip(b"one,");
    input.extend(gzip(b"two"));
    assert_eq!(all("gzip", &input, 5, 1024).unwrap(), b"one,two");
    let mut input = bytes(ZSTD);
    input.extend(bytes(ZSTD));
    assert_eq!(
        all("zstd", &input, 5, 1024).unwrap(),
        TEXT.repeat(2).as_bytes()
    );
}

#[test]
fn what_was_flushed_comes_out_at_once() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(b"data: one\n\n").unwrap();
    encoder.flush().unwrap();
    let mut gzip = decoder("gzip", 1024);
    assert_eq!(gzip.push(encoder.get_ref()).unwrap(), b"data: one\n\n");
    let mut brotli = decoder("br", 1024);
    assert_eq!(brotli.push(&bytes(BROTLI_OPEN)).unwrap(), b"data: one\n\n");
}

#[test]
fn other_and_stacked_codings_are_named_and_refused() {
    let of = |values: &[&str]| {
        let values = values.iter().map(|value| value.as_bytes());
        Decoder::of(values, 1).map(|decoder| decoder.is_some())
    };
    assert_eq!(of(&[]), Ok(false));
    assert_eq!(of(&["identity"]), Ok(false));
    assert_eq!(of(&["deflate"]), Err("deflate".to_owned()));
    assert_eq!(of(&["gzip, br"]), Err("gzip, br".to_owned()));
    assert_eq!(of(&["gzip", "br"]), Err("gzip, …".to_owned()));
    assert_eq!(of(&[&"x".repeat(100)]), Err("x".repeat(64)));
}
