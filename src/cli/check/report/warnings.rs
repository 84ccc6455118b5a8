//! Warnings: what is allowed and still probably not meant.

use std::{collections::BTreeSet, fs, os::unix::fs::MetadataExt, path::Path, sync::Arc};

use crate::{
    address::{Host, Leg, Scheme, Target},
    clock::{Clock, SystemClock},
    config::{Environment, Method, Settings},
    policy::{
        Access, AccessMode, Approval, Auth, Local, Pin, Server, Snapshot, ToolOverride, lints,
    },
    refusal::Code,
    secret::Source,
};

/// Tools of a server that a warning names.
const NAMED: usize = 8;

/// All of them; `servers` stand in the order in which they are told of.
pub(super) fn warnings(
    settings: &Settings,
    policy: &Snapshot,
    environment: &Environment,
    servers: &[&Arc<Server>],
) -> Vec<String> {
    let method = &settings.identity.method;
    let mut warnings = general(settings, policy, environment);
    warnings.extend(
        servers
            .iter()
            .filter_map(|server| unreachable(server, policy)),
    );
    warnings.extend(
        servers
            .iter()
            .filter_map(|server| issuer_unreachable(server, policy)),
    );
    warnings.extend(servers.iter().filter_map(|server| unregistered(server)));
    warnings.extend(servers.iter().filter_map(|server| unpinned(server)));
    warnings.extend(
        servers
            .iter()
            .filter_map(|server| unused(server, method, policy)),
    );
    warnings.extend(servers.iter().filter_map(|server| asking(server)));
    warnings.extend(servers.iter().filter_map(|server| in_plain_text(server)));
    warnings.extend(idle_rules(method, policy));
    warnings
}

/// Files of secrets that others than their owner may read.
pub(super) fn readable(folder: &Path, secrets: &[Source]) -> BTreeSet<String> {
    let files = secrets.iter().filter_map(|source| match source {
        Source::File(path) => Some(folder.join(path)),
        Source::Env(_) | Source::Credential(_) => None,
    });
    let loose = files.filter_map(|path| {
        let mode = fs::metadata(&path).ok()?.mode() & 0o7777;
        (mode & 0o044 != 0).then(|| {
            format!(
                "the secret `{path}` may be read by group or others (mode {mode:04o}); run `chmod go-r {path}`, or move it \
                 where only tollgate's user reads",
                path = path.display()
            )
        })
    });
    loose.collect()
}

/// Of the settings and the policy as a whole.
fn general(settings: &Settings, policy: &Snapshot, environment: &Environment) -> Vec<String> {
    let mut warnings = Vec::new();
    for name in &environment.proxies {
        warnings.push(format!(
            "{name} is set and ignored: Tollgate uses no proxy on its way out"
        ));
    }
    if settings.identity.method == Method::Keys && policy.keys.is_empty() {
        warnings.push(
            "there is no key, so nobody can call; make one with `tollgate agent-key new`"
                .to_owned(),
        );
    }
    if let Some(Source::Env(name)) = &settings.vault.key {
        warnings.push(format!(
            "the key of the keyring is in the variable {name}, which other programs of this user can read; use \
             credential: or file:"
        ));
    }
    warnings.extend(metadata_elsewhere(settings));
    let admins = &policy.admins;
    let closed = policy
        .servers
        .values()
        .any(|server| match policy.access_mode {
            AccessMode::Files => server.access == Access::Admins,
            AccessMode::Admins => true,
            AccessMode::AllUsers => false,
        });
    if closed && admins.users.is_empty() && admins.groups.is_empty() {
        warnings.push(
            "servers are for admins and nobody is one; name some in `[identity] admins`, or set access = \"everyone\""
                .to_owned(),
        );
    }
    let allowlist = environment.private_allowlist.as_deref().unwrap_or_default();
    for entry in allowlist
        .split(',')
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
    {
        let host = Host::from_operator(entry).ok();
        if !policy
            .servers
            .values()
            .any(|server| Some(server.endpoint.target().host()) == host.as_ref())
        {
            warnings.push(format!(
                "TOOLS_PRIVATE_NETWORK_ALLOWLIST names `{entry}`, where no server is registered"
            ));
        }
    }
    warnings
}

/// A client metadata document that is said to be where these pages do not serve it.
fn metadata_elsewhere(settings: &Settings) -> Option<String> {
    let said = settings.connect.client_metadata_url.as_deref()?;
    let pages = settings.public_url_or_default().unwrap_or_default();
    let served = format!("{}/oauth/client-metadata.json", pages.trim_end_matches('/'));
    (said != served).then(|| {
        format!(
            "connect.client_metadata_url is `{said}`, and the document is served at `{served}`; set it to that, with the \
             public_url by which authorization servers reach it, unless a proxy serves it there"
        )
    })
}

/// A server whose address is refused before any name is asked.
fn unreachable(server: &Server, policy: &Snapshot) -> Option<String> {
    let leg = Leg::Server(server.name.clone());
    let blocked = policy
        .addresses
        .before_resolving(&leg, server.endpoint.target())
        .err()?;
    Some(format!(
        "server `{}` cannot be reached: {blocked}",
        server.name
    ))
}

/// An authorization server that the file names, and whose address is refused before any name is asked.
fn issuer_unreachable(server: &Server, policy: &Snapshot) -> Option<String> {
    let issuer = server.auth.oauth()?.issuer.as_deref()?;
    let target = Target::from_wire(issuer).ok()?;
    let leg = Leg::OAuth(server.name.clone());
    let blocked = policy.addresses.before_resolving(&leg, &target).err()?;
    Some(format!(
        "the authorization server of `{}` cannot be reached: {blocked}",
        server.name
    ))
}

/// A server to which nobody can connect, as far as its authorization server is known.
fn unregistered(server: &Server) -> Option<String> {
    let knobs = server.auth.oauth()?;
    knobs.lacks_client().then(|| {
        format!(
            "nobody will be able to connect to server `{}`: its authorization server is known to register nobody by itself; \
             register Tollgate there, and set auth.client_id",
            server.name
        )
    })
}

/// A server whose pins are to be in a file that is not there offers nothing.
fn unpinned(server: &Server) -> Option<String> {
    let name = &server.name;
    (server.pin == Pin::File(None)).then(|| {
        format!(
            "server `{name}` offers nothing: pins/{name}.json is not there; write it with `tollgate pin {name} \
             --accept-all` while tollgate runs"
        )
    })
}

/// A server with tools for which somebody is to be asked, and nobody can be.
fn asking(server: &Server) -> Option<String> {
    let asks = |own: &ToolOverride| {
        let asks = matches!(own.approval, Some(Approval::Ask | Approval::AlwaysAsk));
        asks && !own.hidden
    };
    let asking = server.tools.iter().filter(|(_, own)| asks(own));
    let names: BTreeSet<String> = asking
        .map(|(name, _)| format!("`{}`", name.escape_debug()))
        .collect();
    let listed = names.iter().take(NAMED).map(String::as_str);
    let mut listed: Vec<&str> = listed.collect();
    if names.len() > NAMED {
        listed.push("…");
    }
    (!names.is_empty()).then(|| {
        format!(
            "server `{}` refuses every call of {} ({}): approval = \"ask\" and \"always-ask\" want somebody to be asked, which \
             this version cannot; set approval = \"never\", or remove it for read_only to decide",
            server.name,
            listed.join(", "),
            Code::ApprovalUnavailable.as_str()
        )
    })
}

/// A server that gets credentials over plain http to another machine.
fn in_plain_text(server: &Server) -> Option<String> {
    let target = server.endpoint.target();
    let plain = target.scheme() == Scheme::Http && !target.host().is_loopback();
    let shows = server.auth != Auth::None;
    (plain && shows).then(|| {
        format!(
            "server `{}` gets credentials over plain http, which everybody on the way can read; use https",
            server.name
        )
    })
}

/// Rules of the forward proxy that can never decide anything.
fn idle_rules(method: &Method, policy: &Snapshot) -> Vec<String> {
    let local = match method {
        Method::Local { user, tenant } => Some(Local {
            tenant: tenant.clone(),
            user: user.clone(),
        }),
        Method::Keys => None,
    };
    lints(policy, local.as_ref(), SystemClock.now())
}

/// A server of tenants that no caller can be of; where there is no key at all, another warning says so.
fn unused(server: &Server, method: &Method, policy: &Snapshot) -> Option<String> {
    let (reached, callers) = match method {
        Method::Local { tenant, .. } => (
            server.tenants.contains(tenant),
            format!("the local user is of tenant `{tenant}`"),
        ),
        Method::Keys => (
            policy.keys.is_empty()
                || policy
                    .keys
                    .values()
                    .any(|key| server.tenants.contains(&key.subject.tenant)),
            "no key is of one of them".to_owned(),
        ),
    };
    let tenants = server.tenants.join(", ");
    (!reached).then(|| {
        format!(
            "nobody can use server `{}`: its tenants are {tenants}, and {callers}",
            server.name
        )
    })
}
