//! Tollgate's own tools: on a server of its own, and beside those of every server whose file does not say `builtin = false`.

mod endpoint;

use serde::Deserialize;
use serde_json::json;

pub(super) use endpoint::serve;

use super::{Ask, Asked, Entry, Finding, Gateway};
use crate::{
    budget::{self, Held, Piece},
    mcp::{
        Era,
        items::{List, Page},
        scan::Part,
    },
    policy::{self, Permit},
    refusal::{Code, Refusal},
};

/// The name of the server.
pub(super) const SERVER: &str = "tollgate";
/// What the names of its tools begin with beside others: no server's own tool may.
const PREFIX: &str = "tollgate__";
/// The tool that reads on.
const READ: &str = "read_result";
/// The same beside others.
const READ_BESIDE: &str = "tollgate__read_result";

/// Bytes that are read at once of a turn that is spent: reading on ends, however slowly.
const SLOW: usize = 4096;
/// Bytes around a piece.
const AROUND: usize = 512;

/// Whether a tool of a server's own has a name that it may not have.
pub(super) fn is_reserved(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// The name by which callers of this server read on.
pub(super) fn reader(permit: &Permit) -> &'static str {
    if permit.server().builtin {
        READ_BESIDE
    } else {
        READ
    }
}

/// The mark of what a server said, a member of `_meta`.
pub(super) fn untrusted(server: &str) -> String {
    format!(r#""io.tollgate/untrusted":{{"server":"{server}"}}"#)
}

/// Whether this call is for a tool of Tollgate's own.
pub(super) fn is_called(asked: &Asked<'_>, permit: &Permit) -> bool {
    permit.server().builtin
        && named(asked).is_some_and(|name| name.string().as_deref() == Some(READ_BESIDE))
}

fn named<'a>(asked: &Asked<'a>) -> Option<Part<'a>> {
    asked.message.params.as_ref()?.name
}

/// The definition of Tollgate's own tool, if it stands at the end of this page.
pub(super) fn beside(permit: &Permit, list: List, page: &Page<'_>) -> Option<String> {
    let server = permit.server();
    if list != List::Tools {
        return None;
    }
    for tool in page.items.iter().filter(|tool| is_reserved(&tool.name)) {
        tracing::warn!(server = %server.name, tool = %tool.name.escape_debug(), "a tool was left out: its name is reserved");
    }
    (server.builtin && page.next_cursor.is_none()).then(|| definition(READ_BESIDE))
}

/// The definition of the tool that reads on.
fn definition(name: &str) -> String {
    json!({
        "name": name,
        "title": "Read on in a result that was cut",
        "description": "Returns the next piece of a result that Tollgate cut. The cut result names its handle, and the offset at which to read on. Results are kept for 10 minutes, for the caller that got them.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "handle": { "type": "string", "description": "As the cut result names it." },
                "offset": { "type": "integer", "minimum": 0, "description": "Where to read on; the beginning where it is absent." },
                "length": { "type": "integer", "minimum": 1, "description": "Bytes to read at most." }
            },
            "required": ["handle"],
            "additionalProperties": false
        },
        "annotations": { "readOnlyHint": true, "idempotentHint": true, "openWorldHint": false }
    })
    .to_string()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reading {
    handle: String,
    #[serde(default)]
    offset: usize,
    length: Option<usize>,
}

/// Reads on.
pub(super) fn call(
    gateway: &Gateway,
    ask: &Ask,
    asked: &Asked<'_>,
    entry: &mut Entry,
) -> Result<Finding, Refusal> {
    let arguments = asked
        .message
        .params
        .as_ref()
        .and_then(|params| params.arguments);
    let record = entry.record();
    record.server = Some(SERVER.into());
    record.tool = Some(READ.into());
    record.args_bytes = arguments.map(|arguments| arguments.as_str().len());
    let arguments = arguments.map_or("{}", |arguments| arguments.as_str());
    let reading: Reading = serde_json::from_str(arguments).map_err(|error| {
        Refusal::new(
            Code::ArgumentsInvalid,
            format!("the arguments of `{READ}`: {error}"),
        )
    })?;
    entry.admit_read()?;
    let budget = &gateway.shared.budget;
    let held = budget.kept.find(entry.subject(), &reading.handle)?;
    // What its caller may not use any more is not given out either.
    policy::decide(&ask.policy, &ask.caller, &held.server)
        .map_err(|_| budget::Error::HandleUnknown)?;
    let most = held.max.saturating_sub(AROUND);
    let wanted = reading.length.unwrap_or(most).clamp(1, most);
    let turn = asked.asker.turn_bytes;
    let length = if budget.turns.add(entry.subject(), wanted, turn) {
        wanted
    } else {
        wanted.min(SLOW)
    };
    Ok(Finding::Own(read(&held, &reading, length, asked.asker.era)))
}

/// The result that shows a piece: as long as asked for, unless its escapes make it longer than a result may be.
fn read(held: &Held, reading: &Reading, mut length: usize, era: Era) -> String {
    loop {
        let piece = budget::piece(held.text(), held.form, reading.offset, length);
        let result = shown(held, &piece, era);
        if result.len() <= held.max || length <= AROUND {
            return budget::cleaned(result, held.max);
        }
        length /= 2;
    }
}

fn shown(held: &Held, piece: &Piece, era: Era) -> String {
    let (start, end, bytes) = (piece.start, piece.end, held.text().len());
    let (on, next) = match piece.next {
        Some(next) => (
            format!("go on at offset {next}"),
            format!(r#","next":{next}"#),
        ),
        None => ("this is the end".to_owned(), String::new()),
    };
    let kind = match era {
        Era::Modern => r#""resultType":"complete","#,
        Era::Legacy => "",
    };
    let text = serde_json::Value::from(&*piece.text);
    format!(
        concat!(
            r#"{{{}"content":[{{"type":"text","text":{}}},"#,
            r#"{{"type":"text","text":"[offset {} to {} of {}; {}]"}}],"#,
            r#""_meta":{{{},"io.tollgate/read":{{"offset":{},"end":{},"bytes":{}{}}}}}}}"#
        ),
        kind,
        text,
        start,
        end,
        bytes,
        on,
        untrusted(&held.server),
        start,
        end,
        bytes,
        next
    )
}
