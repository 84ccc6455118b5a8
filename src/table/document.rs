//! A document, and the typed way of asking its tables for keys.

use std::{
    cell::RefCell, collections::BTreeMap, fmt::Display, ops::RangeInclusive, sync::Arc,
    time::Duration,
};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    Fault, Item, Place,
    scalar::{duration, listed, nearest, written},
};

/// Reads `text` with `reader`, and gives what it read beside every fault: where the text is no TOML, those of its
/// syntax alone, since the rest would only be guesses.
pub fn read<T>(
    file: &str,
    text: &str,
    reader: impl FnOnce(&Table<'_>) -> T,
) -> (Option<T>, Vec<Fault>) {
    let (root, errors) = DeTable::parse_recoverable(text);
    let document = Document {
        file: file.into(),
        text,
        lines: std::iter::once(0)
            .chain(text.match_indices('\n').map(|(at, _)| at + 1))
            .collect(),
        asked: RefCell::default(),
        faults: RefCell::default(),
    };
    for error in &errors {
        let place = document.place(error.span().map_or(0, |span| span.start), String::new());
        document.fault(place.fault(error.message()));
    }
    let value = errors.is_empty().then(|| {
        let root = Table::new(&document, String::new(), 0, root.get_ref());
        let value = reader(&root);
        root.report_unknown();
        value
    });
    (value, document.faults.into_inner())
}

struct Document<'t> {
    file: Arc<str>,
    text: &'t str,
    /// The byte at which each line begins.
    lines: Vec<usize>,
    /// The keys that were asked of each table that was looked into.
    asked: RefCell<BTreeMap<String, Vec<&'static str>>>,
    faults: RefCell<Vec<Fault>>,
}

impl Document<'_> {
    fn place(&self, at: usize, key: String) -> Place {
        let line = self.lines.partition_point(|start| *start <= at);
        let before = self.text.get(self.lines[line - 1]..at).unwrap_or_default();
        Place {
            file: self.file.clone(),
            line,
            column: before.chars().count() + 1,
            key,
        }
    }

    fn fault(&self, fault: Fault) {
        self.faults.borrow_mut().push(fault);
    }
}

/// A table of a document. Once the document has been read, the keys that nobody asked for are reported as unknown,
/// so a reader cannot forget to look.
pub struct Table<'d> {
    document: &'d Document<'d>,
    key: String,
    start: usize,
    entries: &'d DeTable<'d>,
}

impl<'d> Table<'d> {
    fn new(
        document: &'d Document<'d>,
        key: String,
        start: usize,
        entries: &'d DeTable<'d>,
    ) -> Self {
        document.asked.borrow_mut().entry(key.clone()).or_default();
        Self {
            document,
            key,
            start,
            entries,
        }
    }

    /// The file that it is in.
    pub fn file(&self) -> &'d str {
        &self.document.file
    }

    /// Where the table begins.
    pub fn place(&self) -> Place {
        self.document.place(self.start, self.key.clone())
    }

    /// Notes a fault that a reader found.
    pub fn fault(&self, fault: Fault) {
        self.document.fault(fault);
    }

    /// Whether the key is written, whatever its value.
    pub fn has(&self, key: &'static str) -> bool {
        self.find(key).is_some()
    }

    /// Whether the key holds a string, for keys that take a word or something else.
    pub fn has_text(&self, key: &'static str) -> bool {
        self.find(key)
            .is_some_and(|found| matches!(found.get_ref(), DeValue::String(_)))
    }

    /// Where the key's value stands; the table's own place if it is not written.
    pub fn place_of(&self, key: &'static str) -> Place {
        let at = self
            .find(key)
            .map_or(self.start, |found| found.span().start);
        self.document.place(at, self.dotted(key))
    }

    /// A string.
    pub fn text(&self, key: &'static str) -> Option<Item<String>> {
        let found = self.find(key)?;
        self.string(self.dotted(key), found)
    }

    /// A string that has to be there.
    pub fn required_text(&self, key: &'static str) -> Option<Item<String>> {
        if !self.has(key) {
            let missing = format!("`{key}` is missing; add it");
            self.fault(self.place().fault(missing));
        }
        self.text(key)
    }

    /// `true` or `false`.
    pub fn flag(&self, key: &'static str) -> Option<bool> {
        let found = self.find(key)?;
        match found.get_ref() {
            DeValue::Boolean(value) => Some(*value),
            other => self.mistyped(self.dotted(key), found, "`true` or `false`", other),
        }
    }

    /// An integer within bounds.
    pub fn integer(&self, key: &'static str, bounds: RangeInclusive<u64>) -> Option<u64> {
        let found = self.find(key)?;
        let DeValue::Integer(written) = found.get_ref() else {
            return self.mistyped(self.dotted(key), found, "an integer", found.get_ref());
        };
        let value = u64::from_str_radix(written.as_str(), written.radix()).ok();
        self.bounded(key, value, written.as_str(), bounds, |value| {
            value.to_string()
        })
    }

    /// A duration within bounds, written like `"5s"`.
    pub fn duration(
        &self,
        key: &'static str,
        bounds: RangeInclusive<Duration>,
    ) -> Option<Duration> {
        const EXPECTED: &str = "a duration such as \"250ms\", \"5s\", \"1m\" or \"1h\"";
        let found = self.find(key)?;
        let DeValue::String(text) = found.get_ref() else {
            return self.mistyped(self.dotted(key), found, EXPECTED, found.get_ref());
        };
        let Some(value) = duration(text) else {
            let message = format!("found `{text}`, expected {EXPECTED}");
            self.fault(self.place_of(key).fault(message));
            return None;
        };
        self.bounded(key, Some(value), text, bounds, written)
    }

    /// One of some words; a word without a meaning is one that this version does not know yet.
    pub fn choice<T: Clone>(
        &self,
        key: &'static str,
        words: &[(&'static str, Option<T>)],
    ) -> Option<T> {
        let text = self.text(key)?;
        if let Some((word, meaning)) = words.iter().find(|(word, _)| *word == text.value) {
            if meaning.is_none() {
                let rest = words.iter().filter(|(_, meaning)| meaning.is_some());
                let rest = listed(rest.map(|(word, _)| *word));
                self.fault(text.fault(unavailable(&format!("`{word}`"), &format!("use {rest}"))));
            }
            return meaning.clone();
        }
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let hint = nearest(&text.value, &known)
            .map(|word| format!("; did you mean `{word}`?"))
            .unwrap_or_default();
        let message = format!(
            "found `{}`, expected one of {}{hint}",
            text.value,
            listed(known)
        );
        self.fault(text.fault(message));
        None
    }

    /// A TOML time, as its RFC 3339 text.
    pub fn time(&self, key: &'static str) -> Option<Item<String>> {
        let found = self.find(key)?;
        match found.get_ref() {
            DeValue::Datetime(time) => Some(Item {
                value: time.to_string(),
                place: self.place_of(key),
            }),
            other => self.mistyped(self.dotted(key), found, "a time without quotes", other),
        }
    }

    /// A list of strings, each with its place.
    pub fn texts(&self, key: &'static str) -> Option<Vec<Item<String>>> {
        let found = self.find(key)?;
        let DeValue::Array(list) = found.get_ref() else {
            return self.mistyped(
                self.dotted(key),
                found,
                "a list of strings",
                found.get_ref(),
            );
        };
        let items = list.iter().enumerate();
        Some(
            items
                .filter_map(|(at, item)| self.string(format!("{}[{at}]", self.dotted(key)), item))
                .collect(),
        )
    }

    /// A table.
    pub fn table(&self, key: &'static str) -> Option<Self> {
        let found = self.find(key)?;
        self.nested(self.dotted(key), found)
    }

    /// A list of tables, written as `[[key]]`.
    pub fn tables(&self, key: &'static str) -> Vec<Self> {
        let Some(found) = self.find(key) else {
            return Vec::new();
        };
        let DeValue::Array(list) = found.get_ref() else {
            let expected = format!(
                "a list of tables, each begun with `[[{}]]`",
                self.dotted(key)
            );
            self.mistyped::<()>(self.dotted(key), found, &expected, found.get_ref());
            return Vec::new();
        };
        let items = list.iter().enumerate();
        items
            .filter_map(|(at, item)| self.nested(format!("{}[{at}]", self.dotted(key)), item))
            .collect()
    }

    /// The tables under `key`, each with the name that the file gives it.
    pub fn named_tables(&self, key: &'static str) -> Vec<(Item<String>, Self)> {
        let Some(outer) = self.table(key) else {
            return Vec::new();
        };
        outer.note(ANY);
        let entries = outer.entries.iter();
        entries
            .filter_map(|(name, value)| {
                let dotted = outer.dotted(name.get_ref());
                let place = self.document.place(name.span().start, dotted.clone());
                let value = self.nested(dotted, value)?;
                let name = name.get_ref().to_string();
                Some((Item { value: name, place }, value))
            })
            .collect()
    }

    /// Keys that the design knows and this version does not.
    pub fn unavailable(&self, keys: &[&'static str]) {
        for key in keys {
            if self.has(key) {
                let message = unavailable("this key", "remove it");
                self.fault(self.place_of(key).fault(message));
            }
        }
    }

    /// A switch that this version can only leave off.
    pub fn only_false(&self, keys: &[&'static str]) {
        for key in keys {
            if self.flag(key) == Some(true) {
                let message = unavailable("`true`", "use `false`, or remove the key");
                self.fault(self.place_of(key).fault(message));
            }
        }
    }

    /// A text that this version can only leave empty.
    pub fn only_empty(&self, keys: &[&'static str]) {
        for key in keys {
            if let Some(text) = self.text(key).filter(|text| !text.value.is_empty()) {
                self.fault(text.fault(unavailable("this key", "use \"\", or remove it")));
            }
        }
    }

    fn find(&self, key: &'static str) -> Option<&'d Spanned<DeValue<'d>>> {
        self.note(key);
        self.entries.get(key)
    }

    fn note(&self, key: &'static str) {
        let mut asked = self.document.asked.borrow_mut();
        let asked = asked.entry(self.key.clone()).or_default();
        if !asked.contains(&key) {
            asked.push(key);
        }
    }

    fn dotted(&self, key: &str) -> String {
        let bare = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        let key = if !key.is_empty() && key.bytes().all(bare) {
            key.to_owned()
        } else {
            format!("{key:?}")
        };
        match self.key.as_str() {
            "" => key,
            outer => format!("{outer}.{key}"),
        }
    }

    fn report_unknown(&self) {
        let asked = self
            .document
            .asked
            .borrow()
            .get(&self.key)
            .cloned()
            .unwrap_or_default();
        for (key, value) in self.entries {
            let name: &str = key.get_ref();
            if !asked.contains(&name) && !asked.contains(&ANY) {
                let hint = match nearest(name, &asked) {
                    Some(word) => format!("did you mean `{word}`?"),
                    None => format!("expected one of {}", listed(asked.iter().copied())),
                };
                let place = self.document.place(key.span().start, self.dotted(name));
                self.fault(place.fault(format!("unknown key; {hint}")));
            }
            self.report_below(&self.dotted(name), value);
        }
    }

    /// The same for what stands under `dotted`, where that was looked into.
    fn report_below(&self, dotted: &str, value: &'d Spanned<DeValue<'d>>) {
        match value.get_ref() {
            DeValue::Table(entries) => {
                if self.document.asked.borrow().contains_key(dotted) {
                    let start = value.span().start;
                    Self::new(self.document, dotted.to_owned(), start, entries).report_unknown();
                }
            }
            DeValue::Array(list) => {
                for (at, item) in list.iter().enumerate() {
                    self.report_below(&format!("{dotted}[{at}]"), item);
                }
            }
            _ => {}
        }
    }

    fn string(&self, dotted: String, found: &Spanned<DeValue<'_>>) -> Option<Item<String>> {
        match found.get_ref() {
            DeValue::String(text) => Some(Item {
                value: text.to_string(),
                place: self.document.place(found.span().start, dotted),
            }),
            other => self.mistyped(dotted, found, "a string", other),
        }
    }

    fn nested(&self, dotted: String, found: &'d Spanned<DeValue<'d>>) -> Option<Self> {
        match found.get_ref() {
            DeValue::Table(entries) => {
                let start = found.span().start;
                Some(Self::new(self.document, dotted, start, entries))
            }
            other => self.mistyped(dotted, found, "a table", other),
        }
    }

    fn bounded<T: PartialOrd>(
        &self,
        key: &'static str,
        value: Option<T>,
        text: &str,
        bounds: RangeInclusive<T>,
        show: impl Fn(T) -> String,
    ) -> Option<T> {
        if let Some(value) = value.filter(|value| bounds.contains(value)) {
            return Some(value);
        }
        let (low, high) = bounds.into_inner();
        let message = format!("found {text}, expected {} to {}", show(low), show(high));
        self.fault(self.place_of(key).fault(message));
        None
    }

    fn mistyped<T>(
        &self,
        dotted: String,
        found: &Spanned<DeValue<'_>>,
        expected: &str,
        value: &DeValue<'_>,
    ) -> Option<T> {
        let place = self.document.place(found.span().start, dotted);
        self.fault(place.fault(format!("found {}, expected {expected}", shown(value))));
        None
    }
}

/// Stands among the asked keys of a table whose keys are names.
const ANY: &str = "*";

fn unavailable(what: impl Display, remedy: &str) -> String {
    format!("{what} is not available in this version; {remedy}")
}

fn shown(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("the string `{text}`"),
        DeValue::Integer(number) => format!("the integer {}", number.as_str()),
        DeValue::Float(number) => format!("the number {}", number.as_str()),
        DeValue::Boolean(value) => format!("`{value}`"),
        DeValue::Datetime(time) => format!("the time {time}"),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}
