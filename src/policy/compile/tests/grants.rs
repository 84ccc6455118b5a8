//! Private grants.

use super::*;
use crate::address::{Grant, Leg, Port, Scheme};

#[test]
fn plain_http_needs_loopback_or_a_grant() {
    let loopback = [("servers/a.toml", "url = \"http://127.0.0.1:9000/mcp\"\n")];
    assert_eq!(
        policy(&loopback).servers["a"].endpoint.target().scheme(),
        Scheme::Http
    );

    let server = "url = \"http://jira.corp.example:8080/mcp\"\ninsecure_http = true\n";
    let grant = "[[private]]\nhost = \"jira.corp.example\"\nport = 8080\nfor = [\"server:a\"]\n";
    assert_eq!(
        faults(&[("servers/a.toml", server)]),
        "servers/a.toml:2:17: insecure_http: needs a private grant for jira.corp.example port 8080; add a `[[private]]` table \
         for \"server:a\" to egress.toml, or use https"
    );
    let granted = policy(&[("servers/a.toml", server), ("egress.toml", grant)]);
    assert_eq!(
        granted.servers["a"].endpoint.target().scheme(),
        Scheme::Http
    );
    let by_environment = compiled(&[("servers/a.toml", server)], |inputs| {
        inputs.private_allowlist = Some("jira.corp.example");
    });
    assert!(by_environment.is_ok());

    let https = "url = \"https://jira.corp.example/\"\ninsecure_http = true\n";
    assert!(faults(&[("servers/a.toml", https)]).contains(
        "servers/a.toml:2:17: insecure_http: the url is https, so this has no effect; remove the key"
    ));
}

#[test]
fn every_key_of_a_private_grant_acts() {
    let server = "url = \"https://jira.corp.example:8443/\"\n";
    let egress = r#"
nat64_prefixes = ["2001:67c:2e8::/96"]
fake_ip_ranges = ["198.18.0.0/15"]
[[private]]
host = "JIRA.corp.example"
port = 8443
addresses = ["10.20.0.0/16", "10.21.0.7"]
for = ["server:jira"]
[[private]]
host = "jira.corp.example"
port = 8443
address = "10.20.1.5"
for = ["server:jira"]
"#;
    let policy = policy(&[("servers/jira.toml", server), ("egress.toml", egress)]);
    let host = Host::from_operator("jira.corp.example").expect("a host");
    let leg = Leg::Server("jira".into());
    assert_eq!(
        policy.addresses.grants,
        [
            Grant {
                host: host.clone(),
                port: Port::Exact(8443),
                addresses: vec![
                    "10.20.0.0/16".parse().expect("a network"),
                    "10.21.0.7/32".parse().expect("a network"),
                ],
                address: None,
                legs: vec![leg.clone()],
                origin: "egress.toml:4: [[private]]".into(),
            },
            Grant {
                host,
                port: Port::Exact(8443),
                addresses: Vec::new(),
                address: Some("10.20.1.5".parse().expect("an address")),
                legs: vec![leg],
                origin: "egress.toml:9: [[private]]".into(),
            },
        ]
    );
    assert_eq!(policy.addresses.nat64.len(), 1);
    assert_eq!(
        policy.addresses.fake_ip,
        ["198.18.0.0/15".parse().expect("a network")]
    );
}

#[test]
fn grants_that_open_nothing_are_faults_at_their_place() {
    let servers = [
        ("servers/a.toml", "url = \"https://a.corp.example/\"\n"),
        (
            "servers/m.toml",
            "url = \"http://169.254.169.254/\"\ninsecure_http = true\n",
        ),
        (
            "servers/n.toml",
            "url = \"https://metadata.google.internal/\"\n",
        ),
    ];
    let egress = r#"
[[private]]
host = "b.corp.example"
port = 443
for = ["server:a", "server:gone"]
[[private]]
host = "169.254.169.254"
port = 80
for = ["server:m"]
[[private]]
host = "metadata.google.internal"
port = 443
for = ["server:n"]
[[private]]
host = "a.corp.example"
port = 443
addresses = ["169.254.169.254", "10.0.0.1/8", "x"]
for = ["server:a"]
[[private]]
host = "a.corp.example"
port = "any"
address = "169.254.169.254"
addresses = []
for = []
"#;
    let mut files = servers.to_vec();
    files.push(("egress.toml", egress));
    let found = faults(&files);
    assert_eq!(
        found,
        "\
egress.toml:5:8: private[0].for[0]: server `a` is at a.corp.example port 443, which this grant does not open; make host and port those of its url
egress.toml:5:20: private[0].for[1]: there is no server `gone`; add servers/gone.toml, correct the name, or remove it from this table
egress.toml:6:1: private[1]: no grant can open this: `http://169.254.169.254` is in 169.254.169.0/24 (cloud metadata, DNS and time services); no setting opens it; remove the grant
egress.toml:10:1: private[2]: no grant can open this: `metadata.google.internal` names a cloud metadata service; no setting opens it; remove the grant
egress.toml:17:14: private[3].addresses[0]: no grant can open this: `a.corp.example` leads to 169.254.169.254, in 169.254.169.0/24 (cloud metadata, DNS and time services); no setting opens it; remove the grant
egress.toml:17:33: private[3].addresses[1]: found `10.0.0.1/8`, whose last bits are not zero; write `10.0.0.0/8`
egress.toml:17:47: private[3].addresses[2]: found `x`, expected a network such as \"10.20.0.0/16\"
egress.toml:21:8: private[4].port: `any` is for loopback hosts only; name the port
egress.toml:22:11: private[4].address: stands beside `addresses`, which would have no effect; keep one of the two
egress.toml:24:7: private[4].for: names nothing, so the grant opens nothing; write for = [\"server:NAME\"] or for = [\"proxy\"]"
    );
}

#[test]
fn a_grant_for_oauth_is_for_a_server_that_has_one() {
    let server = "url = \"https://a.corp.example/\"\n[auth]\nmode = \"oauth\"\n";
    let grant = |host: &str, leg: &str| {
        format!("[[private]]\nhost = \"{host}\"\nport = 443\nfor = [\"{leg}\"]\n")
    };
    let login = grant("login.corp.example", "oauth:a");
    let opened = policy(&[("servers/a.toml", server), ("egress.toml", &login)]);
    assert_eq!(
        opened.addresses.grants[0].legs,
        [Leg::OAuth("a".into())],
        "its host need not be the server's"
    );
    let plain = "url = \"https://a.corp.example/\"\n";
    assert_eq!(
        faults(&[("servers/a.toml", plain), ("egress.toml", &login)]),
        "egress.toml:4:8: private[0].for[0]: server `a` has no OAuth, so this opens nothing; set mode = \"oauth\" in its \
         `[auth]`, or remove it"
    );
    assert_eq!(
        faults(&[
            ("servers/a.toml", server),
            ("egress.toml", &grant("login.corp.example", "oauth:gone"))
        ]),
        "egress.toml:4:8: private[0].for[0]: there is no server `gone`; add servers/gone.toml, correct the name, or remove it from this table"
    );
    assert_eq!(
        faults(&[
            ("servers/a.toml", server),
            ("egress.toml", &grant("169.254.169.254", "oauth:a"))
        ]),
        "egress.toml:1:1: private[0]: no grant can open this: `https://169.254.169.254` is in 169.254.169.0/24 (cloud \
         metadata, DNS and time services); no setting opens it; remove the grant"
    );
}

#[test]
fn plain_http_to_loopback_for_oauth_needs_a_grant_too() {
    let server =
        "url = \"https://a.example/\"\n[auth]\nmode = \"oauth\"\nallow_http_loopback = true\n";
    assert_eq!(
        faults(&[("servers/a.toml", server)]),
        "servers/a.toml:4:23: auth.allow_http_loopback: opens nothing without a private grant; add a `[[private]]` table \
         for \"oauth:a\" and a loopback host to egress.toml, or remove it"
    );
    let grant = "[[private]]\nhost = \"127.0.0.1\"\nport = \"any\"\nfor = [\"oauth:a\"]\n";
    let opened = policy(&[("servers/a.toml", server), ("egress.toml", grant)]);
    let knobs = opened.servers["a"].auth.oauth().expect("OAuth");
    assert!(knobs.allow_http_loopback);
    let issuer = format!("{server}issuer = \"http://127.0.0.1:9000\"\n");
    policy(&[("servers/a.toml", &issuer), ("egress.toml", grant)]);
}

#[test]
fn the_allowlist_of_the_environment_opens_registered_hosts_and_ports() {
    let files = [
        ("servers/a.toml", "url = \"http://localhost:9000/\"\n"),
        (
            "servers/b.toml",
            "url = \"https://jira.corp.example:8443/\"\n",
        ),
    ];
    let allowlist = Some(" Jira.corp.example, localhost,,unknown.example ");
    let policy =
        compiled(&files, |inputs| inputs.private_allowlist = allowlist).expect("no faults");
    let opened: Vec<String> = policy
        .addresses
        .grants
        .iter()
        .map(|grant| {
            format!(
                "{} {:?} {:?} {}",
                grant.host, grant.port, grant.legs, grant.origin
            )
        })
        .collect();
    assert_eq!(
        opened,
        [
            "jira.corp.example Exact(8443) [Server(\"b\")] TOOLS_PRIVATE_NETWORK_ALLOWLIST",
            "localhost Exact(9000) [Server(\"a\")] TOOLS_PRIVATE_NETWORK_ALLOWLIST",
        ]
    );
    for wrong in [
        "*.corp.example",
        "jira.corp.example:8443",
        "https://jira.corp.example",
    ] {
        let found = compiled(&files, |inputs| inputs.private_allowlist = Some(wrong));
        let found = found.expect_err("a fault");
        assert!(
            found[0].starts_with("TOOLS_PRIVATE_NETWORK_ALLOWLIST: "),
            "{found:?}"
        );
    }
}

#[test]
fn a_grant_tells_all_its_faults_at_once() {
    let text = "[[private]]\nhost = \"*.x\"\nport = 70000\nfor = [\"server:gone\"]\n";
    assert_eq!(
        faults(&[("egress.toml", text)]),
        "\
egress.toml:2:8: private[0].host: a private grant opens one exact host, never a pattern; write the host's name
egress.toml:3:8: private[0].port: found 70000, expected 1 to 65535
egress.toml:4:8: private[0].for[0]: there is no server `gone`; add servers/gone.toml, correct the name, or remove it from this table"
    );
}
