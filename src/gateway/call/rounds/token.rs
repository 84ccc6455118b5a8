//! What a client carries from one round to the next: the round, sealed for its request alone.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};

use crate::{
    mcp::{canonical, scan::ScanError},
    policy::Endpoint,
    subject::Subject,
    vault::Sealer,
};

/// The form of a sealed round: this byte, the number, when it ends (seconds since 1970, 8 bytes, big-endian), the state.
const VERSION: u8 = 1;
/// The same byte where Tollgate asked.
const OURS: u8 = 2;
/// How often a server may ask before it completes.
const ROUNDS: u8 = 8;
/// How long a client may take for its answers.
const LIFETIME: Duration = Duration::from_secs(30 * 60);

/// One round: a server, or Tollgate, has asked. It shows nothing of itself: a state may hold secrets of the server.
#[derive(Clone, PartialEq, Eq)]
pub(in crate::gateway) struct Round {
    number: u8,
    /// Seconds since 1970.
    ends: u64,
    /// The server's `requestState`, JSON text; empty where it gave none.
    state: String,
    /// Whether it is Tollgate that asked.
    ours: bool,
}

impl Round {
    /// The round that follows `last`; `None` for one too many. `state` is JSON text.
    pub(in crate::gateway) fn after(
        last: Option<&Self>,
        state: Option<&str>,
        now: SystemTime,
    ) -> Option<Self> {
        let number = last.map_or(1, |last| last.number.saturating_add(1));
        (number <= ROUNDS).then(|| Self {
            number,
            ends: seconds(now) + LIFETIME.as_secs(),
            state: state.unwrap_or_default().to_owned(),
            ours: false,
        })
    }

    /// The round in which Tollgate itself asks, before the server is asked again what it was after `last`.
    pub(super) fn own(last: Option<Self>, now: SystemTime) -> Self {
        let (number, state) = last.map_or_else(Default::default, |last| (last.number, last.state));
        Self {
            number,
            ends: seconds(now) + LIFETIME.as_secs(),
            state,
            ours: true,
        }
    }

    /// Whether Tollgate asked, so that the answers are not the server's to read.
    pub(in crate::gateway) fn is_ours(&self) -> bool {
        self.ours
    }

    /// Whether the client took too long.
    pub(super) fn is_over(&self, now: SystemTime) -> bool {
        seconds(now) > self.ends
    }

    /// The JSON text of the server's own state, if it gave one.
    pub(in crate::gateway) fn state(&self) -> Option<&str> {
        Some(&*self.state).filter(|state| !state.is_empty())
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(10 + self.state.len());
        let version = if self.ours { OURS } else { VERSION };
        bytes.extend_from_slice(&[version, self.number]);
        bytes.extend_from_slice(&self.ends.to_be_bytes());
        bytes.extend_from_slice(self.state.as_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (&[version @ (VERSION | OURS), number], rest) = bytes.split_first_chunk()? else {
            return None;
        };
        let (ends, state) = rest.split_first_chunk()?;
        Some(Self {
            number,
            ends: u64::from_be_bytes(*ends),
            state: String::from_utf8(state.to_vec()).ok()?,
            ours: version == OURS,
        })
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}

/// What a round belongs to: who asks, whom, and for what.
pub(super) struct Binding<'a> {
    pub(super) subject: &'a Subject,
    pub(super) server: &'a str,
    pub(super) endpoint: &'a Endpoint,
    pub(super) method: &'a str,
    /// The tool, the prompt, or the resource's URI.
    pub(super) named: Option<&'a str>,
    /// JSON text; however they are written, equal arguments are the same.
    pub(super) arguments: Option<&'a str>,
}

impl Binding<'_> {
    /// Its parts, each after its length, so that nothing can move from one to the next.
    fn to_bytes(&self) -> Result<Vec<u8>, ScanError> {
        let arguments = self.arguments.map(str::as_bytes);
        let digest = arguments.map(canonical::digest).transpose()?;
        let parts: [&[u8]; 11] = [
            self.subject.tenant.as_bytes(),
            self.subject.user.as_bytes(),
            self.subject.agent.as_bytes(),
            self.subject.evidence.as_bytes(),
            self.server.as_bytes(),
            self.endpoint.target().scheme().as_str().as_bytes(),
            self.endpoint.authority().as_bytes(),
            self.endpoint.path().as_str().as_bytes(),
            self.method.as_bytes(),
            self.named.unwrap_or_default().as_bytes(),
            digest.as_ref().map_or(&[], |digest| digest),
        ];
        let mut bytes = Vec::with_capacity(512);
        for part in parts {
            bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
            bytes.extend_from_slice(part);
        }
        Ok(bytes)
    }
}

/// Seals and opens the rounds of one request.
pub(super) struct Token<'s> {
    sealer: &'s Sealer,
    binding: Vec<u8>,
}

impl<'s> Token<'s> {
    pub(super) fn new(sealer: &'s Sealer, binding: &Binding<'_>) -> Result<Self, ScanError> {
        let binding = binding.to_bytes()?;
        Ok(Self { sealer, binding })
    }

    /// Text that needs no escapes in JSON.
    pub(super) fn seal(&self, round: &Round) -> String {
        let sealed = self.sealer.seal(&round.to_bytes(), &self.binding);
        BASE64_URL_SAFE_NO_PAD.encode(sealed)
    }

    /// The round that was sealed for this request, perhaps long ago; `None` for anything else.
    pub(super) fn open(&self, text: &str) -> Option<Round> {
        let sealed = BASE64_URL_SAFE_NO_PAD.decode(text).ok()?;
        let plain = self.sealer.open(&sealed, &self.binding)?;
        Round::from_bytes(&plain)
    }
}

#[cfg(test)]
mod tests;
