use std::time::{Duration, UNIX_EPOCH};

use super::*;
use crate::{
    address::{Grant, Leg, Port, Scheme},
    policy::{Access, Approval, Era, Pattern},
    subject::Scopes,
};

const LIMITS: ServerLimits = ServerLimits {
    call: Duration::from_secs(60),
    connect: Duration::from_secs(5),
    first_byte: Duration::from_secs(30),
    idle: Duration::from_secs(30),
    response_bytes: 4 << 20,
};

fn files(files: &[(&str, &str)]) -> Vec<File> {
    let file = |(path, text): &(&str, &str)| File {
        path: (*path).to_owned(),
        text: (*text).to_owned(),
    };
    files.iter().map(file).collect()
}

fn inputs(files: &[File]) -> Inputs<'_> {
    Inputs {
        files,
        read: &|path| Err(format!("no file `{path}`")),
        private_allowlist: None,
        access_mode: None,
        kubernetes: None,
        admins: Admins::default(),
        local: None,
        limits: LIMITS,
        own_addresses: Vec::new(),
        own_listeners: Vec::new(),
    }
}

/// Compiles with `change` made to inputs that hold nothing else.
fn compiled(
    texts: &[(&str, &str)],
    change: impl FnOnce(&mut Inputs<'_>),
) -> Result<Snapshot, Vec<String>> {
    let files = files(texts);
    let mut inputs = inputs(&files);
    change(&mut inputs);
    said(&inputs)
}

fn said(inputs: &Inputs<'_>) -> Result<Snapshot, Vec<String>> {
    compile(inputs).map_err(|faults| faults.iter().map(Fault::to_string).collect())
}

fn policy(files: &[(&str, &str)]) -> Snapshot {
    compiled(files, |_| {}).expect("a policy without faults")
}

fn faults(files: &[(&str, &str)]) -> String {
    compiled(files, |_| {}).expect_err("faults").join("\n")
}

#[test]
fn every_key_of_a_server_acts() {
    let text = r#"
kind = "mcp"
url = "https://mcp.example.com/mcp?tools=web,code"
title = "Example"
access = "everyone"
tenants = ["default"]
read_only = ["get_*", "search"]
era = "legacy"
trace = false
builtin = false
[auth]
mode = "none"
[relay]
elicitation = false
sampling = false
roots = false
[limits]
timeout = "90s"
connect = "2s"
first_byte = "10s"
idle = "20s"
response_bytes = 65536
[tools.delete]
approval = "always-ask"
[tools."odd name"]
approval = "never"
hidden = true
[tools.plain]
approval = "ask"
"#;
    let policy = policy(&[("servers/example.toml", text)]);
    let server = &policy.servers["example"];
    assert_eq!(&*server.name, "example");
    assert_eq!(server.title.as_deref(), Some("Example"));
    assert_eq!(server.target.scheme(), Scheme::Https);
    assert_eq!(server.target.authority(), "mcp.example.com");
    assert_eq!(&*server.path, "/mcp?tools=web,code");
    assert_eq!(server.access, Access::Everyone);
    assert_eq!(server.tenants, [Arc::from("default")]);
    assert_eq!(
        server.read_only,
        [Pattern::new("get_*"), Pattern::new("search")]
    );
    assert_eq!(server.era, Era::Legacy);
    assert_eq!(
        server.limits,
        ServerLimits {
            call: Duration::from_secs(90),
            connect: Duration::from_secs(2),
            first_byte: Duration::from_secs(10),
            idle: Duration::from_secs(20),
            response_bytes: 65536,
        }
    );
    assert_eq!(server.tools["delete"].approval, Some(Approval::AlwaysAsk));
    assert_eq!(server.tools["plain"].approval, Some(Approval::Ask));
    assert_eq!(server.tools["odd name"].approval, Some(Approval::Never));
    assert!(server.tools["odd name"].hidden && !server.tools["plain"].hidden);
}

#[test]
fn the_defaults_of_a_server_are_the_narrow_ones() {
    let policy = policy(&[("server.min.toml", "url = \"https://mcp.example.com\"\n")]);
    let server = &policy.servers["min"];
    assert_eq!(&*server.path, "/");
    assert_eq!(server.access, Access::Admins);
    assert_eq!(server.era, Era::Auto);
    assert_eq!(server.limits, LIMITS);
    assert!(server.read_only.is_empty() && server.tools.is_empty());
    assert_eq!(server.trust.digest, [0; 32]);
}

#[test]
fn what_this_version_lacks_is_refused_key_by_key() {
    let text = r#"
kind = "openapi"
url = "https://api.example.com/"
spec = "https://api.example.com/openapi.json"
access = "grants"
grants = { users = [] }
read_only = "hints"
pin = "first-use"
mark = "meta"
trace = true
builtin = true
[auth]
mode = "oauth"
scopes = ["read"]
[relay]
elicitation = true
[limits]
result_bytes = 65536
concurrency = 16
"#;
    assert_eq!(
        faults(&[("servers/a.toml", text)]),
        "\
servers/a.toml:2:8: kind: `openapi` is not available in this version; use `mcp`
servers/a.toml:4:8: spec: this key is not available in this version; remove it
servers/a.toml:5:10: access: `grants` is not available in this version; use `admins`, `everyone`
servers/a.toml:6:10: grants: this key is not available in this version; remove it
servers/a.toml:7:13: read_only: `hints` is not available in this version; use a list of names such as [\"get_*\"]
servers/a.toml:8:7: pin: this key is not available in this version; remove it
servers/a.toml:9:8: mark: this key is not available in this version; remove it
servers/a.toml:10:9: trace: `true` is not available in this version; use `false`, or remove the key
servers/a.toml:11:11: builtin: `true` is not available in this version; use `false`, or remove the key
servers/a.toml:13:8: auth.mode: `oauth` is not available in this version; use `none`
servers/a.toml:14:10: auth.scopes: this key is not available in this version; remove it
servers/a.toml:16:15: relay.elicitation: `true` is not available in this version; use `false`, or remove the key
servers/a.toml:18:16: limits.result_bytes: this key is not available in this version; remove it
servers/a.toml:19:15: limits.concurrency: this key is not available in this version; remove it"
    );
}

#[test]
fn faults_of_all_files_come_at_once_and_in_order() {
    let files = [
        (
            "servers/b.toml",
            "url = \"http://mcp.example.com/\"\nacces = \"everyone\"\n",
        ),
        (
            "servers/a.toml",
            "title = \"A\"\n[limits]\ntimeout = \"121s\"\n[tools.\"x*\"]\n",
        ),
        (
            "keys.toml",
            "[[key]]\nsha256 = \"abc\"\nagent = \"\"\nscopes = [\"decide\", \"all\"]\n",
        ),
        (
            "egress.toml",
            "[[private]]\nhost = \"*.corp.example\"\nport = \"any\"\nfor = [\"proxy\", \"x\"]\n",
        ),
        ("servers/Big.toml", "url = \"https://mcp.example.com/\"\n"),
        ("access.toml", ""),
        ("notes.toml", ""),
    ];
    assert_eq!(
        faults(&files),
        "\
access.toml: not available in this version; remove the file, or begin its name with `_`
egress.toml:2:8: private[0].host: a private grant opens one exact host, never a pattern; write the host's name
egress.toml:4:8: private[0].for[0]: `proxy` is not available in this version; remove it
egress.toml:4:17: private[0].for[1]: found `x`, expected \"server:NAME\"; correct it
keys.toml:1:1: key[0]: `user` is missing; add it
keys.toml:2:10: key[0].sha256: expected 64 hexadecimal digits, the SHA-256 of a key; `tollgate agent-key new` writes them
keys.toml:3:9: key[0].agent: expected 1 to 128 visible characters, without spaces at the ends; correct the name
keys.toml:4:11: key[0].scopes[0]: the scope `decide` is not available in this version; remove it
keys.toml:4:21: key[0].scopes[1]: found `all`, expected `call` or `act-for`; correct the scope
notes.toml: not a name that is read; expected tollgate.toml, keys.toml, egress.toml, servers/NAME.toml or server.NAME.toml; rename it, or begin its name with `_` to leave it out
servers/Big.toml: `Big` cannot be a server's name; use 1 to 32 of `a-z`, `0-9` and `-`, beginning with a letter or digit
servers/a.toml:1:1: `url` is missing; add it
servers/a.toml:3:11: limits.timeout: found 121s, expected 1ms to 2m
servers/a.toml:4:8: tools.\"x*\": a tool's table takes one exact name; write the name without `*`
servers/b.toml:1:7: url: plain http is for loopback only; use https, or set insecure_http = true and name the host in a `[[private]]` table of egress.toml
servers/b.toml:2:1: acces: unknown key; did you mean `access`?"
    );
}

#[test]
fn a_url_is_never_repeated_since_it_may_hold_a_secret() {
    for url in [
        "https://u:hunter2@mcp.example.com/",
        "https://mcp.example.com/#hunter2",
        "u:hunter2@mcp.example.com",
    ] {
        let found = faults(&[("servers/a.toml", &format!("url = \"{url}\"\n"))]);
        assert!(found.starts_with("servers/a.toml:1:7: url: "), "{found}");
        assert!(!found.contains("hunter2"), "{found}");
    }
}

#[test]
fn a_server_is_described_once() {
    let text = "url = \"https://mcp.example.com/\"\n";
    let found = faults(&[
        ("server.a.toml", text),
        ("servers/a.toml", text),
        ("servers/tollgate.toml", text),
    ]);
    assert_eq!(
        found,
        "\
servers/a.toml: `server.a.toml` describes server `a` too; keep one
servers/tollgate.toml: `tollgate` is the name of Tollgate's own tools; choose another"
    );
    let both = policy(&[("servers/a.toml", text), ("servers/b.toml", text)]);
    assert_eq!(both.servers.len(), 2, "two servers may share a url");
}

#[test]
fn plain_http_needs_loopback_or_a_grant() {
    let loopback = [("servers/a.toml", "url = \"http://127.0.0.1:9000/mcp\"\n")];
    assert_eq!(policy(&loopback).servers["a"].target.scheme(), Scheme::Http);

    let server = "url = \"http://jira.corp.example:8080/mcp\"\ninsecure_http = true\n";
    let grant = "[[private]]\nhost = \"jira.corp.example\"\nport = 8080\nfor = [\"server:a\"]\n";
    assert_eq!(
        faults(&[("servers/a.toml", server)]),
        "servers/a.toml:2:17: insecure_http: needs a private grant for jira.corp.example port 8080; add a `[[private]]` table \
         for \"server:a\" to egress.toml, or use https"
    );
    let granted = policy(&[("servers/a.toml", server), ("egress.toml", grant)]);
    assert_eq!(granted.servers["a"].target.scheme(), Scheme::Http);
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
egress.toml:5:20: private[0].for[1]: there is no server `gone`; add servers/gone.toml, or correct the name
egress.toml:6:1: private[1]: no grant can open this: `http://169.254.169.254` is in 169.254.169.0/24 (cloud metadata, DNS and time services); no setting opens it; remove the grant
egress.toml:10:1: private[2]: no grant can open this: `metadata.google.internal` names a cloud metadata service; no setting opens it; remove the grant
egress.toml:17:14: private[3].addresses[0]: no grant can open this: `a.corp.example` leads to 169.254.169.254, in 169.254.169.0/24 (cloud metadata, DNS and time services); no setting opens it; remove the grant
egress.toml:17:33: private[3].addresses[1]: found `10.0.0.1/8`, whose last bits are not zero; write `10.0.0.0/8`
egress.toml:17:47: private[3].addresses[2]: found `x`, expected a network such as \"10.20.0.0/16\"
egress.toml:21:8: private[4].port: `any` is for loopback hosts only; name the port
egress.toml:22:11: private[4].address: stands beside `addresses`, which would have no effect; keep one of the two
egress.toml:24:7: private[4].for: names nothing, so the grant opens nothing; write for = [\"server:NAME\"]"
    );
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
fn every_key_of_an_agent_key_acts() {
    let text = format!(
        "[[key]]\nsha256 = \"{0}\"\nagent = \"ci\"\nuser = \"ann\"\ngroups = [\"eng\"]\n\
         [[key]]\nsha256 = \"{1}\"\nagent = \"app\"\ntenant = \"default\"\nuser = \"app\"\nscopes = [\"act-for\"]\n\
         may_act_for = [\"*\"]\nmay_assert_groups = true\nexpires = 1970-01-02T01:00:00+01:00\n\
         [[key]]\nsha256 = \"{2}\"\nagent = \"x\"\nuser = \"x\"\nscopes = [\"call\"]\nexpires = 1970-01-03\n",
        "0a".repeat(32),
        "0B".repeat(32),
        "0c".repeat(32)
    );
    let policy = policy(&[("keys.toml", &text)]);
    let ci = &policy.keys[&[0x0a; 32]];
    assert_eq!(
        (&*ci.agent, &*ci.tenant, &*ci.user),
        ("ci", "default", "ann")
    );
    assert_eq!(*ci.groups, [Arc::from("eng")]);
    assert_eq!((ci.scopes, ci.expires), (Scopes::CALL, None));
    let app = &policy.keys[&[0x0b; 32]];
    assert!(app.scopes.act_for && !app.scopes.call && app.may_assert_groups);
    assert_eq!(app.may_act_for, [Arc::from("*")]);
    assert_eq!(app.expires, Some(UNIX_EPOCH + Duration::from_secs(86_400)));
    let dated = &policy.keys[&[0x0c; 32]];
    assert_eq!(
        dated.expires,
        Some(UNIX_EPOCH + Duration::from_secs(2 * 86_400))
    );
}

#[test]
fn keys_that_contradict_themselves_or_one_another_are_faults() {
    let one = "0a".repeat(32);
    let key = format!("[[key]]\nsha256 = \"{one}\"\nagent = \"a\"\nuser = \"u\"\n");
    let text = format!("{key}{key}scopes = []\nmay_act_for = [\"v\"]\nexpires = 10:00:00\n");
    assert_eq!(
        faults(&[("keys.toml", &text)]),
        "\
keys.toml:6:10: key[1].sha256: the key of keys.toml:1 again; remove one of the two
keys.toml:9:10: key[1].scopes: a key without a scope opens nothing; name one, or remove the key `scopes` for `call`
keys.toml:10:15: key[1].may_act_for: has no effect without the scope `act-for`; add it to scopes, or remove this key
keys.toml:11:11: key[1].expires: expected a date, or a time with its offset like 2027-01-31T12:00:00Z; correct it"
    );
    let text = format!("{key}scopes = [\"act-for\"]\n");
    assert!(faults(&[("keys.toml", &text)]).contains("`act-for` needs users"));
}

#[test]
fn keys_beside_the_local_user_are_a_fault() {
    let text = format!(
        "[[key]]\nsha256 = \"{}\"\nagent = \"a\"\nuser = \"u\"\n",
        "0a".repeat(32)
    );
    let local = || Local {
        tenant: "default".into(),
        user: "me".into(),
    };
    let found = compiled(&[("keys.toml", &text)], |inputs| {
        inputs.local = Some(local())
    });
    assert_eq!(
        found.expect_err("a fault"),
        [
            "keys.toml:1:1: key[0]: keys are not asked for, since every caller is the local user; add `[identity.keys]` to \
          tollgate.toml (and remove `[identity.local]`), or remove the keys"
        ]
    );
    let alone = compiled(&[], |inputs| inputs.local = Some(local())).expect("no faults");
    assert_eq!(alone.admins.users, [Arc::from("me")]);
}

#[test]
fn once_there_are_two_tenants_servers_name_theirs() {
    let key = |digit: &str, tenant: &str| {
        let digest = digit.repeat(64);
        format!(
            "[[key]]\nsha256 = \"{digest}\"\nagent = \"a\"\nuser = \"u\"\ntenant = \"{tenant}\"\n"
        )
    };
    let keys = key("a", "acme") + &key("b", "default");
    let open = ("servers/a.toml", "url = \"https://mcp.example.com/\"\n");
    let named = (
        "servers/b.toml",
        "url = \"https://mcp.example.com/\"\ntenants = [\"acme\"]\n",
    );
    assert_eq!(
        faults(&[open, named, ("keys.toml", &keys)]),
        "servers/a.toml:1:1: `tenants` is missing, and there are the tenants `acme`, `default`; name those whose callers \
         may see this server"
    );
    assert_eq!(policy(&[named, ("keys.toml", &keys)]).servers.len(), 1);
    assert!(faults(&[open, ("keys.toml", &key("a", "acme"))]).contains("`tenants` is missing"));
}

#[test]
fn the_access_mode_is_one_of_two_words() {
    for (written, expected) in [
        (None, AccessMode::Files),
        (Some(""), AccessMode::Files),
        (Some("admins"), AccessMode::Admins),
        (Some("all-users"), AccessMode::AllUsers),
    ] {
        let policy = compiled(&[], |inputs| inputs.access_mode = written).expect("no faults");
        assert_eq!(policy.access_mode, expected);
    }
    let found = compiled(&[], |inputs| inputs.access_mode = Some("everyone"));
    assert_eq!(
        found.expect_err("a fault"),
        [
            "TOOLS_ACCESS_MODE: found `everyone`, expected `admins` or `all-users`; correct or unset it"
        ]
    );
}

#[test]
fn extra_roots_are_read_beside_the_server_and_checked() {
    let key = rcgen::KeyPair::generate().expect("a key");
    let mut params = rcgen::CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let pem = params.self_signed(&key).expect("a certificate").pem();
    let text = "url = \"https://mcp.example.com/\"\nca = [\"corp.pem\", \"/etc/ssl/other.pem\"]\n";
    let read = |path: &str| match path {
        "servers/corp.pem" | "/etc/ssl/other.pem" => Ok(pem.clone()),
        other => Err(format!("no file `{other}`")),
    };
    let one = files(&[("servers/a.toml", text)]);
    let policy = said(&Inputs {
        read: &read,
        ..inputs(&one)
    });
    let trust = &policy.expect("no faults").servers["a"].trust;
    assert_eq!(trust.roots.len(), 2);
    assert_ne!(trust.digest, [0; 32]);

    for (content, expected) in [
        (Err("cannot be read"), "`servers/corp.pem`: cannot be read"),
        (
            Ok("hello"),
            "`servers/corp.pem`: holds no certificate; expected one or more certificates of authorities in PEM form; export them again",
        ),
        (
            Ok("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
            "`servers/corp.pem`: holds a certificate that cannot be a root; expected one or more certificates of authorities in PEM form; export them again",
        ),
    ] {
        let read = |_: &str| content.map(str::to_owned).map_err(str::to_owned);
        let text = "url = \"https://mcp.example.com/\"\nca = [\"corp.pem\"]\n";
        let one = files(&[("servers/a.toml", text)]);
        let found = said(&Inputs {
            read: &read,
            ..inputs(&one)
        });
        assert_eq!(
            found.expect_err("a fault"),
            [format!("servers/a.toml:2:7: ca[0]: {expected}")]
        );
    }
}
