//! The Rust SDK as a client of the matrix, in the era that it negotiates. Argument: the URL.
//!
//! It does what the other clients do and reports as they do, in one line of JSON:
//! `{"version": "2026-07-28", "steps": {"list": "ok", "call": "what was wrong", …}}`

use std::collections::BTreeSet;
use std::env;
use std::fmt::Debug;
use std::time::Duration;

use rmcp::ClientHandler;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, PingRequest,
    ProgressNotificationParam, ProtocolVersion, ServerResult,
};
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt, NotificationContext, Peer, PeerRequestOptions,
    RequestHandle, RoleClient, RunningService,
};
use rmcp::transport::StreamableHttpClientTransport;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

const TOOLS: [&str; 5] = ["cancelled", "count", "echo", "fail", "slow"];
const STEP: Duration = Duration::from_secs(20);

/// Passes progress on to the step that waits for it.
struct Listener(mpsc::UnboundedSender<(f64, Option<f64>)>);

impl ClientHandler for Listener {
    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        // A step that no longer listens has ended.
        let _ = self.0.send((params.progress, params.total));
    }
}

struct Client {
    service: RunningService<RoleClient, Listener>,
    progress: mpsc::UnboundedReceiver<(f64, Option<f64>)>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let url = env::args().nth(1).unwrap_or_default();
    let mut steps = Map::new();
    let mut version = Value::Null;
    match within(Client::connect(url)).await {
        Err(fault) => drop(steps.insert("connect".into(), fault.into())),
        Ok(mut client) => {
            let negotiated = client.version();
            version = negotiated.clone().into();
            let mut note = |name: &str, outcome: Result<(), String>| {
                let outcome = outcome.err().unwrap_or_else(|| "ok".into());
                steps.insert(name.into(), outcome.into());
            };
            note("connect", Ok(()));
            note("list", within(client.list()).await);
            note("call", within(client.call_echo()).await);
            note("progress", within(client.count()).await);
            note("error", within(client.fail()).await);
            // Ping ended with the sessions.
            if negotiated.as_str() < "2026-07-28" {
                note("ping", within(client.ping()).await);
            }
            note("cancel", within(client.cancel()).await);
        }
    }
    println!("{}", json!({"version": version, "steps": steps}));
}

impl Client {
    async fn connect(url: String) -> Result<Self, String> {
        let (sender, progress) = mpsc::unbounded_channel();
        let transport = StreamableHttpClientTransport::from_uri(url);
        let lifecycle = ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: None,
        };
        let service = Listener(sender).serve_with_lifecycle(transport, lifecycle);
        let service = service.await.map_err(|fault| format!("{fault:?}"))?;
        Ok(Self { service, progress })
    }

    fn peer(&self) -> &Peer<RoleClient> {
        self.service.peer()
    }

    fn version(&self) -> String {
        let info = self.peer().peer_info();
        info.map(|info| info.protocol_version.to_string())
            .unwrap_or_default()
    }

    async fn list(&mut self) -> Result<(), String> {
        let tools = self.peer().list_all_tools().await.map_err(text)?;
        let names = tools.iter().map(|tool| tool.name.as_ref()).collect();
        expect::<BTreeSet<&str>>(names, BTreeSet::from(TOOLS))
    }

    async fn call_echo(&mut self) -> Result<(), String> {
        let outcome = self.call("echo", json!({"text": "héllo"})).await?;
        expect(outcome, (false, "héllo".into()))
    }

    async fn count(&mut self) -> Result<(), String> {
        while self.progress.try_recv().is_ok() {}
        let outcome = self.call("count", json!({"n": 3})).await?;
        expect(outcome, (false, "counted to 3".into()))?;
        for step in [1.0, 2.0, 3.0] {
            expect(self.progress.recv().await, Some((step, Some(3.0))))?;
        }
        Ok(())
    }

    async fn fail(&mut self) -> Result<(), String> {
        let (is_error, text) = self.call("fail", json!({})).await?;
        expect(
            (is_error, text.contains("refused on purpose")),
            (true, true),
        )
    }

    async fn ping(&mut self) -> Result<(), String> {
        let ping = ClientRequest::PingRequest(PingRequest::default());
        match self.peer().send_request(ping).await.map_err(text)? {
            ServerResult::EmptyResult(_) => Ok(()),
            other => Err(format!("ping was answered {other:?}")),
        }
    }

    /// Calls `slow` and, once it runs, gives the call up.
    async fn cancel(&mut self) -> Result<(), String> {
        let before = self.cancelled().await?;
        while self.progress.try_recv().is_ok() {}
        let slow = self.start("slow", json!({})).await?;
        expect(self.progress.recv().await, Some((1.0, Some(2.0))))?;
        slow.cancel(Some("enough".into())).await.map_err(text)?;
        while self.cancelled().await? == before {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        expect(self.cancelled().await?, before + 1)
    }

    async fn cancelled(&self) -> Result<u64, String> {
        let (_, count) = self.call("cancelled", json!({})).await?;
        count.parse().map_err(text)
    }

    /// Whether the result is an error, and its text.
    async fn call(&self, name: &'static str, arguments: Value) -> Result<(bool, String), String> {
        let handle = self.start(name, arguments).await?;
        match handle.await_response().await.map_err(text)? {
            ServerResult::CallToolResult(result) => Ok(outcome(&result)),
            other => Err(format!("`{name}` was answered {other:?}")),
        }
    }

    async fn start(
        &self,
        name: &'static str,
        arguments: Value,
    ) -> Result<RequestHandle<RoleClient>, String> {
        let mut params = CallToolRequestParams::new(name);
        params.arguments = arguments.as_object().cloned();
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let options = PeerRequestOptions::no_options();
        let handle = self.peer().send_cancellable_request(request, options).await;
        handle.map_err(text)
    }
}

fn outcome(result: &CallToolResult) -> (bool, String) {
    let blocks = result.content.iter().filter_map(|block| block.as_text());
    let text = blocks.map(|block| block.text.as_str()).collect();
    (result.is_error == Some(true), text)
}

async fn within<T>(step: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    match tokio::time::timeout(STEP, step).await {
        Ok(outcome) => outcome,
        Err(_) => Err("the step took too long".into()),
    }
}

fn expect<T: Debug + PartialEq>(found: T, expected: T) -> Result<(), String> {
    match found == expected {
        true => Ok(()),
        false => Err(format!("found {found:?}, expected {expected:?}")),
    }
}

fn text(fault: impl ToString) -> String {
    fault.to_string()
}
