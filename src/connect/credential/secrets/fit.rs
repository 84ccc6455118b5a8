//! Which secrets can be sent.

use zeroize::Zeroizing;

/// Characters of a secret at most.
const LONGEST: usize = 8192;

/// Visible ASCII, with spaces inside where a whole header value is entered.
pub(super) fn fit(secret: &[u8], spaced: bool) -> Option<Zeroizing<String>> {
    let inside = |byte: &u8| byte.is_ascii_graphic() || spaced && *byte == b' ';
    let ends = [secret.first()?, secret.last()?];
    let fits = secret.len() <= LONGEST
        && secret.iter().all(inside)
        && ends.iter().all(|byte| byte.is_ascii_graphic());
    let text = std::str::from_utf8(secret).ok().filter(|_| fits)?;
    Some(Zeroizing::new(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_stand_in_a_header_is_kept() {
        let fits = |secret: &[u8], spaced| fit(secret, spaced).is_some();
        for secret in [&b"x"[..], b"sk-1234_~!", &[b'a'; 8192]] {
            assert!(fits(secret, false));
            assert!(fits(secret, true));
        }
        assert!(fits(b"Token abc", true));
        assert!(!fits(b"Token abc", false), "a bearer token has no space");
        for secret in [
            &b""[..],
            b" ",
            b" x",
            b"x ",
            b"x\n",
            b"x\r\nHost: evil.test",
            b"x\ty",
            b"x\0",
            b"\x7f",
            "schlüssel".as_bytes(),
            b"\xff",
            &[b'a'; 8193],
        ] {
            assert!(!fits(secret, true), "{secret:?}");
        }
    }
}
