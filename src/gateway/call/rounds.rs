//! Requests in rounds (MCP 2026-07-28, multi round-trip requests): a server answers with questions, and the client
//! repeats its request with the answers and with `requestState`, which it carries from one to the other unread.
//!
//! Whatever a client carries it may also change, or use elsewhere. So it gets the server's state sealed, bound to all that
//! the request was judged by, and every round is judged anew. Nothing is kept here between two rounds.

mod token;

use crate::{
    gateway::{
        Asked, Gateway,
        request::{
            asker::{Asker, Changes, malformed},
            forward,
        },
        session::questions,
    },
    mcp::{Envelope, Era, InputRequired, Method, Rejection, headers},
    policy::Permit,
    refusal::{Code, Refusal},
    upstream::{Edit, Message},
};

pub(in crate::gateway) use token::Round;
use token::{Binding, Token};

/// The longest state of a server, in bytes of JSON text.
const STATE_BYTES: usize = 32 << 10;

/// The round that a request goes on from; `None` where it begins, or means nothing of the kind.
pub(super) fn resume(
    gateway: &Gateway,
    asked: &Asked<'_>,
    permit: &Permit,
) -> Result<Option<Round>, Refusal> {
    let asker = &asked.asker;
    let may_ask = asker.era == Era::Modern && asker.method.is_some_and(Method::may_ask);
    let Some(params) = asked.message.params.as_ref().filter(|_| may_ask) else {
        return Ok(None);
    };
    if params.input_responses.is_some_and(|part| !part.is_object()) {
        return Err(Refusal::new(
            Code::InvalidParams,
            "`params.inputResponses` must be an object",
        ));
    }
    if params.request_state.is_none() {
        return Ok(None);
    }
    let token = token(gateway, asker, permit, &asked.message)?;
    let round = carried(&asked.message, &token).ok_or_else(|| {
        Refusal::new(
            Code::RoundInvalid,
            "`params.requestState` does not belong to this request",
        )
    })?;
    if round.is_over(gateway.shared.clock.now()) {
        return Err(Refusal::new(
            Code::RoundInvalid,
            "`params.requestState` is more than 30 minutes old",
        ));
    }
    Ok(Some(round))
}

/// What changes in an answer that asks: nothing but the state. Only questions that the client offers to answer go on.
///
/// Clients show people which server asks. They know it: each server has an endpoint of its own here, and questions stay what
/// their schemas say, so nothing is added to them.
pub(in crate::gateway) fn edits(
    gateway: &Gateway,
    asker: &Asker,
    permit: &Permit,
    message: &Message,
) -> Result<Vec<Edit>, Refusal> {
    if !asker.method.is_some_and(Method::may_ask) {
        return Err(malformed(permit, "questions where none may be asked"));
    }
    let wanted = InputRequired::read(message.result().unwrap_or_default())
        .map_err(|error| malformed(permit, error.to_string()))?;
    let request = Envelope::inbound(&asker.body).map_err(|rejection| rejection.refusal)?;
    let offer = forward::offer(&request, permit.server().relay).unwrap_or_default();
    for (question, params) in &wanted.questions {
        questions::admit(&offer, *question, params.as_ref())
            .map_err(|why| malformed(permit, format!("`{}`: {why}", question.as_str())))?;
    }
    let state = wanted.state.map(|state| state.as_str());
    if state.is_some_and(|state| state.len() > STATE_BYTES) {
        return Err(malformed(permit, "`requestState` is longer than 32 KiB"));
    }
    let token = token(gateway, asker, permit, &request)?;
    let last = carried(&request, &token);
    let next = Round::after(last.as_ref(), state, gateway.shared.clock.now()).ok_or_else(|| {
        let server = &permit.server().name;
        let public = format!("server `{server}` asks for the ninth time before it answers");
        Refusal::new(Code::Rounds, public)
    })?;
    let mut changes = Changes::default();
    let sealed = format!("\"{}\"", token.seal(&next));
    changes.set(message, "requestState", state, &sealed);
    Ok(changes.into_edits(message))
}

/// The state of a round in which Tollgate itself asks, so that the request goes on from where it is; `None` where it has
/// asked already, or may not ask.
pub(in crate::gateway) fn own(
    gateway: &Gateway,
    asker: &Asker,
    permit: &Permit,
    request: &Envelope<'_>,
) -> Option<String> {
    asker.method.filter(|method| method.may_ask())?;
    let token = token(gateway, asker, permit, request).ok()?;
    let last = carried(request, &token);
    if last.as_ref().is_some_and(Round::is_ours) {
        return None;
    }
    Some(token.seal(&Round::own(last, gateway.shared.clock.now())))
}

/// Whether this request is repeated because Tollgate asked something.
pub(in crate::gateway) fn is_own(gateway: &Gateway, asked: &Asked<'_>, permit: &Permit) -> bool {
    let params = asked.message.params.as_ref();
    if params.is_none_or(|params| params.request_state.is_none()) {
        return false;
    }
    let token = token(gateway, &asked.asker, permit, &asked.message);
    let round = token.ok().and_then(|token| carried(&asked.message, &token));
    round.is_some_and(|round| round.is_ours())
}

/// The round that `requestState` holds, if it was sealed for this request.
fn carried(request: &Envelope<'_>, token: &Token<'_>) -> Option<Round> {
    let state = request.params.as_ref()?.request_state?;
    token.open(&state.value.string()?)
}

/// What seals and opens for this request.
fn token<'g>(
    gateway: &'g Gateway,
    asker: &Asker,
    permit: &Permit,
    request: &Envelope<'_>,
) -> Result<Token<'g>, Refusal> {
    let params = request.params.as_ref();
    let named = headers::mirrored_name(request);
    let binding = Binding {
        subject: &asker.subject,
        server: &permit.server().name,
        endpoint: &permit.server().endpoint,
        method: &request.method,
        named: named.as_deref(),
        arguments: params.and_then(|params| Some(params.arguments?.as_str())),
    };
    Token::new(&gateway.shared.rounds, &binding).map_err(|error| Rejection::from(error).refusal)
}
