//! Notifications, of which streams are full: read no further than to know what they are.

use std::borrow::Cow;

use super::{Envelope, MEMBERS};
use crate::mcp::scan::{Rules, container, lookalike, members, plain_end, unescape};

impl<'a> Envelope<'a> {
    /// The method of a server's notification, under [`Rules::Loose`] and without a look into its parameters. `None` for
    /// anything else, be it another message or none: [`Envelope::upstream`] says what.
    pub fn notice(body: &'a [u8]) -> Option<Cow<'a, str>> {
        // Nearly all are ASCII, which takes less to find out than that they are UTF-8.
        if !body.is_ascii() && std::str::from_utf8(body).is_err() {
            return None;
        }
        if let Some(method) = as_usual(body) {
            return std::str::from_utf8(method).ok().map(Cow::Borrowed);
        }
        let (mut version, mut method, mut params) = (None, None, None);
        members(body, Rules::Loose.depth(), |key, value| {
            let member = match key {
                b"jsonrpc" => &mut version,
                b"method" => &mut method,
                b"params" if value.first() == Some(&b'{') => &mut params,
                key if is_other(key) => return Some(()),
                _ => return None,
            };
            member.replace(value).is_none().then_some(())
        })?;
        let inner = method?.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        (version? == br#""2.0""#).then_some(unescape(std::str::from_utf8(inner).ok()?))
    }
}

/// The method of a notification with parameters as most libraries write it: no space, and one of two orders. Streams are
/// full of these, and of them only the parameters need to be read.
fn as_usual(text: &[u8]) -> Option<&[u8]> {
    let (rest, end): (_, &[u8]) = match text.strip_prefix(br#"{"jsonrpc":"2.0","method":""#) {
        Some(rest) => (rest, b"}"),
        None => {
            let rest = text.strip_prefix(br#"{"method":""#)?;
            (rest, br#","jsonrpc":"2.0"}"#)
        }
    };
    let (method, rest) = rest.split_at_checked(plain_end(rest, 0))?;
    let params = rest.strip_prefix(br#"","params":"#)?;
    let is_object = params.first() == Some(&b'{');
    let after = container(params, Rules::Loose.depth() - 1)?;
    (is_object && after == end).then_some(method)
}

/// Whether a key names no member of messages, to any reader. What an escape may stand for is not worth finding out here.
fn is_other(key: &[u8]) -> bool {
    let plain = !key.contains(&b'\\');
    std::str::from_utf8(key).is_ok_and(|key| plain && lookalike(key, &MEMBERS).is_none())
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
            r#"{"method":"a/b_c","params":{"a":"}"},"jsonrpc":"2.0"}"#,
            r#"{"method":"\u0061","params":{},"jsonrpc":"2.0"}"#,
            r#"{"method":"","params":{},"jsonrpc":"2.0"}"#,
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
            r#"{"jsonrpc":"2.0","method":"m","params":{}}}"#,
            r#"{"jsonrpc":"2.0","method":"m","params":{}"#,
            r#"{"method":"m","params":{},"jsonrpc":"2.0","id":1}"#,
            r#"{"method":"m","params":{},"jsonrpc":"1.0"}"#,
            r#"{"method":"m","params":{}}"#,
            r#"{"method":"m","params":7,"jsonrpc":"2.0"}"#,
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
