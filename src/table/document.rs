//! A document, and the typed way of asking its tables for keys.

use std::{cell::RefCell, collections::BTreeMap, sync::Arc};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    Fault, Item, Place,
    scalar::{nearest, one_of},
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

pub(super) struct Document<'t> {
    file: Arc<str>,
    text: &'t str,
    /// The byte at which each line begins.
    lines: Vec<usize>,
    /// The keys that were asked of each table that was looked into.
    asked: RefCell<BTreeMap<String, Asked>>,
    faults: RefCell<Vec<Fault>>,
}

/// The keys that were asked of one table.
#[derive(Clone, Default)]
struct Asked {
    keys: Vec<&'static str>,
    /// Those of `keys` that this version does not know yet, and that no hint names.
    later: Vec<&'static str>,
}

impl Document<'_> {
    pub(super) fn place(&self, at: usize, key: String) -> Place {
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
    pub(super) document: &'d Document<'d>,
    key: String,
    pub(super) start: usize,
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

    pub(super) fn find(&self, key: &'static str) -> Option<&'d Spanned<DeValue<'d>>> {
        self.note(key);
        self.entries.get(key)
    }

    fn note(&self, key: &'static str) {
        let mut asked = self.document.asked.borrow_mut();
        let asked = asked.entry(self.key.clone()).or_default();
        if !asked.keys.contains(&key) {
            asked.keys.push(key);
        }
    }

    pub(super) fn note_later(&self, key: &'static str) {
        let mut asked = self.document.asked.borrow_mut();
        asked.entry(self.key.clone()).or_default().later.push(key);
    }

    pub(super) fn dotted(&self, key: &str) -> String {
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
        let usable = asked.keys.iter().filter(|key| !asked.later.contains(key));
        let usable: Vec<&str> = usable.copied().collect();
        for (key, value) in self.entries {
            let name: &str = key.get_ref();
            if !asked.keys.contains(&name) && !asked.keys.contains(&ANY) {
                let hint = match nearest(name, &usable) {
                    Some(word) => format!("did you mean `{word}`?"),
                    None if usable.is_empty() => "this table takes none; remove it".to_owned(),
                    None => format!("expected {}", one_of(&usable)),
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
            DeValue::Table(entries) if self.document.asked.borrow().contains_key(dotted) => {
                let start = value.span().start;
                Self::new(self.document, dotted.to_owned(), start, entries).report_unknown();
            }
            DeValue::Array(list) => {
                for (at, item) in list.iter().enumerate() {
                    self.report_below(&format!("{dotted}[{at}]"), item);
                }
            }
            _ => {}
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

    pub(super) fn mistyped<T>(
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
