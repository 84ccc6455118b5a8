//! Owns: which tools a server is known to offer: those of the list that this process last read.
//! Imports: layers 0–1.
//! Never: contacts a server; `gateway` reads lists and teaches them here.
//! Fails as: [`Error`].

mod schema;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use dashmap::DashMap;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};

use crate::{
    mcp::{Era, mirrors::Mirrors, tools},
    policy::{Endpoint, Permit, Server},
    refusal::{Code, Refusal},
};

pub use schema::{Arguments, Schema, Schemas};

/// Tools of one server at most.
pub const MAX_TOOLS: usize = 16_384;

/// A call for an unknown name reads the whole list again, at most this often a server.
const REREAD_AFTER: Duration = Duration::from_secs(1);

/// Proof that a server is known to offer a tool. Made only here; demanded by `upstream`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedTool {
    tool: Arc<Tool>,
}

impl PinnedTool {
    /// The tool's name, as the server spells it.
    pub fn name(&self) -> &str {
        &self.tool.name
    }

    /// The same, to keep.
    pub fn shared_name(&self) -> Arc<str> {
        self.tool.name.clone()
    }

    /// Whether its definition says `readOnlyHint`: worth something only where the operator accepts hints.
    pub fn read_only_hint(&self) -> bool {
        false
    }

    /// The arguments that modern callers mirror in headers.
    pub fn mirrors(&self) -> &Mirrors {
        &self.tool.mirrors
    }

    /// What its definition asks of arguments.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.tool.schema
    }
}

/// What is known of a tool that callers of the older protocol, or of both, can use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    name: Arc<str>,
    mirrors: Mirrors,
    schema: Arc<Schema>,
    /// Whether modern callers can use it too.
    modern: bool,
}

impl Tool {
    /// What is worth knowing of it; `None` where nobody can use it.
    pub fn of(listed: &tools::Tool<'_>) -> Option<Self> {
        (listed.unfit(Era::Legacy).is_none()).then(|| Self {
            name: Arc::from(&*listed.name),
            mirrors: listed.mirrors.clone().unwrap_or_default(),
            schema: Arc::new(Schema::of(Arc::from(listed.definition.as_str()))),
            modern: listed.unfit(Era::Modern).is_none(),
        })
    }

    fn serves(&self, era: Era) -> bool {
        era == Era::Legacy || self.modern
    }
}

/// What cannot be known of a server's tools.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The list grew past [`MAX_TOOLS`].
    #[error("server `{0}` offers more than {MAX_TOOLS} tools")]
    TooLarge(Arc<str>),
}

impl Error {
    /// The code of the refusal.
    pub fn code(&self) -> Code {
        match self {
            Self::TooLarge(_) => Code::CatalogTooLarge,
        }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

/// The tools of every server, shared by all workers. Bounded by the servers that policy names, and [`MAX_TOOLS`] each.
#[derive(Debug, Default)]
pub struct Catalog {
    servers: DashMap<Arc<str>, Arc<Known>>,
    schemas: Arc<Schemas>,
}

#[derive(Debug)]
struct Known {
    endpoint: Endpoint,
    tools: Mutex<Tools>,
    reading: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct Tools {
    by_name: HashMap<Arc<str>, Arc<Tool>>,
    read: Option<Instant>,
}

impl Catalog {
    /// The tool of this name, if the last list had it and callers of `era` can use it.
    pub fn pin(&self, permit: &Permit, era: Era, name: &str) -> Option<PinnedTool> {
        let known = self.known(permit.server());
        let tools = known.tools.lock().unwrap_or_else(PoisonError::into_inner);
        let tool = tools.by_name.get(name).filter(|tool| tool.serves(era))?;
        Some(PinnedTool { tool: tool.clone() })
    }

    /// Takes over what one page says that a caller asked for. Once there are [`MAX_TOOLS`], many of them from lists of
    /// long ago, none are added: a call for one that is missing has the whole list read, which replaces them all.
    pub fn learn(&self, permit: &Permit, page: &[tools::Tool<'_>]) {
        let known = self.known(permit.server());
        let mut tools = known.tools.lock().unwrap_or_else(PoisonError::into_inner);
        let tools = &mut tools.by_name;
        for listed in page {
            let name = &*listed.name;
            match (Tool::of(listed), tools.get(name)) {
                (None, _) => drop(tools.remove(name)),
                (Some(tool), Some(known)) if **known == tool => {}
                (Some(_), None) if tools.len() == MAX_TOOLS => {}
                (Some(tool), _) => drop(tools.insert(tool.name.clone(), Arc::new(tool))),
            }
        }
    }

    /// Waits for the turn to read the whole list. `None` where it was read while waiting, or a moment ago:
    /// the caller then looks again at what is known.
    pub async fn turn(&self, permit: &Permit) -> Option<Turn> {
        let known = self.known(permit.server());
        let place = known.reading.clone().acquire_owned().await.ok()?;
        let read = known
            .tools
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .read;
        match read {
            Some(read) if read.elapsed() < REREAD_AFTER => None,
            _ => Some(Turn {
                known,
                server: permit.server().name.clone(),
                _place: place,
            }),
        }
    }

    /// Where arguments are checked against the schemas of tools.
    pub fn schemas(&self) -> &Arc<Schemas> {
        &self.schemas
    }

    /// Forgets servers that policy no longer names.
    pub fn retain(&self, named: impl Fn(&str) -> bool) {
        self.servers.retain(|name, _| named(name));
    }

    fn known(&self, server: &Server) -> Arc<Known> {
        if let Some(known) = self.servers.get(&server.name)
            && known.is_of(server)
        {
            return known.clone();
        }
        let fresh = Arc::new(Known {
            endpoint: server.endpoint.clone(),
            tools: Mutex::default(),
            reading: Arc::new(Semaphore::new(1)),
        });
        let mut entry = self
            .servers
            .entry(server.name.clone())
            .or_insert_with(|| fresh.clone());
        if !entry.is_of(server) {
            *entry = fresh;
        }
        entry.clone()
    }
}

impl Known {
    /// A server that was moved to another address is another server.
    fn is_of(&self, server: &Server) -> bool {
        self.endpoint == server.endpoint
    }
}

/// The exclusive right to read a server's whole list.
#[derive(Debug)]
pub struct Turn {
    known: Arc<Known>,
    server: Arc<str>,
    _place: OwnedSemaphorePermit,
}

impl Turn {
    /// Replaces what was known by what was read.
    pub fn finish(self, tools: impl IntoIterator<Item = Tool>) -> Result<(), Error> {
        let by_name: HashMap<_, _> = tools
            .into_iter()
            .take(MAX_TOOLS + 1)
            .map(|tool| (tool.name.clone(), Arc::new(tool)))
            .collect();
        if by_name.len() > MAX_TOOLS {
            return Err(Error::TooLarge(self.server));
        }
        let mut tools = self
            .known
            .tools
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *tools = Tools {
            by_name,
            read: Some(Instant::now()),
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests;
