//! An upstream that costs as little as it can: each answer is made once, and gets the id put in.

use std::io::{Result, Write as _};
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};

use crate::Era;
use crate::tools::{EVENTS, Tool, now};
use crate::wire::{self, Wire};

const INITIALIZED: &str = r#""protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"bench","version":"1"}"#;
const DISCOVERED: &str = r#""resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":60000,"cacheScope":"public""#;
const LISTED: &str = r#""resultType":"complete","ttlMs":60000,"cacheScope":"public","#;
const EMPTY: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
const ACCEPTED: &str = "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n";
const BAD: &str = "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";
const STREAM: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
/// Between two events of the tool that paces them.
const PACE: Duration = Duration::from_millis(5);

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: &'a str,
    #[serde(borrow)]
    params: Option<Params<'a>>,
}

#[derive(Deserialize)]
struct Params<'a> {
    name: Option<&'a str>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<Meta<'a>>,
}

#[derive(Deserialize)]
struct Meta<'a> {
    #[serde(borrow, rename = "progressToken")]
    progress_token: Option<&'a RawValue>,
}

/// Serves on 127.0.0.1 until the process is ended.
pub(crate) async fn serve(port: u16) -> Result<()> {
    wire::serve(port, converse).await
}

async fn converse(mut wire: Wire) -> Result<()> {
    let mut text = Vec::new();
    let mut out = Vec::new();
    while let Some(head) = wire.head().await? {
        text.clear();
        out.clear();
        let mut body = head.body();
        while wire.piece(&mut body, &mut text).await? {}
        if head.starts_with("GET ") {
            // The stream of what a server says unasked; this one has nothing to say.
            wire.write(STREAM.as_bytes()).await?;
            return wire.closed().await;
        }
        if head.starts_with("DELETE ") {
            wire.write(EMPTY.as_bytes()).await?;
            continue;
        }
        let era = match head.field("mcp-method") {
            Some(_) => Era::Modern,
            None => Era::Legacy,
        };
        answer(&mut wire, era, &text, &mut out).await?;
    }
    Ok(())
}

async fn answer(wire: &mut Wire, era: Era, text: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let Ok(envelope) = serde_json::from_slice::<Envelope<'_>>(text) else {
        return wire.write(BAD.as_bytes()).await;
    };
    let Some(id) = envelope.id.map(RawValue::get) else {
        return wire.write(ACCEPTED.as_bytes()).await;
    };
    match (envelope.method, envelope.params) {
        ("tools/call", Some(params)) => {
            let tool = Tool::ALL
                .into_iter()
                .find(|tool| params.name == Some(tool.name()));
            let Some(tool) = tool else {
                return wire.write(BAD.as_bytes()).await;
            };
            let token = params.meta.and_then(|meta| meta.progress_token);
            return call(
                wire,
                out,
                tool,
                era,
                id,
                token.map_or("null", RawValue::get),
            )
            .await;
        }
        ("tools/list", _) => whole(out, id, "", [LISTED, &list()]),
        ("server/discover", _) => whole(out, id, "", ["", DISCOVERED]),
        ("initialize", _) => whole(out, id, "mcp-session-id: bench\r\n", ["", INITIALIZED]),
        _ => out.extend_from_slice(BAD.as_bytes()),
    }
    wire.write(out).await
}

async fn call(
    wire: &mut Wire,
    out: &mut Vec<u8>,
    tool: Tool,
    era: Era,
    id: &str,
    token: &str,
) -> Result<()> {
    if tool.events() == 0 {
        whole(out, id, "", [Tool::prefix(era), tool.content()]);
        return wire.write(out).await;
    }
    out.extend_from_slice(STREAM.as_bytes());
    let mut due = Instant::now();
    for number in 1..=EVENTS {
        if tool == Tool::Paced {
            due += PACE;
            sleep_until(due).await;
        }
        chunk(out, &progress(token, number));
        if tool == Tool::Burst {
            continue;
        }
        wire.write(out).await?;
        out.clear();
        if tool == Tool::Endless {
            return wire.closed().await;
        }
        yield_now().await;
    }
    let (prefix, content) = (Tool::prefix(era), tool.content());
    let result = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{{prefix}{content}}}}}"#);
    chunk(out, &result);
    out.extend_from_slice(b"0\r\n\r\n");
    wire.write(out).await
}

/// A JSON response with a result of two pieces. Writing to memory cannot fail.
fn whole(out: &mut Vec<u8>, id: &str, fields: &str, [prefix, rest]: [&str; 2]) {
    const FRAME: usize = r#"{"jsonrpc":"2.0","id":,"result":{}}"#.len();
    let size = FRAME + id.len() + prefix.len() + rest.len();
    let _ = write!(
        out,
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{fields}content-length: {size}\r\n\r\n\
         {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{{prefix}{rest}}}}}"
    );
}

/// An event in a chunk of its own.
fn chunk(out: &mut Vec<u8>, json: &str) {
    const FRAME: usize = "event: message\ndata: \n\n".len();
    let size = FRAME + json.len();
    let _ = write!(out, "{size:x}\r\nevent: message\ndata: {json}\n\n\r\n");
}

fn progress(token: &str, number: usize) -> String {
    let now = now();
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{number},"total":{EVENTS},"message":"{now}"}}}}"#
    )
}

fn list() -> String {
    let tools = Tool::ALL.map(|tool| {
        let (name, reads) = (tool.name(), tool != Tool::Effect);
        format!(
            r#"{{"name":"{name}","description":"answers with text","inputSchema":{{"type":"object","properties":{{"text":{{"type":"string"}}}}}},"annotations":{{"readOnlyHint":{reads}}}}}"#
        )
    });
    format!(r#""tools":[{}]"#, tools.join(","))
}
