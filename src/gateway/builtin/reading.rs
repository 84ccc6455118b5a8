//! The tool that reads on in results that were cut.

use std::sync::{Arc, LazyLock};

use serde::Deserialize;
use serde_json::{Number, Value, json};

use super::{Tool, kind, untrusted};
use crate::{
    budget::{self, Held, Piece},
    catalog::{Arguments, Schema},
    deadline::{CEILING, Deadline},
    gateway::{Ask, Asked, Entry, Finding, Gateway},
    mcp::Era,
    policy,
    refusal::{Code, Refusal},
};

/// Bytes that are read at once of a turn that is spent: reading on ends, however slowly.
const SLOW: usize = 4096;
/// Bytes around a piece, at most.
const AROUND: usize = 512;
/// Pieces so short fit whatever their escapes are.
const SHORT: usize = 64;

/// The definition.
pub(super) fn definition(name: &str) -> Value {
    json!({
        "name": name,
        "title": "Read on in a result that was cut",
        "description": "Returns the next piece of a result that Tollgate cut. The cut result names its handle, and the offset at which to read on. Results are kept for 10 minutes, for the caller that got them.",
        "inputSchema": input(),
        "annotations": { "readOnlyHint": true, "idempotentHint": true, "openWorldHint": false }
    })
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
            tool: Tool::Read.name(),
            schema: &INPUT,
            text,
        };
        let schemas = gateway.shared.catalog.schemas();
        match schemas.check_now(arguments) {
            Some(checked) => checked?,
            None => schemas.check(arguments, Deadline::after(CEILING)).await?,
        }
        serde_json::from_str(text.unwrap_or("{}")).map_err(|error| {
            let public = format!("the arguments of `read_result` cannot be read: {error}");
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
    entry: &Entry,
    arguments: Option<&str>,
) -> Result<Finding, Refusal> {
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
    let text = serde_json::Value::from(&*piece.text);
    format!(
        concat!(
            r#"{{{}"content":[{{"type":"text","text":{}}},"#,
            r#"{{"type":"text","text":"[offset {} to {} of {}; {}]"}}],"#,
            r#""_meta":{{{},"io.tollgate/read":{{"offset":{},"end":{},"bytes":{}{}}}}}}}"#
        ),
        kind(era),
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
