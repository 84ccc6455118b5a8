//! One request on its way out, in the name of its caller where the server wants one.

use futures_util::future::BoxFuture;
use http::{HeaderValue, Method, StatusCode, header};

use super::{Error, Upstream};
use crate::{
    deadline::Deadline,
    egress::{self, Effect, Failed, Fields, Inbound, Outbound},
    policy::{Auth, Permit},
    refusal::Refusal,
    vault::Credential,
};

/// How Tollgate names itself to tool servers.
const AGENT: &str = concat!("tollgate/", env!("CARGO_PKG_VERSION"));
/// Lines of a challenge, and bytes of them together, that are looked at: what is more says nothing that a client needs.
const CHALLENGE: (usize, usize) = (8, 8 << 10);

/// What shows a server whose request it is. It is asked for each request to a server that wants one, whatever the request
/// is, so that none goes out in another name or in nobody's.
pub trait Credentials: Send + Sync {
    /// What to send with a request that `permit` lets through; `None` where nothing is sent.
    fn credential<'a>(
        &'a self,
        permit: &'a Permit,
        deadline: Deadline,
    ) -> BoxFuture<'a, Result<Option<Credential>, Refusal>>;

    /// The server answered 401 to `used`, with these values of `WWW-Authenticate`: another one to send, where there is
    /// one.
    fn refused<'a>(
        &'a self,
        permit: &'a Permit,
        used: Option<&'a Credential>,
        challenge: Vec<Box<[u8]>>,
        deadline: Deadline,
    ) -> BoxFuture<'a, Result<Credential, Refusal>>;

    /// The server answered 401 to that one too.
    fn refused_again<'a>(
        &'a self,
        permit: &'a Permit,
        used: &'a Credential,
    ) -> BoxFuture<'a, Refusal>;

    /// The server pointed elsewhere when it was shown `used`: another one to send, where that may be for want of it.
    fn pointed_elsewhere<'a>(
        &'a self,
        permit: &'a Permit,
        used: &'a Credential,
        deadline: Deadline,
    ) -> BoxFuture<'a, Result<Option<Credential>, Refusal>>;

    /// The server let `used` in.
    fn taken(&self, permit: &Permit, used: &Credential);

    /// The server answered 403, with these values of `WWW-Authenticate`: what to tell the caller, where the credential
    /// is good and not enough.
    fn more_wanted<'a>(
        &'a self,
        permit: &'a Permit,
        challenge: Vec<Box<[u8]>>,
    ) -> BoxFuture<'a, Option<Refusal>>;
}

impl Upstream {
    /// What a request that `permit` lets through shows its server; to be asked for before an effect is written down.
    pub async fn credential(
        &self,
        permit: &Permit,
        deadline: Deadline,
    ) -> Result<Option<Credential>, Error> {
        if let Auth::None = permit.server().auth {
            return Ok(None);
        }
        let found = self.credentials.credential(permit, deadline).await;
        found.map_err(Error::Credential)
    }

    /// Sends a request, with `credential` where the server wants one, or with what is asked for now.
    pub(super) async fn send(
        &self,
        mut out: Outbound<'_>,
        credential: Option<&Credential>,
    ) -> Result<Inbound, Error> {
        introduce(&mut out);
        let permit = out.permit;
        if let Auth::None = permit.server().auth {
            let sent = self.put(out).await;
            return sent.map_err(|failed| unsent(permit, failed));
        }
        // Its state is large: boxed, it does not weigh on calls that show nothing.
        Box::pin(self.send_as(out, credential)).await
    }

    /// Sends a request in its caller's name. One that is answered with 401 has not been applied (RFC 9110, section
    /// 15.5.2), so it is sent once more with another credential, whatever its effect. A server may also send whom it does
    /// not know to its login page; but a redirect may stand for something that was done, so only a read is repeated then.
    async fn send_as(
        &self,
        out: Outbound<'_>,
        credential: Option<&Credential>,
    ) -> Result<Inbound, Error> {
        let (permit, deadline) = (out.permit, out.deadline);
        let found = match credential {
            Some(_) => None,
            None => self.credential(permit, deadline).await?,
        };
        let used = credential.or(found.as_ref());
        let credentials = &*self.credentials;
        let another = match (self.put(showing(&out, used)).await, used) {
            (Ok(inbound), _) if inbound.status == StatusCode::UNAUTHORIZED => {
                let challenge = challenge(&inbound.headers);
                let another = credentials.refused(permit, used, challenge, deadline);
                another.await.map_err(Error::Credential)?
            }
            (Err(failed), Some(used)) if sends_to_login(permit, &failed) => {
                let another = credentials.pointed_elsewhere(permit, used, deadline);
                match (another.await.map_err(Error::Credential)?, out.effect) {
                    (Some(another), Effect::Read) => another,
                    _ => return Err(unsent(permit, failed)),
                }
            }
            (sent, used) => return self.judged(permit, used, sent).await,
        };
        match self.put(showing(&out, Some(&another))).await {
            Ok(inbound) if inbound.status == StatusCode::UNAUTHORIZED => {
                let refusal = credentials.refused_again(permit, &another).await;
                Err(Error::Credential(refusal))
            }
            sent => self.judged(permit, Some(&another), sent).await,
        }
    }

    /// What came of a request whose credential was not refused; it may not be enough.
    async fn judged(
        &self,
        permit: &Permit,
        used: Option<&Credential>,
        sent: Result<Inbound, Failed>,
    ) -> Result<Inbound, Error> {
        let inbound = sent.map_err(|failed| unsent(permit, failed))?;
        if let Some(used) = used
            && inbound.status.is_success()
        {
            self.credentials.taken(permit, used);
        }
        if inbound.status == StatusCode::FORBIDDEN {
            let challenge = challenge(&inbound.headers);
            if let Some(refusal) = self.credentials.more_wanted(permit, challenge).await {
                return Err(Error::Credential(refusal));
            }
        }
        Ok(inbound)
    }

    async fn put(&self, out: Outbound<'_>) -> Result<Inbound, Failed> {
        let permit = out.permit;
        let sent = self.egress.send(out).await;
        self.breakers.note(permit, &sent);
        sent
    }
}

/// Adds the fields that every request has.
fn introduce(out: &mut Outbound<'_>) {
    let accept = match out.method {
        Method::GET => const { HeaderValue::from_static("text/event-stream") },
        _ => const { HeaderValue::from_static("application/json, text/event-stream") },
    };
    let agent = const { HeaderValue::from_static(AGENT) };
    out.fields.add(&header::ACCEPT, &accept);
    out.fields.add(&header::USER_AGENT, &agent);
    if out.method == Method::POST {
        let json = const { HeaderValue::from_static("application/json") };
        out.fields.add(&header::CONTENT_TYPE, &json);
    }
}

/// The same request with a credential.
fn showing<'a>(out: &Outbound<'a>, credential: Option<&Credential>) -> Outbound<'a> {
    let mut fields = out.fields.clone();
    if let Some(credential) = credential {
        fields.add(credential.name(), credential.value());
    }
    Outbound {
        permit: out.permit,
        method: out.method.clone(),
        fields,
        body: out.body.clone(),
        effect: out.effect,
        deadline: out.deadline,
    }
}

/// Whether a server that gives out tokens points elsewhere instead of answering 401, as some do with an expired one. One
/// that only points to itself by another spelling has no login page there.
fn sends_to_login(permit: &Permit, failed: &Failed) -> bool {
    let redirects = matches!(failed.error, egress::Error::Redirect { moved: false, .. });
    redirects && matches!(permit.server().auth, Auth::OAuth(_))
}

fn challenge(headers: &Fields) -> Vec<Box<[u8]>> {
    let (lines, mut room) = CHALLENGE;
    let values = headers.all(&header::WWW_AUTHENTICATE).take(lines);
    let fitting = values.take_while(|value| {
        let left = room.checked_sub(value.len());
        room = left.unwrap_or_default();
        left.is_some()
    });
    fitting.map(Box::from).collect()
}

fn unsent(permit: &Permit, failed: Failed) -> Error {
    Error::Egress {
        server: permit.server().name.clone(),
        source: failed.error,
        destination: failed.destination,
    }
}
