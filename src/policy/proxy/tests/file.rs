//! What may stand in the file, and what may not.

use std::num::NonZeroU32;

use super::*;
use crate::{
    address::{Leg, Scheme, Target},
    policy::{AllowRule, DenyRule, HostPattern, Parent, Pattern, TunnelLimits, TunnelTls, Who},
};

fn pattern(text: &str) -> HostPattern {
    HostPattern::read(text).expect("a pattern")
}

#[test]
fn every_key_is_compiled() {
    let egress = r#"
report_until = 2027-01-31
[[allow]]
host = "*.Example.com:8080"
scheme = "http"
who = { tenants = ["acme", "default"], users = ["ann"], groups = ["eng"], agents = ["ci-*"] }
methods = ["GET", "M-SEARCH"]
paths = ["/repos/*"]
report_until = 2027-01-31T00:00:00Z
also_server = true
[[allow]]
host = "git.example.com:22"
tls = "opaque"
who.tenants = ["default"]
[[deny]]
host = "bad.example.com"
who.users = ["bob"]
report_until = 2027-01-30T23:00:00-01:00
"#;
    let proxy = policy(egress).proxy;
    let allow: Vec<AllowRule> = proxy.allow.iter().map(|rule| (**rule).clone()).collect();
    let end = Some(end_of_january());
    assert_eq!(
        allow,
        [
            AllowRule {
                host: pattern("*.example.com:8080"),
                scheme: Some(Scheme::Http),
                who: Who {
                    tenants: vec!["acme".into(), "default".into()],
                    users: vec!["ann".into()],
                    groups: vec!["eng".into()],
                    agents: vec![Pattern::new("ci-*")],
                },
                tls: TunnelTls::Pass,
                methods: vec!["GET".into(), "M-SEARCH".into()],
                paths: vec![Pattern::new("/repos/*")],
                report_until: end,
                also_server: true,
                origin: "egress.toml:3: [[allow]]".into(),
            },
            AllowRule {
                host: pattern("git.example.com:22"),
                scheme: None,
                who: Who {
                    tenants: vec!["default".into()],
                    ..Who::default()
                },
                tls: TunnelTls::Opaque,
                methods: Vec::new(),
                paths: Vec::new(),
                report_until: None,
                also_server: false,
                origin: "egress.toml:11: [[allow]]".into(),
            },
        ]
    );
    assert_eq!(
        proxy.deny,
        [DenyRule {
            host: pattern("bad.example.com"),
            who: Who {
                users: vec!["bob".into()],
                ..Who::default()
            },
            report_until: end,
            origin: "egress.toml:15: [[deny]]".into(),
        }]
    );
    assert_eq!(proxy.report_until, end);
}

#[test]
fn hosts_are_written_in_four_ways() {
    for (written, shown) in [
        ("API.github.com", "api.github.com"),
        ("api.github.com.", "api.github.com"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("bücher.example:443", "xn--bcher-kva.example:443"),
        ("*.github.com", "*.github.com"),
        ("*.github.com:8443", "*.github.com:8443"),
        ("10.1.2.3", "10.1.2.3"),
        ("::1", "[::1]"),
        ("[::1]", "[::1]"),
        ("[::1]:3000", "[::1]:3000"),
    ] {
        assert_eq!(pattern(written).to_string(), shown, "{written}");
    }
    for (written, error) in [
        (
            "*",
            "`*` is no pattern of hosts; write a host, or `*.` before a name of two labels or more",
        ),
        (
            "*x.example.com",
            "`*x.example.com` is no pattern of hosts; write a host, or `*.` before a name of two labels or more",
        ),
        (
            "*.com",
            "`*.com` covers too much; `*.` needs a name of two labels or more",
        ),
        (
            "*.10.0.0.1",
            "`*.10.0.0.1` covers too much; `*.` needs a name of two labels or more",
        ),
        (
            "https://example.com",
            "`https://example.com` is more than a host; leave out scheme and path",
        ),
        ("example.com:", "port `` is not a number from 1 to 65535"),
        ("", "host `` is empty; name a host"),
    ] {
        assert_eq!(
            HostPattern::read(written),
            Err(error.to_owned()),
            "{written}"
        );
    }
    let user = HostPattern::read("me@example.com:443").expect_err("a fault");
    assert!(user.starts_with("a user name or password stands before the host"));
}

#[test]
fn what_has_no_force_is_a_fault_at_its_place() {
    let egress = r#"
[[allow]]
host = "a.example.com"
methods = ["GET"]
paths = ["/a"]
[[allow]]
host = "*.example.com:22"
tls = "opaque"
[[allow]]
host = "b.example.com"
tls = "opaque"
[[allow]]
host = "c.example.com"
scheme = "http"
tls = "pass"
methods = ["get", "CONNECT", ""]
paths = ["repos", "/a?b", "/a b"]
[[allow]]
host = "d.example.com"
report_until = 2027-01-31
who.tenants = ["default"]
[[allow]]
host = "e.example.com"
scheme = "http"
methods = []
paths = []
who = { users = [], groups = [""], agent = ["x"] }
[[allow]]
host = "f.example.com"
scheme = "ftp"
tls = "inspect"
inject = { header = "Authorization" }
report_until = "2027-01-31"
[[deny]]
methods = ["GET"]
report_until = 2027-01-31T00:00:00
"#;
    let tunnel = "requests inside TLS are not seen; add scheme = \"http\" to allow plain requests only, or remove the key \
                  (tls = \"inspect\" is not available in this version)";
    let opaque = "what an opaque tunnel carries is not checked, so it is for one exact host and port; write host = \
                  \"HOST:PORT\", or use \"pass\"";
    let method = "expected the method of a plain request in capitals, such as \"GET\"; correct it";
    let path = "expected a path without a query, such as \"/repos/*\"; correct it";
    assert_eq!(
        faults(&[("egress.toml", egress)]),
        format!(
            "\
egress.toml:4:11: allow[0].methods: {tunnel}
egress.toml:5:9: allow[0].paths: {tunnel}
egress.toml:8:7: allow[1].tls: {opaque}
egress.toml:11:7: allow[2].tls: {opaque}
egress.toml:15:7: allow[3].tls: has no effect, since scheme = \"http\" allows no tunnel; remove one of the two
egress.toml:16:12: allow[3].methods[0]: found `get`, {method}
egress.toml:16:19: allow[3].methods[1]: found `CONNECT`, {method}
egress.toml:16:30: allow[3].methods[2]: found ``, {method}
egress.toml:17:10: allow[3].paths[0]: found `repos`, {path}
egress.toml:17:19: allow[3].paths[1]: found `/a?b`, {path}
egress.toml:17:27: allow[3].paths[2]: found `/a b`, {path}
egress.toml:20:16: allow[4].report_until: has no effect, since the rule refuses nothing that it could report; add users, groups, agents, methods or paths, or remove the key
egress.toml:25:11: allow[5].methods: covers no request; name some, or remove the key
egress.toml:26:9: allow[5].paths: covers no request; name some, or remove the key
egress.toml:27:17: allow[5].who.users: names nobody; name someone, or remove the key
egress.toml:27:31: allow[5].who.groups[0]: expected 1 to 128 visible characters, without spaces at the ends; correct the name
egress.toml:27:36: allow[5].who.agent: unknown key; did you mean `agents`?
egress.toml:30:10: allow[6].scheme: found `ftp`, expected one of `http`, `https`
egress.toml:31:7: allow[6].tls: `inspect` is not available in this version; use `pass`, `opaque`
egress.toml:32:10: allow[6].inject: this key is not available in this version; remove it
egress.toml:33:16: allow[6].report_until: found the string `2027-01-31`, expected a time without quotes
egress.toml:34:1: deny[0]: `host` is missing; add it
egress.toml:35:1: deny[0].methods: unknown key; expected one of `host`, `who`, `report_until`
egress.toml:36:16: deny[0].report_until: expected a date, or a time with its offset like 2027-01-31T12:00:00Z; correct it"
        )
    );
}

#[test]
fn the_proxy_is_no_way_around_approvals() {
    let servers = [
        (
            "servers/github.toml",
            "url = \"https://api.github.com/mcp\"\n",
        ),
        (
            "servers/notes.toml",
            "url = \"http://127.0.0.1:9000/mcp\"\n",
        ),
    ];
    let with = |egress: &str| {
        let [github, notes] = servers;
        compiled(&[github, notes, ("egress.toml", egress)], |_| {})
    };
    for (host, server) in [
        ("api.github.com", "`github` is at https://api.github.com"),
        (
            "api.github.com:8443",
            "`github` is at https://api.github.com",
        ),
        ("*.github.com", "`github` is at https://api.github.com"),
        ("127.0.0.1:9000", "`notes` is at http://127.0.0.1:9000"),
    ] {
        let rule = format!("[[allow]]\nhost = \"{host}\"\n");
        assert_eq!(
            with(&rule).expect_err("a fault"),
            [format!(
                "egress.toml:2:8: allow[0].host: server {server}, and callers could pass by the approvals of its tools; \
                 take its host out, or say also_server = true"
            )]
        );
        let said = format!("{rule}also_server = true\n");
        assert!(with(&said).is_ok(), "{host}");
    }
    for host in [
        "github.com",
        "*.api.github.com",
        "127.0.0.1:3000",
        "uploads.github.com",
    ] {
        let rule = format!("[[allow]]\nhost = \"{host}\"\n");
        assert!(with(&rule).is_ok(), "{host}");
    }
}

#[test]
fn once_there_are_two_tenants_rules_name_theirs() {
    let egress = "[[allow]]\nhost = \"a.example.com\"\nwho.users = [\"ann\"]\n[[allow]]\nhost = \"b.example.com\"\n\
                  who.tenants = [\"acme\"]\n[[deny]]\nhost = \"c.example.com\"\n";
    assert_eq!(
        faults(&[
            ("servers/a.toml", "url = \"https://mcp.example.org/\"\n"),
            ("egress.toml", egress)
        ]),
        "\
egress.toml:1:1: allow[0]: `who.tenants` is missing, and there are the tenants `acme`; name those whose callers the rule is for
servers/a.toml:1:1: `tenants` is missing, and there are the tenants `acme`; name those whose callers may see this server"
    );
}

#[test]
fn private_grants_serve_the_proxy_where_a_rule_leads() {
    let grant = "[[private]]\nhost = \"jira.corp.example\"\nport = 443\naddress = \"10.20.1.5\"\nfor = [\"proxy\"]\n";
    assert_eq!(
        faults(&[("egress.toml", grant)]),
        "egress.toml:5:8: private[0].for[0]: no `[[allow]]` leads to jira.corp.example port 443, so this opens nothing; \
         add one, or remove \"proxy\""
    );
    let other = format!("[[allow]]\nhost = \"jira.corp.example:8443\"\n{grant}");
    assert!(faults(&[("egress.toml", &other)]).contains("so this opens nothing"));
    let policy = policy(&format!("[[allow]]\nhost = \"*.corp.example\"\n{grant}"));
    let target = Target::from_operator("https://jira.corp.example/").expect("a target");
    let judged = policy.addresses.before_resolving(&Leg::Proxy, &target);
    let judged = judged.expect("granted").expect("a static answer");
    assert_eq!(judged.grant.as_deref(), Some("egress.toml:3: [[private]]"));
    assert_eq!(
        judged.addresses[0].socket(),
        "10.20.1.5:443".parse().expect("an address")
    );

    let metadata = "[[allow]]\nhost = \"169.254.169.254\"\n[[private]]\nhost = \"169.254.169.254\"\nport = 80\nfor = [\"proxy\"]\n";
    assert_eq!(
        faults(&[("egress.toml", metadata)]),
        "egress.toml:3:1: private[0]: no grant can open this: `https://169.254.169.254:80` is in 169.254.169.0/24 (cloud \
         metadata, DNS and time services); no setting opens it; remove the grant"
    );
    let later = "[[private]]\nhost = \"a.example\"\nport = 443\nfor = [\"oauth:a\", \"identity\", \"webhook\", \"x\"]\n";
    assert_eq!(
        faults(&[("egress.toml", later)]),
        "\
egress.toml:4:8: private[0].for[0]: there is no server `a`; add servers/a.toml, correct the name, or remove it from this table
egress.toml:4:19: private[0].for[1]: `identity` is not available in this version; remove it
egress.toml:4:31: private[0].for[2]: `webhook` is not available in this version; remove it
egress.toml:4:42: private[0].for[3]: found `x`, expected \"server:NAME\", \"oauth:NAME\" or \"proxy\"; correct it"
    );
}

#[test]
fn the_parent_is_part_of_the_policy() {
    let parent = |written| compiled(&[], |inputs| inputs.parent = Some(written));
    let target = Target::from_operator("http://proxy.corp.example:3128").expect("a target");
    let found = parent(("http://proxy.corp.example:3128", true)).expect("no faults");
    assert_eq!(
        found.proxy.parent.as_deref(),
        Some(&Parent {
            target,
            resolves: true
        })
    );
    let wrong = parent(("http://a..b:3128", false)).expect_err("a fault");
    assert_eq!(
        wrong,
        [
            "tollgate.toml: egress.parent.url: host `a..b` has a label that is empty or longer than 63 octets"
        ]
    );
}

#[test]
fn the_bounds_of_tunnels_are_read() {
    let text = "[tunnels]\nper_caller = 2\nall_callers = 3\nper_second = 4\nburst = 5\nidle = \"6s\"\nlifetime = \"7h\"\n\
                bytes = 8\n";
    assert_eq!(
        policy(text).proxy.tunnels,
        TunnelLimits {
            per_caller: 2,
            all_callers: 3,
            per_second: NonZeroU32::new(4).unwrap(),
            burst: NonZeroU32::new(5).unwrap(),
            idle: Duration::from_secs(6),
            lifetime: Duration::from_secs(7 * 60 * 60),
            bytes: 8,
        }
    );
    assert_eq!(policy("").proxy.tunnels, TunnelLimits::default());
    let faults = faults(&[(
        "egress.toml",
        "[tunnels]\nper_caller = 0\nidle = \"2d\"\nrate = 1\n",
    )]);
    assert_eq!(faults.lines().count(), 3, "{faults}");
}
