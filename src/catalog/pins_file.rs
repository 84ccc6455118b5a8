//! `pins/NAME.json`: what was reviewed of a server, as a file that is reviewed like a lock file.
//!
//! Equal pins have equal bytes: items stand in their order, one member a line, definitions in their canonical form and
//! what nobody would see escaped. Each definition has its SHA-256 beside it, so that a change is made by
//! `tollgate pin` or twice.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    fmt::Write,
    sync::Arc,
};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{By, Item, ItemKind, MAX_VARIANTS, Pinned};
use crate::{id, mcp::pretty::pretty, table::Fault};

/// Bytes of a file at most.
pub const LARGEST: usize = 32 << 20;

/// The newest version that a file may say it has: there is always one after it, and every reader of JSON knows it exactly.
const NEWEST: u64 = 1 << 53;

/// Faults of one file that are told at most.
const MOST_FAULTS: usize = 100;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document<'a> {
    #[serde(borrow)]
    server: Cow<'a, str>,
    version: u64,
    #[serde(borrow)]
    items: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry<'a> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    sha256: Cow<'a, str>,
    version: u64,
    #[serde(borrow)]
    definition: &'a RawValue,
}

/// The text of the file of `server`; of `pinned`, views and who accepted what are not in it.
pub fn write(server: &str, pinned: &Pinned) -> String {
    let mut out = format!(
        "{{\n  \"server\": \"{server}\",\n  \"version\": {},\n  \"items\": [",
        pinned.version
    );
    for (at, item) in pinned.items.iter().enumerate() {
        out.push_str(if at == 0 { "\n    {" } else { ",\n    {" });
        let digest = id::hex(&item.digest);
        let mut name = String::new();
        pretty(&json_string(&item.name), 0, &mut name);
        write!(
            out,
            "\n      \"kind\": \"{}\",\n      \"name\": {name},\n      \"sha256\": \"{digest}\",\n      \
             \"version\": {},\n      \"definition\": ",
            item.kind.as_str(),
            item.version
        )
        .expect("writing to memory does not fail");
        pretty(&item.definition, 3, &mut out);
        out.push_str("\n    }");
    }
    out.push_str(if pinned.items.is_empty() {
        "]\n}\n"
    } else {
        "\n  ]\n}\n"
    });
    out
}

fn json_string(text: &str) -> String {
    serde_json::to_string(text).expect("a text has a JSON form")
}

/// Reads `text`, the content of `file`, as the pins of `server`.
///
/// # Errors
///
/// What is wrong with it, each with its place: members that are unknown, missing or doubled, a definition that is not
/// the one its digest names, an item that stands there twice.
pub fn read(file: &str, server: &str, text: &str) -> Result<Pinned, Vec<Fault>> {
    let source = Source { file, text };
    let document: Document<'_> = serde_json::from_str(text)
        .map_err(|error| vec![source.fault(offset_of(&error, text), "", reason(&error))])?;
    let mut faults = Vec::new();
    if document.server != server {
        let found = document.server.escape_debug();
        let message = format!("found `{found}`, expected `{server}`, as the file is named");
        faults.push(source.fault(0, "server", message));
    }
    if document.version > NEWEST {
        let found = document.version;
        let message = format!("found {found}, expected at most {NEWEST}");
        faults.push(source.fault(0, "version", message));
    }
    let mut items = Vec::with_capacity(document.items.len());
    let mut seen = Seen::default();
    for (at, raw) in document.items.iter().enumerate() {
        // Whoever sees so many knows enough.
        if faults.len() == MOST_FAULTS {
            break;
        }
        let start = source.offset(raw.get());
        let read = item(&source, start, raw.get(), document.version);
        match read.and_then(|item| seen.admit(start, item)) {
            Ok(item) => items.push(item),
            Err((place, key, message)) => {
                faults.push(source.fault(place, &format!("items[{at}]{key}"), message));
            }
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    items.sort_by(|one, other| one.key().cmp(&other.key()));
    Ok(Pinned {
        version: document.version,
        reviewed: true,
        views: Vec::new(),
        items,
    })
}

/// What is wrong with an item: where, below which key, and what.
type Wrong = (usize, &'static str, String);

fn item(source: &Source<'_>, start: usize, raw: &str, newest: u64) -> Result<Item, Wrong> {
    let entry: Entry<'_> = serde_json::from_str(raw)
        .map_err(|error| (start + offset_of(&error, raw), "", reason(&error)))?;
    let kind = ItemKind::parse(&entry.kind).ok_or_else(|| {
        let words = ItemKind::ALL.map(|kind| format!("`{}`", kind.as_str()));
        let found = entry.kind.escape_debug();
        let message = format!("found `{found}`, expected one of {}", words.join(", "));
        (start, ".kind", message)
    })?;
    let definition = entry.definition.get();
    let place = source.offset(definition);
    let wrong = |message| (place, ".definition", message);
    let name = Arc::from(&*entry.name);
    let item = Item::new(kind, name, definition, entry.version, By::Operator)
        .map_err(|error| wrong(error.to_string()))?;
    let digest = id::hex(&item.digest);
    if digest != *entry.sha256 {
        return Err(wrong(format!(
            "its digest is {digest}, and `sha256` says `{}`: one of them was changed by hand",
            entry.sha256.escape_debug()
        )));
    }
    if !names_itself(kind, &item.name, definition) {
        let name = item.name.escape_debug();
        return Err(wrong(format!(
            "it defines something else than the {} `{name}`",
            kind.as_str()
        )));
    }
    if entry.version > newest {
        let found = entry.version;
        let message = format!("found {found}, expected at most {newest}, the version of the file");
        return Err((start, ".version", message));
    }
    Ok(item)
}

/// Whether a definition is of the item that it is filed under.
fn names_itself(kind: ItemKind, name: &str, definition: &str) -> bool {
    #[derive(Deserialize)]
    struct Named<'a> {
        #[serde(borrow)]
        name: Option<Cow<'a, str>>,
        #[serde(borrow, rename = "uriTemplate")]
        template: Option<Cow<'a, str>>,
    }
    if kind == ItemKind::Instructions {
        return name.is_empty() && definition.starts_with('"');
    }
    let Ok(named) = serde_json::from_str::<Named<'_>>(definition) else {
        return false;
    };
    let own = match kind {
        ItemKind::Template => named.template,
        _ => named.name,
    };
    own.as_deref() == Some(name)
}

/// What stands in the file so far.
#[derive(Default)]
struct Seen {
    keys: HashSet<(ItemKind, Arc<str>, [u8; 32])>,
    variants: HashMap<(ItemKind, Arc<str>), usize>,
}

impl Seen {
    fn admit(&mut self, start: usize, item: Item) -> Result<Item, Wrong> {
        let (kind, name) = (item.kind, item.name.clone());
        let shown = name.escape_debug();
        if !self.keys.insert((kind, name.clone(), item.digest)) {
            let message = format!("`{shown}` stands in the file twice; keep one");
            return Err((start, "", message));
        }
        let variants = self.variants.entry((kind, name.clone())).or_default();
        *variants += 1;
        if *variants > MAX_VARIANTS {
            let message = format!(
                "`{shown}` has more than {MAX_VARIANTS} definitions; remove those that the server no longer shows"
            );
            return Err((start, "", message));
        }
        Ok(item)
    }
}

/// The file, and where its parts stand.
struct Source<'a> {
    file: &'a str,
    text: &'a str,
}

impl Source<'_> {
    /// Where `part`, borrowed from the text, begins.
    fn offset(&self, part: &str) -> usize {
        part.as_ptr() as usize - self.text.as_ptr() as usize
    }

    fn fault(&self, offset: usize, key: &str, message: String) -> Fault {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Fault {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            key: key.to_owned(),
            ..Fault::whole(self.file, format!("{message}; {REMEDY}"))
        }
    }
}

/// What to do about a file that is none of ours.
const REMEDY: &str =
    "restore the file from version control, or remove it and write it with `tollgate pin`";

/// What serde says, without the place, which is told apart.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&place).unwrap_or(&text).to_owned()
}

/// The byte of `text` before which reading stopped.
fn offset_of(error: &serde_json::Error, text: &str) -> usize {
    let lines = text.split_inclusive('\n');
    let before: usize = lines
        .take(error.line().saturating_sub(1))
        .map(str::len)
        .sum();
    let offset = (before + error.column().saturating_sub(1)).min(text.len());
    (0..=offset)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
