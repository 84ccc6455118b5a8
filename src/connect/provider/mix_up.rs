//! Mix-up (RFC 9700, section 4.4): metadata of one authorization server that names endpoints of another. What a person does
//! at the one comes to the other then, where no `iss` tells them apart.
//!
//! The rule: no endpoint of an issuer lies at an origin by which another issuer is known. Known by an origin is who has
//! their issuer, their authorization or their token endpoint there, and is pinned for a server of the tenant, named by the
//! file of another server of the tenant, or among the presets. Each crossing does harm of its own:
//!
//! - authorization: people sign in at the one who is known, and their code goes to the token endpoint of who is not;
//! - token: codes that one authorization server gave out, and the client's secret for it, are shown to another in Tollgate's
//!   name (section 4.5);
//! - registration: a client of the one, with its secret, is kept and shown as the client of the other;
//! - revocation: tokens of the one are sent to the other.
//!
//! Who has the same origin as the issuer, or belongs to the same preset, is no other: realms and tenants share one. A server
//! whose own file says `auth.issuer`, and with it `auth.endpoints`, is not judged: the operator vouches for what that issuer
//! publishes.

use super::{discovery::Discovered, fetch::shown};
use crate::{
    address::Target,
    connect::Error,
    policy::{Permit, Server, preset_of},
};

/// An endpoint that lies where another is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::connect) struct Crossing {
    issuer: String,
    /// The member of the metadata.
    endpoint: &'static str,
    origin: String,
    /// As in [`Error::MixUp`].
    by: String,
}

/// Who is known by an origin.
struct Known {
    issuer: Target,
    origin: Target,
    by: String,
}

/// Judges by files and presets.
pub(in crate::connect) fn by_policy(permit: &Permit, found: &Discovered) -> Option<Crossing> {
    let own = &permit.server().name;
    let others = permit.oauth_servers().filter(|other| other.name != *own);
    let known: Vec<Known> = others.flat_map(named).collect();
    crossing(permit, found, |origin, issuer| {
        let by = preset(origin).map(|preset| format!("the preset `{preset}`"));
        by.or_else(|| another(&known, origin, issuer))
    })
}

/// Judges by what is pinned for servers of the tenant, each with its name.
pub(in crate::connect) fn by_pins(
    permit: &Permit,
    found: &Discovered,
    pinned: &[(&str, Discovered)],
) -> Option<Crossing> {
    let known: Vec<Known> = pinned
        .iter()
        .flat_map(|(server, pinned)| {
            let own = [&pinned.authorization_endpoint, &pinned.token_endpoint];
            let by = format!("what is pinned of server `{server}`");
            at(&pinned.issuer, own.map(String::as_str), &by)
        })
        .collect();
    crossing(permit, found, |origin, issuer| {
        another(&known, origin, issuer)
    })
}

/// The first endpoint outside the issuer's own where another is, by what `taken` tells.
fn crossing(
    permit: &Permit,
    found: &Discovered,
    taken: impl Fn(&Target, &Target) -> Option<String>,
) -> Option<Crossing> {
    if is_vouched_for(permit, found) {
        return None;
    }
    let issuer = Target::from_wire(&found.issuer).ok()?;
    let endpoints = [
        (
            "authorization_endpoint",
            Some(&found.authorization_endpoint),
        ),
        ("token_endpoint", Some(&found.token_endpoint)),
        (
            "registration_endpoint",
            found.registration_endpoint.as_ref(),
        ),
        ("revocation_endpoint", found.revocation_endpoint.as_ref()),
    ];
    endpoints.into_iter().find_map(|(endpoint, url)| {
        let origin = Target::from_wire(url?).ok()?;
        if is_same(&origin, &issuer) {
            return None;
        }
        Some(Crossing {
            by: taken(&origin, &issuer)?,
            issuer: found.issuer.clone(),
            endpoint,
            origin: origin.to_string(),
        })
    })
}

fn is_vouched_for(permit: &Permit, found: &Discovered) -> bool {
    let own = permit.server().auth.oauth();
    own.and_then(|own| own.issuer.as_deref()) == Some(found.issuer.as_str())
}

/// By what another than `issuer` is known at an origin.
fn another(known: &[Known], origin: &Target, issuer: &Target) -> Option<String> {
    let is = |known: &&Known| known.origin == *origin && !is_same(&known.issuer, issuer);
    Some(known.iter().find(is)?.by.clone())
}

/// Whether two origins are of one authorization server.
fn is_same(one: &Target, other: &Target) -> bool {
    one == other || preset(one).is_some() && preset(one) == preset(other)
}

fn preset(origin: &Target) -> Option<&'static str> {
    preset_of(&origin.host().to_string())
}

/// Whom a file names.
fn named(server: &Server) -> Vec<Known> {
    let Some(knobs) = server.auth.oauth() else {
        return Vec::new();
    };
    let by = format!("the file of server `{}`", server.name);
    let fixed = knobs.endpoints.iter();
    let own: Vec<&str> = fixed
        .flat_map(|own| [&*own.authorization, &*own.token])
        .collect();
    let issuer = knobs.issuer.iter();
    let issuer = issuer.flat_map(|issuer| at(issuer, own.iter().copied(), &by));
    let trusted = knobs
        .trusted_issuer
        .iter()
        .flat_map(|issuer| at(issuer, [], &by));
    issuer.chain(trusted).collect()
}

/// The origins by which an issuer is known.
fn at<'a>(issuer: &str, endpoints: impl IntoIterator<Item = &'a str>, by: &str) -> Vec<Known> {
    let Ok(issuer) = Target::from_wire(issuer) else {
        return Vec::new();
    };
    let endpoints = endpoints.into_iter();
    let endpoints = endpoints.filter_map(|url| Target::from_wire(url).ok());
    let known = |origin| Known {
        issuer: issuer.clone(),
        origin,
        by: by.to_owned(),
    };
    endpoints.chain([issuer.clone()]).map(known).collect()
}

impl Crossing {
    pub(in crate::connect) fn error(self, permit: &Permit) -> Error {
        Error::MixUp {
            server: permit.server().name.clone(),
            issuer: shown(&self.issuer, 200),
            endpoint: self.endpoint,
            origin: self.origin,
            by: self.by,
        }
    }
}
