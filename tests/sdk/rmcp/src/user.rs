//! What is behind the client: it answers what a server asks, and passes on what a server tells.

// Sampling, roots and logging leave the protocol; until then they are part of it.
#![expect(deprecated)]

use std::sync::{Arc, Mutex, PoisonError};

use rmcp::ClientHandler;
use rmcp::ErrorData;
use rmcp::model::{
    ClientConfig, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams,
    ElicitResult, ListRootsResult, LoggingMessageNotificationParam, ProgressNotificationParam,
    ResourceUpdatedNotificationParam,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// What a server told, by kind.
#[derive(Debug, PartialEq)]
pub enum Event {
    Progress(f64, Option<f64>),
    Log(String),
    Updated(String),
    Changed(&'static str),
}

/// What the user answers next, what it was asked last, and what it has open.
#[derive(Default)]
pub struct Dialogue {
    pub answer: Value,
    pub asked: String,
    pub has_second_root: bool,
}

pub struct User {
    pub dialogue: Arc<Mutex<Dialogue>>,
    pub events: mpsc::UnboundedSender<Event>,
}

impl User {
    fn tell(&self, event: Event) {
        // A step that no longer listens has ended.
        let _ = self.events.send(event);
    }
}

impl ClientHandler for User {
    fn get_info(&self) -> ClientConfig {
        let capabilities = json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {"listChanged": true}});
        let mut info = ClientConfig::default();
        info.capabilities = serde_json::from_value(capabilities).unwrap_or_default();
        info
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let mut dialogue = self.dialogue.lock().unwrap_or_else(PoisonError::into_inner);
        dialogue.asked = match request {
            ElicitRequestParams::FormElicitationParams { message, .. }
            | ElicitRequestParams::UrlElicitationParams { message, .. } => message,
            _ => String::new(),
        };
        answer(dialogue.answer.clone())
    }

    async fn create_message(
        &self,
        _: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let content = json!({"type": "text", "text": "an old silent pond"});
        answer(json!({
            "role": "assistant", "content": content, "model": "pond-1", "stopReason": "endTurn",
        }))
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        let dialogue = self.dialogue.lock().unwrap_or_else(PoisonError::into_inner);
        let mut roots = vec![json!({"uri": "file:///project", "name": "project"})];
        if dialogue.has_second_root {
            roots.push(json!({"uri": "file:///second", "name": "second"}));
        }
        answer(json!({"roots": roots}))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.tell(Event::Progress(params.progress, params.total));
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.tell(Event::Log(params.data.as_str().unwrap_or_default().into()));
    }

    async fn on_resource_updated(
        &self,
        params: ResourceUpdatedNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.tell(Event::Updated(params.uri));
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.tell(Event::Changed("resources"));
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.tell(Event::Changed("tools"));
    }
}

fn answer<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value)
        .map_err(|fault| ErrorData::internal_error(fault.to_string(), None))
}
