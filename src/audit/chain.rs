//! The chain: each record names the hash of the one before it.
//!
//! How to verify a line in any language: let `line` be its bytes without the newline. It ends in
//! `,"prev":"P","hash":"H"}`, P and H being 64 lower-case hexadecimal digits. Cut `,"hash":"H"` out; what is left is the
//! canonical record. H is SHA-256 over the 64 ASCII digits of P followed by the canonical record. P is the H of the line
//! before, in the same file or the one before it; of the record with `"seq":1` it is 64 zeros. `seq` rises by one.

use sha2::{Digest, Sha256};

use super::line::ID_END;
use crate::id;

const PREV: &[u8] = br#","prev":""#;
const HASH: &[u8] = br#"","hash":""#;
const DIGITS: usize = 64;
const SEQ: &[u8] = br#","seq":"#;

/// The last record of a chain: what the next one follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its number; 0 where there is none yet.
    pub seq: u64,
    /// Its hash, 64 lower-case hexadecimal digits; zeros where there is none yet.
    pub hash: String,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Break {
    /// The line has no newline at its end: the file was cut, or the writer was stopped within it.
    #[error("the line is cut")]
    Cut,
    /// The line is not a chained record.
    #[error("the line is not a record")]
    Form,
    /// A record is missing, stands twice or in another place.
    #[error("found record {found}, expected record {expected}")]
    Order {
        /// The number that follows the record before.
        expected: u64,
        /// The number in the line.
        found: u64,
    },
    /// The record does not follow the one before it.
    #[error("record {0} does not name the hash of the record before it")]
    Link(u64),
    /// The record is not what its hash was made from.
    #[error("record {0} does not have the content that its hash was made from")]
    Content(u64),
}

impl Head {
    /// Before the first record.
    pub fn start() -> Self {
        Self {
            seq: 0,
            hash: "0".repeat(DIGITS),
        }
    }

    /// What the record in `line` says that it follows; nothing is proved by it.
    pub(super) fn before(line: &[u8]) -> Result<Self, Break> {
        let parts = Parts::of(line)?;
        Ok(Self {
            seq: parts.seq.checked_sub(1).ok_or(Break::Form)?,
            hash: String::from_utf8(parts.prev.to_vec()).map_err(|_| Break::Form)?,
        })
    }

    /// Appends the line of the next record to `out`, and moves on to it.
    pub(super) fn seal(&mut self, body: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        self.seq += 1;
        out.extend_from_slice(&body[..ID_END]);
        out.extend_from_slice(SEQ);
        out.extend_from_slice(itoa::Buffer::new().format(self.seq).as_bytes());
        out.extend_from_slice(&body[ID_END..]);
        out.extend_from_slice(PREV);
        out.extend_from_slice(self.hash.as_bytes());
        let end = out.len();
        out.extend_from_slice(b"\"}");
        self.hash = digest(self.hash.as_bytes(), &[&out[start..]]);
        out.truncate(end);
        out.extend_from_slice(HASH);
        out.extend_from_slice(self.hash.as_bytes());
        out.extend_from_slice(b"\"}\n");
    }

    /// Checks that `line`, without its newline, is the next record, and moves on to it.
    pub(super) fn check(&mut self, line: &[u8]) -> Result<(), Break> {
        let parts = Parts::of(line)?;
        if parts.seq != self.seq + 1 {
            return Err(Break::Order {
                expected: self.seq + 1,
                found: parts.seq,
            });
        }
        if parts.prev != self.hash.as_bytes() {
            return Err(Break::Link(parts.seq));
        }
        let hash = digest(parts.prev, &[parts.canonical, b"\"}"]);
        if parts.hash != hash.as_bytes() {
            return Err(Break::Content(parts.seq));
        }
        *self = Self {
            seq: parts.seq,
            hash,
        };
        Ok(())
    }
}

fn digest(prev: &[u8], canonical: &[&[u8]]) -> String {
    let mut state = Sha256::new();
    state.update(prev);
    canonical.iter().for_each(|part| state.update(part));
    id::hex(&state.finalize())
}

/// The places of a line that the chain is made of.
struct Parts<'a> {
    seq: u64,
    /// The canonical record but for its last quote and brace.
    canonical: &'a [u8],
    prev: &'a [u8],
    hash: &'a [u8],
}

impl<'a> Parts<'a> {
    fn of(line: &'a [u8]) -> Result<Self, Break> {
        Self::find(line).ok_or(Break::Form)
    }

    fn find(line: &'a [u8]) -> Option<Self> {
        let (rest, hash) = line.strip_suffix(b"\"}")?.split_last_chunk::<DIGITS>()?;
        let canonical = rest.strip_suffix(HASH)?;
        let (rest, prev) = canonical.split_last_chunk::<DIGITS>()?;
        let fields = rest.strip_suffix(PREV)?;
        let number = fields.get(ID_END..)?.strip_prefix(SEQ)?;
        let length = number.iter().position(|byte| !byte.is_ascii_digit())?;
        Some(Self {
            seq: std::str::from_utf8(&number[..length]).ok()?.parse().ok()?,
            canonical,
            prev,
            hash,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] =
        br#"{"id":"01900000-0000-7000-8000-000000000001","time":"2026-11-29T22:00:00.000042Z""#;

    fn chain(records: usize) -> Vec<Vec<u8>> {
        let mut head = Head::start();
        let mut out = Vec::new();
        (0..records).for_each(|_| head.seal(BODY, &mut out));
        out.split_inclusive(|byte| *byte == b'\n')
            .map(<[u8]>::to_vec)
            .collect()
    }

    fn verified(lines: &[Vec<u8>]) -> Result<u64, (u64, Break)> {
        let mut head = Head::start();
        let verdict =
            crate::audit::verify(&lines.concat()[..], &mut head).expect("memory can be read");
        verdict.map(|()| head.seq)
    }

    #[test]
    fn a_line_verifies_with_nothing_but_sha_256() {
        let line = String::from_utf8(chain(1).concat()).expect("UTF-8");
        // printf '%064d%s' 0 '{"id":…,"seq":1,"time":…,"prev":"00…00"}' | sha256sum
        assert_eq!(
            line,
            format!(
                "{}{}{}\n",
                r#"{"id":"01900000-0000-7000-8000-000000000001","seq":1,"time":"2026-11-29T22:00:00.000042Z","prev":""#,
                "0".repeat(64),
                r#"","hash":"7b339ad02f277370ffb4582bdefaa8c199a9a59e7a16059ccb80ae7de2042201"}"#
            )
        );
    }

    #[test]
    fn a_whole_chain_verifies() {
        assert_eq!(verified(&chain(3)), Ok(3));
        assert_eq!(verified(&[]), Ok(0));
    }

    #[test]
    fn every_altered_byte_is_found() {
        let lines = chain(2);
        for at in 0..lines[1].len() {
            let mut changed = lines.clone();
            changed[1][at] ^= 1;
            assert!(
                verified(&changed).is_err_and(|(line, _)| line >= 2),
                "byte {at}"
            );
        }
    }

    #[test]
    fn dropped_swapped_repeated_and_cut_lines_are_named() {
        let lines = chain(4);
        let order = |expected, found| Break::Order { expected, found };
        let pick = |places: &[usize]| {
            let picked: Vec<_> = places.iter().map(|place| lines[*place].clone()).collect();
            verified(&picked)
        };
        assert_eq!(pick(&[0, 2, 3]), Err((2, order(2, 3))));
        assert_eq!(pick(&[0, 2, 1, 3]), Err((2, order(2, 3))));
        assert_eq!(pick(&[0, 0]), Err((2, order(2, 1))));
        assert_eq!(pick(&[1, 2]), Err((1, order(1, 2))));
        let mut cut = lines.clone();
        cut[3].truncate(100);
        assert_eq!(verified(&cut), Err((4, Break::Cut)));
        let mut other = lines;
        other[1] = b"{}\n".to_vec();
        assert_eq!(verified(&other), Err((2, Break::Form)));
    }

    #[test]
    fn a_record_of_another_chain_is_found() {
        let mut foreign = Head::start();
        let mut line = Vec::new();
        foreign.seal(BODY, &mut line);
        line.clear();
        foreign.hash = "1".repeat(DIGITS);
        foreign.seal(BODY, &mut line);
        assert_eq!(
            verified(&[chain(1).concat(), line]),
            Err((2, Break::Link(2)))
        );
    }

    #[test]
    fn a_changed_field_is_named_by_its_record() {
        let mut lines = chain(2);
        let at = 100;
        lines[0][at - 40] ^= 1;
        assert_eq!(verified(&lines), Err((1, Break::Content(1))));
    }
}
