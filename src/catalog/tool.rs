//! A pinned tool, and what its definition says.

use std::sync::Arc;

use super::{Item, Schema};
use crate::mcp::{Era, mirrors::Mirrors, scan::ScanError, tools};

/// Proof that a server showed a tool as it is pinned. Made only here; demanded by `upstream`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedTool {
    tool: Arc<Tool>,
}

impl PinnedTool {
    pub(super) fn new(tool: Arc<Tool>) -> Self {
        Self { tool }
    }

    /// The tool's name, as the server spells it.
    pub fn name(&self) -> &str {
        &self.tool.item.name
    }

    /// The same, to keep.
    pub fn shared_name(&self) -> Arc<str> {
        self.tool.item.name.clone()
    }

    /// SHA-256 of its definition: what standing approvals are bound to.
    pub fn digest(&self) -> &[u8; 32] {
        &self.tool.item.digest
    }

    /// The version of the catalogue at which the definition was accepted.
    pub fn version(&self) -> u64 {
        self.tool.item.version
    }

    /// The pinned `inputSchema`, as canonical JSON.
    pub fn input_schema(&self) -> Option<&str> {
        self.tool.schema.text()
    }

    /// The same, for arguments to be held against.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.tool.schema
    }

    /// Whether its results are to have structured content of a declared form.
    pub fn has_output_schema(&self) -> bool {
        self.tool.facets.has_output_schema
    }

    /// Whether its definition says `readOnlyHint`: worth something only where the operator accepts hints.
    pub fn read_only_hint(&self) -> bool {
        self.tool.facets.read_only_hint
    }

    /// The arguments that modern callers mirror in headers.
    pub fn mirrors(&self) -> &Mirrors {
        self.tool.mirrors()
    }
}

/// A pinned tool that some view of the server shows.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Tool {
    item: Item,
    facets: tools::Tool,
    schema: Arc<Schema>,
    /// For callers of sessions, who know nothing of mirrored arguments.
    none: Mirrors,
}

impl Tool {
    /// Reads the definition of a pinned tool.
    pub(super) fn read(item: &Item) -> Result<Self, ScanError> {
        let facets = tools::Tool::read(&item.definition)?;
        let schema = Schema::of(item.definition.clone(), facets.input_schema.clone());
        Ok(Self {
            item: item.clone(),
            facets,
            schema: Arc::new(schema),
            none: Mirrors::default(),
        })
    }

    /// What is pinned.
    pub(super) fn item(&self) -> &Item {
        &self.item
    }

    /// Why callers of `era` cannot use it, if so.
    pub(super) fn unfit(&self, era: Era) -> Option<tools::Unfit<'_>> {
        self.facets.unfit(era)
    }

    fn mirrors(&self) -> &Mirrors {
        self.facets.mirrors.as_ref().unwrap_or(&self.none)
    }
}
