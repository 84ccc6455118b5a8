//! What private grants open, and what they do not.

use super::{grant, ip, leg, net, sockets, target, with};
use crate::{
    address::{Host, Leg, Port, Rules},
    refusal::Code,
};

#[test]
fn a_grant_opens_its_host_port_and_leg_and_nothing_else() {
    let rules = with(vec![grant("jira.corp.internal", 8443)]);
    let answer = [ip("10.20.30.40")];
    let judge = |url, leg| rules.judge(&leg, &target(url), &answer);
    let judged = judge("http://jira.corp.internal:8443/", leg()).unwrap();
    assert_eq!(judged.grant.as_deref(), Some("egress.toml:3: [[private]]"));
    assert_eq!(sockets(&judged), ["10.20.30.40:8443"]);

    let port = judge("http://jira.corp.internal:9000/", leg()).unwrap_err();
    assert!(
        port.reason
            .ends_with("`egress.toml:3: [[private]]` names this host, but for port 8443 only"),
        "{port}"
    );
    let other = judge("http://jira.corp.internal:8443/", Leg::Proxy).unwrap_err();
    assert!(
        other.reason.ends_with(
            "`egress.toml:3: [[private]]` names this host, but without \"proxy\" in for"
        ),
        "{other}"
    );
    assert!(judge("http://wiki.corp.internal:8443/", leg()).is_err());
    // The name does not exempt its address.
    assert!(
        rules
            .before_resolving(&leg(), &target("http://10.20.30.40:8443/"))
            .is_err()
    );
}

#[test]
fn a_grant_may_say_where_its_host_is() {
    let mut narrow = grant("jira.corp.example", 443);
    narrow.addresses = vec![net("10.20.0.0/16")];
    let rules = with(vec![narrow]);
    let judge = |address| {
        rules.judge(
            &leg(),
            &target("https://jira.corp.example/"),
            &[ip(address)],
        )
    };
    assert!(judge("10.20.1.1").is_ok());
    assert!(
        judge("10.21.1.1")
            .unwrap_err()
            .reason
            .ends_with("but its addresses do not list this one")
    );
    assert_eq!(judge("9.9.9.9").unwrap_err().rule, "grant-addresses");

    let mut fixed = grant("jira.corp.example", 443);
    fixed.address = Some(ip("127.0.0.5"));
    let fixed = with(vec![fixed]);
    let url = target("https://jira.corp.example/");
    assert!(fixed.judge(&leg(), &url, &[ip("127.0.0.6")]).is_err());
    let judged = fixed.before_resolving(&leg(), &url).unwrap();
    assert_eq!(sockets(&judged.unwrap()), ["127.0.0.5:443"]);
}

#[test]
fn a_name_leads_to_this_machine_only_where_its_grant_says_so() {
    let url = target("https://jira.corp.example/");
    let plain = with(vec![grant("jira.corp.example", 443)]);
    assert_eq!(
        plain
            .judge(&leg(), &url, &[ip("127.0.0.1")])
            .unwrap_err()
            .rule,
        "loopback"
    );
    let blocked = plain.judge(&leg(), &url, &[ip("0.0.0.0")]).unwrap_err();
    assert!(
        blocked
            .reason
            .ends_with("but a name that leads to this machine needs its addresses listed there"),
        "{blocked}"
    );
    let mut stated = grant("jira.corp.example", 443);
    stated.addresses = vec![net("127.0.0.0/8")];
    assert!(
        with(vec![stated])
            .judge(&leg(), &url, &[ip("127.0.0.1")])
            .is_ok()
    );
    // Any port: loopback only.
    let mut any = grant("10.0.0.1", 1);
    any.port = Port::Any;
    assert!(
        with(vec![any])
            .before_resolving(&leg(), &target("http://10.0.0.1:80/"))
            .is_err()
    );
    let mut any = grant("127.0.0.1", 1);
    any.port = Port::Any;
    assert!(
        with(vec![any])
            .before_resolving(&leg(), &target("http://127.0.0.1:80/"))
            .is_ok()
    );
}

#[test]
fn a_granted_localhost_is_answered_without_dns() {
    let rules = with(vec![grant("localhost", 3000)]);
    let judged = rules
        .before_resolving(&leg(), &target("http://localhost:3000/mcp"))
        .unwrap()
        .unwrap();
    assert_eq!(sockets(&judged), ["127.0.0.1:3000", "[::1]:3000"]);
    let blocked = Rules::default()
        .before_resolving(&leg(), &target("http://localhost:3000/"))
        .unwrap_err();
    assert_eq!(
        (blocked.code, blocked.rule),
        (Code::NameBlocked, "localhost-name")
    );
}

#[test]
fn infrastructure_may_be_private_and_stays_above_the_floor() {
    let rules = Rules {
        own_addresses: vec![ip("10.0.0.7")],
        own_listeners: vec!["127.0.0.1:8701".parse().unwrap()],
        kubernetes: Some(Host::from_operator("10.96.0.1").unwrap()),
        ..Rules::default()
    };
    let judge = |port: u16, address: &str| {
        let target = target(&format!("http://parent.example:{port}/"));
        rules.judge_infrastructure(&Leg::Proxy, &target, &[ip("10.0.0.9"), ip(address)])
    };
    for fine in [
        "10.0.0.9",
        "127.0.0.1",
        "10.0.0.7",
        "::1",
        "fc00::1",
        "1.1.1.1",
    ] {
        let judged = judge(3128, fine).expect(fine);
        assert_eq!(judged.addresses[1].socket().ip(), ip(fine));
    }
    for (port, address, rule) in [
        (3128, "169.254.169.254", "metadata"),
        (3128, "::ffff:169.254.169.254", "metadata"),
        (3128, "64:ff9b::a9fe:a9fe", "metadata"),
        (3128, "168.63.129.16", "metadata"),
        (3128, "10.96.0.1", "kubernetes-api"),
        (8701, "127.0.0.1", "own-address"),
    ] {
        assert_eq!(
            judge(port, address).expect_err(address).rule,
            rule,
            "{address}"
        );
    }
    let none = rules.judge_infrastructure(&Leg::Proxy, &target("http://parent.example/"), &[]);
    assert_eq!(none.unwrap_err().rule, "no-address");
}
