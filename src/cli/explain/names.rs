//! Names answered from a case or from `--resolve`, in place of name servers.

use std::net::IpAddr;

use futures_util::future::{self, BoxFuture, FutureExt};

use super::line::{Records, Setup};
use crate::{
    address::{Host, Name},
    egress::{Answer, Resolve, ResolveError},
};

/// How long egress waits for both families, in milliseconds.
const PATIENCE: u64 = 5_000;
/// How many aliases egress follows.
const MAX_ALIASES: usize = 8;
/// How many addresses egress takes.
const MAX_ADDRESSES: usize = 32;

impl Resolve for Setup {
    fn resolve<'a>(&'a self, name: &'a Name) -> BoxFuture<'a, Result<Answer, ResolveError>> {
        let answer = self.answer(name).map(|addresses| Answer {
            addresses: addresses.into(),
            left_out: None,
        });
        future::ready(answer).boxed()
    }
}

impl Setup {
    fn answer(&self, asked: &Name) -> Result<Vec<IpAddr>, ResolveError> {
        let mut name = asked.clone();
        let mut aliases = 0;
        loop {
            let records = self
                .records(&name)
                .ok_or_else(|| ResolveError::NoName(asked.clone()))?
                .now();
            aliases += records.cname_chain + usize::from(records.cname.is_some());
            if aliases > MAX_ALIASES {
                return Err(ResolveError::TooManyAliases(asked.clone()));
            }
            match &records.cname {
                None => return records.addresses(asked),
                Some(next) => match Host::from_operator(next) {
                    Ok(Host::Name(next)) => name = next,
                    _ => return Err(ResolveError::Failed(asked.clone())),
                },
            }
        }
    }

    fn records(&self, name: &Name) -> Option<&Records> {
        let same = |key: &str| {
            key.strip_suffix('.')
                .unwrap_or(key)
                .eq_ignore_ascii_case(name.as_str())
        };
        self.dns
            .iter()
            .find(|(key, _)| same(key))
            .map(|(_, records)| records)
    }
}

impl Records {
    /// The answer to the request that is judged: the first, unless the case says which.
    fn now(&self) -> &Self {
        let last = self.sequence.len().saturating_sub(1);
        let index = self.requests.unwrap_or(1).saturating_sub(1).min(last);
        self.sequence.get(index).unwrap_or(self)
    }

    fn addresses(&self, name: &Name) -> Result<Vec<IpAddr>, ResolveError> {
        if self.delay_ms.max(self.aaaa_delayed.ms) >= PATIENCE {
            return Err(ResolveError::Timeout(name.clone()));
        }
        let hijacked = self.hijacked_to.as_slice();
        if !hijacked.is_empty() {
            return Ok(hijacked.to_vec());
        }
        match self.rcode.as_deref() {
            None | Some("NOERROR") => {}
            Some("NXDOMAIN") => return Err(ResolveError::NoName(name.clone())),
            Some(_) => return Err(ResolveError::Failed(name.clone())),
        }
        let aaaa = self
            .aaaa
            .as_slice()
            .iter()
            .chain(self.aaaa_delayed.aaaa.as_slice());
        let found: Vec<IpAddr> = aaaa
            .map(|&v6| IpAddr::V6(v6))
            .chain(self.a.as_slice().iter().map(|&v4| IpAddr::V4(v4)))
            .collect();
        match found.len() {
            0 => Err(ResolveError::NoAddress(name.clone())),
            1..=MAX_ADDRESSES => Ok(found),
            _ => Err(ResolveError::TooManyAddresses(name.clone())),
        }
    }
}
