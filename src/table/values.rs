//! The typed getters: each gives a value or notes what is wrong with it.

use std::{fmt::Display, ops::RangeInclusive, time::Duration};

use toml::{Spanned, de::DeValue};

use super::{
    Item,
    document::Table,
    scalar::{duration, listed, nearest, one_of, written},
};

impl Table<'_> {
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
        let available = words.iter().filter(|(_, meaning)| meaning.is_some());
        let known: Vec<&str> = available.map(|(word, _)| *word).collect();
        if let Some((word, meaning)) = words.iter().find(|(word, _)| *word == text.value) {
            if meaning.is_none() {
                let remedy = format!("use {}", listed(known));
                self.fault(text.fault(unavailable(format!("`{word}`"), &remedy)));
            }
            return meaning.clone();
        }
        let hint = nearest(&text.value, &known)
            .map(|word| format!("; did you mean `{word}`?"))
            .unwrap_or_default();
        let message = format!("found `{}`, expected {}{hint}", text.value, one_of(&known));
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

    /// Keys that the design knows and this version does not.
    pub fn unavailable(&self, keys: &[&'static str]) {
        for key in keys {
            self.note_later(key);
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

    fn string(&self, dotted: String, found: &Spanned<DeValue<'_>>) -> Option<Item<String>> {
        match found.get_ref() {
            DeValue::String(text) => Some(Item {
                value: text.to_string(),
                place: self.document.place(found.span().start, dotted),
            }),
            other => self.mistyped(dotted, found, "a string", other),
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
}

fn unavailable(what: impl Display, remedy: &str) -> String {
    format!("{what} is not available in this version; {remedy}")
}
