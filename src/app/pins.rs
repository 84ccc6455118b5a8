//! Pins at the control socket: what is pinned, what a server shows, and accepting that.

use std::{collections::BTreeMap, path, sync::Arc};

use serde_json::value::RawValue;

use super::{
    control::{
        Answer,
        pins::{Accepted, AcceptedItem, Definition, Pins, PinsFile, Row, Selection, State},
    },
    core::Core,
    worker,
};
use crate::{
    audit::{Kind, OutcomeKind, Phase, Record},
    catalog::{
        Accept, Change, Chosen, Item, ItemKind, Others, Overview, Pinned, diff, pins_file,
        suspicions,
    },
    id,
    policy::{self, Permit, Pin, Purpose, Server},
    refusal::{Code, Refusal},
};

/// Records of items that are accepted at once, at most.
const RECORDS: usize = 1_024;

/// What is pinned of a server, and what callers were shown that differs.
pub(super) async fn show(core: &Core, server: &str) -> Answer {
    answer(async {
        let permit = permit(core, server)?;
        overview(core, &permit, None).await
    })
    .await
}

/// The same, after all lists of the server were read. Where it cannot be read, what callers were shown has to do; so it
/// has where the server wants a credential of a user, whom an operator is not.
pub(super) async fn read(shared: &worker::Shared, server: &str) -> Answer {
    let core = &shared.core;
    answer(async {
        let permit = permit(core, server)?;
        if permit.server().auth.is_personal() {
            let mut pins = overview(core, &permit, None).await?;
            pins.unasked = true;
            return Ok(pins);
        }
        let gateway = worker::pipeline(shared).map_err(|error| {
            let text = format!("the name servers cannot be used: {error}");
            Refusal::new(Code::DnsFailed, text)
        })?;
        let (seen, unread) = match gateway.review(&permit).await {
            Ok(seen) => (Some(seen), None),
            Err(refusal) => (None, Some(told(&refusal))),
        };
        let mut pins = overview(core, &permit, seen).await?;
        pins.unread = unread;
        Ok(pins)
    })
    .await
}

async fn answer(pins: impl Future<Output = Result<Pins, Refusal>>) -> Answer {
    match pins.await {
        Ok(pins) => Answer::Pins(pins),
        Err(refusal) => Answer::Failed(vec![told(&refusal)]),
    }
}

fn permit(core: &Core, server: &str) -> Result<Permit, Refusal> {
    let policy = &core.reloader.current_full().policy;
    policy::decide_leg(policy, Purpose::Catalogue, server)
}

/// What an operator does about pins that cannot be used. Nothing else forgets them: whoever could have those of one
/// server forgotten could have it pinned anew as it is now.
const UNUSABLE: &str = "correct the pins file if the server has one; else stop tollgate, restore its database and its \
keyring from one backup, and start it again; where there is no backup, move the database away while it is stopped, and \
every server is pinned anew as it shows itself then";

/// A refusal as an operator reads it.
pub(super) fn told(refusal: &Refusal) -> String {
    let detail = refusal.detail.as_deref();
    let detail = detail.map_or_else(String::new, |detail| format!(": {detail}"));
    let advice = match refusal.code {
        Code::PinsUnusable => format!("; {UNUSABLE}"),
        _ => String::new(),
    };
    format!(
        "{}: {}{detail}{advice}",
        refusal.code.as_str(),
        refusal.public
    )
}

/// `seen`: all that the server shows, if it was just read.
async fn overview(core: &Core, permit: &Permit, seen: Option<Vec<Item>>) -> Result<Pins, Refusal> {
    let catalog = core.gateway.catalog();
    let server = permit.server();
    let Overview { pinned, blocked } = catalog.overview(server).await?;
    let others = catalog.others(&server.name);
    let mut all = seen.unwrap_or_else(|| pinned.items.clone());
    all.extend(blocked);
    let items = rows(server, &pinned, &all, &others);
    Ok(Pins {
        server: server.name.to_string(),
        pin: match server.pin {
            Pin::FirstUse => "first-use".to_owned(),
            Pin::File(_) => "file".to_owned(),
        },
        version: pinned.version,
        reviewed: pinned.reviewed,
        items,
        unasked: false,
        unread: None,
    })
}

/// One row for each difference, and for each name of which nothing differs.
fn rows(server: &Server, pinned: &Pinned, seen: &[Item], others: &Others) -> Vec<Row> {
    let mut rows: BTreeMap<(ItemKind, Arc<str>), Vec<Row>> = BTreeMap::new();
    for change in diff(&pinned.items, seen) {
        let (item, row) = match change {
            Change::Added(new) => {
                let row = row(server, State::New, None, Some(&new), others);
                (new, row)
            }
            Change::Changed { old, new } => {
                let row = row(server, State::Drifted, Some(&old), Some(&new), others);
                (new, row)
            }
            Change::Absent(old) => {
                let row = row(server, State::Absent, Some(&old), None, others);
                (old, row)
            }
        };
        rows.entry((item.kind, item.name)).or_default().push(row);
    }
    for item in &pinned.items {
        let newest = pinned.newest(item.kind, &item.name).unwrap_or(item);
        rows.entry((item.kind, item.name.clone()))
            .or_insert_with(|| vec![row(server, State::Pinned, Some(newest), None, others)]);
    }
    rows.into_values().flatten().collect()
}

fn row(
    server: &Server,
    state: State,
    old: Option<&Item>,
    new: Option<&Item>,
    others: &Others,
) -> Row {
    let item = new.or(old).expect("a row is of something");
    let hinted = item.read_only_hint();
    let accepted = |old: &Item| {
        old.kind == ItemKind::Tool && server.read_only.accepts(&old.name, old.read_only_hint())
    };
    Row {
        kind: item.kind.as_str().to_owned(),
        name: item.name.to_string(),
        state,
        version: old.map(|old| old.version),
        read_only_hint: hinted,
        read_only: old.is_some_and(accepted),
        suspicions: suspicions(item, others)
            .iter()
            .map(ToString::to_string)
            .collect(),
        pinned: old.filter(|_| new.is_some()).map(definition),
        seen: new.map(definition),
    }
}

fn definition(item: &Item) -> Definition {
    let text = item.definition.to_string();
    Definition {
        sha256: id::hex(&item.digest),
        definition: RawValue::from_string(text).expect("the canonical form is JSON"),
    }
}

/// Accepts what was seen. Pins of a file are the command line's to write, since the folder need not be ours to change.
pub(super) async fn accept(core: &Core, server: &str, selection: Selection) -> Answer {
    let accepted = match permit(core, server) {
        Ok(permit) => accept_by(core, &permit, selection).await,
        Err(refusal) => Err(refusal),
    };
    record(core, server, &accepted);
    match accepted {
        Ok(accepted) => Answer::Accepted(accepted),
        Err(refusal) => Answer::Failed(vec![told(&refusal)]),
    }
}

async fn accept_by(
    core: &Core,
    permit: &Permit,
    selection: Selection,
) -> Result<Accepted, Refusal> {
    let catalog = core.gateway.catalog();
    let server = permit.server();
    let what = match selection {
        Selection::All => Accept::All,
        Selection::Tools(names) => {
            Accept::Named(names.iter().map(|name| Chosen::read(name)).collect())
        }
    };
    let before = catalog.overview(server).await?.pinned;
    let after = catalog.accept(server, &what).await?;
    let same = |pinned: &Pinned| {
        let items = pinned.items.iter().map(Item::key);
        items.eq(before.items.iter().map(Item::key))
    };
    let (after, file) = match &server.pin {
        Pin::FirstUse => (after, None),
        // A file that says so already is not written anew.
        Pin::File(Some(_)) if same(&after) => (before.clone(), None),
        Pin::File(_) => {
            let file = file(core, server, &after)?;
            (after, Some(file))
        }
    };
    let new = after
        .items
        .iter()
        .filter(|item| before.find(item).is_none());
    let items: Vec<AcceptedItem> = new
        .map(|item| AcceptedItem {
            kind: item.kind.as_str().to_owned(),
            name: item.name.to_string(),
            sha256: id::hex(&item.digest),
        })
        .collect();
    Ok(Accepted {
        version: after.version,
        items,
        file,
    })
}

fn file(core: &Core, server: &Server, pinned: &Pinned) -> Result<PinsFile, Refusal> {
    let text = pins_file::write(&server.name, pinned);
    if text.len() > pins_file::LARGEST {
        let most = pins_file::LARGEST >> 20;
        let public = format!(
            "a pins file of server `{}` would be larger than {most} MiB; set pin = \"first-use\"",
            server.name
        );
        return Err(Refusal::new(Code::CatalogTooLarge, public));
    }
    let folder = core.reloader.loader().folder();
    Ok(PinsFile {
        folder: path::absolute(folder).unwrap_or_else(|_| folder.to_owned()),
        text,
    })
}

/// One record of what the operator did, and one for each item of what came of it.
fn record(core: &Core, server: &str, accepted: &Result<Accepted, Refusal>) {
    let record = |kind, name: Option<&str>, code| {
        let outcome = match code {
            None => OutcomeKind::Allowed,
            Some(_) => OutcomeKind::Failed,
        };
        let mut record = Record::new(core.clock.now(), kind, Phase::Decision).ended(outcome, code);
        record.server = Some(server.into());
        record.method = Some("accept".into());
        record.tool = name.map(Arc::from);
        record.generation = Some(core.reloader.current_full().policy.generation);
        core.record(record);
    };
    let code = accepted.as_ref().err().map(|refusal| refusal.code);
    record(Kind::Admin, None, code);
    let items = accepted.iter().flat_map(|accepted| &accepted.items);
    for item in items.take(RECORDS) {
        record(Kind::Catalog, Some(&item.name), None);
    }
}
