//! The tools: three that only read, and one that has an effect.

use serde_json::{Value, json};

use super::{Message, State};
use crate::{
    clock::{Clock, SystemClock},
    mcp::Rejection,
    refusal::Code,
};

/// What a call comes to.
pub(super) enum Called {
    Text { text: String, is_error: bool },
    Count { to: u64 },
}

/// The definitions, as `tools/list` shows them.
pub(super) fn definitions() -> Value {
    json!([
        {
            "name": "get_time",
            "description": "The current time in UTC.",
            "inputSchema": { "type": "object", "additionalProperties": false },
            "annotations": { "readOnlyHint": true },
        },
        {
            "name": "get_weather",
            "description": "The weather in a city (always the same: this is a demo).",
            "inputSchema": schema(&[("city", json!({ "type": "string" }))]),
            "annotations": { "readOnlyHint": true },
        },
        {
            "name": "count_slowly",
            "description": "Counts to a number and reports progress on the way.",
            "inputSchema": schema(&[("to", json!({ "type": "integer", "minimum": 1, "maximum": 20 }))]),
            "annotations": { "readOnlyHint": true },
        },
        {
            "name": "send_message",
            "description": "Sends a message to a person.",
            "inputSchema": schema(&[("to", json!({ "type": "string" })), ("text", json!({ "type": "string" }))]),
            "annotations": { "readOnlyHint": false, "openWorldHint": true },
        },
    ])
}

fn schema(required: &[(&str, Value)]) -> Value {
    let names: Vec<&str> = required.iter().map(|(name, _)| *name).collect();
    let properties: serde_json::Map<String, Value> = required
        .iter()
        .map(|(name, schema)| ((*name).to_owned(), schema.clone()))
        .collect();
    json!({ "type": "object", "properties": properties, "required": names, "additionalProperties": false })
}

/// Runs a tool. Arguments that do not fit are an error the model reads; an unknown tool is a protocol error.
pub(super) fn call(state: &State, name: &str, arguments: &Value) -> Result<Called, Rejection> {
    let text = |key: &str| arguments[key].as_str();
    let called = match name {
        "get_time" => said(time()),
        "get_weather" => match text("city") {
            Some(city) => said(format!("{city}: 21 degrees, light wind from the west")),
            None => wrong("`city` must be a string"),
        },
        "count_slowly" => match arguments["to"].as_u64() {
            Some(to @ 1..=20) => Called::Count { to },
            _ => wrong("`to` must be an integer from 1 to 20"),
        },
        "send_message" => match (text("to"), text("text")) {
            (Some(to), Some(text)) => {
                state.send(Message {
                    to: to.to_owned(),
                    text: text.to_owned(),
                });
                said(format!("sent to {to}"))
            }
            _ => wrong("`to` and `text` must be strings"),
        },
        _ => {
            return Err(Rejection::new(
                Code::ToolUnknown,
                format!("no tool `{name}`"),
            ));
        }
    };
    Ok(called)
}

fn time() -> String {
    jiff::Timestamp::try_from(SystemClock.now())
        .map_or_else(|_| "unknown".to_owned(), |now| now.to_string())
}

fn said(text: String) -> Called {
    Called::Text {
        text,
        is_error: false,
    }
}

fn wrong(text: &str) -> Called {
    Called::Text {
        text: text.to_owned(),
        is_error: true,
    }
}
