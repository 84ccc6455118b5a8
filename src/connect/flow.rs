//! The flow: what pressing Connect would do, and its beginning (RFC 6749, section 4.1, with PKCE).

mod authorize;
mod finish;
pub(super) mod pending;
mod return_to;
pub(super) mod step_up;

use std::sync::Arc;

use self::{
    authorize::Ask,
    pending::{Pending, Secrets},
};
use super::{
    Error, Inner,
    found::{
        clients,
        discovered::{self, Found, host},
    },
    inner,
    kept::grant::{self, Tried},
    provider::{pkce::Verifier, resource, scopes},
    tell,
};
use crate::{
    audit::{Kind, OutcomeKind},
    deadline::Deadline,
    policy::{OAuth, Permit},
    subject::Owner,
};

pub(super) use finish::finish;

/// What a person sees before pressing Connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preview {
    /// The server.
    pub server: Arc<str>,
    /// What people are shown.
    pub title: Option<Arc<str>>,
    /// The authorization server, byte for byte.
    pub issuer: String,
    /// The authorization server's host, with a port that is not https's own.
    pub issuer_host: String,
    /// What is pinned, where the issuer or a host of its endpoints is another now: whoever confirms that does so for their own
    /// connection.
    pub issuer_changed_from: Option<String>,
    /// The host of the authorization endpoint, where the browser is sent; an issuer may name any.
    pub sign_in_host: String,
    /// Other hosts that tokens or codes go to: token and revocation endpoints.
    pub endpoint_hosts: Vec<String>,
    /// The scopes that will be asked for.
    pub scopes: Vec<String>,
    /// The host that the browser comes back to.
    pub redirect_host: String,
    /// All that the person confirms by pressing Connect: the issuer, and each host that the flow has to do with.
    pub confirmation: String,
}

/// A flow that was begun.
pub struct Started {
    /// Where the browser goes now.
    pub authorize_url: String,
    /// The name of the cookie that binds the flow to the browser, without any prefix: 8 hexadecimal digits of the state's
    /// digest.
    pub cookie: String,
    /// The cookie's value.
    pub cookie_value: String,
}

/// What a provider sent the browser back with: each parameter of the query, decoded, in order.
pub struct Callback<'a> {
    /// The parameters.
    pub query: &'a [(String, String)],
    /// The browser's binding cookies: name without prefix, and value.
    pub cookies: &'a [(String, String)],
    /// Who is signed in.
    pub owner: &'a Owner,
}

/// How a flow ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The server.
    pub server: Arc<str>,
    /// Where the browser is sent back to, where the flow named a place: `status` in its query is `connected`, or `denied`
    /// or `failed`. A flow that named none ends in an error then.
    pub return_to: Option<String>,
}

/// What pressing Connect would do.
pub(super) async fn preview(
    inner: &Inner,
    permit: &Permit,
    deadline: Deadline,
) -> Result<Preview, Error> {
    let plan = Plan::make(inner, permit, deadline).await?;
    let discovered = &plan.found.discovered;
    clients::possible(inner, permit, discovered).await?;
    let issuer_host = host(&discovered.issuer).unwrap_or_default();
    let ends = [
        Some(&discovered.token_endpoint),
        discovered.revocation_endpoint.as_ref(),
    ];
    let mut endpoint_hosts: Vec<_> = ends
        .into_iter()
        .flatten()
        .filter_map(|url| host(url))
        .collect();
    endpoint_hosts.retain(|host| *host != issuer_host);
    endpoint_hosts.dedup();
    let server = permit.server();
    Ok(Preview {
        server: server.name.clone(),
        title: server.title.clone(),
        issuer: discovered.issuer.clone(),
        issuer_host,
        sign_in_host: host(&discovered.authorization_endpoint).unwrap_or_default(),
        confirmation: plan.found.confirmation(),
        issuer_changed_from: plan.found.changed_from,
        endpoint_hosts,
        scopes: plan.scopes,
        redirect_host: host(&inner.terms.load().redirect_uri()).unwrap_or_default(),
    })
}

/// Begins a flow, as it was confirmed.
pub(super) async fn start(
    inner: &Inner,
    permit: &Permit,
    return_to: Option<String>,
    confirmation: String,
    deadline: Deadline,
) -> Result<Started, Error> {
    let begun = begin(inner, permit, return_to, confirmation, deadline).await;
    let ended = match &begun {
        Ok(_) => (OutcomeKind::Allowed, None),
        Err(error) => (tell::outcome(error), Some(error.code())),
    };
    inner.note(Kind::Connect, "begun", &inner::key(permit), ended);
    begun
}

async fn begin(
    inner: &Inner,
    permit: &Permit,
    return_to: Option<String>,
    confirmation: String,
    deadline: Deadline,
) -> Result<Started, Error> {
    let return_to = return_to
        .map(|wanted| place(inner, permit, &wanted))
        .transpose()?;
    let Plan {
        found,
        scopes,
        tried,
    } = Plan::make(inner, permit, deadline).await?;
    confirm(inner, permit, &found, confirmation)?;
    let again = inner.records.flows(&inner::key(permit)).await?.is_some();
    let client = clients::get(inner, permit, &found.discovered, again, deadline).await?;
    let knobs = found.discovered.knobs(super::knobs(permit)?);
    let (secrets, verifier) = (Secrets::new(), Verifier::new());
    let pending = Pending {
        endpoint: grant::endpoint(permit.server()),
        resource: resource::sent(&knobs, &found.discovered),
        discovered: found.discovered,
        changed_from: found.changed_from,
        client,
        redirect_uri: inner.terms.load().redirect_uri(),
        scopes,
        return_to,
        verifier: verifier.expose().to_owned().into(),
        cookie: pending::digest(&secrets.cookie),
        tried,
    };
    let authorize_url = authorize_url(permit, &knobs, &pending, &secrets, &verifier)?;
    pending::begin(inner, inner::key(permit), &secrets, &pending).await?;
    Ok(Started {
        authorize_url,
        cookie: secrets.cookie_name(),
        cookie_value: secrets.cookie.to_string(),
    })
}

/// What a flow asks for.
struct Plan {
    found: Found,
    scopes: Vec<String>,
    tried: Vec<Tried>,
}

impl Plan {
    async fn make(inner: &Inner, permit: &Permit, deadline: Deadline) -> Result<Self, Error> {
        let found = discovered::get(inner, permit, deadline).await?;
        let knobs = &found.discovered.knobs(super::knobs(permit)?);
        let row = inner.records.grant(&inner::key(permit)).await?;
        let before = row
            .and_then(|row| grant::open(&inner.vault, &row).ok())
            .filter(|payload| payload.issuer == found.discovered.issuer);
        let Some(before) = before else {
            let challenged = found.challenged.as_deref();
            let scopes = scopes::wanted(knobs, &found.discovered, challenged, &[]);
            return Ok(Self {
                found,
                scopes,
                tried: Vec::new(),
            });
        };
        let steps_up = !before.wanted.is_empty();
        let challenged = Some(&before.wanted)
            .filter(|_| steps_up)
            .or(found.challenged.as_ref())
            .map(Vec::as_slice);
        let requested = &before.requested_scopes;
        let scopes = scopes::wanted(knobs, &found.discovered, challenged, requested);
        let tried = if steps_up {
            step_up::once_more(&before.tried, &scopes)
        } else {
            before.tried
        };
        Ok(Self {
            found,
            scopes,
            tried,
        })
    }
}

/// Nothing is begun with another issuer, or at other hosts, than the person saw: whoever publishes the metadata could give
/// it to the page and to the button in two ways.
fn confirm(
    inner: &Inner,
    permit: &Permit,
    found: &Found,
    confirmation: String,
) -> Result<(), Error> {
    if found.confirmation() != confirmation {
        return Err(Error::IssuerChanged {
            server: permit.server().name.clone(),
            pinned: found.changed_from.clone().unwrap_or(confirmation),
            found: found.confirmation(),
        });
    }
    if found.changed_from.is_some() {
        let confirmed = (OutcomeKind::Allowed, None);
        inner.note(
            Kind::Connect,
            "issuer_confirmed",
            &inner::key(permit),
            confirmed,
        );
    }
    Ok(())
}

fn place(inner: &Inner, permit: &Permit, wanted: &str) -> Result<String, Error> {
    return_to::allowed(&inner.terms.load().return_to, wanted).ok_or_else(|| Error::Unusable {
        server: permit.server().name.clone(),
        what: "the page to go back to lies below none of [connect] return_to; add it there, or begin without it".to_owned(),
    })
}

fn authorize_url(
    permit: &Permit,
    knobs: &OAuth,
    pending: &Pending,
    secrets: &Secrets,
    verifier: &Verifier,
) -> Result<String, Error> {
    let unusable = |what| Error::Unusable {
        server: permit.server().name.clone(),
        what,
    };
    let endpoint = &pending.discovered.authorization_endpoint;
    // The browser goes there, not Tollgate; what it may be is the same.
    permit
        .fetch(endpoint)
        .map_err(|refusal| unusable(refusal.public))?;
    let ask = Ask {
        client: &pending.client.id,
        redirect_uri: &pending.redirect_uri,
        state: &secrets.state,
        challenge: &verifier.challenge(),
        scopes: &pending.scopes,
        resource: pending.resource.as_deref(),
        extra: &knobs.extra_authorize_params,
    };
    authorize::url(endpoint, &ask).map_err(unusable)
}
