//! Each rule of the judge, once.

mod grants;
mod parse;
mod properties;

use std::net::IpAddr;

use super::*;
use crate::refusal::Code;
use ipnet::IpNet;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

fn target(url: &str) -> Target {
    Target::from_wire(url).unwrap()
}

fn leg() -> Leg {
    Leg::Server("jira".into())
}

fn grant(host: &str, port: u16) -> Grant {
    Grant {
        host: Host::from_operator(host).unwrap(),
        port: Port::Exact(port),
        addresses: Vec::new(),
        address: None,
        legs: vec![leg()],
        origin: "egress.toml:3: [[private]]".into(),
    }
}

fn with(grants: Vec<Grant>) -> Rules {
    Rules {
        grants,
        ..Rules::default()
    }
}

/// Judges `address` as the answer for a public name.
fn answered(rules: &Rules, address: IpAddr) -> Result<Judged, Blocked> {
    rules.judge(&leg(), &target("https://jira.example.com/"), &[address])
}

fn sockets(judged: &Judged) -> Vec<String> {
    judged
        .addresses
        .iter()
        .map(|address| address.socket().to_string())
        .collect()
}

#[test]
fn well_known_public_addresses_are_open() {
    for public in [
        "1.1.1.1",
        "8.8.8.8",
        "168.63.129.17",
        "2606:4700:4700::1111",
        "2001:4860:4860::8888",
        "2001:200::1",
    ] {
        let judged = answered(&Rules::default(), ip(public)).unwrap();
        assert_eq!(judged.addresses[0].socket(), (ip(public), 443).into());
        assert!(judged.pinned && judged.grant.is_none());
    }
}

#[test]
fn one_forbidden_address_refuses_the_whole_answer() {
    let answer = ["1.1.1.1", "10.0.0.5", "9.9.9.9"].map(ip);
    let blocked = Rules::default()
        .judge(&leg(), &target("https://mix.test/"), &answer)
        .unwrap_err();
    assert_eq!(blocked.code, Code::AddressBlocked);
    assert_eq!(blocked.rule, "private-use");
    assert_eq!(
        blocked.reason,
        "`mix.test` leads to 10.0.0.5, in 10.0.0.0/8 (private use, RFC 1918); a [[private]] table in egress.toml with \
         host = \"mix.test\", port = 443 and for = [\"server:jira\"] would open it, or `mix.test` in \
         TOOLS_PRIVATE_NETWORK_ALLOWLIST"
    );
    let empty = Rules::default()
        .judge(&leg(), &target("https://mix.test/"), &[])
        .unwrap_err();
    assert_eq!(empty.code, Code::NameUnresolved);
}

#[test]
fn names_that_mean_another_network_are_refused_and_look_alikes_are_not() {
    let rules = Rules::default();
    let before = |host: &str| rules.before_resolving(&leg(), &target(&format!("http://{host}/")));
    for host in [
        "localhost",
        "a.localhost",
        "localhost.localdomain",
        "ip6-localhost",
        "metadata.google.internal",
        "metadata",
        "instance-data",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
        "api.ns.svc",
        "printer.local",
        "nas.home.arpa",
        "service.internal",
        "internal",
        "x.onion",
        "x.invalid",
        "wpad",
        "1.0.0.127.in-addr.arpa",
    ] {
        assert_eq!(
            before(host).expect_err(host).code,
            Code::NameBlocked,
            "{host}"
        );
        let granted = with(vec![grant(host, 80)])
            .before_resolving(&leg(), &target(&format!("http://{host}/")));
        let shut = [
            "metadata",
            "instance-data",
            "kubernetes",
            "x.onion",
            "x.invalid",
            "1.0.0.127",
        ];
        assert_eq!(
            granted.is_err(),
            shut.iter().any(|prefix| host.starts_with(prefix)),
            "{host}"
        );
    }
    for host in [
        "notlocalhost.net",
        "mylocal.example",
        "internal.example.com",
        "local.test",
        "kubernetes.default.svc",
    ] {
        assert_eq!(
            before(host).is_ok(),
            host != "kubernetes.default.svc",
            "{host}"
        );
    }
}

#[test]
fn nothing_opens_the_floor() {
    let floor = [
        "169.254.169.254",
        "169.254.170.2",
        "169.254.170.23",
        "169.254.42.42",
        "169.254.0.23",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "fd00:ec2::254",
        "fd20:ce::254",
        "100.96.0.96",
        "fd00:42::42",
        "fd00:a9fe:a9fe::1",
        "fd00:100::100:200",
        "::ffff:169.254.169.254",
        "::a9fe:a9fe",
        "::ffff:0:a9fe:a9fe",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1:a9fe:a9:fe00::",
        "2002:a9fe:a9fe::1",
        "2001:0:a9fe:a9fe::1",
        "2001:0:1::5601:5601",
        "2606:4700::5efe:a9fe:a9fe",
        "10.96.0.1",
        "64:ff9b::a60:1",
        "2a00:64::a9fe:a9fe",
    ];
    let everything = Rules {
        grants: vec![grant("jira.example.com", 443)],
        nat64: ["64:ff9b::/96", "64:ff9b:1::/48", "2a00:64::/96"]
            .map(|text| Nat64Prefix::new(net(text)).unwrap())
            .into(),
        fake_ip: vec![net("0.0.0.0/0"), net("::/0")],
        kubernetes: Some(Host::Ip(ip("10.96.0.1"))),
        ..Rules::default()
    };
    for address in floor.map(ip) {
        let blocked = answered(&everything, address).expect_err(&address.to_string());
        assert!(
            blocked.reason.ends_with("no setting opens it"),
            "{address}: {blocked}"
        );
    }
    let name = Rules {
        kubernetes: Some(Host::from_operator("api.cluster.example").unwrap()),
        ..Rules::default()
    };
    let blocked = name
        .before_resolving(&leg(), &target("https://api.cluster.example/"))
        .unwrap_err();
    assert_eq!(blocked.rule, "kubernetes-api");
}

#[test]
fn declared_nat64_is_judged_by_the_address_inside() {
    let rules = |prefix: &str| Rules {
        nat64: vec![Nat64Prefix::new(net(prefix)).unwrap()],
        ..Rules::default()
    };
    let undeclared = answered(&Rules::default(), ip("64:ff9b::808:808")).unwrap_err();
    assert!(
        undeclared
            .reason
            .contains("nat64_prefixes in egress.toml, with a prefix inside 64:ff9b::/96"),
        "{undeclared}"
    );
    // 192.0.2.33 of RFC 6052 section 2.4, here with 8.8.4.33 and 10.0.2.33.
    for (prefix, public, private) in [
        ("2001:678::/32", "2001:678:808:421::", "2001:678:a00:221::"),
        (
            "2001:678:100::/40",
            "2001:678:108:804:21::",
            "2001:678:10a:2:21::",
        ),
        (
            "2001:678:122::/48",
            "2001:678:122:808:4:2100::",
            "2001:678:122:a00:2:2100::",
        ),
        (
            "2001:678:122:300::/56",
            "2001:678:122:308:8:421::",
            "2001:678:122:30a:0:221::",
        ),
        (
            "2001:678:122:344::/64",
            "2001:678:122:344:8:804:2100::",
            "2001:678:122:344:a:2:2100::",
        ),
        ("64:ff9b::/96", "64:ff9b::808:421", "64:ff9b::a00:221"),
        (
            "64:ff9b:1:fffe::/96",
            "64:ff9b:1:fffe::808:421",
            "64:ff9b:1:fffe::a00:221",
        ),
    ] {
        let judged = answered(&rules(prefix), ip(public)).expect(prefix);
        assert_eq!(judged.addresses[0].socket().ip(), ip(public));
        let blocked = answered(&rules(prefix), ip(private)).expect_err(prefix);
        assert!(
            blocked
                .reason
                .contains("a form of 10.0.2.33, in 10.0.0.0/8"),
            "{blocked}"
        );
    }
    assert!(
        answered(
            &rules("2001:678:122::/48"),
            ip("2001:678:122:808:ff04:2100::")
        )
        .is_err()
    );
    for wrong in [
        "10.0.0.0/8",
        "64:ff9b::/95",
        "::ffff:0:0/96",
        "fe80::/96",
        "64:ff9b::1/96",
    ] {
        assert!(Nat64Prefix::new(net(wrong)).is_err(), "{wrong}");
    }
}

#[test]
fn fake_ip_ranges_serve_names_and_are_marked() {
    let rules = Rules {
        fake_ip: vec![
            net("198.18.0.0/15"),
            net("fc00::/18"),
            net("28.0.0.0/8"),
            net("10.0.0.0/8"),
        ],
        ..Rules::default()
    };
    for fake in ["198.18.1.206", "fc00::7", "28.0.0.9"] {
        assert!(!answered(&rules, ip(fake)).unwrap().pinned, "{fake}");
        let literal = Target::from_wire(&format!("http://{}/", Host::Ip(ip(fake)))).unwrap();
        assert!(rules.before_resolving(&leg(), &literal).is_err(), "{fake}");
    }
    assert!(answered(&rules, ip("10.0.0.9")).is_err());
    let blocked = answered(&Rules::default(), ip("198.18.1.206")).unwrap_err();
    assert!(
        blocked
            .reason
            .ends_with("fake_ip_ranges = [\"198.18.0.0/15\"] in egress.toml would open it"),
        "{blocked}"
    );
}

#[test]
fn this_host_is_never_a_target() {
    let rules = Rules {
        grants: vec![
            grant("127.0.0.1", 8700),
            grant("127.0.0.1", 3000),
            grant("0.0.0.0", 8700),
            grant("10.0.0.7", 3000),
        ],
        own_addresses: ["127.0.0.1", "10.0.0.7", "9.9.9.9"].map(ip).into(),
        own_listeners: vec!["127.0.0.1:8700".parse().unwrap()],
        ..Rules::default()
    };
    let literal = |url: &str| rules.before_resolving(&leg(), &target(url));
    for own in [
        "http://127.0.0.1:8700/",
        "http://0.0.0.0:8700/",
        "http://10.0.0.7:3000/",
        "http://9.9.9.9:8443/",
    ] {
        assert_eq!(literal(own).expect_err(own).rule, "own-address", "{own}");
    }
    assert!(literal("http://127.0.0.1:3000/").is_ok());
    let everywhere = Rules {
        own_listeners: vec!["[::]:3000".parse().unwrap()],
        ..rules.clone()
    };
    assert_eq!(
        everywhere
            .before_resolving(&leg(), &target("http://127.0.0.1:3000/"))
            .unwrap_err()
            .rule,
        "own-address"
    );
}

#[test]
fn mapped_addresses_open_for_a_grant_only_and_never_as_literals() {
    let mapped = ip("::ffff:10.0.0.5");
    assert!(answered(&Rules::default(), ip("::ffff:1.1.1.1")).is_err());
    assert!(
        answered(&Rules::default(), mapped)
            .unwrap_err()
            .reason
            .contains("a form of 10.0.0.5")
    );
    let judged = answered(&with(vec![grant("jira.example.com", 443)]), mapped).unwrap();
    assert_eq!(sockets(&judged), ["10.0.0.5:443"]);
    let literal = with(vec![grant("::ffff:10.0.0.5", 443)]);
    assert!(
        literal
            .before_resolving(&leg(), &target("https://[::ffff:10.0.0.5]/"))
            .is_err()
    );
}
