//! What a sound tool server says, and the forms in which any server says something.

use super::tools::{LIST, Seen, Step};

/// The sessions that a server keeps.
pub(crate) trait Sessions {
    fn open(&self) -> String;
    fn knows(&self, id: &str) -> bool;
    fn end(&self, id: &str);
}

/// The answer of a server of both eras.
pub(crate) fn answer(seen: &Seen, sessions: &impl Sessions) -> Vec<Step> {
    let session = seen.header("mcp-session-id");
    let known = session.is_none_or(|id| sessions.knows(id));
    match seen.method() {
        _ if !known => status(404, "text/plain", "no such session"),
        "GET" => status(405, "text/plain", ""),
        "DELETE" => {
            session.inspect(|id| sessions.end(id));
            status(200, "text/plain", "")
        }
        "initialize" => welcome(&sessions.open(), "2025-11-25"),
        "server/discover" => result(
            true,
            r#"{"supportedVersions":["2026-07-28","2025-11-25"],"capabilities":{"tools":{"listChanged":true},"prompts":{}},"serverInfo":{"name":"t"}}"#,
        ),
        "tools/list" => result(seen.modern(), LIST),
        "prompts/list" => result(seen.modern(), r#"{"prompts":[{"name":"p"}]}"#),
        "tools/call" => result(seen.modern(), &text(&format!("ok {}", seen.tool()))),
        _ => status(202, "text/plain", ""),
    }
}

/// An answer to `initialize`.
pub(crate) fn welcome(session: &str, version: &str) -> Vec<Step> {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":$ID,"result":{{"protocolVersion":"{version}","capabilities":{{"tools":{{"listChanged":true}},"logging":{{}}}},"serverInfo":{{"name":"t","version":"1"}}}}}}"#
    );
    vec![Step::Say(
        format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: {session}\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        .into_bytes(),
    ), chunk(&body), end()]
}

/// The result of a tool that says `said`, without braces around it.
pub(crate) fn text(said: &str) -> String {
    format!(r#"{{"content":[{{"type":"text","text":"{said}"}}]}}"#)
}

/// A JSON answer with this result, an object.
pub(crate) fn result(modern: bool, result: &str) -> Vec<Step> {
    json(&message(modern, result))
}

/// The message that carries a result, an object.
pub(crate) fn message(modern: bool, result: &str) -> String {
    let kind = if modern {
        r#""resultType":"complete","#
    } else {
        ""
    };
    format!(
        r#"{{"jsonrpc":"2.0","id":$ID,"result":{{{kind}{}}}"#,
        &result[1..]
    )
}

/// A JSON answer; chunked, so that the length of the id does not matter.
pub(crate) fn json(body: &str) -> Vec<Step> {
    vec![
        Step::Say(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
                .to_vec(),
        ),
        chunk(body),
        end(),
    ]
}

/// An answer of any status, whose body holds no id.
pub(crate) fn status(status: u16, kind: &str, body: &str) -> Vec<Step> {
    let length = body.len();
    vec![Step::Say(
        format!(
            "HTTP/1.1 {status} Status\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .into_bytes(),
    )]
}

/// The head of an event stream.
pub(crate) fn stream() -> Step {
    Step::Say(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
            .to_vec(),
    )
}

/// One event.
pub(crate) fn event(data: &str) -> Step {
    chunk(&format!("data: {data}\n\n"))
}

/// The end of a chunked body.
pub(crate) fn end() -> Step {
    Step::Say(b"0\r\n\r\n".to_vec())
}

/// A stream of these events.
pub(crate) fn events(data: &[&str]) -> Vec<Step> {
    let mut steps = vec![stream()];
    steps.extend(data.iter().map(|data| event(data)));
    steps.push(end());
    steps
}

/// A piece of a chunked body.
pub(crate) fn chunk(text: &str) -> Step {
    Step::Chunk(text.to_owned())
}
