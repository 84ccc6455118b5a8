//! An MCP client of either era, by hand.

use serde_json::{Value, json};

use super::{
    client::{Ask, Exchange, Reply},
    gate::Gate,
};

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// A client; a session makes it one of 2025-11-25.
#[derive(Clone, Debug)]
pub(crate) struct Agent {
    pub(crate) server: String,
    pub(crate) session: Option<String>,
    pub(crate) key: Option<String>,
}

impl Agent {
    /// A client of 2026-07-28.
    pub(crate) fn modern(server: &str) -> Self {
        Self {
            server: server.to_owned(),
            session: None,
            key: None,
        }
    }

    /// One with an agent key.
    pub(crate) fn with_key(mut self, key: &str) -> Self {
        self.key = Some(key.to_owned());
        self
    }

    /// The same in a session of 2025-11-25, which it opens.
    pub(crate) async fn legacy(mut self, gate: &Gate) -> Self {
        let welcome = gate.send(self.initialize("2025-11-25")).await;
        assert_eq!(welcome.status, 200, "{}", welcome.body);
        self.session = welcome.header("mcp-session-id").map(str::to_owned);
        let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        assert_eq!(gate.send(self.post(ready)).await.status, 202);
        self
    }

    /// Clients of both eras.
    pub(crate) async fn both(server: &str, gate: &Gate) -> [Self; 2] {
        [
            Self::modern(server),
            Self::modern(server).legacy(gate).await,
        ]
    }

    pub(crate) fn is_modern(&self) -> bool {
        self.session.is_none()
    }

    /// An `initialize` for this version.
    pub(crate) fn initialize(&self, version: &str) -> Ask {
        self.hello(version, r#"{"sampling":{}}"#)
    }

    /// An `initialize` of a client that offers `capabilities`, an object.
    pub(crate) fn hello(&self, version: &str, capabilities: &str) -> Ask {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":"i","method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{capabilities},"clientInfo":{{"name":"c","version":"1"}}}}}}"#
        );
        self.keyed(Ask::post(self.path(), body))
    }

    /// A POST of this message, with the headers that belong to it.
    pub(crate) fn post(&self, body: &str) -> Ask {
        let ask = self.keyed(Ask::post(self.path(), body));
        if let Some(session) = &self.session {
            return ask
                .with("MCP-Protocol-Version", "2025-11-25")
                .with("Mcp-Session-Id", session);
        }
        let message: Value = serde_json::from_str(body).unwrap_or_default();
        let mut ask = ask.with("MCP-Protocol-Version", "2026-07-28");
        if let Some(method) = message["method"].as_str() {
            ask = ask.with("Mcp-Method", method);
        }
        if let Some(name) = message["params"]["name"].as_str() {
            ask = ask.with("Mcp-Name", name);
        }
        ask
    }

    /// A request without a body, in the session.
    pub(crate) fn bare(&self, verb: &'static str) -> Ask {
        let ask = self.keyed(Ask::bare(verb, self.path()));
        ask.with("Accept", "text/event-stream")
            .with("MCP-Protocol-Version", "2025-11-25")
            .with("Mcp-Session-Id", self.session.as_deref().unwrap_or("none"))
    }

    /// A request; `params` are its members without the braces.
    pub(crate) fn request(&self, id: &str, method: &str, params: &str) -> Ask {
        self.post(&self.message(id, method, params))
    }

    /// The message of a request.
    pub(crate) fn message(&self, id: &str, method: &str, params: &str) -> String {
        let meta = if self.is_modern() { META } else { "" };
        let comma = if meta.is_empty() || params.is_empty() {
            ""
        } else {
            ","
        };
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}{comma}{meta}}}}}"#
        )
    }

    /// A call without arguments.
    pub(crate) fn call(&self, id: &str, tool: &str) -> Ask {
        self.request(
            id,
            "tools/call",
            &format!(r#""name":"{tool}","arguments":{{}}"#),
        )
    }

    /// The same call in a conversation of its own, beside which others do not count.
    pub(crate) fn call_apart(&self, id: &str, tool: &str) -> Ask {
        self.call(id, tool).with("Tollgate-Conversation", id)
    }

    /// A call that must work.
    pub(crate) async fn good(&self, gate: &Gate) {
        let reply = gate.send(self.call("1", "get_weather")).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        assert_eq!(
            reply.json()["result"]["content"][0]["text"],
            "ok get_weather",
            "{}",
            reply.body
        );
    }

    /// The code of a call's refusal, which must have the whole shape of one.
    pub(crate) fn refusal(&self, reply: &Reply) -> String {
        let body = reply.json();
        let text = body["result"]["content"][0]["text"].as_str();
        let text = text.unwrap_or_else(|| panic!("{}", reply.body));
        let mut result = json!({ "content": [{ "type": "text", "text": text }], "isError": true });
        if self.is_modern() {
            result["resultType"] = "complete".into();
        }
        assert_eq!(reply.status, 200);
        assert_eq!(
            body,
            json!({ "jsonrpc": "2.0", "id": body["id"], "result": result })
        );
        text.split(':').next().unwrap().to_owned()
    }

    /// The stream of what the server says unasked.
    pub(crate) async fn listen(&self, gate: &Gate) -> Exchange {
        gate.open(self.bare("GET")).await
    }

    fn path(&self) -> String {
        format!("/mcp/{}", self.server)
    }

    fn keyed(&self, ask: Ask) -> Ask {
        match &self.key {
            Some(key) => ask.with("Authorization", &format!("Bearer {key}")),
            None => ask,
        }
    }
}
