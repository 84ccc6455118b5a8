//! Tollgate's own tools: on a server of its own, and beside those of every server whose file does not say `builtin = false`.

mod endpoint;

use std::sync::{Arc, LazyLock};

use serde::Deserialize;
use serde_json::{Number, Value, json};

pub(super) use endpoint::serve;

use crate::{
    budget::{self, Held, Piece, Reader},
    catalog::{Arguments, Schema},
    deadline::{CEILING, Deadline},
    gateway::{Ask, Asked, Entry, Finding, Gateway},
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
/// Where it is.
const ENDPOINT: &str = "/mcp/tollgate";
/// What the names of its tools begin with beside others: no server's own tool may.
const PREFIX: &str = "tollgate__";
/// The tool that reads on.
const READ: &str = "read_result";
/// The same beside others.
const READ_BESIDE: &str = "tollgate__read_result";

/// Bytes that are read at once of a turn that is spent: reading on ends, however slowly.
const SLOW: usize = 4096;
/// Bytes around a piece, at most.
const AROUND: usize = 512;
/// Pieces so short fit whatever their escapes are.
const SHORT: usize = 64;

/// Whether a tool of a server's own has a name that it may not have.
pub(super) fn is_reserved(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// By which tool callers of this server read on.
pub(super) fn reader(permit: &Permit) -> Reader {
    let beside = permit.server().builtin;
    Reader {
        tool: if beside { READ_BESIDE } else { READ },
        endpoint: (!beside).then_some(ENDPOINT),
    }
}

/// The mark of what a server said, a member of `_meta`.
pub(super) fn untrusted(server: &str) -> String {
    // In nearly every answer: formatting would cost several times as much.
    [r#""io.tollgate/untrusted":{"server":""#, server, r#""}"#].concat()
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
        "inputSchema": input(),
        "annotations": { "readOnlyHint": true, "idempotentHint": true, "openWorldHint": false }
    })
    .to_string()
}

/// What it takes.
fn input() -> Value {
    json!({
        "type": "object",
        "properties": {
            "handle": { "type": "string", "description": "As the cut result names it." },
            "offset": { "type": "integer", "minimum": 0, "description": "Where to read on; the beginning where it is absent." },
            "length": { "type": "integer", "minimum": 1, "description": "Bytes to read at most." }
        },
        "required": ["handle"],
        "additionalProperties": false
    })
}

/// The same, as arguments are held against it.
static INPUT: LazyLock<Arc<Schema>> = LazyLock::new(|| {
    let text = input().to_string();
    let whole = 0..text.len();
    Arc::new(Schema::of(text.into(), Some(whole)))
});

#[derive(Deserialize)]
struct Reading {
    handle: String,
    offset: Option<Number>,
    length: Option<Number>,
}

impl Reading {
    /// Reads arguments as strictly as those of any other tool.
    async fn of(gateway: &Gateway, text: Option<&str>) -> Result<Self, Refusal> {
        let arguments = Arguments {
            tool: READ,
            schema: &INPUT,
            text,
        };
        let schemas = gateway.shared.catalog.schemas();
        match schemas.check_now(arguments) {
            Some(checked) => checked?,
            None => schemas.check(arguments, Deadline::after(CEILING)).await?,
        }
        serde_json::from_str(text.unwrap_or("{}")).map_err(|error| {
            let public = format!("the arguments of `{READ}` cannot be read: {error}");
            Refusal::new(Code::ArgumentsInvalid, public)
        })
    }
}

/// A whole number as it may be written, `2.0` and `1e3` too; what is beyond counts as the largest.
fn whole(number: &Number) -> usize {
    let exact = number
        .as_u64()
        .and_then(|exact| usize::try_from(exact).ok());
    exact.unwrap_or_else(|| number.as_f64().unwrap_or_default() as usize)
}

/// Reads on.
pub(super) async fn call(
    gateway: &Gateway,
    ask: &Ask,
    asked: &Asked<'_>,
    entry: &mut Entry,
) -> Result<Finding, Refusal> {
    let params = asked.message.params.as_ref();
    let arguments = params.and_then(|params| Some(params.arguments?.as_str()));
    let record = entry.record();
    record.server = Some(SERVER.into());
    record.tool = Some(READ.into());
    record.args_bytes = arguments.map(str::len);
    entry.admit_read()?;
    let reading = Reading::of(gateway, arguments).await?;
    let budget = &gateway.shared.budget;
    let held = budget.kept.find(entry.subject(), &reading.handle)?;
    // What its caller may not use any more is not given out either.
    policy::decide(&ask.policy, &ask.caller, &held.server)
        .map_err(|_| budget::Error::HandleUnknown)?;
    let offset = reading.offset.as_ref().map_or(0, whole);
    let left = held.text().len().saturating_sub(offset);
    let most = held.max.saturating_sub(AROUND).min(left).max(1);
    let wanted = reading.length.as_ref().map_or(most, whole).clamp(1, most);
    let turn = asked.asker.turn_bytes;
    let length = if budget.turns.add(entry.subject(), wanted, turn) {
        wanted
    } else {
        wanted.min(SLOW)
    };
    Ok(Finding::Own(read(&held, offset, length, asked.asker.era)))
}

/// The result that shows a piece: as long as asked for, unless its escapes make it longer than a result may be.
fn read(held: &Held, offset: usize, mut length: usize, era: Era) -> String {
    loop {
        let piece = budget::piece(held.text(), held.form, offset, length);
        let result = shown(held, &piece, era);
        if result.len() <= held.max || length <= SHORT {
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
