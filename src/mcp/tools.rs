//! What of a tool's definition matters to a gateway.

use std::ops::Range;

use super::{
    Era,
    mirrors::{Invalid, Mirrors},
    scan::{Part, Rules, ScanError, Scanner, lookalike},
};

/// What a definition says of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// The arguments that modern callers mirror in headers.
    pub mirrors: Result<Mirrors, Invalid>,
    /// Whether it can be called as a task only.
    pub task_only: bool,
    /// Whether `annotations` says, in the one way that no reader takes for anything else, that it only reads.
    pub read_only_hint: bool,
    /// Where `inputSchema` stands in the definition.
    pub input_schema: Option<Range<usize>>,
    /// Whether it has an `outputSchema`.
    pub has_output_schema: bool,
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

impl Tool {
    /// Reads a definition in canonical form, in which no member stands twice.
    ///
    /// # Errors
    /// It is no object.
    pub fn read(definition: &str) -> Result<Self, ScanError> {
        let mut tool = Self {
            mirrors: Ok(Mirrors::default()),
            task_only: false,
            read_only_hint: false,
            input_schema: None,
            has_output_schema: false,
        };
        let mut scanner = Scanner::new(definition.as_bytes(), Rules::Loose)?;
        scanner.enter_object()?;
        while let Some(key) = scanner.key()? {
            let value = scanner.value()?;
            match &*key {
                "inputSchema" => {
                    tool.input_schema = Some(value.range());
                    if Mirrors::may_be_in(value.as_str()) {
                        tool.mirrors = Mirrors::read(value);
                    }
                }
                "outputSchema" => tool.has_output_schema = true,
                "execution" => tool.task_only = needs_task(value)?,
                "annotations" => tool.read_only_hint = hints_read_only(value)?,
                _ => {}
            }
        }
        Ok(tool)
    }

    /// Why callers of `era` cannot use it, if so; sessions know nothing of mirrored arguments.
    pub fn unfit(&self, era: Era) -> Option<Unfit<'_>> {
        match (&self.mirrors, era) {
            _ if self.task_only => Some(Unfit::TaskOnly),
            (Err(invalid), Era::Modern) => Some(Unfit::Mirrors(invalid)),
            _ => None,
        }
    }
}

/// Whether a tool with this `execution` can be called as a task only (MCP 2025-11-25, tasks).
fn needs_task(execution: Part<'_>) -> Result<bool, ScanError> {
    let mut needs = false;
    each(execution, |key, value| {
        needs |= key == "taskSupport" && value.string().is_some_and(|text| text == "required");
    })?;
    Ok(needs)
}

/// Only the literal `true` counts, and nothing beside it may say otherwise: not a key that some reader takes for the
/// same, nor `destructiveHint`.
fn hints_read_only(annotations: Part<'_>) -> Result<bool, ScanError> {
    const HINTS: [&str; 2] = ["readOnlyHint", "destructiveHint"];
    let (mut reads, mut doubtful) = (false, false);
    each(annotations, |key, value| match key {
        "readOnlyHint" => reads = value.as_str() == "true",
        "destructiveHint" => doubtful |= value.as_str() != "false",
        key => doubtful |= lookalike(key, &HINTS).is_some(),
    })?;
    Ok(reads && !doubtful)
}

/// Shows every member of an object; what is none has none.
fn each<'a>(part: Part<'a>, mut show: impl FnMut(&str, Part<'a>)) -> Result<(), ScanError> {
    if !part.is_object() {
        return Ok(());
    }
    let mut scanner = Scanner::new(part.as_str().as_bytes(), Rules::Loose)?;
    scanner.enter_object()?;
    while let Some(key) = scanner.key()? {
        show(&key, scanner.value()?);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
