//! What a result is made of: where its blocks stand, and in each the one string that can be cut.

use std::ops::Range;

use crate::mcp::scan::{Rules, ScanError, Scanner};

/// Which results have which blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Of `tools/call`: blocks in `content`, and `structuredContent`.
    Tool,
    /// Of `resources/read`: blocks in `contents`.
    Resource,
    /// Of `prompts/get`: messages, each around one block.
    Prompt,
}

impl Form {
    /// The member that holds the blocks.
    pub(super) fn list(self) -> &'static str {
        match self {
            Self::Tool => "content",
            Self::Resource => "contents",
            Self::Prompt => "messages",
        }
    }

    /// Bytes that say in place of a text's middle that it is missing, at most.
    pub(super) fn marker_bytes(self) -> usize {
        match self {
            Self::Tool => 96,
            Self::Resource | Self::Prompt => 288,
        }
    }
}

/// One block; places are bytes of the result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Item {
    /// The whole value.
    pub(super) whole: Range<u32>,
    /// Its text, without the quotes; empty where it has none.
    pub(super) text: Range<u32>,
    /// Whether it holds base64.
    pub(super) binary: bool,
}

/// A part of a result.
pub(super) enum Found {
    Item(Item),
    /// The value of `structuredContent`.
    Structured(Range<usize>),
    /// `isError`.
    IsError(bool),
    /// The value of `_meta`.
    Meta(Range<usize>),
    /// Another member: from its key to the end of its value.
    Other(Range<usize>),
}

/// Shows the parts of `result`, in order.
pub(super) fn walk(result: &str, form: Form, mut show: impl FnMut(Found)) -> Result<(), ScanError> {
    let scanner = &mut Scanner::new(result.as_bytes(), Rules::Loose)?;
    scanner.enter_object()?;
    while let Some(key) = scanner.key()? {
        let from = scanner.last_key();
        let next = scanner.peek();
        match &*key {
            list if list == form.list() && next == Some(b'[') => {
                scanner.enter_array()?;
                while scanner.element()? {
                    show(Found::Item(item(scanner)?));
                }
            }
            // A list of ours takes the place of whatever else stands there.
            list if list == form.list() => drop(scanner.value()?),
            "structuredContent" if form == Form::Tool => {
                show(Found::Structured(scanner.value()?.range()));
            }
            "isError" if form == Form::Tool => {
                show(Found::IsError(scanner.value()?.as_str() == "true"));
            }
            "_meta" => show(Found::Meta(scanner.value()?.range())),
            // What is cut is nothing to keep, nor for others: its handle is the caller's own, and for ten minutes.
            "ttlMs" | "cacheScope" => drop(scanner.value()?),
            _ => show(Found::Other(from..scanner.value()?.range().end)),
        }
    }
    Ok(())
}

fn item(scanner: &mut Scanner<'_>) -> Result<Item, ScanError> {
    let mut item = Item::default();
    let next = scanner.peek();
    let start = scanner.position();
    if next == Some(b'{') {
        members(scanner, &mut item, true)?;
    } else {
        scanner.value()?;
    }
    item.whole = span(start..scanner.position());
    Ok(item)
}

/// Reads a block; one may hold another: a message its content, an embedded resource its contents, and that of a message
/// both.
fn members(scanner: &mut Scanner<'_>, item: &mut Item, outer: bool) -> Result<(), ScanError> {
    scanner.enter_object()?;
    while let Some(key) = scanner.key()? {
        match (&*key, scanner.peek()) {
            ("text", Some(b'"')) => {
                let place = scanner.value()?.range();
                item.text = span(place.start + 1..place.end - 1);
            }
            ("data" | "blob", Some(b'"')) => {
                scanner.value()?;
                item.binary = true;
            }
            ("content", Some(b'{')) if outer => members(scanner, item, true)?,
            ("resource", Some(b'{')) => members(scanner, item, false)?,
            _ => drop(scanner.value()?),
        }
    }
    Ok(())
}

/// The same place in half the room: answers have far less than 4 GiB.
fn span(place: Range<usize>) -> Range<u32> {
    let end = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    end(place.start)..end(place.end)
}

/// A place as strings are cut by it.
pub(super) fn place(span: &Range<u32>) -> Range<usize> {
    span.start as usize..span.end as usize
}
