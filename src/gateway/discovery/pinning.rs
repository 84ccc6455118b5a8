//! What a server shows, on its way into the catalogue: whole lists, read at the first use of a view and to find a tool;
//! what is told of them.

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::timeout_at;

use super::sheets::Sheets;
use crate::{
    audit::{Kind, OutcomeKind, Phase, Record},
    catalog::{Block, Book, Error, Item, Report, Shown, Suspicion, Taken, Turn, View, suspicions},
    deadline::Deadline,
    egress::Effect,
    gateway::{Asked, Gateway},
    mcp::{
        Envelope,
        items::{Fate, List},
    },
    policy::Permit,
    refusal::{Code, Refusal},
    upstream::{Edit, Message, Request, own},
};

/// Records of one list at most; what is more is counted in the log.
const RECORDS: usize = 1_024;
/// Lines in the log of one list at most.
const LINES: usize = 16;
/// Work on more bytes than this holds a worker's other requests up, and is done elsewhere.
const LARGE: usize = 128 << 10;

/// The pins of the server; at the first use of the caller's view, what the whole list shows was entered before.
pub(super) async fn settled(
    gateway: &Gateway,
    asked: &Asked<'_>,
    permit: &Permit,
    list: List,
    deadline: Deadline,
) -> Result<Book, Refusal> {
    let book = open(gateway, permit).await?;
    if book.is_settled(asked.view(permit), list) {
        return Ok(book);
    }
    // An error is the server's own to tell: the caller's request brings it.
    read_whole(gateway, asked, permit, &book, list, deadline).await?;
    open(gateway, permit).await
}

/// Reads a whole list for a caller who asks for one of its items, unless another has just done so. False where the
/// server answers with an error.
pub(in crate::gateway) async fn read_list(
    gateway: &Gateway,
    asked: &Asked<'_>,
    permit: &Permit,
    list: List,
    deadline: Deadline,
) -> Result<bool, Refusal> {
    let book = open(gateway, permit).await?;
    read_whole(gateway, asked, permit, &book, list, deadline).await
}

/// The pins of the server.
pub(in crate::gateway) async fn open(gateway: &Gateway, permit: &Permit) -> Result<Book, Refusal> {
    let server = permit.server();
    let book = gateway.shared.catalog.open(server).await;
    book.map_err(|error| refusal(permit, error))
}

/// Logs why pins cannot be used, which is for the operator to see to.
pub(super) fn refusal(permit: &Permit, error: Error) -> Refusal {
    let refusal = Refusal::from(error);
    tracing::error!(
        server = %permit.server().name,
        code = refusal.code.as_str(),
        detail = refusal.detail.as_deref(),
        "{}",
        refusal.public
    );
    refusal
}

/// Reads all pages of a list, unless another has just done so. False where the server answers with an error.
async fn read_whole(
    gateway: &Gateway,
    asked: &Asked<'_>,
    permit: &Permit,
    book: &Book,
    list: List,
    deadline: Deadline,
) -> Result<bool, Refusal> {
    let waiting = timeout_at(deadline.instant(), book.turn(asked.view(permit), list));
    let Some(turn) = waiting.await.map_err(|_| still_reading(permit))? else {
        return Ok(true);
    };
    let _leave = gateway.upstream.admit(permit)?;
    let mut sheets = Sheets::new(permit, list);
    let mut cursor: Option<String> = None;
    loop {
        let message = read_one(gateway, asked, permit, list, cursor.as_deref(), deadline).await?;
        cursor = match sheets.add(&message).await? {
            Some(next) => next,
            None => return Ok(false),
        };
        if cursor.is_none() {
            break;
        }
    }
    finish(gateway, permit, turn, sheets.shown).await?;
    Ok(true)
}

/// Takes the whole list and tells of it, to the end: a caller who goes away meanwhile would otherwise leave something
/// pinned that nobody was told of.
pub(super) async fn finish(
    gateway: &Gateway,
    permit: &Permit,
    turn: Turn,
    shown: Vec<Shown>,
) -> Result<Vec<Shown>, Refusal> {
    let (gateway, permit) = (gateway.clone(), permit.clone());
    to_the_end(async move {
        let finished = turn.finish(&shown).await;
        let found = finished.map_err(|error| refusal(&permit, error))?;
        report(&gateway, &permit, found).await?;
        Ok(shown)
    })
    .await
}

/// Does `work`, whether or not somebody waits for it.
async fn to_the_end<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    let done = tokio::spawn(work).await;
    done.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

pub(super) fn still_reading(permit: &Permit) -> Refusal {
    let server = &permit.server().name;
    Refusal::new(
        Code::CallTimeout,
        format!("the lists of server `{server}` are still being read for others"),
    )
}

async fn read_one(
    gateway: &Gateway,
    asked: &Asked<'_>,
    permit: &Permit,
    list: List,
    cursor: Option<&str>,
    deadline: Deadline,
) -> Result<Message, Refusal> {
    let id = gateway.upstream.next_id();
    let offer = asked.offer(permit).unwrap_or_default();
    let request = Request {
        permit,
        wire: asked.wire(|| own::fields(list.method())),
        body: own::list_body(list, asked.asker.era, id, cursor, offer.as_json()),
        id,
        effect: &Effect::Read,
        credential: None,
        deadline,
    };
    let (message, _) = gateway.upstream.ask_whole(request).await?;
    Ok(message?)
}

/// Does work on so many bytes where it holds nobody up.
pub(super) async fn aside<T: Send + 'static>(
    size: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    if size <= LARGE {
        return work();
    }
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

/// Puts the instructions of a server, a part of `message`, back to those that are pinned; at the first use of a view
/// they are pinned. Where none are, none are passed on.
pub(in crate::gateway) async fn instructions(
    gateway: &Gateway,
    permit: &Permit,
    view: View,
    message: &Message,
    found: Option<&str>,
) -> Result<Option<Edit>, Refusal> {
    let Some(found) = found else {
        return Ok(None);
    };
    let fate = to_the_end(heard(
        gateway.clone(),
        permit.clone(),
        view,
        found.to_owned(),
    ))
    .await?;
    let text = match &fate {
        Fate::Keep => return Ok(None),
        Fate::Drop => r#""""#,
        Fate::Replace(pinned) => pinned,
    };
    let place = message.part_of_result(found);
    Ok(place.map(|place| Edit {
        place,
        text: text.to_owned(),
    }))
}

/// What becomes of these instructions, once it was told of.
async fn heard(
    gateway: Gateway,
    permit: Permit,
    view: View,
    found: String,
) -> Result<Fate<Arc<str>>, Refusal> {
    let book = open(&gateway, &permit).await?;
    let judged = book.instructions(view, &found).await;
    let (fate, news) = judged.map_err(|error| refusal(&permit, error))?;
    report(&gateway, &permit, news).await?;
    Ok(fate)
}

/// Tells of what was pinned, and of what is not offered: records before anything is offered, the log, metrics.
pub(super) async fn report(
    gateway: &Gateway,
    permit: &Permit,
    report: Report,
) -> Result<(), Refusal> {
    if let Some(taken) = report.taken {
        tell_taken(gateway, permit, taken).await?;
    }
    tell_blocks(gateway, permit, &report.blocks)
}

async fn tell_taken(gateway: &Gateway, permit: &Permit, taken: Taken) -> Result<(), Refusal> {
    let server = &permit.server().name;
    let (version, items) = (taken.version, taken.items.len());
    tracing::info!(%server, version, items, "the first list of a view was pinned");
    let pinned = record(gateway, permit, "pinned").ended(OutcomeKind::Allowed, None);
    let _kept = gateway.shared.journal.queue(pinned)?;
    gateway.shared.metrics.catalog_pinned.inc_by(items as u64);
    let others = gateway.shared.catalog.others(server);
    let size = taken.items.iter().map(|item| item.definition.len()).sum();
    let found = aside(size, move || {
        let found = taken.items.into_iter().flat_map(|item| {
            let found = suspicions(&item, &others);
            found.into_iter().map(move |found| (item.clone(), found))
        });
        found.take(RECORDS).collect::<Vec<(Item, Suspicion)>>()
    });
    for (at, (item, suspicion)) in found.await.into_iter().enumerate() {
        if at < LINES {
            let (kind, name) = (item.kind.as_str(), item.name.escape_debug());
            tracing::warn!(%server, kind, %name, %suspicion, "a pinned definition is suspicious");
        }
        let mut record = record(gateway, permit, "suspicious").ended(OutcomeKind::Allowed, None);
        record.tool = Some(item.name);
        let _kept = gateway.shared.journal.queue(record)?;
    }
    Ok(())
}

fn tell_blocks(gateway: &Gateway, permit: &Permit, blocks: &[Block]) -> Result<(), Refusal> {
    let server = &permit.server().name;
    for (at, block) in blocks.iter().enumerate() {
        let (kind, reason) = (block.kind.as_str(), &block.reason);
        gateway.shared.metrics.catalog_blocked(reason.as_str());
        if at < LINES {
            let name = block.name.escape_debug();
            tracing::warn!(%server, kind, %name, %reason, "a definition is not offered");
        }
        if at < RECORDS {
            let mut record = record(gateway, permit, reason.as_str())
                .ended(OutcomeKind::Refused, Some(reason.code()));
            record.tool = Some(block.name.clone());
            let _kept = gateway.shared.journal.queue(record)?;
        }
    }
    if blocks.len() > LINES {
        let more = blocks.len() - LINES;
        tracing::warn!(%server, more, "more definitions are not offered");
    }
    Ok(())
}

fn record(gateway: &Gateway, permit: &Permit, what: &'static str) -> Record {
    let now = gateway.shared.clock.now();
    let mut record = Record::new(now, Kind::Catalog, Phase::Decision);
    record.server = Some(permit.server().name.clone());
    record.generation = Some(permit.generation());
    record.method = Some(what.into());
    record
}

/// Takes down which list the server says changed; `text` is a notification that one did.
pub(in crate::gateway) fn changed(gateway: &Gateway, permit: &Permit, text: &Bytes) {
    let message = Envelope::upstream(text);
    let list = match message.as_ref().map(|message| &*message.method) {
        Ok("notifications/prompts/list_changed") => List::Prompts,
        Ok("notifications/resources/list_changed") => List::Templates,
        Ok(_) | Err(_) => List::Tools,
    };
    gateway.shared.catalog.changed(permit.server(), list);
}
