//! What a cut result says of itself, to models and to programs.

use super::{Form, Terms, Why};
use crate::refusal::Code;

/// Bytes of the sentence and the mark together, at most.
pub(super) const MOST: usize = 1024;

/// The words of one cut.
pub(super) struct Say<'t> {
    terms: Terms<'t>,
}

impl<'t> Say<'t> {
    pub(super) fn new(terms: &Terms<'t>) -> Self {
        Self { terms: *terms }
    }

    pub(super) fn form(&self) -> Form {
        self.terms.form
    }

    /// What stands in a text in place of `bytes` that begin at `from`; inside a JSON string.
    pub(super) fn marker(&self, bytes: usize, from: usize) -> String {
        match self.terms.form {
            Form::Tool => format!("… [cut {bytes} bytes; go on at offset {from}] …"),
            Form::Resource | Form::Prompt => {
                let on = self.on(from);
                format!("… [cut {bytes} bytes: incomplete; do not invent the rest; {on}] …")
            }
        }
    }

    /// What stands in place of `count` blocks, of which the first begins at `from`.
    pub(super) fn between(&self, count: usize, from: usize) -> String {
        match self.terms.form {
            Form::Tool => format!("… [{count} blocks left out; go on at offset {from}] …"),
            Form::Resource | Form::Prompt => {
                let on = self.on(from);
                format!("… [{count} left out: incomplete; do not invent the rest; {on}] …")
            }
        }
    }

    /// The sentence: what is missing, how to read on, and what not to do. `hides_success` where `isError` says nothing
    /// about the call.
    pub(super) fn sentence(
        &self,
        total: usize,
        omitted: usize,
        next: usize,
        hides_success: bool,
    ) -> String {
        let on = self.on(next);
        let told = match self.terms.why {
            Why::Result => format!("[Incomplete: {omitted} of {total} bytes are left out; {on}."),
            Why::Turn => format!(
                "[{}: the results of this turn are larger together than they may be, so this one of {total} bytes is left out and the answer incomplete; the call was made; {on}.",
                Code::TurnSpent.as_str()
            ),
        };
        let success = if hides_success {
            " The tool reported no error: `isError` only says that its structured content is left out."
        } else {
            ""
        };
        format!("{told} Answer from what there is, and do not invent the rest.{success}]")
    }

    /// How to read on.
    fn on(&self, next: usize) -> String {
        let tool = self.terms.reader.tool;
        let endpoint = self.terms.reader.endpoint;
        let of = endpoint.map_or_else(String::new, |path| format!(" of the server at {path}"));
        match self.terms.handle {
            Some(handle) => format!(
                "to read on, call `{tool}`{of} within 10 minutes with handle {handle} and offset {next}"
            ),
            None => "the rest was not kept: ask for less at once".to_owned(),
        }
    }

    /// The mark in `_meta`, a member: bytes of the result, how many of them stay, and where to read on.
    pub(super) fn mark(&self, total: usize, omitted: usize, next: usize) -> String {
        let kept = total - omitted;
        let on = self.terms.handle.map(|handle| {
            let tool = self.terms.reader.tool;
            let endpoint = self.terms.reader.endpoint;
            let of = endpoint.map_or_else(String::new, |path| format!(r#","endpoint":"{path}""#));
            format!(r#","handle":"{handle}","offset":{next},"tool":"{tool}"{of}"#)
        });
        let on = on.unwrap_or_default();
        let why = match self.terms.why {
            Why::Result => "result",
            Why::Turn => "turn",
        };
        format!(r#""io.tollgate/cut":{{"bytes":{total},"kept":{kept},"why":"{why}"{on}}}"#)
    }

    /// A block that says this, the inside of a JSON string.
    pub(super) fn block(&self, said: &str, uri: Option<&str>) -> String {
        let text = format!(r#"{{"type":"text","text":"{said}"}}"#);
        match self.terms.form {
            Form::Tool => text,
            Form::Prompt => format!(r#"{{"role":"user","content":{text}}}"#),
            Form::Resource => {
                let uri = uri.unwrap_or("tollgate:cut");
                format!(r#"{{"uri":"{uri}","mimeType":"text/plain","text":"{said}"}}"#)
            }
        }
    }
}
