//! What callers are told of a server that they are not connected to: what is pinned of it. Nothing is asked of the server.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    catalog::{Book, Item},
    gateway::{
        Ask, Asked, Finding, Gateway, builtin,
        discovery::{list::check_size, pinning},
        session::{Client, lifecycle},
    },
    mcp::{Era, Revision, items::List},
    policy::{Permit, Server},
    refusal::Refusal,
    upstream::{Hello, Session},
};

/// The only page of a list; nothing of the server's own stands in it where that is `withheld`.
pub(in crate::gateway) async fn list(
    gateway: &Gateway,
    asked: &Asked<'_>,
    permit: &Permit,
    list: List,
    (awaited, withheld): (bool, bool),
) -> Result<Finding, Refusal> {
    let era = asked.asker.era;
    let items = match withheld {
        true => Vec::new(),
        false => pinned(&pinning::open(gateway, permit).await?, permit, list, era),
    };
    let own = builtin::beside(permit, list, awaited);
    let texts = items.iter().map(|item| &*item.definition);
    let texts: Vec<&str> = texts.chain(own.as_deref()).collect();
    let all = texts.join(",");
    check_size(permit, all.len())?;
    Ok(Finding::Own(builtin::page(era, list.array(), &all)))
}

/// What of a list is pinned, of use and not hidden.
fn pinned(book: &Book, permit: &Permit, list: List, era: Era) -> Vec<Item> {
    let mut items = book.standing(list, era);
    if list == List::Tools {
        items.retain(|item| !permit.hidden(&item.name) && !builtin::is_reserved(&item.name));
    }
    items
}

/// What a server says of itself, as far as that is pinned.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Greeting<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol_version: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    supported_versions: &'a [&'a str],
    capabilities: Capabilities,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_info: Option<Info<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_scope: Option<&'a str>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<Meta<'a>>,
}

#[derive(Serialize)]
struct Capabilities {
    tools: Changing,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompts: Option<Empty>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resources: Option<Empty>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Changing {
    list_changed: bool,
}

#[derive(Serialize)]
struct Empty {}

#[derive(Serialize)]
struct Meta<'a> {
    #[serde(rename = "io.modelcontextprotocol/serverInfo")]
    info: Info<'a>,
}

#[derive(Serialize)]
struct Info<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    version: &'a str,
}

impl<'a> Info<'a> {
    fn of(server: &'a Server) -> Self {
        Self {
            name: &server.name,
            title: server.title.as_deref(),
            version: env!("CARGO_PKG_VERSION"),
        }
    }
}

impl Capabilities {
    fn of(book: &Book, era: Era) -> Self {
        let has = |list| (!book.standing(list, era).is_empty()).then_some(Empty {});
        Self {
            tools: Changing { list_changed: true },
            prompts: has(List::Prompts),
            resources: has(List::Templates),
        }
    }
}

/// The answer to `server/discover`; what the server says to models is left out where that is `withheld`.
pub(in crate::gateway) async fn discovery(
    gateway: &Gateway,
    permit: &Permit,
    withheld: bool,
) -> Result<Finding, Refusal> {
    let book = pinning::open(gateway, permit).await?;
    let greeting = Greeting {
        result_type: Some("complete"),
        protocol_version: None,
        supported_versions: &[Revision::MODERN.as_str()],
        capabilities: Capabilities::of(&book, Era::Modern),
        server_info: None,
        instructions: instructions(&book).filter(|_| !withheld),
        ttl_ms: Some(0),
        cache_scope: Some("private"),
        meta: Some(Meta {
            info: Info::of(permit.server()),
        }),
    };
    Ok(Finding::Own(text(&greeting)))
}

/// The answer to `initialize`, and the session that it opens: its server hears of it with the first request that can be
/// sent. What the server says to models is left out where that is `withheld`.
pub(in crate::gateway) async fn welcome(
    gateway: &Gateway,
    ask: &Ask,
    permit: &Permit,
    (client, hello): (Client, Hello),
    withheld: bool,
) -> Result<Finding, Refusal> {
    let book = pinning::open(gateway, permit).await?;
    let greeting = Greeting {
        result_type: None,
        protocol_version: Some(hello.revision().as_str()),
        supported_versions: &[],
        capabilities: Capabilities::of(&book, Era::Legacy),
        server_info: Some(Info::of(permit.server())),
        instructions: instructions(&book).filter(|_| !withheld),
        ttl_ms: None,
        cache_scope: None,
        meta: None,
    };
    let text = text(&greeting);
    let session = lifecycle::open(gateway, ask, permit, Session::unopened(hello), client);
    Ok(Finding::Welcome(text, session))
}

fn instructions(book: &Book) -> Option<Box<RawValue>> {
    let pinned = book.standing_instructions()?;
    RawValue::from_string(pinned.to_string()).ok()
}

fn text(greeting: &Greeting<'_>) -> String {
    serde_json::to_string(greeting).expect("structs of strings and numbers serialise")
}
