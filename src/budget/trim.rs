//! A result that is too large is cut: heads and tails of its texts stay, and it says what is missing.
//!
//! Clients hold results against the schemas that tools promise. What is structured can only be whole or not there, and a
//! result without it passes with `isError` alone, so that says `true` then.

mod say;
mod window;

use std::ops::Range;

use say::Say;
use window::Window;

use super::{
    meta,
    shape::{Form, Found, Item, place, walk},
    strings,
    written::boundary,
};

/// Texts up to so many bytes are never cut.
const SHORT: usize = 256;

/// What a result has to become.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// What it is a result of.
    pub form: Form,
    /// Bytes of JSON text at most; at least 1,024.
    pub max: usize,
    /// Why it is cut.
    pub why: Why,
    /// Where the whole of it is kept, if it is.
    pub handle: Option<&'a str>,
    /// The tool that reads on.
    pub reader: Reader,
    /// Members of `_meta` to add, JSON text without braces; perhaps none.
    pub meta: &'a str,
}

/// A tool that reads on.
#[derive(Clone, Copy, Debug)]
pub struct Reader {
    /// Its name.
    pub tool: &'static str,
    /// The path of the server that has it, where that is not the one that was called.
    pub endpoint: Option<&'static str>,
}

/// Why a result is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It is larger than one result may be.
    Result,
    /// The results of the turn are larger together than they may be: nothing of it stays.
    Turn,
}

/// A result that was cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The JSON text.
    pub text: String,
    /// Bytes of the original that are left out.
    pub omitted: usize,
}

/// Cuts `result`, a valid JSON text, to what `terms` say. Whatever it holds, what comes back is a valid result of the same
/// form.
pub fn trim(result: &str, terms: &Terms<'_>) -> Cut {
    let parts = Parts::read(result, terms);
    let most = match terms.why {
        Why::Result => terms.max.saturating_sub(parts.around(terms)),
        Why::Turn => 0,
    };
    // The bounds of what is said are generous; where they were not, less of the result is tried.
    for room in [most, most / 2, most / 4] {
        let cut = parts.write(terms, room);
        if cut.text.len() <= terms.max && room > 0 {
            return cut;
        }
    }
    parts.write(terms, 0)
}

/// The parts of a result, as far as they can matter.
struct Parts<'a> {
    result: &'a str,
    window: Window,
    structured: Option<Range<usize>>,
    is_error: Option<bool>,
    meta: Option<Range<usize>>,
    /// Other members that are small enough to stay, joined by commas.
    others: String,
}

impl<'a> Parts<'a> {
    fn read(result: &'a str, terms: &Terms<'_>) -> Self {
        let mut parts = Self {
            result,
            window: Window::new(terms.form, terms.max),
            structured: None,
            is_error: None,
            meta: None,
            others: String::new(),
        };
        let small = match terms.why {
            Why::Result => terms.max / 16,
            Why::Turn => SHORT,
        };
        // What cannot be read further counts as left out.
        let _faulty = walk(result, terms.form, |found| match found {
            Found::Item(item) => parts.window.push(item),
            Found::Structured(place) => parts.structured = Some(place),
            Found::IsError(is_error) => parts.is_error = Some(is_error),
            Found::Meta(place) => parts.meta = (place.len() <= small).then_some(place),
            Found::Other(place) if parts.others.len() + place.len() < small => {
                let member = &result[place];
                // It is nothing to keep, nor for others: the handle is the caller's own, and for ten minutes.
                if !["\"ttlMs\"", "\"cacheScope\""]
                    .iter()
                    .any(|key| member.starts_with(key))
                {
                    parts.others.push_str(member);
                    parts.others.push(',');
                }
            }
            Found::Other(_) => {}
        });
        parts
    }

    /// Bytes that stand around the blocks, at most.
    fn around(&self, terms: &Terms<'_>) -> usize {
        let meta = self.meta.as_ref().map_or(0, Range::len);
        say::MOST + terms.meta.len() + meta + self.others.len() + 128
    }

    /// Writes the result with blocks and structure of about `room` bytes; with none at all where that is 0.
    fn write(&self, terms: &Terms<'_>, mut room: usize) -> Cut {
        let structured = self.structured.clone();
        let whole = structured.clone().filter(|place| place.len() <= room / 2);
        room -= whole.as_ref().map_or(0, Range::len);
        let dropped = structured.filter(|_| whole.is_none());
        // Servers repeat in a text what they say in structure; one that does not shows its structure as a text.
        let shown = dropped.clone().filter(|place| {
            let told = self.window.texts >= place.len() / 2;
            room > 4 * SHORT && !told
        });
        let share = shown.as_ref().map_or(0, |_| room / 2);
        let mut out = Writer {
            result: self.result,
            text: String::with_capacity(terms.max.min(self.result.len())),
            say: Say::new(terms),
            first: None,
            kept: 0,
        };
        out.text.push_str(&format!("{{\"{}\":[", terms.form.list()));
        self.blocks(&mut out, room - share);
        if let Some(place) = shown {
            out.structure(place, share);
        }
        self.end(out, terms, whole, dropped.is_some())
    }

    fn blocks(&self, out: &mut Writer<'_, '_>, room: usize) {
        let chosen = self.window.choose(room);
        for (item, level) in &chosen.head {
            out.item(item, *level);
        }
        if chosen.between > 0 && room > 0 {
            out.between(chosen.between, chosen.from);
        }
        for (item, level) in &chosen.tail {
            out.item(item, *level);
        }
    }

    fn end(
        &self,
        mut out: Writer<'_, '_>,
        terms: &Terms<'_>,
        structured: Option<Range<usize>>,
        dropped: bool,
    ) -> Cut {
        out.kept += structured.as_ref().map_or(0, Range::len);
        let total = self.result.len();
        // What stands around the blocks is not what anybody misses.
        let around = total.saturating_sub(self.window.bytes + self.structured_bytes());
        let omitted = total.saturating_sub(out.kept + around);
        let next = out.first.unwrap_or_default();
        let forced = terms.form == Form::Tool && (dropped || terms.why == Why::Turn);
        let hides_success = forced && self.is_error != Some(true);
        let sentence = out.say.sentence(total, omitted, next, hides_success);
        if terms.form == Form::Tool || terms.why == Why::Turn || out.kept == 0 {
            out.block(&sentence);
        }
        let Writer { mut text, say, .. } = out;
        text.push_str("],");
        text.push_str(&self.others);
        if let Some(place) = structured {
            text.push_str("\"structuredContent\":");
            text.push_str(&self.result[place]);
            text.push(',');
        }
        if forced || self.is_error.is_some() {
            let is_error = forced || self.is_error == Some(true);
            text.push_str(&format!("\"isError\":{is_error},"));
        }
        let mut own = say.mark(total, omitted, next);
        if !terms.meta.is_empty() {
            own = format!("{},{own}", terms.meta);
        }
        let theirs = self.meta.clone().map(|place| &self.result[place]);
        let merged = meta::merged(theirs, &own);
        text.push_str(&format!("\"_meta\":{merged}}}"));
        Cut { text, omitted }
    }

    fn structured_bytes(&self) -> usize {
        self.structured.as_ref().map_or(0, Range::len)
    }
}

/// A result while its blocks are written.
struct Writer<'a, 't> {
    result: &'a str,
    text: String,
    say: Say<'t>,
    /// Where in the original the first piece is missing that can be read on.
    first: Option<usize>,
    /// Bytes of the original that were written.
    kept: usize,
}

impl Writer<'_, '_> {
    /// Writes a block: whole, or its text cut to `level` bytes; with 0 what it would be.
    fn item(&mut self, item: &Item, level: usize) {
        let (whole, text) = (place(&item.whole), place(&item.text));
        if level == 0 {
            return self.stand_in(&self.result[whole], text.start);
        }
        self.separate();
        let inner = &self.result[text.clone()];
        if inner.len() <= level {
            self.text.push_str(&self.result[whole.clone()]);
            self.kept += whole.len();
            return;
        }
        let (head, tail) = ends(inner, level);
        self.text
            .push_str(&self.result[whole.start..text.start + head]);
        let marker = self.say.marker(tail - head, text.start + head);
        self.text.push_str(&marker);
        self.text
            .push_str(&self.result[text.start + tail..whole.end]);
        self.first.get_or_insert(text.start + head);
        self.kept += whole.len() - (tail - head);
    }

    /// Says what a block would be: its kind, type and size.
    fn stand_in(&mut self, item: &str, text: usize) {
        let word = |key: &str| {
            let mut values = strings::values(item).filter(|found| found.key == key);
            let inner = &item[values.next()?.inner];
            let plain = inner.len() <= 80 && inner.is_ascii() && !inner.contains('\\');
            plain.then_some(inner)
        };
        let uri = word("uri");
        let words = [word("type"), word("mimeType"), uri];
        let words: Vec<&str> = words.into_iter().flatten().collect();
        if text > 0 {
            self.first.get_or_insert(text);
        }
        let said = format!("[left out: {}, {} bytes]", words.join(" "), item.len());
        self.block_of(&said, uri);
    }

    fn between(&mut self, count: usize, from: usize) {
        self.first.get_or_insert(from);
        let said = self.say.between(count, from);
        self.block(&said);
    }

    fn block(&mut self, said: &str) {
        self.block_of(said, None);
    }

    fn block_of(&mut self, said: &str, uri: Option<&str>) {
        self.separate();
        let block = self.say.block(said, uri);
        self.text.push_str(&block);
    }

    /// Shows both ends of the structure, as a text.
    fn structure(&mut self, whole: Range<usize>, share: usize) {
        let json = &self.result[whole.clone()];
        // Quotes and backslashes double in a text of their own.
        let (head, tail) = ends(json, share / 2 - self.say.form().marker_bytes());
        let marker = self.say.marker(tail - head, whole.start + head);
        let quoted = |part: &str| part.replace('\\', r"\\").replace('"', r#"\""#);
        let said = format!("{}{marker}{}", quoted(&json[..head]), quoted(&json[tail..]));
        let said = said.replace('\r', r"\r").replace('\t', r"\t");
        self.block(&said.replace('\n', r"\n"));
        self.first.get_or_insert(whole.start + head);
        self.kept += whole.len() - (tail - head);
    }

    fn separate(&mut self) {
        if !self.text.ends_with('[') {
            self.text.push(',');
        }
    }
}

/// Where the head of `text` ends and its tail begins, of about `level` bytes together: two thirds and one.
fn ends(text: &str, level: usize) -> (usize, usize) {
    let head = boundary(text, level - level / 3);
    // A character as it is written has up to 12 bytes.
    let tail = boundary(text, text.len() - (level / 3).saturating_sub(12));
    (head, tail.max(head))
}

#[cfg(test)]
mod tests;
