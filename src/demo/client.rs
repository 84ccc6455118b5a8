//! The smallest MCP client that shows something: one 2026-07-28 request over one connection.

use std::{
    net::SocketAddr,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, header};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::DemoError;
use crate::{
    mcp::{Revision, headers, sse},
    refusal::Code,
};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest answer, in bytes.
const MAX_BODY: usize = 1 << 20;

/// An agent, as far as Tollgate can tell.
#[derive(Debug)]
pub struct Client {
    gateway: SocketAddr,
    next_id: AtomicU64,
}

/// What came back.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The response: JSON-RPC, or the JSON of an HTTP error.
    pub message: Value,
}

impl Answer {
    /// The text of a tool result or error.
    pub fn text(&self) -> &str {
        let message = &self.message;
        let text = message["result"]["content"][0]["text"].as_str();
        text.or_else(|| message["error"]["message"].as_str())
            .unwrap_or_default()
    }

    /// Whether it is a result that is no error.
    pub fn is_good(&self) -> bool {
        self.message["result"].is_object() && self.message["result"]["isError"] != true
    }

    /// Whether Tollgate refused the request for this reason.
    pub fn is_refusal(&self, code: Code) -> bool {
        !self.is_good() && self.text().split(':').next() == Some(code.as_str())
    }
}

impl Client {
    /// A client of the Tollgate that listens for agents at `gateway`.
    pub fn new(gateway: SocketAddr) -> Self {
        Self {
            gateway,
            next_id: AtomicU64::new(1),
        }
    }

    /// Sends one request to the endpoint of `server`; `progress` sees each progress message as it comes.
    pub async fn request(
        &self,
        server: &str,
        method: &str,
        params: Value,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Answer, DemoError> {
        let answer = self.exchange(server, method, params, progress);
        tokio::time::timeout(PATIENCE, answer)
            .await
            .map_err(|_| DemoError::Answer(format!("nothing within {} s", PATIENCE.as_secs())))?
    }

    async fn exchange(
        &self,
        server: &str,
        method: &str,
        mut params: Value,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Answer, DemoError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": Revision::MODERN.as_str(),
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": { "name": "tollgate-demo", "version": env!("CARGO_PKG_VERSION") },
            "progressToken": id,
        });
        let mut request = Request::post(format!("/mcp/{server}"))
            .header(header::HOST, self.gateway.to_string())
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json, text/event-stream")
            .header(headers::PROTOCOL_VERSION, Revision::MODERN.as_str())
            .header(headers::METHOD, method);
        if let Some(name) = params["name"].as_str() {
            request = request.header(headers::NAME, headers::encode(name));
        }
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let request = request
            .body(Full::new(Bytes::from(body.to_string())))
            .map_err(broken)?;
        let response = self.send(request).await?;
        read(response, progress).await
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "this is an agent's side of the demo: it connects to Tollgate, on loopback"
    )]
    async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, DemoError> {
        let stream = TcpStream::connect(self.gateway).await.map_err(broken)?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(broken)?;
        // Ends with the response's body; an error of the connection shows there too.
        tokio::spawn(connection);
        sender.send_request(request).await.map_err(broken)
    }
}

async fn read(
    response: Response<Incoming>,
    progress: &mut dyn FnMut(&str),
) -> Result<Answer, DemoError> {
    let status = response.status().as_u16();
    let content_type = response
        .headers()
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let message = if content_type.is_some_and(headers::is_stream) {
        read_stream(response.into_body(), progress).await?
    } else {
        let body = http_body_util::Limited::new(response.into_body(), MAX_BODY);
        let body = body
            .collect()
            .await
            .map_err(|error| DemoError::Answer(error.to_string()))?
            .to_bytes();
        serde_json::from_slice(&body).map_err(broken)?
    };
    Ok(Answer { status, message })
}

/// Reads events until the one that is the answer.
async fn read_stream(
    mut body: Incoming,
    progress: &mut dyn FnMut(&str),
) -> Result<Value, DemoError> {
    let mut parser = sse::Parser::new(MAX_BODY);
    while let Some(frame) = body.frame().await {
        let Ok(chunk) = frame.map_err(broken)?.into_data() else {
            continue;
        };
        parser.push(chunk);
        while let Some(event) = parser
            .next_event()
            .map_err(|refusal| DemoError::Answer(refusal.text()))?
        {
            if event.data.is_empty() {
                continue;
            }
            let message: Value = serde_json::from_slice(&event.data).map_err(broken)?;
            if message["method"] == "notifications/progress" {
                progress(message["params"]["message"].as_str().unwrap_or_default());
            } else if message["method"].is_null() {
                return Ok(message);
            }
        }
    }
    Err(DemoError::Answer("the stream ended first".to_owned()))
}

fn broken(error: impl std::fmt::Display) -> DemoError {
    DemoError::Answer(error.to_string())
}
