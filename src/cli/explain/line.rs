//! One case of a batch: the format of `tests/corpus/README.md`.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use ipnet::IpNet;
use serde::{Deserialize, de::IgnoredAny};

/// A case of kind `url` or `dns`. What only describes the case is checked to be there and not read.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line {
    pub(super) id: String,
    #[serde(rename = "kind")]
    _kind: IgnoredAny,
    pub(super) input: Input,
    #[serde(default)]
    pub(super) setup: Setup,
    /// What may be reached; absent = the policy folder decides.
    pub(super) allowlist: Option<Vec<String>>,
    #[serde(default, rename = "expect")]
    _expect: IgnoredAny,
    #[serde(default, rename = "also_ok")]
    _also_ok: IgnoredAny,
    #[serde(default, rename = "reason")]
    _reason: IgnoredAny,
    #[serde(default, rename = "source")]
    _source: IgnoredAny,
    #[serde(default, rename = "tag")]
    _tag: IgnoredAny,
}

/// What is asked for.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Input {
    /// A URL.
    Url(String),
    /// The authority of a CONNECT request.
    Connect(String),
}

/// The network that the case supposes.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Setup {
    /// Answers by name.
    pub(super) dns: BTreeMap<String, Records>,
    #[serde(rename = "dns_note")]
    _dns_note: IgnoredAny,
    pub(super) nat64_prefixes: Vec<IpNet>,
    pub(super) fake_ip_ranges: Vec<IpNet>,
    /// Addresses of this host.
    pub(super) local_ips: Vec<IpAddr>,
    /// Our own listeners.
    pub(super) self_listen: Vec<SocketAddr>,
}

/// What the name servers say about one name. Hints, signatures, search lists and hosts files change nothing, because
/// they are not consulted; a truncated answer is asked for again over TCP.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Records {
    #[serde(rename = "A")]
    pub(super) a: OneOrMany<Ipv4Addr>,
    #[serde(rename = "AAAA")]
    pub(super) aaaa: OneOrMany<Ipv6Addr>,
    #[serde(rename = "AAAA_delayed")]
    pub(super) aaaa_delayed: Delayed,
    #[serde(rename = "CNAME")]
    pub(super) cname: Option<String>,
    /// So many aliases stand between the name and its addresses.
    #[serde(rename = "CNAME_CHAIN")]
    pub(super) cname_chain: usize,
    /// What an interfering resolver answers, whatever the name.
    pub(super) hijacked_to: OneOrMany<IpAddr>,
    pub(super) rcode: Option<String>,
    pub(super) delay_ms: u64,
    /// One answer after the other, each question's next.
    pub(super) sequence: Vec<Self>,
    /// Which request is judged, from 1.
    pub(super) requests: Option<usize>,
    #[serde(rename = "HTTPS")]
    _https: IgnoredAny,
    #[serde(rename = "tc")]
    _tc: IgnoredAny,
    #[serde(rename = "ad")]
    _ad: IgnoredAny,
    #[serde(rename = "ttl")]
    _ttl: IgnoredAny,
    #[serde(rename = "search")]
    _search: IgnoredAny,
    #[serde(rename = "etc_hosts")]
    _etc_hosts: IgnoredAny,
    #[serde(rename = "connect_fail")]
    _connect_fail: IgnoredAny,
}

/// AAAA records that come after the A records.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Delayed {
    pub(super) ms: u64,
    #[serde(rename = "AAAA")]
    pub(super) aaaa: OneOrMany<Ipv6Addr>,
}

/// A value, or a list of them.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

impl<T> Default for OneOrMany<T> {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl<T> OneOrMany<T> {
    pub(super) fn as_slice(&self) -> &[T] {
        match self {
            Self::One(value) => std::slice::from_ref(value),
            Self::Many(values) => values,
        }
    }
}

/// Reads a line; the text says what is wrong with it.
pub(super) fn read(text: &[u8]) -> Result<Line, String> {
    #[derive(Deserialize)]
    struct Kind {
        kind: String,
    }
    let Kind { kind } = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    if !matches!(kind.as_str(), "url" | "dns") {
        return Err(format!(
            "kind `{kind}` is not judged here, expected `url` or `dns`; leave the line out"
        ));
    }
    serde_json::from_slice(text).map_err(|error| error.to_string())
}
