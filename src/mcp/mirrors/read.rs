//! Annotations, found in a tool's input schema.

use std::{borrow::Cow, collections::HashSet};

use http::HeaderName;
use memchr::memmem;

use super::{Invalid, MAX_BYTES, MAX_DEPTH, MAX_MIRRORS, Mirror, Mirrors};
use crate::mcp::scan::{Part, Rules, Scanner};

const KEY: &str = "x-mcp-header";
const PREFIX: &str = "mcp-param-";
const TYPES: [&str; 3] = ["string", "integer", "boolean"];

/// Keywords that hold one schema, or an array of them (JSON Schema 2020-12 and draft 7).
const SCHEMAS: [&str; 16] = [
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "oneOf",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Keywords beside `properties` that hold schemas under names.
const NAMED: [&str; 5] = [
    "$defs",
    "definitions",
    "dependencies",
    "dependentSchemas",
    "patternProperties",
];

impl Mirrors {
    /// Whether a text may hold annotations, which most definitions do not: the key has to stand there as it is, or
    /// with a letter escaped, and all its letters are ASCII.
    pub(in crate::mcp) fn may_be_in(text: &str) -> bool {
        let holds = |needle: &str| memmem::find(text.as_bytes(), needle.as_bytes()).is_some();
        holds(KEY) || holds(r"\u00")
    }

    /// The mirrored arguments of a tool with this `inputSchema`.
    ///
    /// # Errors
    /// [`Invalid`], for which clients must leave the tool out.
    pub(in crate::mcp) fn read(schema: Part<'_>) -> Result<Self, Invalid> {
        let mut walk = Walk {
            scanner: Scanner::new(schema.as_str().as_bytes(), Rules::Loose)?,
            path: Vec::new(),
            found: Vec::new(),
            bytes: 0,
            twice: None,
        };
        walk.schema(Reach::Properties)?;
        match walk.twice {
            Some(key) if !walk.found.is_empty() => Err(Invalid::Ambiguous(key)),
            _ => {
                walk.found.sort_by(|one, other| one.path.cmp(&other.path));
                Ok(Self(walk.found.into()))
            }
        }
    }
}

/// How the root leads to a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// Through `properties` only, so that it holds for exactly one place in the arguments.
    Properties,
    /// Through anything else as well.
    Other,
}

struct Walk<'a> {
    scanner: Scanner<'a>,
    path: Vec<Cow<'a, str>>,
    found: Vec<Mirror>,
    bytes: usize,
    /// A key that decides and stands twice in its object; it matters only where something is mirrored.
    twice: Option<String>,
}

impl<'a> Walk<'a> {
    /// Walks the schema that comes next. Its depth is that of the document, which the scanner bounds.
    fn schema(&mut self, reach: Reach) -> Result<(), Invalid> {
        if self.scanner.peek() != Some(b'{') {
            self.scanner.value()?;
            return Ok(());
        }
        let (mut header, mut kind, mut properties) = (None, None, false);
        self.scanner.enter_object()?;
        while let Some(key) = self.scanner.key()? {
            let twice = match &*key {
                KEY => header.replace(self.scanner.value()?).is_some(),
                "type" => kind.replace(self.scanner.value()?).is_some(),
                "properties" => {
                    self.named(reach)?;
                    std::mem::replace(&mut properties, true)
                }
                other => {
                    self.elsewhere(other)?;
                    false
                }
            };
            self.note(twice, &key);
        }
        match header {
            Some(header) => self.keep(reach, header, kind),
            None => Ok(()),
        }
    }

    /// Walks schemas that stand under names; under `properties`, the names lead to their values.
    fn named(&mut self, reach: Reach) -> Result<(), Invalid> {
        if self.scanner.peek() != Some(b'{') {
            return self.schemas();
        }
        let mut names = HashSet::new();
        self.scanner.enter_object()?;
        while let Some(name) = self.scanner.key()? {
            let twice = !names.insert(name.clone());
            self.note(twice, &name);
            self.path.push(name);
            self.schema(reach)?;
            self.path.pop();
        }
        Ok(())
    }

    /// Walks what stands under a keyword that leads to no place in particular.
    fn elsewhere(&mut self, keyword: &str) -> Result<(), Invalid> {
        if NAMED.contains(&keyword) {
            self.named(Reach::Other)
        } else if SCHEMAS.contains(&keyword) {
            self.schemas()
        } else {
            self.scanner.value()?;
            Ok(())
        }
    }

    /// Walks one schema or an array of them, which hold for no place in particular.
    fn schemas(&mut self) -> Result<(), Invalid> {
        if self.scanner.peek() != Some(b'[') {
            return self.schema(Reach::Other);
        }
        self.scanner.enter_array()?;
        while self.scanner.element()? {
            self.schema(Reach::Other)?;
        }
        Ok(())
    }

    fn note(&mut self, twice: bool, key: &str) {
        if twice && self.twice.is_none() {
            self.twice = Some(shown(key));
        }
    }

    /// Keeps the annotation of the schema that was just left.
    fn keep(
        &mut self,
        reach: Reach,
        header: Part<'a>,
        kind: Option<Part<'a>>,
    ) -> Result<(), Invalid> {
        let place = || shown(&self.path.join("."));
        if reach == Reach::Other || self.path.is_empty() {
            return Err(Invalid::Place(place()));
        }
        let header = header
            .string()
            .and_then(|name| header_name(&name))
            .ok_or_else(|| Invalid::Name(place()))?;
        let kind = kind.and_then(|kind| kind.string());
        if !kind.is_some_and(|kind| TYPES.contains(&&*kind)) {
            return Err(Invalid::Type(place()));
        }
        if self.found.iter().any(|other| other.header == header) {
            return Err(Invalid::SameHeader(header));
        }
        let names = self.path.iter().map(|name| name.len());
        self.bytes += header.as_str().len() + names.sum::<usize>();
        if self.found.len() == MAX_MIRRORS || self.path.len() > MAX_DEPTH || self.bytes > MAX_BYTES
        {
            return Err(Invalid::TooMuch);
        }
        self.found.push(Mirror {
            path: self.path.iter().map(|name| (&**name).into()).collect(),
            header,
        });
        Ok(())
    }
}

/// The header that an annotation names; `http` takes exactly the letters of RFC 9110, section 5.6.2.
fn header_name(name: &str) -> Option<HeaderName> {
    if name.is_empty() {
        return None;
    }
    HeaderName::try_from(format!("{PREFIX}{name}")).ok()
}

/// At most 128 characters, escaped, since the text goes to the log.
fn shown(text: &str) -> String {
    text.chars()
        .take(128)
        .flat_map(char::escape_debug)
        .collect()
}

#[cfg(test)]
mod tests;
