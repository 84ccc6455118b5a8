//! Notifications, of which streams are full: read no further than to know what they are.

use std::borrow::Cow;

use super::{Envelope, MEMBERS};
use crate::mcp::scan::{Rules, ScanError, Scanner, lookalike};

impl<'a> Envelope<'a> {
    /// The method of a server's notification, under [`Rules::Loose`] and without a look into its parameters. `None` for
    /// anything else, be it another message or none: [`Envelope::upstream`] says what.
    pub fn notice(body: &'a [u8]) -> Option<Cow<'a, str>> {
        read(body).ok().flatten()
    }
}

fn read(body: &[u8]) -> Result<Option<Cow<'_, str>>, ScanError> {
    let mut scanner = Scanner::new(body, Rules::Loose)?;
    let (mut version, mut method, mut params) = (None, None, false);
    scanner.enter_object()?;
    while let Some(key) = scanner.key()? {
        match &*key {
            "jsonrpc" if version.is_none() => version = Some(scanner.value()?),
            "method" if method.is_none() => method = Some(scanner.value()?),
            "params" if !params && scanner.peek() == Some(b'{') => {
                params = true;
                scanner.value()?;
            }
            "jsonrpc" | "method" | "params" | "id" | "result" | "error" => return Ok(None),
            key if lookalike(key, &MEMBERS).is_some() => return Ok(None),
            _ => drop(scanner.value()?),
        }
    }
    scanner.end()?;
    let current = version.is_some_and(|version| version.as_str() == r#""2.0""#);
    Ok(method
        .filter(|_| current)
        .and_then(|method| method.string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::Kind;

    #[test]
    fn a_notice_is_what_the_whole_reading_says() {
        for text in [
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"k":[{}]}}"#,
            r#" { "x" : {"id":1}, "method":"a\u0062","jsonrpc":"2.0" } "#,
            r#"{"jsonrpc":"2.0","method":"m","params":{}}"#,
        ] {
            let whole = Envelope::upstream(text.as_bytes()).expect("a message");
            assert_eq!(whole.kind, Kind::Notification);
            assert_eq!(
                Envelope::notice(text.as_bytes()),
                Some(whole.method),
                "{text}"
            );
        }
    }

    #[test]
    fn whatever_else_it_may_be_is_read_whole() {
        for text in [
            r#"{"jsonrpc":"2.0","method":"m","params":{},"id":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#,
            r#"{"jsonrpc":"2.0","method":"m","result":{}}"#,
            r#"{"jsonrpc":"2.0","method":"m","error":{}}"#,
            r#"{"jsonrpc":"2.0","method":"m","\u0069d":1}"#,
            r#"{"jsonrpc":"2.0","method":"m","ID":1}"#,
            r#"{"jsonrpc":"2.0","method":"m","Result":{}}"#,
            r#"{"jsonrpc":"2.0","method":"m","method":"n"}"#,
            r#"{"jsonrpc":"2.0","jsonrpc":"2.0","method":"m"}"#,
            r#"{"jsonrpc":"2.0","method":"m","params":{},"params":{}}"#,
            r#"{"jsonrpc":"2.0","method":"m","params":[]}"#,
            r#"{"jsonrpc":"1.0","method":"m"}"#,
            r#"{"jsonrpc":"2.0","method":7}"#,
            r#"{"jsonrpc":"2.0"}"#,
            r#"{"jsonrpc":"2.0","method":"m"} x"#,
            r#"{"jsonrpc":"2.0","method":"m","params":{"a":}}"#,
            "[]",
            "",
        ] {
            assert_eq!(Envelope::notice(text.as_bytes()), None, "{text}");
        }
    }
}
