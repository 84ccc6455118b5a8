//! Media types: what a body is, and what its reader accepts (RFC 9110, sections 8.3 and 12.5.1).

use http::{HeaderMap, header};

/// Whether a `Content-Type` names JSON in UTF-8.
pub fn is_json(content_type: &str) -> bool {
    content_type == "application/json" || is_json_with_parameters(content_type)
}

fn is_json_with_parameters(content_type: &str) -> bool {
    essence(content_type).eq_ignore_ascii_case("application/json")
        && parameters(content_type)
            .filter(|(name, _)| name.eq_ignore_ascii_case("charset"))
            .all(|(_, value)| value.trim_matches('"').eq_ignore_ascii_case("utf-8"))
}

/// Whether a `Content-Type` names an event stream.
pub fn is_stream(content_type: &str) -> bool {
    essence(content_type).eq_ignore_ascii_case("text/event-stream")
}

/// What SDKs send.
const BOTH: [&[u8]; 2] = [
    b"application/json, text/event-stream",
    b"application/json,text/event-stream",
];

/// Whether the client takes both forms of an answer, as every POST must say.
pub fn accepts_answers(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(header::ACCEPT).iter();
    let usual = values
        .next()
        .is_some_and(|value| BOTH.contains(&value.as_bytes()));
    usual && values.next().is_none() || accepts_both(headers)
}

fn accepts_both(headers: &HeaderMap) -> bool {
    accepts(headers, "application", "json") && accepts(headers, "text", "event-stream")
}

/// Whether the client takes an event stream, as a legacy GET must say.
pub fn accepts_stream(headers: &HeaderMap) -> bool {
    accepts(headers, "text", "event-stream")
}

/// `Accept` is a list, so several headers count as one. The most specific range decides whether `q` is 0.
fn accepts(headers: &HeaderMap, kind: &str, subtype: &str) -> bool {
    let ranges = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok());
    ranges
        .flat_map(|value| value.split(','))
        .filter_map(|range| {
            let (left, right) = essence(range).split_once('/')?;
            let specific = match (left, right) {
                ("*", "*") => 0,
                (left, "*") if left.eq_ignore_ascii_case(kind) => 1,
                (left, right)
                    if left.eq_ignore_ascii_case(kind) && right.eq_ignore_ascii_case(subtype) =>
                {
                    2
                }
                _ => return None,
            };
            let refused = parameters(range)
                .filter(|(name, _)| name.eq_ignore_ascii_case("q"))
                .any(|(_, weight)| weight.parse() == Ok(0.0));
            Some((specific, !refused))
        })
        .max()
        .is_some_and(|(_, accepted)| accepted)
}

fn essence(value: &str) -> &str {
    value.split(';').next().unwrap_or_default().trim()
}

fn parameters(value: &str) -> impl Iterator<Item = (&str, &str)> {
    value.split(';').skip(1).filter_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        Some((name.trim(), value.trim()))
    })
}
