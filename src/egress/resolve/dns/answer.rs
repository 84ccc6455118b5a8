//! What answers mean: aliases followed, families joined, failures told apart.

use std::{net::IpAddr, time::Duration};

use hickory_proto::rr::{Name as DnsName, RData, Record};

use crate::{
    address::Name,
    egress::resolve::{Answer, Family, LeftOut, MAX_ADDRESSES, ResolveError},
};

/// The most CNAME records between a name and its addresses.
const MAX_ALIASES: usize = 8;
/// Bounds of a time to live.
const TTL: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(300));
/// How long a missing name, or an answer with a family left out, is believed.
const DOUBT: Duration = Duration::from_secs(5);

/// What became of the question for one family.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    Addresses(Vec<IpAddr>, Duration),
    NoAddress,
    NoName,
    Failed,
    Timeout,
    TooManyAliases,
}

/// Follows aliases from the question to its addresses; records of other names are ignored.
pub(super) fn follow(question: &DnsName, records: &[Record]) -> Found {
    let mut name = question.clone();
    let mut ttl = u32::MAX;
    for _ in 0..=MAX_ALIASES {
        let addresses: Vec<IpAddr> = records
            .iter()
            .filter(|record| record.name == name)
            .filter_map(|record| {
                let address = record.data.ip_addr()?;
                ttl = ttl.min(record.ttl);
                Some(address)
            })
            .collect();
        if !addresses.is_empty() {
            let ttl = Duration::from_secs(u64::from(ttl));
            return Found::Addresses(addresses, ttl.clamp(TTL.0, TTL.1));
        }
        let alias = records.iter().find_map(|record| match &record.data {
            RData::CNAME(to) if record.name == name => Some((to.0.clone(), record.ttl)),
            _ => None,
        });
        let Some((to, alias_ttl)) = alias else {
            return Found::NoAddress;
        };
        ttl = ttl.min(alias_ttl);
        name = to;
    }
    Found::TooManyAliases
}

/// Both families as one answer, and how long it may be remembered, if at all.
pub(super) fn combine(
    name: &Name,
    v4: Found,
    v6: Found,
) -> (Result<Answer, ResolveError>, Option<Duration>) {
    let left_out = [(Family::V4, &v4), (Family::V6, &v6)]
        .into_iter()
        .find_map(|(family, found)| why_left_out(found).map(|why| LeftOut { family, why }));
    let (first, second, ttl) = match (v4, v6) {
        (Found::Addresses(v4, a), Found::Addresses(v6, b)) => (v6, v4, a.min(b)),
        (Found::Addresses(one, ttl), _) | (_, Found::Addresses(one, ttl)) => (one, Vec::new(), ttl),
        (v4, v6) => return none(name, &v4, &v6),
    };
    if first.len() + second.len() > MAX_ADDRESSES {
        return (Err(ResolveError::TooManyAddresses(name.clone())), None);
    }
    let ttl = if left_out.is_some() {
        ttl.min(DOUBT)
    } else {
        ttl
    };
    let addresses = interleave(first, second).into();
    (
        Ok(Answer {
            addresses,
            left_out,
        }),
        Some(ttl),
    )
}

fn why_left_out(found: &Found) -> Option<&'static str> {
    match found {
        Found::Addresses(..) | Found::NoAddress | Found::NoName => None,
        Found::Failed => Some("the name servers failed"),
        Found::Timeout => Some("the name servers were too slow"),
        Found::TooManyAliases => Some("too many aliases"),
    }
}

/// The error of two families without an address; the one that may yet change decides.
fn none(name: &Name, v4: &Found, v6: &Found) -> (Result<Answer, ResolveError>, Option<Duration>) {
    let name = name.clone();
    let either = |found: &Found| v4 == found || v6 == found;
    if either(&Found::TooManyAliases) {
        (Err(ResolveError::TooManyAliases(name)), None)
    } else if either(&Found::Timeout) {
        (Err(ResolveError::Timeout(name)), None)
    } else if either(&Found::Failed) {
        (Err(ResolveError::Failed(name)), None)
    } else if either(&Found::NoName) {
        (Err(ResolveError::NoName(name)), Some(DOUBT))
    } else {
        (Err(ResolveError::NoAddress(name)), Some(DOUBT))
    }
}

/// Families in turn, as RFC 8305, section 4 has it.
fn interleave(first: Vec<IpAddr>, second: Vec<IpAddr>) -> Vec<IpAddr> {
    let mut all = Vec::with_capacity(first.len() + second.len());
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    loop {
        let (a, b) = (first.next(), second.next());
        if a.is_none() && b.is_none() {
            return all;
        }
        all.extend(a);
        all.extend(b);
    }
}

#[cfg(test)]
mod tests {
    use std::str::FromStr as _;

    use hickory_proto::rr::rdata::A;

    use super::*;
    use crate::address::{Host, Target};

    fn lives(ttl: u32) -> Found {
        let name = DnsName::from_str("api.test.").unwrap();
        let record = Record::from_rdata(name.clone(), ttl, RData::A(A::new(1, 1, 1, 1)));
        follow(&name, &[record])
    }

    fn seconds(seconds: u64) -> Found {
        Found::Addresses(vec![[1, 1, 1, 1].into()], Duration::from_secs(seconds))
    }

    #[test]
    fn a_time_to_live_is_kept_within_its_bounds() {
        assert_eq!(lives(0), seconds(1));
        assert_eq!(lives(60), seconds(60));
        assert_eq!(lives(u32::MAX), seconds(300));
    }

    #[test]
    fn what_is_in_doubt_is_remembered_briefly_and_failures_not_at_all() {
        let target = Target::from_operator("https://api.test/").unwrap();
        let Host::Name(name) = target.host() else {
            panic!("a name")
        };
        let ttl = |v4, v6| combine(name, v4, v6).1.map(|ttl| ttl.as_secs());
        assert_eq!(ttl(seconds(60), seconds(30)), Some(30));
        assert_eq!(ttl(seconds(60), Found::NoAddress), Some(60));
        assert_eq!(ttl(seconds(60), Found::Failed), Some(5));
        assert_eq!(ttl(Found::NoName, Found::NoName), Some(5));
        assert_eq!(ttl(Found::NoName, Found::Failed), None);
        assert_eq!(ttl(Found::Timeout, Found::NoAddress), None);
    }
}
