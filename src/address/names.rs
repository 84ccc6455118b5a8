//! Names that are refused before anything is resolved.

use super::Name;

/// A rule about a name.
#[derive(Debug)]
pub(super) struct NameRule {
    /// The name of the rule.
    pub(super) name: &'static str,
    /// Which names it is about.
    names: Names,
    /// What such a name is.
    pub(super) what: &'static str,
    /// Whether an exact private grant opens it.
    pub(super) grantable: bool,
}

#[derive(Debug)]
enum Names {
    /// Exactly these.
    Exact(&'static [&'static str]),
    /// This name and everything below it.
    At(&'static str),
    /// Everything that begins like this.
    From(&'static str),
    /// Names of one label.
    SingleLabel,
}

/// The first rule about `name`, if there is one.
pub(super) fn rule(name: &Name) -> Option<&'static NameRule> {
    RULES.iter().find(|rule| rule.names.cover(name))
}

/// `localhost` and what lies below it: answered with the loopback addresses and never asked for (RFC 6761 section 6.3).
pub(super) fn is_localhost(name: &Name) -> bool {
    Names::At("localhost").cover(name)
}

impl Names {
    fn cover(&self, name: &Name) -> bool {
        match self {
            Self::Exact(names) => names.contains(&name.as_str()),
            Self::At(suffix) => name.as_str() == *suffix || name.is_below(suffix),
            Self::From(prefix) => name.as_str().starts_with(prefix),
            Self::SingleLabel => !name.as_str().contains('.'),
        }
    }
}

const fn grantable(name: &'static str, names: Names, what: &'static str) -> NameRule {
    NameRule {
        name,
        names,
        what,
        grantable: true,
    }
}

const fn never(name: &'static str, names: Names, what: &'static str) -> NameRule {
    NameRule {
        name,
        names,
        what,
        grantable: false,
    }
}

const METADATA: &[&str] = &[
    "metadata",
    "metadata.google.internal",
    "metadata.goog",
    "metadata.tencentyun.com",
    "instance-data",
    "instance-data.ec2.internal",
];
const KUBERNETES: &[&str] = &["kubernetes", "kubernetes.default", "kubernetes.default.svc"];
const LOOPBACK: &[&str] = &["localhost.localdomain", "ip6-localhost", "ip6-loopback"];

/// The first that covers a name decides, so that the special comes before the general.
static RULES: &[NameRule] = &[
    never(
        "metadata-name",
        Names::Exact(METADATA),
        "a cloud metadata service",
    ),
    never(
        "kubernetes-api",
        Names::Exact(KUBERNETES),
        "the Kubernetes API server",
    ),
    never(
        "kubernetes-api",
        Names::From("kubernetes.default.svc."),
        "the Kubernetes API server",
    ),
    grantable(
        "localhost-name",
        Names::At("localhost"),
        "this machine (RFC 6761)",
    ),
    grantable("localhost-name", Names::Exact(LOOPBACK), "this machine"),
    grantable(
        "cluster-name",
        Names::At("svc"),
        "inside a Kubernetes cluster",
    ),
    grantable(
        "cluster-name",
        Names::At("cluster.local"),
        "inside a Kubernetes cluster",
    ),
    grantable(
        "mdns-name",
        Names::At("local"),
        "a multicast DNS name (RFC 6762)",
    ),
    grantable(
        "home-name",
        Names::At("home.arpa"),
        "a home network's name (RFC 8375)",
    ),
    grantable("internal-name", Names::At("internal"), "a private-use name"),
    never(
        "onion-name",
        Names::At("onion"),
        "a Tor name, which DNS must not answer (RFC 7686)",
    ),
    never(
        "invalid-name",
        Names::At("invalid"),
        "a name that never exists (RFC 6761)",
    ),
    never(
        "reverse-name",
        Names::At("in-addr.arpa"),
        "a reverse-lookup name",
    ),
    never(
        "reverse-name",
        Names::At("ip6.arpa"),
        "a reverse-lookup name",
    ),
    grantable(
        "single-label",
        Names::SingleLabel,
        "a single label, whose meaning depends on the machine",
    ),
];
