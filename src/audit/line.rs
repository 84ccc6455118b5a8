//! The canonical form of a record: one JSON object, keys in a fixed order, written here and nowhere else.
//!
//! Written on the caller's thread, so that what waits in the queue is bounded to the byte and holds on to nothing that
//! an attacker made large.

use std::{
    io::Write,
    net::IpAddr,
    time::{Duration, SystemTime},
};

use jiff::{Timestamp, fmt::temporal::DateTimePrinter};
use uuid::{Uuid, fmt::Hyphenated};

use super::record::{Record, RecordTarget};
use crate::{mcp::visible::invisible, subject::Subject};

/// Most records are shorter. Allocators serve powers of two fastest.
const TYPICAL: usize = 1024;
/// Characters of a text that are kept.
const TEXT: usize = 256;
/// Characters of an argument's key that are kept.
const KEY: usize = 64;
/// Entries of a list that are kept.
const ENTRIES: usize = 32;
/// Groups that are kept.
const GROUPS: usize = 64;

/// The length of `{"id":"…"`, after which the chain sets `seq`.
pub(super) const ID_END: usize = r#"{"id":""#.len() + Hyphenated::LENGTH + 1;

/// A key as it stands between the member before it and its value.
macro_rules! key {
    ($name:literal) => {
        Key(concat!(",\"", $name, "\":"))
    };
}

/// Everything of the line but `seq`, `prev`, `hash` and the closing brace.
pub(super) fn body(record: &Record) -> Vec<u8> {
    let mut out = Vec::with_capacity(TYPICAL);
    out.push(b'{');
    let mut line = Fields {
        out: &mut out,
        first: true,
    };
    line.uuid(key!("id"), record.id);
    line.time(key!("time"), record.time);
    line.word(key!("kind"), record.kind.as_str());
    line.word(key!("phase"), record.phase.as_str());
    if let Some(outcome) = record.outcome {
        line.word(key!("outcome"), outcome.as_str());
    }
    if let Some(code) = record.code {
        line.word(key!("code"), code.as_str());
    }
    if let Some(subject) = &record.subject {
        who(&mut line, subject);
    }
    line.maybe(key!("server"), record.server.as_deref());
    line.maybe(key!("method"), record.method.as_deref());
    line.maybe(key!("tool"), record.tool.as_deref());
    line.texts(
        key!("rules"),
        record.rules.iter().map(|rule| &**rule),
        ENTRIES,
        TEXT,
    );
    if let Some(generation) = record.generation {
        line.number(key!("generation"), generation);
    }
    if let Some(target) = &record.target {
        line.object(key!("target"), |inner| place(inner, target));
    }
    if record.args_bytes.is_some() || !record.args_keys.is_empty() {
        line.object(key!("args"), |args| {
            args.count(key!("bytes"), record.args_bytes);
            args.texts(
                key!("keys"),
                record.args_keys.iter().map(|key| &**key),
                ENTRIES,
                KEY,
            );
        });
    }
    if record.result_bytes.is_some() || record.result_is_error.is_some() {
        line.object(key!("result"), |result| {
            result.count(key!("bytes"), record.result_bytes);
            result.count(key!("cut"), record.result_cut);
            if let Some(is_error) = record.result_is_error {
                result.flag(key!("is_error"), is_error);
            }
        });
    }
    if let Some(tunnel) = record.tunnel {
        line.object(key!("tunnel"), |inner| {
            inner.number(key!("in"), tunnel.bytes_in);
            inner.number(key!("out"), tunnel.bytes_out);
            inner.word(key!("closed_by"), tunnel.closed_by);
        });
    }
    if let Some(revoked) = record.revoked_upstream {
        line.word(key!("revoked_upstream"), revoked);
    }
    if let Some(times) = record.times {
        line.number(key!("times"), times);
    }
    if record.took.is_some() || record.took_upstream.is_some() {
        line.object(key!("ms"), |ms| {
            ms.millis(key!("total"), record.took);
            ms.millis(key!("upstream"), record.took_upstream);
        });
    }
    if let Some(request) = record.request_id {
        line.uuid(key!("request_id"), request);
    }
    out
}

fn who(line: &mut Fields<'_>, subject: &Subject) {
    line.text(key!("tenant"), &subject.tenant, TEXT);
    line.text(key!("agent"), &subject.agent, TEXT);
    line.text(key!("user"), &subject.user, TEXT);
    line.texts(
        key!("groups"),
        subject.groups.iter().map(|group| &**group),
        GROUPS,
        TEXT,
    );
    line.maybe(key!("conversation"), subject.conversation.as_deref());
    line.maybe(key!("turn"), subject.turn.as_deref());
    line.maybe(key!("acting"), subject.acting.as_deref());
}

fn place(line: &mut Fields<'_>, target: &RecordTarget) {
    line.text(key!("host"), &target.host, TEXT);
    line.number(key!("port"), target.port.into());
    if !target.addresses.is_empty() {
        line.key(key!("addresses"));
        line.out.push(b'[');
        for (index, address) in target.addresses.iter().take(ENTRIES).enumerate() {
            if index > 0 {
                line.out.push(b',');
            }
            line.out.push(b'"');
            ip(line.out, *address);
            line.out.push(b'"');
        }
        line.out.push(b']');
    }
    if let Some(pinned) = target.pinned {
        line.flag(key!("pinned"), pinned);
    }
}

/// The common form is written without the formatter, which takes longer than the rest of the target.
fn ip(out: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(v4) => {
            for (index, octet) in v4.octets().into_iter().enumerate() {
                if index > 0 {
                    out.push(b'.');
                }
                out.extend_from_slice(itoa::Buffer::new().format(octet).as_bytes());
            }
        }
        IpAddr::V6(v6) => write!(out, "{v6}").expect("writing to memory does not fail"),
    }
}

/// Made by `key!`.
#[derive(Clone, Copy)]
struct Key(&'static str);

/// Writes the members of one object.
struct Fields<'a> {
    out: &'a mut Vec<u8>,
    first: bool,
}

impl Fields<'_> {
    fn key(&mut self, key: Key) {
        let comma = usize::from(std::mem::take(&mut self.first));
        self.out.extend_from_slice(&key.0.as_bytes()[comma..]);
    }

    /// A text of our own, which needs no escape.
    fn word(&mut self, key: Key, word: &str) {
        self.key(key);
        self.out.push(b'"');
        self.out.extend_from_slice(word.as_bytes());
        self.out.push(b'"');
    }

    fn text(&mut self, key: Key, text: &str, limit: usize) {
        self.key(key);
        quote(self.out, text, limit);
    }

    fn maybe(&mut self, key: Key, text: Option<&str>) {
        if let Some(text) = text {
            self.text(key, text, TEXT);
        }
    }

    fn texts<'t>(
        &mut self,
        key: Key,
        texts: impl ExactSizeIterator<Item = &'t str>,
        entries: usize,
        limit: usize,
    ) {
        if texts.len() == 0 {
            return;
        }
        self.key(key);
        self.out.push(b'[');
        for (index, text) in texts.take(entries).enumerate() {
            if index > 0 {
                self.out.push(b',');
            }
            quote(self.out, text, limit);
        }
        self.out.push(b']');
    }

    fn number(&mut self, key: Key, number: u64) {
        self.key(key);
        self.out
            .extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    }

    fn count(&mut self, key: Key, count: Option<usize>) {
        if let Some(count) = count {
            self.number(key, count as u64);
        }
    }

    fn flag(&mut self, key: Key, flag: bool) {
        self.key(key);
        self.out
            .extend_from_slice(if flag { b"true" } else { b"false" });
    }

    fn uuid(&mut self, key: Key, id: Uuid) {
        self.word(
            key,
            id.hyphenated().encode_lower(&mut Uuid::encode_buffer()),
        );
    }

    /// RFC 3339 in UTC, to the µs; a time that RFC 3339 cannot say is written as the epoch.
    fn time(&mut self, key: Key, time: SystemTime) {
        const MICROS: DateTimePrinter = DateTimePrinter::new().precision(Some(6));
        let time = Timestamp::try_from(time).unwrap_or(Timestamp::UNIX_EPOCH);
        self.key(key);
        self.out.push(b'"');
        MICROS
            .print_timestamp(&time, &mut *self.out)
            .expect("writing to memory does not fail");
        self.out.push(b'"');
    }

    /// Milliseconds with three decimals.
    fn millis(&mut self, key: Key, took: Option<Duration>) {
        if let Some(took) = took {
            let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
            self.number(key, micros / 1_000);
            // The leading 1 keeps the zeros after the point.
            let mut digits = itoa::Buffer::new();
            let thousandths = digits.format(1_000 + micros % 1_000);
            self.out.push(b'.');
            self.out.extend_from_slice(&thousandths.as_bytes()[1..]);
        }
    }

    fn object(&mut self, key: Key, members: impl FnOnce(&mut Fields<'_>)) {
        self.key(key);
        self.out.push(b'{');
        members(&mut Fields {
            out: self.out,
            first: true,
        });
        self.out.push(b'}');
    }
}

/// Writes `text` as a JSON string: cut at `limit` characters with `…` where it was longer, and with escapes for
/// everything that a reader would not see or that would change how the rest is shown.
fn quote(out: &mut Vec<u8>, text: &str, limit: usize) {
    out.push(b'"');
    let plain = |byte: u8| matches!(byte, b' '..=b'~') & !matches!(byte, b'"' | b'\\');
    // Without a branch inside, the look at the bytes compiles to vector instructions.
    if text.len() <= limit && text.bytes().fold(true, |all, byte| all & plain(byte)) {
        out.extend_from_slice(text.as_bytes());
    } else {
        let mut characters = text.chars();
        characters
            .by_ref()
            .take(limit)
            .for_each(|character| escape(out, character));
        if characters.next().is_some() {
            out.extend_from_slice("…".as_bytes());
        }
    }
    out.push(b'"');
}

fn escape(out: &mut Vec<u8>, character: char) {
    if matches!(character, '"' | '\\') {
        out.extend_from_slice(&[b'\\', character as u8]);
    } else if invisible(character) {
        for unit in character.encode_utf16(&mut [0; 2]) {
            write!(out, "\\u{unit:04x}").expect("writing to memory does not fail");
        }
    } else {
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

#[cfg(test)]
mod tests;
