//! A JSON-RPC 2.0 message, read in one scan: what it is, and where its parts stand. The bytes stay as they came.

mod edit;
mod notice;
mod params;

use std::borrow::Cow;

pub use edit::{member_cut, splice};
pub use params::{Failure, Member, Meta, Outcome, Params};

use super::{
    Rejection,
    scan::{Part, Rules, ScanError, Scanner, lookalike},
};
use crate::refusal::{Code, Refusal};

/// The longest id, in bytes of JSON text.
pub const MAX_ID_BYTES: usize = 1024;

/// The members of a message.
const MEMBERS: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Has a method and an id, and wants an answer.
    Request,
    /// Has a method and no id.
    Notification,
    /// Has a result or an error.
    Response,
}

/// The id of a request: an integer or a string, as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Id<'a>(Part<'a>);

impl<'a> Id<'a> {
    /// Reads an id, or says why it cannot be one.
    pub fn read(part: Part<'a>) -> Result<Self, &'static str> {
        let text = part.as_str();
        let digits = text.strip_prefix('-').unwrap_or(text);
        let integer = digits.bytes().all(|byte| byte.is_ascii_digit());
        match text.as_bytes() {
            _ if text.len() > MAX_ID_BYTES => Err("the id is longer than 1024 bytes"),
            [b'"', ..] => Ok(Self(part)),
            [b'-' | b'0'..=b'9', ..] if integer => Ok(Self(part)),
            [b'-' | b'0'..=b'9', ..] => Err("the id is a number with a fraction or an exponent"),
            b"null" => Err("the id is null"),
            _ => Err("the id is neither a string nor an integer"),
        }
    }

    /// The JSON text, byte for byte.
    pub fn as_str(&self) -> &'a str {
        self.0.as_str()
    }

    /// Where it stands.
    pub fn part(&self) -> Part<'a> {
        self.0
    }

    /// A key under which equal ids are equal however they are escaped, and `1` differs from `"1"`.
    pub fn key(&self) -> Cow<'a, str> {
        match self.0.string() {
            Some(Cow::Owned(text)) => Cow::Owned(format!("\"{text}\"")),
            _ => Cow::Borrowed(self.0.as_str()),
        }
    }
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// What it is.
    pub kind: Kind,
    /// Always there on a request; on a response of a tool server it may be missing or null.
    pub id: Option<Id<'a>>,
    /// Decoded; empty on a response.
    pub method: Cow<'a, str>,
    /// The parameters, an object.
    pub params: Option<Box<Params<'a>>>,
    /// The result of a response.
    pub result: Option<Outcome<'a>>,
    /// The error of a response.
    pub error: Option<Failure<'a>>,
}

impl<'a> Envelope<'a> {
    /// Reads a message that will be judged, under [`Rules::Strict`].
    pub fn inbound(body: &'a [u8]) -> Result<Self, Rejection> {
        Parts::scan(body, Rules::Strict)
            .and_then(|parts| parts.check(Rules::Strict))
            .map_err(|rejection| match rejection.refusal.code {
                Code::Ambiguous if rejection.id.is_none() => rejection.with_id(readable_id(body)),
                _ => rejection,
            })
    }

    /// Reads a message of a tool server, under [`Rules::Loose`]; whatever is wrong is [`Code::UpstreamMalformed`].
    pub fn upstream(body: &'a [u8]) -> Result<Self, Refusal> {
        Parts::scan(body, Rules::Loose)
            .and_then(|parts| parts.check(Rules::Loose))
            .map_err(|rejection| {
                Refusal::new(
                    Code::UpstreamMalformed,
                    "the server's message is not valid JSON-RPC",
                )
                .with_detail(rejection.refusal.public)
            })
    }

    /// The JSON text of the id.
    pub fn id_text(&self) -> Option<&'a str> {
        self.id.map(|id| id.as_str())
    }

    /// The JSON text of the id that an answer goes to; none for a response, which has no answer.
    pub fn asked_id(&self) -> Option<&'a str> {
        self.id_text().filter(|_| self.kind == Kind::Request)
    }

    /// The `_meta` of the parameters.
    pub fn meta(&self) -> Option<&Meta<'a>> {
        self.params.as_ref()?.meta.as_ref()
    }
}

/// The members of a message, before it is known what they make together.
#[derive(Default)]
struct Parts<'a> {
    jsonrpc: Option<Part<'a>>,
    id: Option<Part<'a>>,
    method: Option<Part<'a>>,
    params: Option<Box<Params<'a>>>,
    result: Option<Outcome<'a>>,
    error: Option<Failure<'a>>,
    repeated: bool,
    /// Another stands there that some readers take for one of these: a notification for an answer.
    disguised: bool,
    /// The first member that is not an object and must be.
    not_object: Option<&'static str>,
}

impl<'a> Parts<'a> {
    fn scan(body: &'a [u8], rules: Rules) -> Result<Self, Rejection> {
        let mut scanner = Scanner::new(body, rules)?;
        match scanner.peek() {
            Some(b'[') => return Err(Rejection::new(Code::Batch, "a batch of messages")),
            Some(b'{') | None => {}
            Some(_) => {
                super::scan::check(body, rules)?;
                return Err(Rejection::new(
                    Code::InvalidRequest,
                    "the message is not a JSON object",
                ));
            }
        }
        let mut parts = Self::default();
        let walked = parts.members(&mut scanner);
        walked.map_err(|error| Rejection::from(error).with_id(None))?;
        Ok(parts)
    }

    fn members(&mut self, scanner: &mut Scanner<'a>) -> Result<(), ScanError> {
        scanner.enter_object()?;
        while let Some(key) = scanner.key()? {
            let repeated = match &*key {
                "jsonrpc" => self.jsonrpc.replace(scanner.value()?).is_some(),
                "id" => self.id.replace(scanner.value()?).is_some(),
                "method" => self.method.replace(scanner.value()?).is_some(),
                "params" => match Params::scan(scanner)? {
                    Some(params) => {
                        self.not_object = self.not_object.or(params.not_object);
                        self.params.replace(params).is_some()
                    }
                    None => self.not_object.replace("params").is_some(),
                },
                "result" => self.result.replace(Outcome::scan(scanner)?).is_some(),
                "error" => self.error.replace(Failure::scan(scanner)?).is_some(),
                key => {
                    self.disguised |= lookalike(key, &MEMBERS).is_some();
                    scanner.other(key, &MEMBERS)?;
                    false
                }
            };
            self.repeated |= repeated;
        }
        scanner.end()
    }

    fn check(self, rules: Rules) -> Result<Envelope<'a>, Rejection> {
        let id = match (self.id.map(Id::read).transpose(), self.id) {
            (Ok(id), _) => id,
            // Servers answer what they could not read with a null id.
            (Err(_), Some(part))
                if rules == Rules::Loose && self.error.is_some() && part.as_str() == "null" =>
            {
                None
            }
            (Err(reason), _) => return Err(Rejection::new(Code::InvalidRequest, reason)),
        };
        // What looks like a response is not answered under its id.
        let asks = self.method.is_some() || (self.result.is_none() && self.error.is_none());
        let answered = id.filter(|_| asks);
        self.judge(id)
            .map_err(|rejection| rejection.with_id(answered.map(|id| id.as_str())))
    }

    fn judge(self, id: Option<Id<'a>>) -> Result<Envelope<'a>, Rejection> {
        let invalid = |what: &str| Err(Rejection::new(Code::InvalidRequest, what));
        if self.repeated {
            return Err(Rejection::new(
                Code::Ambiguous,
                "a member of the message stands twice",
            ));
        }
        if self.disguised {
            return Err(Rejection::new(
                Code::Ambiguous,
                "a member of the message looks like another",
            ));
        }
        if self.jsonrpc.and_then(|part| part.string()).as_deref() != Some("2.0") {
            return invalid("`jsonrpc` is not \"2.0\"");
        }
        let method = match self.method.map(|part| part.string()) {
            Some(None) => return invalid("`method` is not a string"),
            Some(Some(method)) => Some(method),
            None => None,
        };
        if let Some(member) = self.not_object {
            return Err(Rejection::new(
                Code::InvalidParams,
                format!("`{member}` is not an object"),
            ));
        }
        let kind = match (&method, &self.result, &self.error) {
            (Some(_), None, None) if id.is_some() => Kind::Request,
            (Some(_), None, None) => Kind::Notification,
            (None, Some(_), None) if id.is_some() => Kind::Response,
            (None, None, Some(_)) => Kind::Response,
            (None, Some(_), None) => return invalid("a result without an id"),
            (None, None, None) => return invalid("no `method`, `result` or `error`"),
            _ => return invalid("more than one of `method`, `result` and `error`"),
        };
        if kind == Kind::Response && self.params.is_some() {
            return invalid("`params` beside a result or an error");
        }
        Ok(Envelope {
            kind,
            id,
            method: method.unwrap_or_default(),
            params: self.params,
            result: self.result,
            error: self.error,
        })
    }
}

/// The id of a message that strict rules refuse, so that the answer can name it.
fn readable_id(body: &[u8]) -> Option<&str> {
    let parts = Parts::scan(body, Rules::Loose).ok()?;
    let id = Id::read(parts.id?).ok()?;
    (!parts.repeated).then_some(id.as_str())
}

#[cfg(test)]
mod tests;
