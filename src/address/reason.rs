//! The words of a refusal: what was found, and the exact setting that would open it.

use std::{fmt::Write as _, net::IpAddr};

use super::{
    Blocked, Grant, Host, Leg, Port, Rules, Target,
    grant::reaches_this_machine,
    names::{self, NameRule},
    table::{Opens, Row},
};
use crate::refusal::Code;

const NOTHING: &str = "no setting opens it";

/// The request that is judged.
pub(super) struct Case<'a> {
    pub(super) rules: &'a Rules,
    pub(super) leg: &'a Leg,
    pub(super) target: &'a Target,
}

impl Case<'_> {
    /// A name that a rule refuses.
    pub(super) fn name(&self, rule: &NameRule) -> Blocked {
        let opener = if rule.grantable {
            self.grant_opener(false)
        } else {
            NOTHING.to_owned()
        };
        self.blocked_name(
            rule.name,
            format!("`{}` names {}; {opener}", self.target.host(), rule.what),
        )
    }

    /// The name in `KUBERNETES_SERVICE_HOST`.
    pub(super) fn kubernetes_name(&self) -> Blocked {
        let host = self.target.host();
        self.blocked_name(
            "kubernetes-api",
            format!("`{host}` names the Kubernetes API server; {NOTHING}"),
        )
    }

    /// The address in `KUBERNETES_SERVICE_HOST`.
    pub(super) fn kubernetes_address(&self, address: IpAddr) -> Blocked {
        let what = format!("the Kubernetes API server; {NOTHING}");
        self.blocked("kubernetes-api", address, &what)
    }

    /// An address in a refused range; `meant` is the form that lies there.
    pub(super) fn address(&self, address: IpAddr, meant: IpAddr, row: &Row) -> Blocked {
        let mut what = String::new();
        if meant != address {
            let _ = write!(what, "a form of {meant}, ");
        }
        match row.net.prefix_len() {
            0 => what.push_str(row.what),
            _ => _ = write!(what, "in {} ({})", row.net, row.what),
        }
        let _ = write!(what, "; {}", self.opener(meant, row));
        self.blocked(row.name, address, &what)
    }

    /// An address of this host, or of one of our listeners.
    pub(super) fn own(&self, address: IpAddr) -> Blocked {
        let port = self.target.port();
        let opener = match self.leg {
            Leg::Proxy => "the proxy never leads there; name it in NO_PROXY to ask it directly",
            _ => NOTHING,
        };
        let what = format!("this host itself at port {port}; {opener}");
        self.blocked("own-address", address, &what)
    }

    /// An address below a declared NAT64 prefix that no translator serves.
    pub(super) fn untranslatable(&self, address: IpAddr) -> Blocked {
        let what = format!(
            "below a prefix of nat64_prefixes but not a translated address (RFC 6052); {NOTHING}"
        );
        self.blocked("nat64", address, &what)
    }

    /// A literal inside a declared fake-ip range.
    pub(super) fn fake_literal(&self, address: IpAddr) -> Blocked {
        let what = format!("in a range of fake_ip_ranges, which serve names only; {NOTHING}");
        self.blocked("fake-ip", address, &what)
    }

    /// A granted host that is not where its grant says.
    pub(super) fn outside(&self, address: IpAddr, grant: &Grant) -> Blocked {
        let origin = &grant.origin;
        let what = format!("outside the addresses of `{origin}`; widening them would open it");
        self.blocked("grant-addresses", address, &what)
    }

    /// An answer without addresses.
    pub(super) fn no_address(&self) -> Blocked {
        Blocked {
            code: Code::NameUnresolved,
            rule: "no-address",
            address: None,
            reason: format!("`{}` has no address", self.target.host()),
        }
    }

    fn blocked_name(&self, rule: &'static str, reason: String) -> Blocked {
        Blocked {
            code: Code::NameBlocked,
            rule,
            address: None,
            reason,
        }
    }

    /// Refuses an address; `what` completes "`host` leads to ADDRESS, …" and "`URL` is …".
    fn blocked(&self, rule: &'static str, address: IpAddr, what: &str) -> Blocked {
        let reason = match self.target.host() {
            Host::Name(name) => format!("`{name}` leads to {address}, {what}"),
            Host::Ip(_) => format!("`{}` is {what}", self.target),
        };
        Blocked {
            code: Code::AddressBlocked,
            rule,
            address: Some(address),
            reason,
        }
    }

    fn opener(&self, meant: IpAddr, row: &Row) -> String {
        let literal = matches!(self.target.host(), Host::Ip(_));
        match row.opens {
            Opens::Never => NOTHING.to_owned(),
            Opens::Grant | Opens::GrantOrFakeIp => self.grant_opener(reaches_this_machine(meant)),
            Opens::FakeIp if literal => NOTHING.to_owned(),
            Opens::FakeIp => format!(
                "fake_ip_ranges = [\"{}\"] in egress.toml would open it",
                row.net
            ),
            Opens::Nat64 => format!(
                "nat64_prefixes in egress.toml, with a prefix inside {}, would have the address that it carries judged instead",
                row.net
            ),
        }
    }

    /// The grant that would open this request, or what is missing in the one that is there.
    fn grant_opener(&self, local: bool) -> String {
        let host = self.target.host();
        let (port, leg) = (self.target.port(), self.leg);
        let about_host = self.rules.grants.iter().filter(|grant| grant.host == *host);
        if let Some(near) = about_host.max_by_key(|grant| grant.serves(leg, self.target)) {
            return format!(
                "`{}` names this host, but {}",
                near.origin,
                self.missing(near, local)
            );
        }
        let mut text = format!(
            "a [[private]] table in egress.toml with host = \"{}\", port = {port} and for = [\"{leg}\"] would open it",
            bare(host)
        );
        let named = matches!(host, Host::Name(name) if !names::is_localhost(name));
        if local && named {
            text.push_str(", if its addresses list the loopback range too");
        } else if matches!(leg, Leg::Server(_)) {
            let _ = write!(
                text,
                ", or `{}` in TOOLS_PRIVATE_NETWORK_ALLOWLIST",
                bare(host)
            );
        }
        text
    }

    fn missing(&self, near: &Grant, local: bool) -> String {
        match near.port {
            Port::Exact(port) if port != self.target.port() => {
                return format!("for port {port} only");
            }
            Port::Any if !local => {
                return "port = \"any\" serves loopback addresses only".to_owned();
            }
            _ => {}
        }
        if !near.legs.contains(self.leg) {
            return format!("without \"{}\" in for", self.leg);
        }
        if local && near.addresses.is_empty() {
            return "a name that leads to this machine needs its addresses listed there".to_owned();
        }
        "its addresses do not list this one".to_owned()
    }
}

/// As egress.toml spells a host: IPv6 without brackets.
fn bare(host: &Host) -> String {
    match host {
        Host::Name(name) => name.to_string(),
        Host::Ip(address) => address.to_string(),
    }
}
