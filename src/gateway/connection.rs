//! Connections of callers to servers: what requests show of them, and what callers are told who have none.

pub(super) mod first;
pub(super) mod offered;
pub(super) mod standing;
pub(super) mod waiting;

use std::error::Error as _;

use futures_util::future::BoxFuture;
use http::{Response, StatusCode};

use super::{
    Asked, Entry, Gateway, ReplyBody,
    call::rounds,
    reply::{self, finding},
    request::entry::Ending,
};
use crate::{
    connect::{self, Challenge, Connections},
    deadline::Deadline,
    id,
    mcp::{Era, Question, Revision, capabilities::Offer, reply::Page, scan::Part},
    policy::Permit,
    refusal::{Code, Refusal},
    upstream::Credentials,
    vault::Credential,
};

impl Credentials for Connections {
    fn credential<'a>(
        &'a self,
        permit: &'a Permit,
        deadline: Deadline,
    ) -> BoxFuture<'a, Result<Option<Credential>, Refusal>> {
        Box::pin(async move { self.credential(permit, deadline).await.map_err(refusal) })
    }

    fn refused<'a>(
        &'a self,
        permit: &'a Permit,
        used: Option<&'a Credential>,
        challenge: Vec<Box<[u8]>>,
        deadline: Deadline,
    ) -> BoxFuture<'a, Result<Credential, Refusal>> {
        Box::pin(async move {
            let challenge = Challenge(challenge);
            let another = self.refused(permit, used, &challenge, deadline).await;
            another.map_err(refusal)
        })
    }

    fn refused_again<'a>(
        &'a self,
        permit: &'a Permit,
        used: &'a Credential,
    ) -> BoxFuture<'a, Refusal> {
        Box::pin(async move { refusal(self.refused_again(permit, used).await) })
    }

    fn pointed_elsewhere<'a>(
        &'a self,
        permit: &'a Permit,
        used: &'a Credential,
        deadline: Deadline,
    ) -> BoxFuture<'a, Result<Option<Credential>, Refusal>> {
        Box::pin(async move {
            let another = self.pointed_elsewhere(permit, used, deadline).await;
            another.map_err(refusal)
        })
    }

    fn taken(&self, permit: &Permit, used: &Credential) {
        self.taken(permit, used);
    }

    fn more_wanted<'a>(
        &'a self,
        permit: &'a Permit,
        challenge: Vec<Box<[u8]>>,
    ) -> BoxFuture<'a, Option<Refusal>> {
        Box::pin(async move {
            let wanted = self.more_wanted(permit, &Challenge(challenge)).await;
            wanted.map(refusal)
        })
    }
}

/// What the caller is told; causes are for the log.
fn refusal(error: connect::Error) -> Refusal {
    let mut causes = Vec::new();
    let mut next = error.source();
    while let Some(cause) = next {
        causes.push(cause.to_string());
        next = cause.source();
    }
    let refusal = Refusal::from(error);
    if causes.is_empty() {
        refusal
    } else {
        refusal.with_detail(causes.join(": "))
    }
}

/// Whether a request was refused because its caller has no connection that can be used now.
pub(super) fn is_missing(code: Code) -> bool {
    use Code as C;
    let more = [
        C::ConnectShared,
        C::ConnectTransient,
        C::ConnectUnusable,
        C::ConnectClient,
        C::ConnectIssuerChanged,
    ];
    wants_page(code) || more.contains(&code)
}

/// Whether the caller's person goes on from here, on the page of the server.
pub(super) fn wants_page(code: Code) -> bool {
    matches!(
        code,
        Code::ConnectRequired | Code::ConnectAgain | Code::ConnectScopes
    )
}

/// Whether a client of these capabilities opens pages that it is asked to, whatever its operator lets servers ask.
pub(super) fn opens_pages(capabilities: Option<Part<'_>>) -> bool {
    let offer = Offer::new(capabilities, |question| question == Question::Elicit);
    offer.admits(Question::Elicit, true)
}

/// How a caller is told of the page.
enum Way {
    /// In words.
    Words,
    /// In an error, which clients of sessions know (MCP 2025-11-25, elicitation).
    Error,
    /// In a result that asks, with this state.
    Round(String),
}

impl Way {
    fn of(gateway: &Gateway, asked: &Asked<'_>, permit: &Permit) -> Self {
        match (&asked.session, asked.asker.era) {
            (Some(session), _) if session.opens_pages => match session.upstream.revision() {
                Revision::V2025_11_25 => Self::Error,
                _ => Self::Words,
            },
            (None, Era::Modern) => {
                let meta = asked.message.meta();
                let capabilities = meta.and_then(|meta| meta.client_capabilities);
                let state = opens_pages(capabilities)
                    .then(|| rounds::own(gateway, &asked.asker, permit, &asked.message));
                state.flatten().map_or(Self::Words, Self::Round)
            }
            _ => Self::Words,
        }
    }
}

/// The key of Tollgate's own question among those of a round.
const KEY: &str = "io.tollgate/connect";

/// The reply to a request whose caller has to go to the page of the server first: a question where the client said that it
/// opens pages, else words with the link.
pub(super) async fn ask(
    gateway: &Gateway,
    asked: &Asked<'_>,
    permit: &Permit,
    mut entry: Box<Entry>,
    mut refusal: Refusal,
) -> Response<ReplyBody> {
    let link = gateway.shared.connections.link(&permit.server().name);
    let message = format!("{}; {}", refusal.public, refusal.code.remedy());
    let page = Page::new(&link, &message);
    let way = Way::of(gateway, asked, permit);
    refusal.public = format!("{}: {link}", refusal.public);
    let text = match (way, asked.asker.id_text()) {
        (Way::Words, _) | (_, None) => return finding::refused(entry, asked, refusal).await,
        (Way::Error, Some(id)) => {
            let name = format!("connect-{}", id::hex(&id::random::<8>()));
            page.wanted(id, &refusal, &name)
        }
        (Way::Round(state), Some(id)) => page.asked(id, KEY, &state),
    };
    match entry.close(Ending::without(&refusal)).await {
        Ok(proof) => reply::json(StatusCode::OK, vec![text], proof),
        Err(refusal) => finding::unkept(
            asked.asker.era,
            asked.asker.method,
            asked.rejection(refusal),
        ),
    }
}
