//! The judge: every address of an answer, against the table and the operator's grants.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
};

use ipnet::IpNet;

use super::{
    Grant, Host, Leg, Nat64Prefix, Target,
    embedded::embedded,
    grant::reaches_this_machine,
    names,
    reason::Case,
    table::{self, Opens},
};
use crate::refusal::Code;

/// The operator's address rules, compiled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// `[[private]]` and `TOOLS_PRIVATE_NETWORK_ALLOWLIST`.
    pub grants: Vec<Grant>,
    /// `nat64_prefixes`.
    pub nat64: Vec<Nat64Prefix>,
    /// `fake_ip_ranges`.
    pub fake_ip: Vec<IpNet>,
    /// Addresses of this host's interfaces.
    pub own_addresses: Vec<IpAddr>,
    /// Where this process listens.
    pub own_listeners: Vec<SocketAddr>,
    /// The Kubernetes API server (`KUBERNETES_SERVICE_HOST`), which nothing opens.
    pub kubernetes: Option<Host>,
}

/// An address that may be dialled. Made only by the judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct JudgedAddr {
    address: IpAddr,
    port: u16,
}

impl JudgedAddr {
    /// Where to connect.
    pub fn socket(&self) -> SocketAddr {
        (self.address, self.port).into()
    }
}

/// A whole answer, judged: every address may be dialled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// In the order of the answer; never empty.
    pub addresses: Vec<JudgedAddr>,
    /// Which grant opened it, where one was needed.
    pub grant: Option<Arc<str>>,
    /// False where the address cannot be judged (fake-ip ranges).
    pub pinned: bool,
}

/// A destination that is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Blocked {
    /// The code of the refusal.
    pub code: Code,
    /// The name of the rule or range that decided.
    pub rule: &'static str,
    /// The address that decided, if one did.
    pub address: Option<IpAddr>,
    /// What was found and which setting would open it.
    pub reason: String,
}

impl Blocked {
    /// The code of the refusal.
    pub fn code(&self) -> Code {
        self.code
    }
}

/// How one address passed.
struct Pass<'a> {
    address: IpAddr,
    grant: Option<&'a Grant>,
    pinned: bool,
}

impl<'a> Pass<'a> {
    fn by(address: IpAddr, grant: Option<&'a Grant>) -> Self {
        Self {
            address,
            grant,
            pinned: true,
        }
    }
}

impl Rules {
    /// Judges a target before it is resolved: its name, or its literal address. `Some` is the final answer
    /// (a literal, a static grant, a granted `localhost`); `None` means: resolve, then [`Rules::judge`].
    ///
    /// # Errors
    ///
    /// [`Blocked`] for a name or a literal that is refused.
    pub fn before_resolving(&self, leg: &Leg, target: &Target) -> Result<Option<Judged>, Blocked> {
        let name = match target.host() {
            Host::Ip(address) => return self.judge(leg, target, &[*address]).map(Some),
            Host::Name(name) => name,
        };
        let case = Case {
            rules: self,
            leg,
            target,
        };
        if self.kubernetes.as_ref() == Some(target.host()) {
            return Err(case.kubernetes_name());
        }
        let rule = names::rule(name);
        if let Some(rule) = rule.filter(|rule| !rule.grantable) {
            return Err(case.name(rule));
        }
        let mut grants = self.serving(leg, target).peekable();
        if let (Some(rule), None) = (rule, grants.peek()) {
            return Err(case.name(rule));
        }
        let mut answer: Vec<IpAddr> = grants.clone().filter_map(|grant| grant.address).collect();
        if answer.is_empty() && names::is_localhost(name) {
            answer = [
                IpAddr::V4(Ipv4Addr::LOCALHOST),
                IpAddr::V6(Ipv6Addr::LOCALHOST),
            ]
            .into_iter()
            .filter(|address| {
                self.serving(leg, target)
                    .any(|grant| grant.covers(*address))
            })
            .collect();
        }
        if answer.is_empty() {
            return Ok(None);
        }
        self.judge(leg, target, &answer).map(Some)
    }

    /// Judges the whole answer for `target`; one forbidden address refuses all of it.
    ///
    /// # Errors
    ///
    /// [`Blocked`] for the first forbidden address, and for an answer without any address.
    pub fn judge(&self, leg: &Leg, target: &Target, answer: &[IpAddr]) -> Result<Judged, Blocked> {
        let case = Case {
            rules: self,
            leg,
            target,
        };
        if answer.is_empty() {
            return Err(case.no_address());
        }
        let mut judged = Judged {
            addresses: Vec::with_capacity(answer.len()),
            grant: None,
            pinned: true,
        };
        for &address in answer {
            let pass = self.judge_one(&case, address)?;
            judged.addresses.push(JudgedAddr {
                address: pass.address,
                port: target.port(),
            });
            judged.pinned &= pass.pinned;
            if judged.grant.is_none() {
                judged.grant = pass.grant.map(|grant| grant.origin.clone());
            }
        }
        Ok(judged)
    }

    /// Judges the whole answer for infrastructure that the operator named, a parent proxy: private space is as good as any
    /// there. Only the floor and this process stay shut.
    ///
    /// # Errors
    ///
    /// As [`Rules::judge`].
    pub fn judge_infrastructure(
        &self,
        leg: &Leg,
        target: &Target,
        answer: &[IpAddr],
    ) -> Result<Judged, Blocked> {
        let case = Case {
            rules: self,
            leg,
            target,
        };
        if answer.is_empty() {
            return Err(case.no_address());
        }
        for &address in answer {
            let meant = self.meant(address);
            self.check_floor(&case, address, meant.unwrap_or(address))?;
            let listening = |own: &SocketAddr| own.port() == target.port();
            if self.own_listeners.iter().any(listening)
                && self.is_own(meant.unwrap_or(address), target.port())
            {
                return Err(case.own(address));
            }
        }
        let addresses = answer.iter().map(|&address| JudgedAddr {
            address,
            port: target.port(),
        });
        Ok(Judged {
            addresses: addresses.collect(),
            grant: None,
            pinned: true,
        })
    }

    fn judge_one<'a>(&'a self, case: &Case<'a>, address: IpAddr) -> Result<Pass<'a>, Blocked> {
        let literal = matches!(case.target.host(), Host::Ip(_));
        let mapped = address.to_canonical() != address;
        let meant = self
            .meant(address)
            .ok_or_else(|| case.untranslatable(address))?;
        self.check_floor(case, address, meant)?;
        if self.is_own(meant, case.target.port()) {
            return Err(case.own(address));
        }
        let row = match table::row(meant) {
            // A mapped address is no way to write a literal, and no answer that a public name has reason to give.
            inner if mapped && (literal || inner.is_none()) => table::row(address),
            row => row,
        };
        let Some(row) = row else {
            return self.judge_public(case, address, meant);
        };
        if matches!(row.opens, Opens::Grant | Opens::GrantOrFakeIp)
            && let Some(grant) = self
                .serving(case.leg, case.target)
                .find(|grant| grant.opens(meant))
        {
            return Ok(Pass::by(if mapped { meant } else { address }, Some(grant)));
        }
        if matches!(row.opens, Opens::FakeIp | Opens::GrantOrFakeIp)
            && !literal
            && self.is_fake(address)
        {
            return Ok(Pass {
                address,
                grant: None,
                pinned: false,
            });
        }
        Err(case.address(
            address,
            if row.net.contains(&address) {
                address
            } else {
                meant
            },
            row,
        ))
    }

    /// An address that no range refuses: a grant may still expect its host elsewhere.
    fn judge_public<'a>(
        &'a self,
        case: &Case<'a>,
        address: IpAddr,
        meant: IpAddr,
    ) -> Result<Pass<'a>, Blocked> {
        let mut serving = self.serving(case.leg, case.target).peekable();
        if let Some(first) = serving.peek().copied() {
            return match serving.find(|grant| grant.covers(meant)) {
                Some(grant) => Ok(Pass::by(address, Some(grant))),
                None => Err(case.outside(address, first)),
            };
        }
        match (self.is_fake(address), case.target.host()) {
            (true, Host::Ip(_)) => Err(case.fake_literal(address)),
            (fake, _) => Ok(Pass {
                address,
                grant: None,
                pinned: !fake,
            }),
        }
    }

    /// What an address stands for: the IPv4 address that a mapped one, or one below a declared NAT64 prefix, carries.
    /// `None` below such a prefix where no translator serves it.
    fn meant(&self, address: IpAddr) -> Option<IpAddr> {
        let IpAddr::V6(v6) = address else {
            return Some(address);
        };
        match self.nat64.iter().find_map(|prefix| prefix.decode(v6)) {
            Some(carried) => carried.map(IpAddr::V4),
            None => Some(address.to_canonical()),
        }
    }

    /// The floor under every setting: metadata services and the Kubernetes API server, in every form that leads there.
    fn check_floor(&self, case: &Case<'_>, address: IpAddr, meant: IpAddr) -> Result<(), Blocked> {
        self.check_floor_form(case, address, address)?;
        if meant != address {
            self.check_floor_form(case, address, meant)?;
        }
        if let IpAddr::V6(v6) = address {
            for v4 in embedded(v6) {
                self.check_floor_form(case, address, v4.into())?;
            }
        }
        Ok(())
    }

    fn check_floor_form(
        &self,
        case: &Case<'_>,
        address: IpAddr,
        form: IpAddr,
    ) -> Result<(), Blocked> {
        if let Some(row) = table::metadata(form) {
            return Err(case.address(address, form, row));
        }
        match &self.kubernetes {
            Some(Host::Ip(server)) if *server == form => Err(case.kubernetes_address(address)),
            _ => Ok(()),
        }
    }

    /// Whether `target` spells one of our own listeners.
    pub fn is_own_listener(&self, target: &Target) -> bool {
        let port = target.port();
        let own = |address: IpAddr| self.is_own(address.to_canonical(), port);
        self.own_listeners.iter().any(|own| own.port() == port)
            && match target.host() {
                Host::Ip(address) => own(*address),
                Host::Name(name) => {
                    names::is_localhost(name)
                        && (own(Ipv4Addr::LOCALHOST.into()) || own(Ipv6Addr::LOCALHOST.into()))
                }
            }
    }

    /// Whether a connection would end at this host. Loopback is any local service's: only our own ports there count.
    fn is_own(&self, address: IpAddr, port: u16) -> bool {
        let local = reaches_this_machine(address);
        let interface = self.own_addresses.contains(&address);
        let listening = self
            .own_listeners
            .iter()
            .filter(|own| own.port() == port)
            .any(|own| {
                let at = own.ip().to_canonical();
                at == address
                    || (at.is_unspecified() && local)
                    || (address.is_unspecified() && reaches_this_machine(at))
            });
        listening || (interface && !local)
    }

    fn is_fake(&self, address: IpAddr) -> bool {
        self.fake_ip.iter().any(|net| net.contains(&address))
    }

    /// The grants for this request.
    fn serving<'a>(
        &'a self,
        leg: &'a Leg,
        target: &'a Target,
    ) -> impl Iterator<Item = &'a Grant> + Clone {
        self.grants
            .iter()
            .filter(move |grant| grant.serves(leg, target))
    }
}
