//! The lines of a head, before a parser that is more patient sees them.

use super::HeadError;

/// Checks the field lines of a head that ends in an empty line, and whose lines all end in CRLF.
pub(super) fn check(head: &[u8]) -> Result<(), HeadError> {
    let lines = head.split(|byte| *byte == b'\n').skip(1);
    lines
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .filter(|line| !line.is_empty())
        .try_for_each(field)
}

/// RFC 9112, section 5.
fn field(line: &[u8]) -> Result<(), HeadError> {
    if matches!(line[0], b' ' | b'\t') {
        return Err(HeadError::Folded);
    }
    if line
        .iter()
        .any(|byte| byte.is_ascii_control() && *byte != b'\t')
    {
        return Err(HeadError::Control);
    }
    let colon = memchr::memchr(b':', line).ok_or(HeadError::NoColon)?;
    if line[..colon].ends_with(b" ") || line[..colon].ends_with(b"\t") {
        return Err(HeadError::SpacedColon);
    }
    Ok(())
}
