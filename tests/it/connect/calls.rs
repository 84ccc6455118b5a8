//! What requests show tool servers, and what callers are told whom a server does not let in.

mod asked;
mod lists;
mod offered;
mod secrets;
mod sessions;
mod shared;
mod silence;
mod tokens;
mod verdicts;

use serde_json::Value;

use crate::support::client::Reply;

/// The page of the server `s`.
const PAGE: &str = "https://gate.example/connect/s";

/// The text of a call's refusal.
fn text(reply: &Reply) -> String {
    let body = reply.json();
    assert_eq!(body["result"]["isError"], true, "{}", reply.body);
    let text = body["result"]["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("{}", reply.body)).to_owned()
}

/// The names of the tools in an answer.
fn tools(reply: &Reply) -> Vec<String> {
    let body = reply.json();
    let tools = body["result"]["tools"].as_array();
    let tools = tools.unwrap_or_else(|| panic!("{}", reply.body));
    let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
    tools.iter().map(name).collect()
}
