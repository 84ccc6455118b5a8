//! `_meta` of a result, with members of our own. Keys under `io.tollgate/` are ours: a server's are left out.

use crate::mcp::scan::{Rules, ScanError, Scanner};

/// The prefix of our keys.
const OWN: &str = "io.tollgate/";

/// Whether a server's `_meta` may hold keys of ours, however they are written.
pub fn may_claim(theirs: &str) -> bool {
    theirs.contains("\\") || theirs.contains(OWN)
}

/// `_meta` with the members `own`, JSON text without braces, and those of the server's.
pub fn merged(theirs: Option<&str>, own: &str) -> String {
    let mut out = format!("{{{own}");
    let theirs = theirs.filter(|theirs| theirs.starts_with('{'));
    // What was read once can be read again; what could not is left out.
    let _read = theirs.map(|theirs| others(theirs, &mut out));
    out.push('}');
    out
}

fn others(theirs: &str, out: &mut String) -> Result<(), ScanError> {
    let mut scanner = Scanner::new(theirs.as_bytes(), Rules::Loose)?;
    scanner.enter_object()?;
    while let Some(key) = scanner.key()? {
        let from = scanner.last_key();
        let end = scanner.value()?.range().end;
        if !key.starts_with(OWN) {
            if out.len() > 1 {
                out.push(',');
            }
            out.push_str(&theirs[from..end]);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_does_not_speak_for_us() {
        let theirs = r#"{ "a/b" : [1], "io.tollgate/cut":{}, "io.tollg\u0061te/untrusted":false ,"c":"\u00e9"}"#;
        assert!(may_claim(theirs));
        assert!(!may_claim(r#"{"a/b":1}"#));
        assert_eq!(
            merged(Some(theirs), r#""io.tollgate/x":1"#),
            r#"{"io.tollgate/x":1,"a/b" : [1],"c":"\u00e9"}"#
        );
        assert_eq!(merged(Some("null"), r#""x":1"#), r#"{"x":1}"#);
        assert_eq!(merged(Some("{}"), ""), "{}");
        assert_eq!(merged(None, r#""x":1"#), r#"{"x":1}"#);
    }
}
