//! `/mcp/tollgate`: a server without sessions, which speaks both eras by itself.

use http::{Method as Verb, Response};
use serde_json::json;

use super::{Tool, awaited, call, definitions, named, page};
use crate::{
    gateway::{
        Ask, Asked, Entry, Finding, Gateway, ReplyBody, kind, reply::finding, session::lifecycle,
    },
    mcp::{Era, Method, Revision},
    policy,
    refusal::{Code, Refusal},
};

/// Answers one request.
pub(in crate::gateway) async fn serve(
    gateway: &Gateway,
    ask: &Ask,
    mut entry: Box<Entry>,
) -> Response<ReplyBody> {
    entry.record().generation = Some(ask.policy.generation);
    if let Err(refusal) = admit(ask) {
        return finding::unread(entry, Era::Legacy, &refusal.into());
    }
    let asked = match Asked::read(gateway, ask, None, &mut entry) {
        Ok(asked) => asked,
        Err((era, rejection)) => return finding::unread(entry, era, &rejection),
    };
    if let Some(method) = asked.asker.method {
        entry.is(kind(method), method.as_str());
    }
    match answer(gateway, ask, &asked, &mut entry).await {
        Ok(Finding::Own(result)) => finding::own(entry, &asked, &result, None).await,
        Ok(_) => finding::accepted(&asked, entry).await,
        Err(refusal) => finding::refused(entry, &asked, refusal).await,
    }
}

fn admit(ask: &Ask) -> Result<(), Refusal> {
    if !policy::may_use_builtin(&ask.policy, &ask.caller) {
        let server = &ask.server;
        return Err(Refusal::new(
            Code::ServerUnknown,
            format!("no server `{server}`"),
        ));
    }
    if ask.head.method != Verb::POST {
        return Err(Refusal::new(
            Code::MethodNotAllowed,
            "this server has no sessions and no streams",
        ));
    }
    Ok(())
}

async fn answer(
    gateway: &Gateway,
    ask: &Ask,
    asked: &Asked<'_>,
    entry: &mut Entry,
) -> Result<Finding, Refusal> {
    let era = asked.asker.era;
    if asked.asker.id_text().is_none() {
        return Ok(Finding::Accepted);
    }
    let result = match asked.asker.method {
        Some(Method::Initialize) => welcome(asked),
        Some(Method::Discover) => discovery(),
        Some(Method::Ping) => json!({}),
        Some(Method::ToolsList) => {
            let awaited = awaited(gateway, ask).await;
            return Ok(Finding::Own(list(era, awaited)));
        }
        Some(Method::ToolsCall) => return called(gateway, ask, asked, entry).await,
        _ => {
            return Err(Refusal::new(
                Code::MethodUnknown,
                "this server has tools only",
            ));
        }
    };
    entry.admit_read()?;
    Ok(Finding::Own(result.to_string()))
}

async fn called(
    gateway: &Gateway,
    ask: &Ask,
    asked: &Asked<'_>,
    entry: &mut Entry,
) -> Result<Finding, Refusal> {
    let name = named(asked)
        .and_then(|name| name.string())
        .unwrap_or_default();
    let Some(tool) = Tool::find(&name) else {
        entry.record().tool = Some(name.as_ref().into());
        let public = format!("no tool `{name}` on server `{}`", ask.server);
        return Err(Refusal::new(Code::ToolUnknown, public));
    };
    call(gateway, ask, asked, entry, tool).await
}

fn welcome(asked: &Asked<'_>) -> serde_json::Value {
    let params = asked.message.params.as_ref();
    let wanted = params.and_then(|params| params.protocol_version?.string());
    let version = lifecycle::revision(wanted.as_deref().unwrap_or_default());
    json!({
        "protocolVersion": version.as_str(),
        "capabilities": { "tools": {} },
        "serverInfo": info()
    })
}

fn discovery() -> serde_json::Value {
    json!({
        "resultType": "complete",
        "supportedVersions": Revision::SERVED.map(Revision::as_str),
        "capabilities": { "tools": {} },
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": { "io.modelcontextprotocol/serverInfo": info() }
    })
}

fn info() -> serde_json::Value {
    json!({ "name": super::SERVER, "version": env!("CARGO_PKG_VERSION") })
}

fn list(era: Era, awaited: bool) -> String {
    page(era, "tools", &definitions(awaited, Tool::name))
}
