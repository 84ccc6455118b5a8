//! `servers/NAME.toml`.

use super::*;
use crate::{
    address::Scheme,
    policy::{Access, Approval, Era, Mark, Pattern, Pin, ReadOnly, Relay},
};

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
pin = "file"
mark = "text"
[auth]
mode = "none"
[relay]
elicitation = false
sampling = true
roots = true
[limits]
timeout = "90s"
connect = "2s"
first_byte = "10s"
idle = "20s"
response_bytes = 65536
result_bytes = 1024
concurrency = 1
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
    assert_eq!(server.endpoint.target().scheme(), Scheme::Https);
    assert_eq!(server.endpoint.target().authority(), "mcp.example.com");
    assert_eq!(server.endpoint.path().as_str(), "/mcp?tools=web,code");
    assert_eq!(server.access, Access::Everyone);
    assert_eq!(server.tenants, [Arc::from("default")]);
    assert_eq!(
        server.read_only,
        ReadOnly::Patterns(vec![Pattern::new("get_*"), Pattern::new("search")])
    );
    assert_eq!(server.era, Era::Legacy);
    assert_eq!(server.pin, Pin::File(None));
    assert_eq!(server.mark, Mark::Text);
    assert!(!server.builtin);
    let relay = Relay {
        elicitation: false,
        sampling: true,
        roots: true,
    };
    assert_eq!(server.relay, relay);
    assert_eq!(
        server.limits,
        ServerLimits {
            call: Duration::from_secs(90),
            connect: Duration::from_secs(2),
            first_byte: Duration::from_secs(10),
            idle: Duration::from_secs(20),
            response_bytes: 65536,
            result_bytes: 1024,
            concurrency: 1,
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
    assert_eq!(server.endpoint.path().as_str(), "/");
    assert_eq!(server.access, Access::Admins);
    assert_eq!(server.era, Era::Auto);
    assert_eq!(server.limits, LIMITS);
    assert_eq!(server.relay, Relay::default());
    assert!(server.relay.elicitation && !server.relay.sampling && !server.relay.roots);
    assert!(server.read_only == ReadOnly::default() && server.tools.is_empty());
    assert_eq!(server.trust.digest, [0; 32]);
    assert_eq!((&server.pin, server.mark), (&Pin::FirstUse, Mark::Meta));
    assert!(server.builtin);
}

#[test]
fn hints_count_where_the_file_says_so() {
    let text = "url = \"https://mcp.example.com/\"\nread_only = \"hints\"\n";
    let policy = policy(&[("servers/a.toml", text)]);
    assert_eq!(policy.servers["a"].read_only, ReadOnly::Hints);
}

#[test]
fn pins_marks_and_bounds_are_named_right_and_kept_within_bounds() {
    let text = r#"
url = "https://mcp.example.com/"
read_only = "hint"
pin = "frist-use"
mark = 1
builtin = "no"
[limits]
result_bytes = 1023
concurrency = 0
concurency = 4
"#;
    assert_eq!(
        faults(&[("servers/a.toml", text)]),
        "\
servers/a.toml:3:13: read_only: found the string `hint`, expected \"hints\" or a list of patterns, like [\"get_*\"]
servers/a.toml:4:7: pin: found `frist-use`, expected one of `first-use`, `file`; did you mean `first-use`?
servers/a.toml:5:8: mark: found the integer 1, expected a string
servers/a.toml:6:11: builtin: found the string `no`, expected `true` or `false`
servers/a.toml:8:16: limits.result_bytes: found 1023, expected 1024 to 4194304
servers/a.toml:9:15: limits.concurrency: found 0, expected 1 to 1024
servers/a.toml:10:1: limits.concurency: unknown key; did you mean `concurrency`?"
    );
    let most = "url = \"https://mcp.example.com/\"\n[limits]\nresult_bytes = 4194304\nconcurrency = 1024\n";
    let limits = policy(&[("servers/a.toml", most)]).servers["a"].limits;
    assert_eq!((limits.result_bytes, limits.concurrency), (4 << 20, 1024));
}

#[test]
fn what_this_version_lacks_is_refused_key_by_key() {
    let text = r#"
kind = "openapi"
url = "https://api.example.com/"
spec = "https://api.example.com/openapi.json"
access = "grants"
grants = { users = [] }
trace = true
"#;
    assert_eq!(
        faults(&[("servers/a.toml", text)]),
        "\
servers/a.toml:2:8: kind: `openapi` is not available in this version; use `mcp`
servers/a.toml:4:8: spec: this key is not available in this version; remove it
servers/a.toml:5:10: access: `grants` is not available in this version; use `admins`, `everyone`
servers/a.toml:6:10: grants: this key is not available in this version; remove it
servers/a.toml:7:9: trace: `true` is not available in this version; use `false`, or remove the key"
    );
}

#[test]
fn no_remedy_names_what_this_version_lacks() {
    let text = "url = \"https://a.example/\"\nkind = \"stdio\"\nread_only = \"get_*\"\n[relay]\nzzzzzz = 1\n";
    assert_eq!(
        faults(&[("servers/a.toml", text)]),
        "\
servers/a.toml:2:8: kind: found `stdio`, expected `mcp`
servers/a.toml:3:13: read_only: found the string `get_*`, expected \"hints\" or a list of patterns, like [\"get_*\"]
servers/a.toml:5:1: relay.zzzzzz: unknown key; expected one of `elicitation`, `sampling`, `roots`"
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
