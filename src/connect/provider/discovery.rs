//! Discovery: from a server to the authorization server that guards it (RFC 9728, RFC 8414), in the order of the MCP
//! specification of 2026-07-28.

use std::{borrow::Cow, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{
    document::{MAX_URL, Search, scopes},
    fetch::{Way, shown},
    issuer::{self, Expected, Unfit},
    resource,
};
use crate::{
    address::Target,
    connect::{Challenge, Error},
    deadline::Deadline,
    egress::Egress,
    policy::{Endpoints, OAuth, Permit, Resource},
};

/// Authorization servers of one resource that are asked for their metadata.
const MAX_ISSUERS: usize = 4;

/// What was discovered of a server's authorization. Strings stand as they were published, byte for byte.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Discovered {
    /// `resource` of the protected resource's metadata; of a server that publishes none, its URL.
    pub resource: Option<String>,
    /// The issuer.
    pub issuer: String,
    /// Where browsers are sent.
    pub authorization_endpoint: String,
    /// Where tokens come from.
    pub token_endpoint: String,
    /// Where tokens are revoked (RFC 7009).
    pub revocation_endpoint: Option<String>,
    /// Where clients are registered (RFC 7591).
    pub registration_endpoint: Option<String>,
    /// Whether each answer to a browser names its issuer (RFC 9207).
    pub iss_supported: bool,
    /// Whether a client may be the URL of its metadata.
    pub cimd_supported: bool,
    /// How clients may authenticate at the token endpoint.
    pub token_auth_methods: Option<Vec<String>>,
    /// Scopes that the authorization server knows.
    pub scopes_supported: Option<Vec<String>>,
    /// Scopes that the protected resource lists.
    pub resource_scopes: Option<Vec<String>>,
}

impl Discovered {
    /// The server's knobs, with the presets for this issuer laid under them.
    pub fn knobs(&self, own: &OAuth) -> OAuth {
        with_presets(own, &self.issuer).into_owned()
    }

    /// Every endpoint there is.
    pub(super) fn endpoints(&self) -> impl Iterator<Item = &str> {
        let needed = [&self.authorization_endpoint, &self.token_endpoint];
        let others = [&self.revocation_endpoint, &self.registration_endpoint];
        let others = others.into_iter().flatten();
        needed.into_iter().chain(others).map(String::as_str)
    }
}

/// Finds out who guards the permit's server. Of several authorization servers the one that is `preferred` comes first.
/// The server's own URL is never asked, and no endpoint is guessed.
///
/// # Errors
///
/// [`Error::Unusable`] and [`Error::Refused`] say why nothing can be used; [`Error::Transient`] and [`Error::Egress`] that
/// nobody can tell now.
pub async fn discover(
    egress: &Egress,
    permit: &Permit,
    challenge: Option<&Challenge>,
    preferred: Option<&str>,
    deadline: Deadline,
) -> Result<Discovered, Error> {
    let way = Way {
        egress,
        permit,
        deadline,
    };
    let mut search = Search::new(way);
    let Some(knobs) = permit.server().auth.oauth() else {
        return Err(Error::Unusable {
            server: search.server(),
            what: "its file does not say auth.mode = \"oauth\"".to_owned(),
        });
    };
    let found = guarded(&mut search, knobs, challenge).await?;
    let mut discovered = match (&knobs.endpoints, &knobs.issuer) {
        (Some(endpoints), Some(issuer)) => fixed(endpoints, issuer, permit)?,
        _ => published(&mut search, knobs, &found, preferred).await?,
    };
    discovered.resource = Some(match &found {
        Some(document) => document.resource.clone(),
        None => resource::canonical(&permit.server().endpoint),
    });
    discovered.resource_scopes = found
        .and_then(|document| document.scopes_supported)
        .map(scopes);
    Ok(discovered)
}

/// The metadata of the protected resource; `None` where the server publishes none.
async fn guarded(
    search: &mut Search<'_>,
    knobs: &OAuth,
    challenge: Option<&Challenge>,
) -> Result<Option<resource::Document>, Error> {
    let endpoint = &search.way.permit.server().endpoint;
    let is_named =
        knobs.endpoints.is_some() || knobs.metadata_url.is_some() || knobs.issuer.is_some();
    let is_needless = knobs.endpoints.is_some() && knobs.resource != Resource::Auto;
    let mut places = challenge.map_or_else(Vec::new, |lines| lines.bearer().resource_metadata);
    if places.len() > 1 {
        let server = search.server();
        tracing::warn!(%server, "a challenge names several places of metadata, which are tried in order");
    }
    for own in resource::candidates(endpoint) {
        if !places.contains(&own) {
            places.push(own);
        }
    }
    for url in places {
        if is_needless || is_itself(&url, search) {
            continue;
        }
        let Some(document) = search.document::<resource::Document>(&url).await? else {
            continue;
        };
        if !resource::names(&document.resource, endpoint) {
            let found = shown(&document.resource, 200);
            search.unusable(format!(
                "its metadata is that of the resource `{found}`, which is neither its URL nor a parent of it"
            ));
        } else if document.authorization_servers.is_empty() && !is_named {
            search.unusable("its metadata names no authorization server; set auth.issuer");
        } else {
            return Ok(Some(document));
        }
    }
    // What was there and is wrong is not the same as nothing.
    match search.trouble() {
        Some(trouble) if !(is_named && knobs.resource != Resource::Auto) => Err(trouble),
        _ => Ok(None),
    }
}

/// Whether metadata is said to be at the server's own URL, which answers with something else.
fn is_itself(url: &str, search: &Search<'_>) -> bool {
    let own = &search.way.permit.server().endpoint;
    Target::from_wire_with_path(url)
        .is_ok_and(|(target, path)| target == *own.target() && path == own.path().as_str())
}

/// The first metadata document of an authorization server that can be used.
async fn published(
    search: &mut Search<'_>,
    knobs: &OAuth,
    found: &Option<resource::Document>,
    preferred: Option<&str>,
) -> Result<Discovered, Error> {
    let origin = search.way.permit.server().endpoint.target().to_string();
    for expected in issuers(knobs, found, preferred, &origin) {
        let (urls, knobs) = match expected {
            Expected::PublishedAt(url) => (Some(vec![url.to_owned()]), with_presets(knobs, url)),
            Expected::Issuer(issuer) | Expected::Origin(issuer) => {
                (issuer::candidates(issuer), with_presets(knobs, issuer))
            }
        };
        for url in urls.unwrap_or_default() {
            let Some(document) = search.document::<issuer::Document>(&url).await? else {
                continue;
            };
            match document.judge(expected, &knobs, search.way.permit) {
                Ok(discovered) => {
                    if !expected.is(&discovered.issuer) {
                        let (server, issuer) = (search.server(), &discovered.issuer);
                        tracing::warn!(%server, issuer, "an issuer that the operator trusts stands in another's metadata");
                    }
                    return Ok(discovered);
                }
                Err(Unfit::Forbidden(refusal)) => search.note(Error::Refused(refusal)),
                Err(unfit) => search.unusable(unfit.to_string()),
            }
        }
    }
    Err(search.give_up(match found {
        Some(_) => "its authorization servers publish no metadata; set auth.metadata_url or auth.endpoints",
        None => "neither it nor an authorization server at its origin publishes metadata; set auth.issuer",
    }))
}

/// Who may guard the resource, in the order in which they are asked.
fn issuers<'a>(
    knobs: &'a OAuth,
    found: &'a Option<resource::Document>,
    preferred: Option<&'a str>,
    origin: &'a str,
) -> Vec<Expected<'a>> {
    if let Some(url) = &knobs.metadata_url {
        return vec![Expected::PublishedAt(url)];
    }
    let mut issuers: Vec<&str> = knobs.issuer.as_deref().into_iter().collect();
    let Some(found) = found else {
        // Before resources had metadata (2025-03-26), the authorization server was at the origin of the server.
        let named = issuers.into_iter().map(Expected::Issuer);
        return named.chain([Expected::Origin(origin)]).collect();
    };
    let mut listed: Vec<&str> = found
        .authorization_servers
        .iter()
        .map(String::as_str)
        .filter(|issuer| issuer.len() <= MAX_URL)
        .collect();
    listed.sort_by_key(|issuer| Some(*issuer) != preferred);
    listed.truncate(MAX_ISSUERS);
    issuers.extend(listed);
    issuers.into_iter().map(Expected::Issuer).collect()
}

/// What the operator wrote down, in place of a document.
fn fixed(endpoints: &Endpoints, issuer: &str, permit: &Permit) -> Result<Discovered, Error> {
    let optional = |url: &Option<Arc<str>>| url.as_deref().map(str::to_owned);
    let discovered = Discovered {
        issuer: issuer.to_owned(),
        authorization_endpoint: endpoints.authorization.to_string(),
        token_endpoint: endpoints.token.to_string(),
        revocation_endpoint: optional(&endpoints.revocation),
        registration_endpoint: optional(&endpoints.registration),
        ..Discovered::default()
    };
    for url in discovered.endpoints() {
        permit.fetch(url).map_err(Error::Refused)?;
    }
    Ok(discovered)
}

fn with_presets<'a>(own: &'a OAuth, url: &str) -> Cow<'a, OAuth> {
    match issuer::host(url) {
        Some(host) => Cow::Owned(own.with_presets(&host)),
        None => Cow::Borrowed(own),
    }
}
