//! A `tools/list` result, cut into tools without changing a byte of them.

use std::{borrow::Cow, ops::Range};

use super::{
    Era,
    mirrors::{Invalid, Mirrors},
    scan::{Part, Rules, ScanError, Scanner},
};
use crate::refusal::{Code, Refusal};

/// The longest tool name, in bytes; the specification recommends 128 characters.
pub const MAX_NAME_BYTES: usize = 512;

/// One tool of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool<'a> {
    /// Its name, decoded.
    pub name: Cow<'a, str>,
    /// The definition, an object.
    pub definition: Part<'a>,
    /// The arguments that modern callers mirror in headers.
    pub mirrors: Result<Mirrors, Invalid>,
    /// Whether it can be called as a task only.
    pub task_only: bool,
}

/// Why a tool is not offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit<'t> {
    /// Tasks are not relayed.
    #[error("it can be called as a task only, and tasks are not relayed")]
    TaskOnly,
    /// Clients must leave it out (MCP 2026-07-28, transports).
    #[error("{0}")]
    Mirrors(&'t Invalid),
}

impl Tool<'_> {
    /// Why callers of `era` cannot use it, if so; sessions know nothing of mirrored arguments.
    pub fn unfit(&self, era: Era) -> Option<Unfit<'_>> {
        match (&self.mirrors, era) {
            _ if self.task_only => Some(Unfit::TaskOnly),
            (Err(invalid), Era::Modern) => Some(Unfit::Mirrors(invalid)),
            _ => None,
        }
    }
}

/// One page of tools; ranges are bytes of the message that holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<'a> {
    /// The tools, in the server's order.
    pub tools: Vec<Tool<'a>>,
    /// The JSON text of `nextCursor`, a string.
    pub next_cursor: Option<Part<'a>>,
    array: Part<'a>,
}

impl<'a> Page<'a> {
    /// Reads the `result` of an answer to `tools/list`, which may hold `max` tools.
    ///
    /// # Errors
    /// [`Code::UpstreamMalformed`] where it is no such result, or names a member twice that decides which tools there
    /// are; [`Code::CatalogTooLarge`].
    pub fn read(result: Part<'a>, max: usize) -> Result<Self, Refusal> {
        let mut reader = Reader {
            scanner: Scanner::new(result.as_str().as_bytes(), Rules::Loose).map_err(invalid)?,
            max,
        };
        let (listed, next_cursor) = reader.page()?;
        let Some(Listed { mut tools, array }) = listed else {
            return Err(malformed("`tools` is missing"));
        };
        let offset = result.range().start;
        for tool in &mut tools {
            tool.definition = tool.definition.shifted(offset);
        }
        Ok(Self {
            tools,
            next_cursor: next_cursor.map(|cursor| cursor.shifted(offset)),
            array: array.shifted(offset),
        })
    }

    /// Where the array of tools stands.
    pub fn range(&self) -> Range<usize> {
        self.array.range()
    }

    /// The array without the tools that `keep` refuses, to be put in place of [`Page::range`]; `None` if all stay.
    pub fn filtered(&self, mut keep: impl FnMut(&Tool<'a>) -> bool) -> Option<Vec<u8>> {
        let kept: Vec<&Tool<'a>> = self.tools.iter().filter(|tool| keep(tool)).collect();
        (kept.len() < self.tools.len()).then(|| self.array_of(&kept))
    }

    /// The array as it is, to be put in place of [`Page::range`] with more in it.
    pub fn whole(&self) -> Vec<u8> {
        self.array_of(&self.tools.iter().collect::<Vec<_>>())
    }

    fn array_of(&self, kept: &[&Tool<'a>]) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.array.as_str().len());
        out.push(b'[');
        for (at, tool) in kept.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            out.extend_from_slice(tool.definition.as_str().as_bytes());
        }
        out.push(b']');
        out
    }
}

/// The tools of a page, and the array they stand in.
struct Listed<'a> {
    tools: Vec<Tool<'a>>,
    array: Part<'a>,
}

struct Reader<'a> {
    scanner: Scanner<'a>,
    max: usize,
}

impl<'a> Reader<'a> {
    fn page(&mut self) -> Result<(Option<Listed<'a>>, Option<Part<'a>>), Refusal> {
        let (mut tools, mut cursor) = (None, None);
        self.scanner.enter_object().map_err(invalid)?;
        while let Some(key) = self.scanner.key().map_err(invalid)? {
            match &*key {
                "tools" if tools.is_none() => tools = Some(self.tools()?),
                "nextCursor" if cursor.is_none() => {
                    cursor = Some(self.scanner.value().map_err(invalid)?)
                }
                "tools" | "nextCursor" => return Err(malformed(format!("`{key}` stands twice"))),
                _ => drop(self.scanner.value().map_err(invalid)?),
            }
        }
        // Some servers end their list with a null cursor.
        let cursor = cursor.filter(|part| part.as_str() != "null");
        if cursor.is_some_and(|part| part.string().is_none()) {
            return Err(malformed("`nextCursor` is not a string"));
        }
        Ok((tools, cursor))
    }

    fn tools(&mut self) -> Result<Listed<'a>, Refusal> {
        self.scanner.peek();
        let start = self.scanner.position();
        self.scanner.enter_array().map_err(invalid)?;
        let mut tools = Vec::new();
        while self.scanner.element().map_err(invalid)? {
            if tools.len() == self.max {
                return Err(Refusal::new(
                    Code::CatalogTooLarge,
                    format!("the server offers more than {} tools", self.max),
                ));
            }
            tools.push(self.tool()?);
        }
        Ok(Listed {
            tools,
            array: self.scanner.part(start..self.scanner.position()),
        })
    }

    fn tool(&mut self) -> Result<Tool<'a>, Refusal> {
        self.scanner.peek();
        let start = self.scanner.position();
        let mut name: Option<Part<'a>> = None;
        let mut schema: Option<Part<'a>> = None;
        let (mut name_twice, mut schema_twice, mut task_only) = (false, false, false);
        self.scanner.enter_object().map_err(invalid)?;
        while let Some(key) = self.scanner.key().map_err(invalid)? {
            let value = self.scanner.value().map_err(invalid)?;
            match &*key {
                "name" => name_twice |= name.replace(value).is_some(),
                "inputSchema" => schema_twice |= schema.replace(value).is_some(),
                "execution" => task_only |= needs_task(value).map_err(invalid)?,
                _ => {}
            }
        }
        if name_twice {
            return Err(malformed("a tool's `name` stands twice"));
        }
        let Some(name) = name.and_then(|part| part.string()) else {
            return Err(malformed("a tool's `name` is not a string"));
        };
        if name.is_empty() || name.len() > MAX_NAME_BYTES {
            return Err(malformed(format!(
                "a tool's `name` is empty or longer than {MAX_NAME_BYTES} bytes"
            )));
        }
        let definition = self.scanner.part(start..self.scanner.position());
        let mirrors = match schema {
            Some(_) if !Mirrors::may_be_in(definition.as_str()) => Ok(Mirrors::default()),
            Some(_) if schema_twice => Err(Invalid::Ambiguous("inputSchema".to_owned())),
            Some(schema) => Mirrors::read(schema),
            None => Ok(Mirrors::default()),
        };
        Ok(Tool {
            name,
            definition,
            mirrors,
            task_only,
        })
    }
}

/// Whether a tool with this `execution` can be called as a task only (MCP 2025-11-25, tasks).
fn needs_task(execution: Part<'_>) -> Result<bool, ScanError> {
    if !execution.is_object() {
        return Ok(false);
    }
    let mut scanner = Scanner::new(execution.as_str().as_bytes(), Rules::Loose)?;
    let mut needs = false;
    scanner.enter_object()?;
    while let Some(key) = scanner.key()? {
        let value = scanner.value()?;
        needs |= key == "taskSupport" && value.string().is_some_and(|text| text == "required");
    }
    Ok(needs)
}

fn invalid(error: ScanError) -> Refusal {
    malformed(error.to_string())
}

fn malformed(detail: impl Into<String>) -> Refusal {
    Refusal::new(
        Code::UpstreamMalformed,
        "the server's list of tools is not valid",
    )
    .with_detail(detail)
}

#[cfg(test)]
mod tests;
