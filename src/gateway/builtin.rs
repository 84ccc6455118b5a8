//! Tollgate's own tools: on a server of its own, and beside those of every server whose file does not say `builtin = false`.

mod connections;
mod endpoint;
mod reading;

use serde_json::Value;

pub(super) use self::{connections::awaited, endpoint::serve};
use crate::{
    budget::Reader,
    gateway::{Ask, Asked, Entry, Finding, Gateway},
    mcp::{
        Era,
        items::{List, Page},
        scan::Part,
    },
    policy::Permit,
    refusal::Refusal,
};

/// The name of the server.
pub(super) const SERVER: &str = "tollgate";
/// Where it is.
const ENDPOINT: &str = "/mcp/tollgate";
/// What the names of its tools begin with beside others: no server's own tool may.
const PREFIX: &str = "tollgate__";

/// One of the tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    /// Reads on in a result that was cut.
    Read,
    /// Tells of the caller's connections.
    Connections,
}

impl Tool {
    const ALL: [Self; 2] = [Self::Read, Self::Connections];

    fn name(self) -> &'static str {
        match self {
            Self::Read => "read_result",
            Self::Connections => "connections",
        }
    }

    /// The same beside the tools of others.
    fn beside(self) -> &'static str {
        match self {
            Self::Read => "tollgate__read_result",
            Self::Connections => "tollgate__connections",
        }
    }

    fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    fn definition(self, name: &str) -> Value {
        match self {
            Self::Read => reading::definition(name),
            Self::Connections => connections::definition(name),
        }
    }

    /// Those that callers are shown: of connections only while a server awaits one.
    fn shown(awaited: bool) -> impl Iterator<Item = Self> {
        let all = Self::ALL.into_iter();
        all.filter(move |tool| awaited || *tool != Self::Connections)
    }
}

/// Whether a tool of a server's own has a name that it may not have.
pub(super) fn is_reserved(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// By which tool callers of this server read on.
pub(super) fn reader(permit: &Permit) -> Reader {
    let beside = permit.server().builtin;
    Reader {
        tool: if beside {
            Tool::Read.beside()
        } else {
            Tool::Read.name()
        },
        endpoint: (!beside).then_some(ENDPOINT),
    }
}

/// The mark of what a server said, a member of `_meta`.
pub(super) fn untrusted(server: &str) -> String {
    // In nearly every answer: formatting would cost several times as much.
    [r#""io.tollgate/untrusted":{"server":""#, server, r#""}"#].concat()
}

/// The tool of Tollgate's own that this call is for.
pub(super) fn called(asked: &Asked<'_>, permit: &Permit) -> Option<Tool> {
    let name = named(asked).filter(|_| permit.server().builtin)?.string()?;
    Tool::find(name.strip_prefix(PREFIX)?)
}

fn named<'a>(asked: &Asked<'a>) -> Option<Part<'a>> {
    asked.message.params.as_ref()?.name
}

/// Calls a tool.
pub(super) async fn call(
    gateway: &Gateway,
    ask: &Ask,
    asked: &Asked<'_>,
    entry: &mut Entry,
    tool: Tool,
) -> Result<Finding, Refusal> {
    let params = asked.message.params.as_ref();
    let arguments = params.and_then(|params| Some(params.arguments?.as_str()));
    let record = entry.record();
    record.server = Some(SERVER.into());
    record.tool = Some(tool.name().into());
    record.args_bytes = arguments.map(str::len);
    entry.admit_read()?;
    match tool {
        Tool::Read => reading::call(gateway, ask, asked, entry, arguments).await,
        Tool::Connections => Ok(connections::call(gateway, ask, asked).await),
    }
}

/// Tells of a server's own tools that have names which they may not have.
pub(super) fn warn_of(permit: &Permit, page: &Page<'_>) {
    for tool in page.items.iter().filter(|tool| is_reserved(&tool.name)) {
        let server = &permit.server().name;
        tracing::warn!(%server, tool = %tool.name.escape_debug(), "a tool was left out: its name is reserved");
    }
}

/// The definitions of Tollgate's own tools at the end of this list, with commas between them; `None` where none stand
/// there.
pub(super) fn beside(permit: &Permit, list: List, awaited: bool) -> Option<String> {
    let stand = permit.server().builtin && list == List::Tools;
    stand.then(|| definitions(awaited, Tool::beside))
}

fn definitions(awaited: bool, named: impl Fn(Tool) -> &'static str) -> String {
    let shown = Tool::shown(awaited);
    let all: Vec<String> = shown
        .map(|tool| tool.definition(named(tool)).to_string())
        .collect();
    all.join(",")
}

/// The kind of a result, a member of it and a comma.
fn kind(era: Era) -> &'static str {
    match era {
        Era::Modern => r#""resultType":"complete","#,
        Era::Legacy => "",
    }
}

/// A list of Tollgate's own, of one page: `all` are its items, with commas between them.
pub(super) fn page(era: Era, array: &str, all: &str) -> String {
    let hints = match era {
        Era::Modern => r#""ttlMs":0,"cacheScope":"private","#,
        Era::Legacy => "",
    };
    format!(r#"{{{}{hints}"{array}":[{all}]}}"#, kind(era))
}
