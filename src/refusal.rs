//! Owns: every decided "no": its stable code, whose fault it is, how it is shown, what to do next.
//! Imports: no room.
//! Never: carries a secret, or the text of an upstream's error body.
//! Fails as: it is the failure.

mod codes;

pub use codes::Code;

/// Who has to change something before the same request can succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The agent, or the client library it uses.
    Caller,
    /// The operator's files.
    Policy,
    /// The tool server, or the network on the way to it.
    Upstream,
    /// Tollgate itself, or the machine it runs on.
    Internal,
}

/// How an answer carries the refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// An HTTP status and a short JSON body: the request never became a JSON-RPC message.
    Http,
    /// A JSON-RPC error with this number.
    Rpc(i32),
    /// A tool result with `isError: true`, which the model reads; a JSON-RPC error -32603 on any method but `tools/call`.
    Tool,
}

/// A refusal on its way to the caller and to the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The stable code.
    pub code: Code,
    /// What happened, in words that the caller may see.
    pub public: String,
    /// What only logs may tell (an address, a file); never a secret.
    pub detail: Option<String>,
}

impl Refusal {
    /// A refusal with words for the caller.
    pub fn new(code: Code, public: impl Into<String>) -> Self {
        Self {
            code,
            public: public.into(),
            detail: None,
        }
    }

    /// The same, with a detail for the log.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// The text for a model or a person: the code first, then what happened, then the next step.
    pub fn text(&self) -> String {
        format!(
            "{}: {}; {}",
            self.code.as_str(),
            self.public,
            self.code.remedy()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_begins_with_the_code_and_ends_with_the_next_step() {
        let refusal = Refusal::new(Code::ToolUnknown, "no tool `x` on server `demo`");
        assert_eq!(
            refusal.text(),
            "catalog.tool_unknown: no tool `x` on server `demo`; call tools/list for the tools that are offered"
        );
    }

    #[test]
    fn codes_are_named_room_dot_reason_and_never_twice() {
        let mut seen = std::collections::BTreeSet::new();
        for code in Code::ALL {
            let text = code.as_str();
            let (room, reason) = text.split_once('.').expect("room.reason");
            assert!(!room.is_empty() && !reason.is_empty(), "{text}");
            assert!(
                text.bytes()
                    .all(|b| b.is_ascii_lowercase() || b == b'.' || b == b'_')
            );
            assert!(seen.insert(text), "`{text}` stands twice");
            assert!(
                !code.remedy().is_empty() && !code.remedy().ends_with('.'),
                "{text}"
            );
        }
    }
}
