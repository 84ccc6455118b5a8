//! Owns: identifiers: time-ordered record ids and unguessable tokens.
//! Imports: no room.
//! Never: gives meaning to an identifier.
//! Fails as: nothing; a machine without randomness cannot run Tollgate.

use std::{
    cell::RefCell,
    time::{SystemTime, UNIX_EPOCH},
};

use uuid::{Builder, Uuid};

/// Record ids whose random parts one call to the operating system serves.
const BATCH: usize = 64;

thread_local! {
    static SPARE: RefCell<Vec<[u8; 10]>> = const { RefCell::new(Vec::new()) };
}

/// A time-ordered identifier (RFC 9562, version 7) for `now`, to the millisecond. Ids name records and grant nothing, so
/// their random parts are drawn many at a time; a call to the operating system for each would cost more than the record.
pub fn ordered(now: SystemTime) -> Uuid {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let millis = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
    Builder::from_unix_timestamp_millis(millis, &spare()).into_uuid()
}

/// Ten random bytes that no one else gets.
fn spare() -> [u8; 10] {
    SPARE.with_borrow_mut(|spare| {
        if spare.is_empty() {
            let bytes = random::<{ 10 * BATCH }>();
            spare.extend_from_slice(bytes.as_chunks::<10>().0);
        }
        spare.pop().unwrap_or_else(random::<10>)
    })
}

/// `N` bytes from the operating system's generator.
pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system provides randomness");
    bytes
}

/// An unguessable token of 256 bits in lower-case hexadecimal.
pub fn token() -> String {
    hex(&random::<32>())
}

/// Lower-case hexadecimal of `bytes`.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| DIGITS[usize::from(value)];
    let mut text = vec![0; 2 * bytes.len()];
    for (pair, byte) in text.as_chunks_mut().0.iter_mut().zip(bytes) {
        *pair = [digit(byte >> 4), digit(byte & 15)];
    }
    String::from_utf8(text).expect("hexadecimal digits are ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_version_7_and_carry_their_time() {
        let earlier = ordered(UNIX_EPOCH + std::time::Duration::from_millis(1_000));
        let later = ordered(UNIX_EPOCH + std::time::Duration::from_millis(2_000));
        assert_eq!(earlier.get_version_num(), 7);
        assert!(earlier < later);
    }

    #[test]
    fn ids_of_one_moment_differ() {
        let ids: std::collections::HashSet<_> = (0..1_000).map(|_| ordered(UNIX_EPOCH)).collect();
        assert_eq!(ids.len(), 1_000);
    }

    #[test]
    fn tokens_are_long_and_differ() {
        assert_eq!(token().len(), 64);
        assert_ne!(token(), token());
    }

    #[test]
    fn hex_is_lower_case() {
        assert_eq!(hex(&[0x00, 0xaf, 0x10]), "00af10");
    }
}
