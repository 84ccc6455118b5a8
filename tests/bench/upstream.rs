//! An upstream that costs as little as it can: each answer is a literal with the id put in.

use std::convert::Infallible;
use std::error::Error;
use std::net::Ipv4Addr;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::net::TcpListener;

/// 200 bytes, `result` of a legacy call.
const CALLED: &str = r#"{"content":[{"type":"text","text":"the quick brown fox jumps over the lazy dog, the quick brown fox jumps over the lazy dog, the quick brown fox jumps over the lazy dog, and then it sleeps well"}]}"#;
const CALLED_MODERN: &str = r#"{"resultType":"complete","content":[{"type":"text","text":"the quick brown fox jumps over the lazy dog, the quick brown fox jumps over the lazy dog, the quick brown fox jumps over the lazy"}]}"#;
const INITIALIZED: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"bench","version":"1"}}"#;
const DISCOVERED: &str = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":60000,"cacheScope":"public"}"#;
const LISTED: &str = r#"{"resultType":"complete","ttlMs":60000,"cacheScope":"public","tools":[{"name":"echo","description":"answers with text","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}},"annotations":{"readOnlyHint":true}}]}"#;

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: &'a str,
}

/// Serves on 127.0.0.1 until the process is ended.
pub(crate) async fn serve(port: u16) -> Result<(), Box<dyn Error + Send + Sync>> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        tokio::spawn(async move {
            // A connection that its client closed is no fault.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(socket), service_fn(respond))
                .await;
        });
    }
}

async fn respond(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    if request.method() != Method::POST {
        return Ok(empty(StatusCode::METHOD_NOT_ALLOWED));
    }
    let modern = request.headers().contains_key("mcp-method");
    let Ok(body) = request.into_body().collect().await else {
        return Ok(empty(StatusCode::BAD_REQUEST));
    };
    let body = body.to_bytes();
    let Ok(envelope) = serde_json::from_slice::<Envelope<'_>>(&body) else {
        return Ok(empty(StatusCode::BAD_REQUEST));
    };
    let Some(id) = envelope.id else {
        return Ok(empty(StatusCode::ACCEPTED));
    };
    Ok(match (envelope.method, modern) {
        ("tools/call", true) => result(id, CALLED_MODERN),
        ("tools/call", false) => result(id, CALLED),
        ("tools/list", _) => result(id, LISTED),
        ("server/discover", true) => result(id, DISCOVERED),
        ("ping", false) => result(id, "{}"),
        ("initialize", false) => {
            let mut response = result(id, INITIALIZED);
            response
                .headers_mut()
                .insert("mcp-session-id", HeaderValue::from_static("bench"));
            response
        }
        _ => empty(StatusCode::BAD_REQUEST),
    })
}

fn result(id: &RawValue, result: &str) -> Response<Full<Bytes>> {
    let body = [
        r#"{"jsonrpc":"2.0","id":"#,
        id.get(),
        r#","result":"#,
        result,
        "}",
    ]
    .concat();
    let mut response = Response::new(Full::from(body));
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn empty(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}
