//! The steps. Requests are made from JSON and results compared as JSON, so that they read as on the wire.

// Logging and subscribing by session leave the protocol; until then they are part of it.
#![expect(deprecated)]

mod cut;

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, PingRequest, ProtocolVersion,
    ServerNotification, ServerResult, SubscriptionFilter,
};
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt, Peer, PeerRequestOptions, RoleClient, RunningService,
    Subscription,
};
use rmcp::transport::StreamableHttpClientTransport;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::user::{Dialogue, Event, User};

pub struct Client {
    url: String,
    service: RunningService<RoleClient, User>,
    dialogue: Arc<Mutex<Dialogue>>,
    events: mpsc::UnboundedReceiver<Event>,
}

impl Client {
    pub async fn connect(url: String) -> Result<Self, String> {
        let (sender, events) = mpsc::unbounded_channel();
        let dialogue = Arc::new(Mutex::new(Dialogue::default()));
        let user = User {
            dialogue: Arc::clone(&dialogue),
            events: sender,
        };
        let lifecycle = ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: None,
        };
        let transport = StreamableHttpClientTransport::from_uri(url.clone());
        let service = user.serve_with_lifecycle(transport, lifecycle).await;
        Ok(Self {
            url,
            service: service.map_err(|fault| format!("{fault:?}"))?,
            dialogue,
            events,
        })
    }

    pub fn version(&self) -> String {
        let info = self.peer().peer_info();
        info.map(|info| info.protocol_version.to_string())
            .unwrap_or_default()
    }

    pub async fn take(&mut self, step: &str, with: &Value) -> Result<(), String> {
        while self.events.try_recv().is_ok() {}
        match step {
            "capabilities" => self.capabilities(with),
            "list" => self.list(with).await,
            "call" | "error" | "sample" | "roots" => self.call_one(step == "error", with).await,
            "structured" => {
                let result = self.call(with, Value::Null).await?;
                expect(&result["structuredContent"], &with["value"])
            }
            "cut" => self.cut(with).await,
            "progress" => self.progress(with).await,
            "ping" => self.ping().await,
            "resources" => {
                let listed = self.peer().list_all_resources().await.map_err(text)?;
                expect(names(&wire(listed)?, "uri"), strings(&with["uris"]))
            }
            "templates" => {
                let listed = self.peer().list_all_resource_templates().await;
                let found = wire(listed.map_err(text)?)?;
                expect(names(&found, "uriTemplate"), strings(&with["templates"]))
            }
            "read" => self.read(with).await,
            "prompts" => {
                let listed = self.peer().list_all_prompts().await.map_err(text)?;
                expect(names(&wire(listed)?, "name"), strings(&with["names"]))
            }
            "prompt" => self.prompt(with).await,
            "complete" => {
                let params = json!({"ref": with["ref"], "argument": with["argument"]});
                let result = self.peer().complete(made(params)?).await.map_err(text)?;
                expect(&wire(result)?["completion"]["values"], &with["values"])
            }
            "log" => self.log(with).await,
            "subscribe" => self.subscribe(with).await,
            "changed" => self.changed(with).await,
            "elicit" => self.elicit(with).await,
            "update" => self.update(with).await,
            "cancel" => self.cancel(with).await,
            _ => Err(format!("there is no step `{step}`")),
        }
    }

    fn capabilities(&self, with: &Value) -> Result<(), String> {
        let info = wire(self.peer().peer_info().as_deref())?;
        let missing: Vec<_> = strings(&with["has"])
            .into_iter()
            .filter(|name| info["capabilities"].get(name).is_none())
            .collect();
        expect(missing, vec![])
    }

    async fn list(&self, with: &Value) -> Result<(), String> {
        let listed = self.peer().list_all_tools().await.map_err(text)?;
        let optional = strings(&with["optional"]);
        let found: BTreeSet<_> = names(&wire(listed)?, "name");
        expect(&found - &optional, strings(&with["names"]))
    }

    async fn call_one(&self, fails: bool, with: &Value) -> Result<(), String> {
        let result = self.call(with, Value::Null).await?;
        expect(result["isError"] == true, fails)?;
        compare(&said(&result["content"]), &with["text"], &with["contains"])
    }

    async fn progress(&mut self, with: &Value) -> Result<(), String> {
        let result = self.call(with, Value::Null).await?;
        compare(&said(&result["content"]), &Value::Null, &with["contains"])?;
        let seen: Vec<(f64, Option<f64>)> = made(with["seen"].clone())?;
        for (progress, total) in seen {
            expect(self.next_progress().await?, (progress, total))?;
        }
        Ok(())
    }

    async fn ping(&self) -> Result<(), String> {
        let ping = ClientRequest::PingRequest(PingRequest::default());
        match self.peer().send_request(ping).await.map_err(text)? {
            ServerResult::EmptyResult(_) => Ok(()),
            other => Err(format!("ping was answered {other:?}")),
        }
    }

    async fn read(&self, with: &Value) -> Result<(), String> {
        let params = made(json!({"uri": with["uri"]}))?;
        let result = wire(self.service.read_resource(params).await.map_err(text)?)?;
        let contents = &result["contents"][0];
        match &with["blob"] {
            Value::Null => compare(
                contents["text"].as_str().unwrap_or_default(),
                &with["text"],
                &with["contains"],
            ),
            blob => expect(&contents["blob"], blob),
        }
    }

    async fn prompt(&self, with: &Value) -> Result<(), String> {
        let params = json!({"name": with["name"], "arguments": with["arguments"]});
        let result = self.service.get_prompt(made(params)?).await;
        let result = wire(result.map_err(text)?)?;
        let found = result["messages"][0]["content"]["text"].clone();
        expect(&found, &with["text"])
    }

    async fn log(&mut self, with: &Value) -> Result<(), String> {
        if self.is_modern() {
            let meta = json!({"io.modelcontextprotocol/logLevel": with["level"]});
            self.call(with, meta).await?;
        } else {
            let params = made(json!({"level": with["level"]}))?;
            self.peer().set_level(params).await.map_err(text)?;
            self.call(with, Value::Null).await?;
        }
        let part = with["contains"].as_str().unwrap_or_default();
        self.until(|event| matches!(event, Event::Log(data) if data.contains(part)))
            .await
    }

    async fn subscribe(&mut self, with: &Value) -> Result<(), String> {
        let uri = with["uri"].as_str().unwrap_or_default();
        if self.is_modern() {
            let filter = SubscriptionFilter::builder().resource_subscription(uri);
            let mut subscription = self.listen(filter.build()).await?;
            self.call(with, Value::Null).await?;
            match subscription.next().await.map_err(text)? {
                Some(ServerNotification::ResourceUpdatedNotification(updated)) => {
                    expect(updated.params.uri.as_str(), uri)?;
                }
                other => return Err(format!("the listen stream brought {other:?}")),
            }
            return subscription.cancel().await.map_err(text);
        }
        let params = json!({"uri": uri});
        let peer = self.peer();
        peer.subscribe(made(params.clone())?).await.map_err(text)?;
        self.call(with, Value::Null).await?;
        self.until(|event| *event == Event::Updated(uri.into()))
            .await?;
        self.peer().unsubscribe(made(params)?).await.map_err(text)
    }

    async fn changed(&mut self, with: &Value) -> Result<(), String> {
        let kind = with["kind"].as_str().unwrap_or_default();
        if self.is_modern() {
            let filter = SubscriptionFilter::builder().tools_list_changed();
            let mut subscription = self.listen(filter.build()).await?;
            self.call(with, Value::Null).await?;
            match subscription.next().await.map_err(text)? {
                Some(ServerNotification::ToolListChangedNotification(_)) => {}
                other => return Err(format!("the listen stream brought {other:?}")),
            }
            return subscription.cancel().await.map_err(text);
        }
        self.call(with, Value::Null).await?;
        self.until(|event| matches!(event, Event::Changed(found) if *found == kind))
            .await
    }

    async fn elicit(&self, with: &Value) -> Result<(), String> {
        self.dialogue().answer = with["answer"].clone();
        let result = self.call(with, Value::Null).await?;
        compare(&said(&result["content"]), &Value::Null, &with["contains"])?;
        let asked = self.dialogue().asked.clone();
        expect(&Value::from(asked), &with["asked"])
    }

    /// The user opens a second folder, of which the server is told.
    async fn update(&mut self, with: &Value) -> Result<(), String> {
        self.dialogue().has_second_root = true;
        let told = self.peer().notify_roots_list_changed().await;
        told.map_err(text)?;
        let part = with["contains"].as_str().unwrap_or_default();
        self.until(|event| matches!(event, Event::Log(data) if data.contains(part)))
            .await
    }

    /// Calls the tool and, once it runs, gives the call up.
    async fn cancel(&mut self, with: &Value) -> Result<(), String> {
        let before = self.count(with).await?;
        let tool = json!({"name": with["tool"], "arguments": {}});
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(made(tool)?));
        let options = PeerRequestOptions::no_options();
        let slow = self.peer().send_cancellable_request(request, options).await;
        let slow = slow.map_err(text)?;
        self.until(|event| matches!(event, Event::Progress(..)))
            .await?;
        slow.cancel(Some("enough".into())).await.map_err(text)?;
        while self.count(with).await? == before {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        expect(self.count(with).await?, before + 1)
    }

    async fn count(&self, with: &Value) -> Result<u64, String> {
        let counter = json!({"tool": with["counter"], "arguments": {}});
        let result = self.call(&counter, Value::Null).await?;
        said(&result["content"]).parse().map_err(text)
    }

    /// Calls a tool, answering what is asked in between; the result as on the wire.
    async fn call(&self, with: &Value, meta: Value) -> Result<Value, String> {
        let params = json!({"name": with["tool"], "arguments": with["arguments"], "_meta": meta});
        let params: CallToolRequestParams = made(params)?;
        wire(self.service.call_tool(params).await.map_err(text)?)
    }

    async fn listen(&self, filter: SubscriptionFilter) -> Result<Subscription, String> {
        self.peer().listen(filter).await.map_err(text)
    }

    async fn next_progress(&mut self) -> Result<(f64, Option<f64>), String> {
        while let Some(event) = self.events.recv().await {
            if let Event::Progress(progress, total) = event {
                return Ok((progress, total));
            }
        }
        Err("the connection ended".into())
    }

    async fn until(&mut self, is_wanted: impl Fn(&Event) -> bool) -> Result<(), String> {
        while let Some(event) = self.events.recv().await {
            if is_wanted(&event) {
                return Ok(());
            }
        }
        Err("the connection ended".into())
    }

    fn is_modern(&self) -> bool {
        self.version().as_str() >= "2026-07-28"
    }

    fn peer(&self) -> &Peer<RoleClient> {
        self.service.peer()
    }

    fn dialogue(&self) -> MutexGuard<'_, Dialogue> {
        self.dialogue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn made<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(text)
}

fn wire(value: impl Serialize) -> Result<Value, String> {
    serde_json::to_value(value).map_err(text)
}

/// The text blocks of a result.
fn said(content: &Value) -> String {
    let blocks = content.as_array().into_iter().flatten();
    blocks.filter_map(|block| block["text"].as_str()).collect()
}

/// What each object of a list has under `key`.
fn names(list: &Value, key: &str) -> BTreeSet<String> {
    let items = list.as_array().into_iter().flatten();
    let names = items.filter_map(|item| item[key].as_str());
    names.map(String::from).collect()
}

fn strings(list: &Value) -> BTreeSet<String> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(Value::as_str).map(String::from).collect()
}

fn compare(found: &str, whole: &Value, part: &Value) -> Result<(), String> {
    match part.as_str() {
        None => expect(&Value::from(found), whole),
        Some(part) if found.contains(part) => Ok(()),
        Some(part) => Err(format!("found {found:?}, expected it to contain {part:?}")),
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
