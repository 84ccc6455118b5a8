//! A line of the corpus, as far as these tests read it; a key they do not know fails the test.

use std::{collections::HashMap, net::SocketAddr, time::Duration};

use hickory_proto::{op::ResponseCode, rr::RecordType};
use serde::Deserialize;
use serde_json::Value;
use tollgate::{
    address::{Grant, Leg, Nat64Prefix, Port, Rules, Target},
    egress::Patience,
};

use crate::support::nameserver::{Question, Reply};

/// Shorter than the silence of any case, longer than any answer.
pub(super) const PATIENCE: Patience = Patience {
    whole: Duration::from_secs(4),
    behind: Duration::from_millis(1500),
};

#[derive(Deserialize)]
pub(super) struct Kind {
    pub(super) kind: String,
}

#[derive(Deserialize)]
pub(super) struct Case {
    pub(super) id: String,
    pub(super) input: Input,
    pub(super) setup: Setup,
    pub(super) reason: String,
    allowlist: Vec<String>,
    expect: String,
    also_ok: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    pub(super) url: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Setup {
    #[serde(default)]
    pub(super) dns: HashMap<String, Answer>,
    #[serde(default)]
    pub(super) responses: Vec<Response>,
    #[serde(default)]
    nat64_prefixes: Vec<String>,
    #[serde(default)]
    fake_ip_ranges: Vec<String>,
    #[serde(default)]
    local_ips: Vec<String>,
    #[serde(default)]
    self_listen: Vec<String>,
    #[serde(default, rename = "dns_note")]
    _note: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) location: Option<String>,
    #[serde(default)]
    pub(super) headers: HashMap<String, String>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Answer {
    #[serde(default, rename = "A")]
    a: Vec<String>,
    #[serde(default, rename = "AAAA")]
    aaaa: Vec<String>,
    #[serde(rename = "AAAA_delayed")]
    late: Option<Late>,
    #[serde(rename = "CNAME")]
    alias: Option<String>,
    #[serde(rename = "CNAME_CHAIN")]
    aliases: Option<usize>,
    rcode: Option<String>,
    #[serde(default)]
    delay_ms: u64,
    #[serde(default)]
    sequence: Vec<Self>,
    requests: Option<usize>,
    hijacked_to: Option<String>,
    #[serde(default)]
    tc: bool,
    ttl: Option<u32>,
    #[serde(default)]
    connect_fail: Vec<String>,
    #[serde(default, rename = "HTTPS")]
    _https: Value,
    #[serde(default, rename = "ad")]
    _ad: Value,
    #[serde(default, rename = "search")]
    _search: Value,
    #[serde(default, rename = "etc_hosts")]
    _hosts: Value,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Late {
    #[serde(rename = "ms")]
    _ms: u64,
    #[serde(rename = "AAAA")]
    aaaa: Vec<String>,
}

impl Case {
    pub(super) fn accepts(&self, verdict: &str) -> bool {
        self.expect == verdict || self.also_ok.as_deref() == Some(verdict)
    }

    pub(super) fn host(&self) -> String {
        self.target().host().to_string()
    }

    /// The answer for the host of the case.
    pub(super) fn answer(&self) -> Option<&Answer> {
        self.setup.dns.get(&self.host())
    }

    /// How many requests are made; the last one's verdict counts.
    pub(super) fn requests(&self) -> usize {
        self.answer()
            .and_then(|answer| answer.requests)
            .unwrap_or(1)
    }

    /// Whether the list names the host: a registered server has no other list, so other cases are not for this leg.
    pub(super) fn is_listed(&self) -> bool {
        let target = self.target();
        let port = target.port();
        let host = target.host();
        self.allowlist.iter().any(|entry| {
            let entry = entry
                .strip_prefix("private:")
                .map_or(entry.as_str(), |rest| {
                    rest.split_once('=').map_or(rest, |(place, _)| place)
                });
            entry == "*" || entry == host.to_string() || entry == format!("{host}:{port}")
        })
    }

    /// Addresses that refuse a connection.
    pub(super) fn refusing(&self) -> Vec<String> {
        self.setup
            .dns
            .values()
            .flat_map(|answer| answer.connect_fail.clone())
            .collect()
    }

    /// The address rules that the case supposes.
    pub(super) fn rules(&self) -> Rules {
        let setup = &self.setup;
        Rules {
            grants: self
                .allowlist
                .iter()
                .filter_map(|entry| grant(entry))
                .collect(),
            nat64: setup
                .nat64_prefixes
                .iter()
                .map(|net| Nat64Prefix::new(net.parse().unwrap()).unwrap())
                .collect(),
            fake_ip: setup
                .fake_ip_ranges
                .iter()
                .map(|net| net.parse().unwrap())
                .collect(),
            own_addresses: setup
                .local_ips
                .iter()
                .map(|address| address.parse().unwrap())
                .collect(),
            own_listeners: setup
                .self_listen
                .iter()
                .map(|listener| listener.parse::<SocketAddr>().unwrap())
                .collect(),
            ..Rules::default()
        }
    }

    fn target(&self) -> Target {
        Target::from_wire(&self.input.url).unwrap()
    }
}

impl Answer {
    pub(super) fn addresses(&self) -> impl Iterator<Item = &str> {
        self.a.iter().chain(&self.aaaa).map(String::as_str)
    }
}

fn grant(entry: &str) -> Option<Grant> {
    let rest = entry.strip_prefix("private:")?;
    let (place, nets) = rest.split_once('=').unwrap_or((rest, ""));
    let target = Target::from_authority(place).unwrap();
    Some(Grant {
        host: target.host().clone(),
        port: Port::Exact(target.port()),
        addresses: nets
            .split(',')
            .filter(|net| !net.is_empty())
            .map(|net| net.parse().unwrap())
            .collect(),
        address: None,
        legs: vec![Leg::Server("demo".into())],
        origin: "the corpus".into(),
    })
}

/// What the case's name servers say.
pub(super) fn reply(names: &HashMap<String, Answer>, question: &Question) -> Reply {
    let name = question.name.trim_end_matches('.');
    let Some(answer) = names.get(name) else {
        return Reply::Code(ResponseCode::NXDomain);
    };
    let answer = match answer.sequence.len() {
        0 => answer,
        length => &answer.sequence[question.earlier.min(length - 1)],
    };
    if answer.delay_ms > 0 {
        return Reply::Silence;
    }
    if answer.tc && !question.tcp {
        return Reply::Truncated(Vec::new());
    }
    if let Some(code) = &answer.rcode {
        return Reply::Code(match code.as_str() {
            "SERVFAIL" => ResponseCode::ServFail,
            "NXDOMAIN" => ResponseCode::NXDomain,
            "REFUSED" => ResponseCode::Refused,
            other => panic!("unknown response code `{other}`"),
        });
    }
    Reply::Records(
        records(answer, &question.name, question.records),
        answer.ttl.unwrap_or(60),
    )
}

fn records(answer: &Answer, name: &str, asked: RecordType) -> Vec<String> {
    if let Some(alias) = &answer.alias {
        return vec![format!("{name}>{alias}.")];
    }
    let mut addresses = match asked {
        RecordType::A => answer.a.clone(),
        RecordType::AAAA => {
            let late = answer.late.iter().flat_map(|late| &late.aaaa);
            answer.aaaa.iter().chain(late).cloned().collect()
        }
        other => panic!("{other} must not be asked for"),
    };
    if let Some(hijacker) = &answer.hijacked_to
        && hijacker.contains(':') == (asked == RecordType::AAAA)
    {
        addresses = vec![hijacker.clone()];
    }
    let Some(length) = answer.aliases.filter(|_| !addresses.is_empty()) else {
        return addresses;
    };
    let mut chain = vec![format!("{name}>hop1.test.")];
    chain.extend((1..length).map(|at| format!("hop{at}.test.>hop{}.test.", at + 1)));
    chain.extend(
        addresses
            .iter()
            .map(|address| format!("hop{length}.test.={address}")),
    );
    chain
}
