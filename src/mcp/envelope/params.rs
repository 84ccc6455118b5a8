//! The first levels of `params`, `result` and `error`: where the members stand that a gateway looks at.

use std::{borrow::Cow, ops::Range};

use crate::mcp::scan::{Part, ScanError, Scanner};

/// The prefix of the `_meta` keys that are Tollgate's own.
const OWN_PREFIX: &str = "io.tollgate/";

/// The members of `params` that are looked at.
const MEMBERS: [&str; 16] = [
    "_meta",
    "name",
    "uri",
    "arguments",
    "cursor",
    "requestId",
    "progressToken",
    "protocolVersion",
    "capabilities",
    "clientInfo",
    "inputResponses",
    "requestState",
    "task",
    "mode",
    "url",
    "ref",
];
/// The members of `_meta` that are looked at.
const META_MEMBERS: [&str; 6] = [
    "progressToken",
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/clientCapabilities",
    "io.modelcontextprotocol/logLevel",
    "io.modelcontextprotocol/subscriptionId",
];

/// `params`: an object, and the members of its first level that matter to a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params<'a> {
    /// The object.
    pub whole: Part<'a>,
    /// `name` of a tool or prompt.
    pub name: Option<Part<'a>>,
    /// `uri` of a resource.
    pub uri: Option<Part<'a>>,
    /// `arguments` of a tool or prompt.
    pub arguments: Option<Part<'a>>,
    /// `cursor` of a list.
    pub cursor: Option<Part<'a>>,
    /// `requestId` of `notifications/cancelled`.
    pub request_id: Option<Part<'a>>,
    /// `progressToken` of `notifications/progress`.
    pub progress_token: Option<Part<'a>>,
    /// `protocolVersion` of `initialize`.
    pub protocol_version: Option<Part<'a>>,
    /// `capabilities` of `initialize`.
    pub capabilities: Option<Part<'a>>,
    /// `clientInfo` of `initialize`.
    pub client_info: Option<Part<'a>>,
    /// `inputResponses` of a request that answers questions.
    pub input_responses: Option<Part<'a>>,
    /// `requestState` of a request that was asked something.
    pub request_state: Option<Member<'a>>,
    /// `task` of a request that could run as one.
    pub task: Option<Member<'a>>,
    /// `mode` of `elicitation/create`.
    pub mode: Option<Part<'a>>,
    /// `url` of `elicitation/create`.
    pub url: Option<Part<'a>>,
    /// `ref` of `completion/complete`.
    pub about: Option<Part<'a>>,
    /// `_meta`.
    pub meta: Option<Meta<'a>>,
    pub(super) not_object: Option<&'static str>,
}

impl<'a> Params<'a> {
    /// Takes the value that comes next; `None` if it is no object. They are many, and move from hand to hand: boxed, they
    /// are not copied each time.
    pub(in crate::mcp) fn scan(scanner: &mut Scanner<'a>) -> Result<Option<Box<Self>>, ScanError> {
        if scanner.peek() != Some(b'{') {
            scanner.value()?;
            return Ok(None);
        }
        let start = scanner.position();
        let mut params = Box::new(Self::empty(scanner.part(start..start)));
        scanner.enter_object()?;
        while let Some(key) = scanner.key()? {
            let member = match &*key {
                "_meta" => {
                    params.meta = Meta::scan(scanner)?;
                    if params.meta.is_none() {
                        params.not_object = Some("_meta");
                    }
                    continue;
                }
                "name" => &mut params.name,
                "uri" => &mut params.uri,
                "arguments" => &mut params.arguments,
                "cursor" => &mut params.cursor,
                "requestId" => &mut params.request_id,
                "progressToken" => &mut params.progress_token,
                "protocolVersion" => &mut params.protocol_version,
                "capabilities" => &mut params.capabilities,
                "clientInfo" => &mut params.client_info,
                "inputResponses" => &mut params.input_responses,
                "mode" => &mut params.mode,
                "url" => &mut params.url,
                "ref" => &mut params.about,
                "requestState" => {
                    params.request_state = Some(Member::scan(scanner)?);
                    continue;
                }
                "task" => {
                    params.task = Some(Member::scan(scanner)?);
                    continue;
                }
                key => {
                    scanner.other(key, &MEMBERS)?;
                    continue;
                }
            };
            *member = Some(scanner.value()?);
        }
        params.whole = scanner.part(start..scanner.position());
        Ok(Some(params))
    }

    fn empty(whole: Part<'a>) -> Self {
        Self {
            whole,
            name: None,
            uri: None,
            arguments: None,
            cursor: None,
            request_id: None,
            progress_token: None,
            protocol_version: None,
            capabilities: None,
            client_info: None,
            input_responses: None,
            request_state: None,
            task: None,
            mode: None,
            url: None,
            about: None,
            meta: None,
            not_object: None,
        }
    }
}

/// A member that may have to go: its value, and where its key begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member<'a> {
    /// The value.
    pub value: Part<'a>,
    key: usize,
}

impl<'a> Member<'a> {
    /// Takes the value that comes next, whose key was the last to be read.
    fn scan(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        let key = scanner.last_key();
        let value = scanner.value()?;
        Ok(Self { value, key })
    }

    /// From the key's first quote to the end of the value.
    pub fn range(&self) -> Range<usize> {
        self.key..self.value.range().end
    }
}

/// `_meta` of the parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta<'a> {
    /// The object.
    pub whole: Part<'a>,
    /// `progressToken`.
    pub progress_token: Option<Part<'a>>,
    /// `io.modelcontextprotocol/protocolVersion`.
    pub protocol_version: Option<Part<'a>>,
    /// `io.modelcontextprotocol/clientInfo`.
    pub client_info: Option<Part<'a>>,
    /// `io.modelcontextprotocol/clientCapabilities`.
    pub client_capabilities: Option<Part<'a>>,
    /// `io.modelcontextprotocol/logLevel`.
    pub log_level: Option<Part<'a>>,
    /// `io.modelcontextprotocol/subscriptionId`, on what a server tells a listener.
    pub subscription_id: Option<Part<'a>>,
    /// Keys under `io.tollgate/`, without that prefix.
    pub own: Vec<(Cow<'a, str>, Part<'a>)>,
}

impl<'a> Meta<'a> {
    /// The value of `io.tollgate/{name}`.
    pub fn own(&self, name: &str) -> Option<Part<'a>> {
        self.own
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, part)| *part)
    }

    fn scan(scanner: &mut Scanner<'a>) -> Result<Option<Self>, ScanError> {
        if scanner.peek() != Some(b'{') {
            scanner.value()?;
            return Ok(None);
        }
        let start = scanner.position();
        let mut meta = Self {
            whole: scanner.part(start..start),
            progress_token: None,
            protocol_version: None,
            client_info: None,
            client_capabilities: None,
            log_level: None,
            subscription_id: None,
            own: Vec::new(),
        };
        scanner.enter_object()?;
        while let Some(key) = scanner.key()? {
            if let Some(name) = key.strip_prefix(OWN_PREFIX) {
                let value = scanner.value()?;
                meta.own.push((Cow::Owned(name.to_owned()), value));
                continue;
            }
            let member = match &*key {
                "progressToken" => &mut meta.progress_token,
                "io.modelcontextprotocol/protocolVersion" => &mut meta.protocol_version,
                "io.modelcontextprotocol/clientInfo" => &mut meta.client_info,
                "io.modelcontextprotocol/clientCapabilities" => &mut meta.client_capabilities,
                "io.modelcontextprotocol/logLevel" => &mut meta.log_level,
                "io.modelcontextprotocol/subscriptionId" => &mut meta.subscription_id,
                key => {
                    scanner.other(key, &META_MEMBERS)?;
                    continue;
                }
            };
            *member = Some(scanner.value()?);
        }
        meta.whole = scanner.part(start..scanner.position());
        Ok(Some(meta))
    }
}

/// `result` of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome<'a> {
    /// The value.
    pub whole: Part<'a>,
    /// Whether it is a tool result with `isError: true`.
    pub is_error: bool,
    /// `resultType`, which modern results carry.
    pub result_type: Option<Part<'a>>,
    /// `protocolVersion` of an answer to `initialize`.
    pub protocol_version: Option<Part<'a>>,
    /// `_meta`.
    pub meta: Option<Part<'a>>,
    /// `content` of a tool result.
    pub content: Option<Part<'a>>,
}

impl<'a> Outcome<'a> {
    pub(super) fn scan(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        let names = [
            "content",
            "isError",
            "resultType",
            "_meta",
            "protocolVersion",
        ];
        let (whole, [content, is_error, result_type, meta, protocol_version]) =
            members(scanner, names)?;
        Ok(Self {
            whole,
            is_error: is_error.is_some_and(|part| part.as_str() == "true"),
            result_type,
            protocol_version,
            meta,
            content,
        })
    }
}

/// `error` of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure<'a> {
    /// The value.
    pub whole: Part<'a>,
    /// `code`, if it is an integer.
    pub code: Option<i64>,
}

impl<'a> Failure<'a> {
    pub(super) fn scan(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        let (whole, [code]) = members(scanner, ["code"])?;
        Ok(Self {
            whole,
            code: code.and_then(|part| part.as_str().parse().ok()),
        })
    }
}

/// Takes the value that comes next and, if it is an object, notes where the named members stand; none may stand twice.
fn members<'a, const N: usize>(
    scanner: &mut Scanner<'a>,
    names: [&str; N],
) -> Result<(Part<'a>, [Option<Part<'a>>; N]), ScanError> {
    let mut found = [None; N];
    if scanner.peek() != Some(b'{') {
        return Ok((scanner.value()?, found));
    }
    let start = scanner.position();
    scanner.enter_object()?;
    while let Some(key) = scanner.key()? {
        let value = scanner.value()?;
        // Readers differ in which of two members counts, and these decide what is done with the answer.
        if let Some(at) = names.iter().position(|name| *name == key)
            && found[at].replace(value).is_some()
        {
            let at = scanner.position();
            return Err(ScanError::DuplicateKey { at });
        }
    }
    Ok((scanner.part(start..scanner.position()), found))
}
