//! Owns: identifiers: time-ordered record ids and unguessable tokens.
//! Imports: no room.
//! Never: gives meaning to an identifier.
//! Fails as: nothing; a machine without randomness cannot run Tollgate.

use std::time::{SystemTime, UNIX_EPOCH};

use uuid::{NoContext, Timestamp, Uuid};

/// A time-ordered identifier (RFC 9562, version 7) for `now`.
pub fn ordered(now: SystemTime) -> Uuid {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    Uuid::new_v7(Timestamp::from_unix(
        NoContext,
        since.as_secs(),
        since.subsec_nanos(),
    ))
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
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
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
    fn tokens_are_long_and_differ() {
        assert_eq!(token().len(), 64);
        assert_ne!(token(), token());
    }

    #[test]
    fn hex_is_lower_case() {
        assert_eq!(hex(&[0x00, 0xaf, 0x10]), "00af10");
    }
}
