//! The upstream's side of a session: opened by Tollgate, renewed when the server forgets it, ended with the client's.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use http::{HeaderValue, Method};
use tokio::sync::Semaphore;

use super::{Error, Message, Upstream, answer};
use crate::{
    deadline::Deadline,
    egress::{Effect, FieldLines, Fields, Inbound, Outbound},
    mcp::{Revision, headers},
    policy::{Era, Permit},
};

/// Session ids longer than this are no session ids.
const ID_BYTES: usize = 1024;
/// The epoch of a session that was not opened yet.
pub(super) const UNOPENED: u64 = 0;

/// The parameters of `initialize` as the server sees them.
#[derive(Clone, Debug)]
pub struct Hello {
    revision: Revision,
    params: Bytes,
}

impl Hello {
    /// The revision that the client asks for, of its capabilities those that are relayed, and its own `clientInfo`; the
    /// last two are JSON objects.
    pub fn new(revision: Revision, capabilities: &str, client_info: &str) -> Self {
        let params = format!(
            r#"{{"protocolVersion":"{revision}","capabilities":{capabilities},"clientInfo":{client_info}}}"#
        );
        Self {
            revision,
            params: params.into(),
        }
    }

    /// The revision that is asked for.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    fn request(&self, id: u64) -> Bytes {
        let params = std::str::from_utf8(&self.params).unwrap_or("{}");
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"initialize","params":{params}}}"#).into()
    }
}

/// One session with one server, used by one client session alone.
#[derive(Debug)]
pub struct Session {
    hello: Hello,
    revision: Revision,
    id: Mutex<Option<HeaderValue>>,
    epoch: AtomicU64,
    renewing: Semaphore,
}

impl Session {
    /// A session that is opened by the first request in it: its client was told before that its revision is spoken.
    pub fn unopened(hello: Hello) -> Self {
        Self {
            revision: hello.revision,
            hello,
            id: Mutex::new(None),
            epoch: AtomicU64::new(UNOPENED),
            renewing: Semaphore::new(1),
        }
    }

    /// Whether the server knows of it.
    pub fn is_open(&self) -> bool {
        self.epoch() != UNOPENED
    }

    /// Which opening of the session this is; rises when it is renewed.
    pub(super) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Whether the server gave it an id; one that did not keeps no session.
    pub(super) fn has_id(&self) -> bool {
        self.id
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_some()
    }

    /// The revision that the server answered with, which both sides speak.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The header fields of a request in it.
    pub(super) fn fields(&self) -> FieldLines {
        let mut fields = FieldLines::new();
        // The first revision knows no such header (MCP 2025-03-26, transports).
        if self.revision != Revision::V2025_03_26 {
            let revision = HeaderValue::from_static(self.revision.as_str());
            fields.add(&headers::PROTOCOL_VERSION, &revision);
        }
        if let Some(id) = &*self.id.lock().unwrap_or_else(PoisonError::into_inner) {
            fields.add(&headers::SESSION_ID, id);
        }
        fields
    }
}

impl Upstream {
    /// Opens a session; returns it with the server's answer to `initialize`. There is none where that is an error.
    pub async fn open(
        &self,
        permit: &Permit,
        hello: Hello,
        deadline: Deadline,
    ) -> Result<(Option<Session>, Message), Error> {
        if permit.server().era == Era::Modern {
            return Err(Error::Era {
                server: permit.server().name.clone(),
                wanted: Revision::LEGACY,
                spoken: Revision::MODERN.as_str().to_owned(),
            });
        }
        let (id, message) = self.initialize(permit, &hello, deadline).await?;
        let Some(result) = message.result() else {
            return Ok((None, message));
        };
        let revision = revision(permit, result)?;
        let session = Session {
            id: Mutex::new(id),
            epoch: AtomicU64::new(UNOPENED + 1),
            revision,
            ..Session::unopened(hello)
        };
        Ok((Some(session), message))
    }

    /// Ends a session, as far as the server lets itself be told.
    pub async fn close(
        &self,
        permit: &Permit,
        session: &Session,
        deadline: Deadline,
    ) -> Result<(), Error> {
        if !session.has_id() {
            return Ok(());
        }
        let out = Outbound {
            permit,
            method: Method::DELETE,
            fields: session.fields(),
            body: Bytes::new(),
            effect: &Effect::Read,
            deadline,
        };
        let inbound = self.send(out, None).await?;
        let _ = inbound.body.collect(4096).await;
        Ok(())
    }

    /// Opens `session`, or opens it anew, unless another request has done so since `seen`.
    pub(super) async fn renew(
        &self,
        permit: &Permit,
        session: &Session,
        seen: u64,
        deadline: Deadline,
    ) -> Result<(), Error> {
        let Ok(_turn) = session.renewing.acquire().await else {
            return Err(lost(permit));
        };
        if session.epoch() != seen {
            return Ok(());
        }
        let (id, welcome) = self.initialize(permit, &session.hello, deadline).await?;
        let spoken = welcome.result().map(|result| revision(permit, result));
        // The client has been told another revision, and what it is told cannot change.
        if spoken.transpose()? != Some(session.revision) {
            return Err(lost(permit));
        }
        *session.id.lock().unwrap_or_else(PoisonError::into_inner) = id;
        let ready =
            Bytes::from_static(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        self.tell(permit, session, ready, deadline).await?;
        session.epoch.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    async fn initialize(
        &self,
        permit: &Permit,
        hello: &Hello,
        deadline: Deadline,
    ) -> Result<(Option<HeaderValue>, Message), Error> {
        let id = self.next_id();
        let out = Outbound {
            permit,
            method: Method::POST,
            fields: FieldLines::new(),
            body: hello.request(id),
            effect: &Effect::Read,
            deadline,
        };
        let Inbound {
            status,
            headers,
            body,
            ..
        } = self.send(out, None).await?;
        let session_id = session_id(permit, &headers)?;
        let answer = answer::read(permit, id, status, headers, body).await?;
        let message = answer.whole().await?;
        Ok((session_id, message))
    }
}

fn session_id(permit: &Permit, fields: &Fields) -> Result<Option<HeaderValue>, Error> {
    let Some(id) = fields.get(&headers::SESSION_ID) else {
        return Ok(None);
    };
    // MCP 2025-11-25, session management: visible ASCII only.
    let is_usable = !id.is_empty() && id.len() <= ID_BYTES && id.iter().all(u8::is_ascii_graphic);
    let value = HeaderValue::from_bytes(id).ok().filter(|_| is_usable);
    let Some(mut value) = value else {
        return Err(Error::Malformed {
            server: permit.server().name.clone(),
            reason: "a session id that is not visible ASCII".to_owned(),
        });
    };
    value.set_sensitive(true);
    Ok(Some(value))
}

/// The revision of a session that this answer to `initialize` opens.
fn revision(permit: &Permit, result: &str) -> Result<Revision, Error> {
    #[derive(serde::Deserialize)]
    struct Welcome {
        #[serde(rename = "protocolVersion")]
        protocol_version: String,
    }
    let server = || permit.server().name.clone();
    let welcome: Welcome = serde_json::from_str(result).map_err(|error| Error::Malformed {
        server: server(),
        reason: format!("its answer to initialize: {error}"),
    })?;
    Revision::parse(&welcome.protocol_version)
        .filter(|revision| revision.era() == crate::mcp::Era::Legacy)
        .ok_or_else(|| Error::Era {
            server: server(),
            wanted: Revision::LEGACY,
            spoken: welcome.protocol_version.chars().take(32).collect(),
        })
}

/// The server ended the session and opens no other.
pub(super) fn lost(permit: &Permit) -> Error {
    Error::SessionLost {
        server: permit.server().name.clone(),
    }
}
