//! The tool that tells of the caller's connections: how they stand, and where to connect.

use serde_json::{Value, json};

use super::kind;
use crate::{
    connect::{Connection, State},
    gateway::{Ask, Asked, Finding, Gateway},
    policy::{self, Auth, Permit},
};

/// Servers that are told of at most.
const MOST: usize = 256;

/// The definition.
pub(super) fn definition(name: &str) -> Value {
    json!({
        "name": name,
        "title": "Connections to servers",
        "description": "Tells which servers await a connection of the user, and the link of the page on which the user connects. Show the link to the user; it works in the user's own browser only. Tells too for which servers the operator has to do something.",
        "inputSchema": { "type": "object", "properties": {}, "additionalProperties": false },
        "annotations": { "readOnlyHint": true, "idempotentHint": true, "openWorldHint": false }
    })
}

/// Whether a server that the caller may use awaits a connection.
pub(in crate::gateway) async fn awaited(gateway: &Gateway, ask: &Ask) -> bool {
    let connections = &gateway.shared.connections;
    for permit in kept(ask) {
        let state = connections.state(&permit).await;
        if state.is_ok_and(|found| found.state != State::Connected) {
            return true;
        }
    }
    false
}

/// The servers that the caller may use and which get a credential, each user's own or the operator's, by name.
fn kept(ask: &Ask) -> Vec<Permit> {
    let servers = ask.policy.servers.values();
    let kept = servers.filter(|server| !matches!(server.auth, Auth::None));
    let mut permits: Vec<Permit> = kept
        .filter_map(|server| policy::decide(&ask.policy, &ask.caller, &server.name).ok())
        .collect();
    permits.sort_by(|one, other| one.server().name.cmp(&other.server().name));
    permits.truncate(MOST);
    permits
}

/// Tells of them.
pub(super) async fn call(gateway: &Gateway, ask: &Ask, asked: &Asked<'_>) -> Finding {
    let connections = &gateway.shared.connections;
    let mut lines = Vec::new();
    for permit in kept(ask) {
        let name = &permit.server().name;
        let is_personal = permit.server().auth.is_personal();
        let state = match connections.state(&permit).await {
            Ok(found) if !is_personal && found.state == State::Connected => continue,
            Ok(_) if !is_personal => {
                "cannot be used until the operator of Tollgate sets its secret; tell the user so"
                    .to_owned()
            }
            Ok(found) => stands(&found, &connections.link(name)),
            Err(_) => "its connections cannot be read now; try again later".to_owned(),
        };
        let title = permit.server().title.as_deref();
        let title = title.map_or_else(String::new, |title| format!(" ({title})"));
        lines.push(format!("`{name}`{title}: {state}"));
    }
    if lines.is_empty() {
        lines.push("no server here wants a connection".to_owned());
    }
    let text = Value::from(lines.join("\n"));
    Finding::Own(format!(
        r#"{{{}"content":[{{"type":"text","text":{text}}}]}}"#,
        kind(asked.asker.era)
    ))
}

fn stands(found: &Connection, link: &str) -> String {
    match &found.state {
        State::Connected => "connected".to_owned(),
        State::NotConnected => format!("not connected; open {link} and connect there"),
        State::Connecting(_) => format!("being connected; the page is {link}"),
        State::NeedsReconnect(reason) => {
            format!("the connection has ended ({reason}); open {link} and connect again")
        }
        State::MorePermissions(scopes) => format!(
            "connected, and the server wants more permissions ({}); open {link} and agree to them",
            scopes.join(" ").escape_debug()
        ),
    }
}
