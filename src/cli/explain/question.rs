//! Who asks, and what to suppose.

use std::{net::IpAddr, path::PathBuf, sync::Arc};

use crate::{
    address::{Host, Name},
    config::Method,
    subject::{DEFAULT_TENANT, Scopes, Subject},
};

/// The caller and the network that an explanation supposes.
#[derive(Debug, clap::Args)]
pub(super) struct Question {
    /// The policy folder; with --batch it judges the cases that have no allowlist.
    #[arg(long, value_name = "DIR")]
    pub(super) policy: Option<PathBuf>,
    /// The caller's tenant.
    #[arg(long, value_name = "T")]
    tenant: Option<String>,
    /// The calling agent.
    #[arg(long, value_name = "A")]
    agent: Option<String>,
    /// The user on whose behalf it calls.
    #[arg(long, value_name = "U")]
    user: Option<String>,
    /// The user's groups, separated by commas.
    #[arg(long, value_name = "G", value_delimiter = ',')]
    groups: Vec<String>,
    /// The method of the request, for an http URL.
    #[arg(
        long,
        value_name = "METHOD",
        default_value = "GET",
        conflicts_with = "batch"
    )]
    pub(super) method: String,
    /// Suppose that NAME has this address, and do not ask for it; may be repeated.
    #[arg(long, value_name = "NAME=ADDR", value_parser = supposed, conflicts_with = "batch")]
    pub(super) resolve: Vec<(Name, IpAddr)>,
}

impl Question {
    /// Whether it is about somebody, rather than about whoever calls.
    pub(super) fn names_somebody(&self) -> bool {
        self.user.is_some() || self.tenant.is_some()
    }

    /// The caller: what the flags say, else the fixed user of `method`, else nobody in particular.
    pub(super) fn subject(&self, method: &Method) -> Subject {
        let (user, tenant, agent) = match method {
            Method::Local { user, tenant } => (&**user, &**tenant, "local"),
            Method::Keys => ("someone", DEFAULT_TENANT, "some-agent"),
        };
        let or = |flag: &Option<String>, default: &str| -> Arc<str> {
            flag.as_deref().unwrap_or(default).into()
        };
        Subject {
            tenant: or(&self.tenant, tenant),
            agent: or(&self.agent, agent),
            user: or(&self.user, user),
            groups: self
                .groups
                .iter()
                .map(|group| Arc::from(group.as_str()))
                .collect(),
            scopes: Scopes::CALL,
            conversation: None,
            turn: None,
            acting: None,
            evidence: "explain".into(),
        }
    }
}

fn supposed(text: &str) -> Result<(Name, IpAddr), String> {
    let (name, address) = text.split_once('=').ok_or("expected NAME=ADDR")?;
    let address = address
        .parse()
        .map_err(|_| format!("`{address}` is not an IP address"))?;
    match Host::from_operator(name) {
        Ok(Host::Name(name)) => Ok((name, address)),
        Ok(Host::Ip(_)) => Err(format!("`{name}` is an address and is not resolved")),
        Err(malformed) => Err(malformed.to_string()),
    }
}
