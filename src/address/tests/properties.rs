//! What holds for every row of the table and for every input.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use proptest::prelude::*;

use super::{answered, grant, with};
use crate::address::{
    Host, Rules, Target,
    table::{self, Opens},
};

/// First and last address of a range, and their outer neighbours.
fn edges(range: IpNet) -> ([IpAddr; 2], Vec<IpAddr>) {
    match range {
        IpNet::V4(v4) => {
            let (low, high) = (v4.network().to_bits(), v4.broadcast().to_bits());
            let outer = [low.checked_sub(1), high.checked_add(1)];
            let outer = outer
                .into_iter()
                .flatten()
                .map(|bits| Ipv4Addr::from_bits(bits).into());
            (
                [v4.network().into(), v4.broadcast().into()],
                outer.collect(),
            )
        }
        IpNet::V6(v6) => {
            let (low, high) = (v6.network().to_bits(), v6.broadcast().to_bits());
            let outer = [low.checked_sub(1), high.checked_add(1)];
            let outer = outer
                .into_iter()
                .flatten()
                .map(|bits| Ipv6Addr::from_bits(bits).into());
            (
                [v6.network().into(), v6.broadcast().into()],
                outer.collect(),
            )
        }
    }
}

#[test]
fn both_edges_of_every_range_are_refused_and_their_public_neighbours_are_not() {
    let rules = Rules::default();
    let mut public = Vec::new();
    for row in table::rows() {
        let (inner, outer) = edges(row.net);
        for address in inner {
            let blocked = answered(&rules, address).expect_err(&address.to_string());
            assert_eq!(blocked.address, Some(address), "{address}");
            assert!(
                blocked.reason.contains(&address.to_string()),
                "{}",
                blocked.reason
            );
        }
        for address in outer {
            let covered = table::rows().any(|row| row.net.contains(&address))
                || matches!(address, IpAddr::V6(v6) if v6.segments()[0] >> 13 != 1);
            assert_eq!(
                answered(&rules, address).is_err(),
                covered,
                "{address} beside {}",
                row.net
            );
            if !covered {
                public.push(address.to_string());
            }
        }
    }
    assert_eq!(public, PUBLIC_NEIGHBOURS);
    assert_eq!(table::rows().count(), 63);
}

/// The neighbours that are public, in the order of the table: a row that grew, shrank or vanished changes the list.
const PUBLIC_NEIGHBOURS: &[&str] = &[
    "168.63.129.15",
    "168.63.129.17",
    "1.0.0.0",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "169.253.255.255",
    "169.255.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "191.255.255.255",
    "192.0.1.0",
    "192.0.1.255",
    "192.0.3.0",
    "192.31.195.255",
    "192.31.197.0",
    "192.52.192.255",
    "192.52.194.0",
    "192.88.98.255",
    "192.88.100.0",
    "192.167.255.255",
    "192.169.0.0",
    "192.175.47.255",
    "192.175.49.0",
    "198.17.255.255",
    "198.20.0.0",
    "198.51.99.255",
    "198.51.101.0",
    "203.0.112.255",
    "203.0.114.0",
    "223.255.255.255",
    "2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "2001:200::",
    "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff",
    "2001:db9::",
    "2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "2003::",
    "2620:4f:7fff:ffff:ffff:ffff:ffff:ffff",
    "2620:4f:8001::",
    "3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "3fff:1000::",
];

/// Every form in which an IPv6 address carries `v4`.
fn carriers(v4: Ipv4Addr) -> Vec<Ipv6Addr> {
    let low = u128::from(v4.to_bits());
    let at =
        |prefix: &str| Ipv6Addr::from_bits(prefix.parse::<Ipv6Addr>().unwrap().to_bits() | low);
    let mut forms: Vec<Ipv6Addr> = [
        "::",
        "::ffff:0:0",
        "::ffff:0:0:0",
        "64:ff9b::",
        "64:ff9b:1::",
        "2606:4700::5efe:0:0",
        "2606:4700::200:5efe:0:0",
    ]
    .map(at)
    .into();
    forms.push(Ipv6Addr::from_bits(0x2002 << 112 | low << 80 | 1));
    forms.push(Ipv6Addr::from_bits(
        0x2001_0000 << 96 | u128::from(!v4.to_bits()),
    ));
    forms
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn parsers_never_panic_and_accept_only_what_prints_to_an_equal_target(text in "\\PC{0,40}|(https?://)?[a-z0-9.:@\\[\\]/?#%_-]{0,40}") {
        for target in [Target::from_wire(&text), Target::from_operator(&text), Target::from_authority(&text)].into_iter().flatten() {
            prop_assert_eq!(Target::from_wire(&target.to_string()).map(|again| (again.host().clone(), again.port())),
                Ok((target.host().clone(), target.port())));
            prop_assert_eq!(Target::from_operator(&target.to_string()), Ok(target));
        }
    }

    #[test]
    fn valid_targets_print_as_they_parse(name in "[a-z][a-z0-9_]{0,10}(\\.[a-z][a-z0-9-]{0,8}[a-z]){1,4}", port in 1_u16.., secure: bool) {
        let url = format!("{}://{name}:{port}/mcp?x=1", if secure { "https" } else { "http" });
        let target = Target::from_wire(&url).unwrap();
        prop_assert_eq!(target.port(), port);
        prop_assert_eq!(target.host().to_string(), name);
        prop_assert_eq!(Target::from_wire(&target.to_string()), Ok(target));
    }

    #[test]
    fn a_numeric_host_is_a_canonical_address_or_nothing(host in "(0x?[0-9a-f]{1,4}|[0-9]{1,5})(\\.(0x[0-9a-f]{1,3}|[0-9]{1,4})){0,4}\\.?") {
        if let Ok(target) = Target::from_wire(&format!("http://{host}/")) {
            prop_assert_eq!(target.host().to_string(), host.trim_end_matches('.'));
            prop_assert!(matches!(target.host(), Host::Ip(_)) || host.trim_end_matches('.').rsplit('.').next().is_some_and(|last| last.contains(char::is_alphabetic)));
        }
    }

    #[test]
    fn every_address_inside_a_refused_range_is_refused(index in 0..table::rows().count(), bits: u128) {
        let row = table::rows().nth(index).unwrap();
        let address = inside(row.net, bits);
        prop_assert!(answered(&Rules::default(), address).is_err(), "{address}");
        // A mapped answer is judged as the address inside it, which a grant may open.
        if row.opens == Opens::Never && address.to_canonical() == address {
            prop_assert!(answered(&with(vec![grant("jira.example.com", 443)]), address).is_err() , "{address}");
        }
    }

    #[test]
    fn no_embedding_hides_a_refused_address(index in 0..table::rows().count(), bits: u128) {
        let row = table::rows().nth(index).unwrap();
        if let IpAddr::V4(v4) = inside(row.net, bits) {
            for carrier in carriers(v4) {
                prop_assert!(answered(&Rules::default(), carrier.into()).is_err(), "{v4} in {carrier}");
            }
        }
    }

    #[test]
    fn everything_outside_global_unicast_is_refused(bits: u128) {
        let address = Ipv6Addr::from_bits(bits);
        if bits >> 125 != 1 {
            prop_assert!(answered(&Rules::default(), address.into()).is_err(), "{address}");
        }
    }
}

/// An address of `range`, with the host bits of `bits`.
fn inside(range: IpNet, bits: u128) -> IpAddr {
    match range {
        IpNet::V4(v4) => {
            Ipv4Addr::from_bits(v4.network().to_bits() | (bits as u32 & v4.hostmask().to_bits()))
                .into()
        }
        IpNet::V6(v6) => {
            Ipv6Addr::from_bits(v6.network().to_bits() | (bits & v6.hostmask().to_bits())).into()
        }
    }
}
