//! What `explain` says of the forward proxy.

use super::*;

const PROXY: &str = r#"
[[allow]]
host = "*.example.org"
who.groups = ["eng"]
[[allow]]
host = "git.example.org:22"
tls = "opaque"
[[allow]]
host = "plain.example.net"
scheme = "http"
methods = ["GET"]
paths = ["/repos/*"]
report_until = 2001-01-31
[[allow]]
host = "trial.example.net"
who.users = ["ann"]
report_until = 2099-01-31
[[allow]]
host = "docs.example.com"
also_server = true
[[allow]]
host = "jira.corp.internal"
[[private]]
host = "jira.corp.internal"
port = 443
address = "10.20.1.5"
for = ["proxy"]
[[deny]]
host = "bad.example.org"
"#;

#[test]
fn the_proxy_is_explained_by_the_rule_that_decides() {
    let folder = with(&[
        ("egress.toml", PROXY),
        ("servers/jira.toml", "url = \"https://mcp.example.com/\"\n"),
    ]);
    let at = |name: &str| format!("--resolve={name}=1.1.1.1");
    for (args, code, verdict, decision) in [
        (
            vec!["https://a.example.org/", "--groups", "eng"],
            0,
            "allow",
            "access allow egress.toml:2: [[allow]]",
        ),
        (
            vec!["https://a.example.org/"],
            1,
            "deny",
            "access deny egress.toml:2: [[allow]]",
        ),
        (
            vec!["https://bad.example.org/", "--groups", "eng"],
            1,
            "deny",
            "access deny egress.toml:28: [[deny]]",
        ),
        (
            vec!["https://git.example.org:22/"],
            0,
            "allow",
            "access allow egress.toml:5: [[allow]]",
        ),
        (
            vec!["http://plain.example.net/repos/x?y"],
            0,
            "allow",
            "access allow egress.toml:8: [[allow]]",
        ),
        (
            vec!["http://plain.example.net/repos/x", "--method", "POST"],
            1,
            "deny",
            "access deny egress.toml:8: [[allow]]",
        ),
        (
            vec!["http://plain.example.net/other"],
            1,
            "deny",
            "access deny egress.toml:8: [[allow]]",
        ),
        (
            vec!["https://trial.example.net/", "--user", "bob"],
            0,
            "would_refuse",
            "access would_refuse egress.toml:14: [[allow]]",
        ),
        (
            vec!["https://docs.example.com/", "--user", "bob"],
            0,
            "allow",
            "access allow egress.toml:18: [[allow]]",
        ),
    ] {
        let host = args[0].split('/').nth(2).expect("a host");
        let resolve = at(host.split(':').next().expect("a name"));
        let (ended, out, faults) = explain(
            folder.path(),
            &[args.as_slice(), &[&*resolve, "--json"]].concat(),
        );
        assert_eq!(faults, "");
        let report: serde_json::Value = serde_json::from_str(&out).expect("a report");
        let first = &report["decisions"][0];
        let part = |key: &str| first[key].as_str().expect("text").to_owned();
        let said = format!("{} {} {}", part("about"), part("verdict"), part("rule"));
        assert_eq!(
            (ended, report["verdict"].as_str()),
            (Some(code), Some(verdict)),
            "{args:?}"
        );
        assert_eq!(said, decision, "{args:?}");
        assert_eq!(report["decisions"][1]["rule"], "public", "{args:?}");
    }
}

#[test]
fn a_private_host_of_the_proxy_is_at_its_static_address() {
    let folder = with(&[
        ("egress.toml", PROXY),
        ("servers/jira.toml", "url = \"https://mcp.example.com/\"\n"),
    ]);
    let (code, out, faults) = explain(folder.path(), &["https://jira.corp.internal/"]);
    assert_eq!((code, faults.as_str()), (Some(0), ""));
    assert_eq!(
        out,
        "https://jira.corp.internal\n\
         tenant default, agent local, user local\n\
         \n  access     allow  egress.toml:21: [[allow]]\
         \n                    user `local` may open a tunnel for TLS to `jira.corp.internal` through the proxy\
         \n  10.20.1.5  allow  egress.toml:23: [[private]]\
         \n                    `egress.toml:23: [[private]]` opens it\
         \n\nallow\n"
    );
}

#[test]
fn what_would_be_refused_is_said_with_the_reason() {
    let folder = with(&[
        ("egress.toml", PROXY),
        ("servers/jira.toml", "url = \"https://mcp.example.com/\"\n"),
    ]);
    let args = [
        "https://trial.example.net/",
        "--user",
        "bob",
        "--resolve=trial.example.net=1.1.1.1",
    ];
    let (code, out, _) = explain(folder.path(), &args);
    assert_eq!(code, Some(0));
    assert!(
        out.contains(
            "`https://trial.example.net` is not allowed through the proxy for this caller; its `who` does not name the \
             caller; it passes, since for now this is only reported\n"
        ),
        "{out}"
    );
    assert!(out.ends_with("\nwould_refuse\n"), "{out}");
    let (_, out, _) = explain(
        folder.path(),
        &[
            "https://new.example.net:8443/",
            "--resolve=new.example.net=1.1.1.1",
        ],
    );
    assert!(
        out.contains(
            "; no rule names it; an [[allow]] table in egress.toml with host = \"new.example.net:8443\" would allow it\n"
        ),
        "{out}"
    );
    let (_, out, _) = explain(folder.path(), &["http://127.0.0.1:8700/mcp/docs"]);
    assert!(
        out.contains("`http://127.0.0.1:8700` is Tollgate itself; name the host in NO_PROXY, so that it is asked directly"),
        "{out}"
    );
}

#[test]
fn a_parent_that_resolves_is_left_the_names_and_not_the_addresses() {
    let parent =
        "[egress.parent]\nurl = \"http://proxy.example.org:3128\"\nparent_resolves = true\n";
    let allow = "[[allow]]\nhost = \"a.example.org\"\n[[allow]]\nhost = \"10.0.0.1\"\n[[allow]]\nhost = \"a.internal\"\n";
    let folder = with(&[
        ("tollgate.toml", parent),
        ("egress.toml", allow),
        ("servers/jira.toml", "url = \"https://mcp.example.com/\"\n"),
    ]);
    let lines = |url| {
        let (_, out, _) = explain(folder.path(), &[url, "--json"]);
        let report: serde_json::Value = serde_json::from_str(&out).expect("a report");
        format!(
            "{} {}",
            report["decisions"][1]["verdict"], report["decisions"][1]["rule"]
        )
    };
    assert_eq!(
        lines("https://a.example.org/"),
        "\"allow\" \"parent_resolves = true\""
    );
    assert_eq!(lines("https://10.0.0.1/"), "\"deny\" \"private-use\"");
    assert_eq!(lines("https://a.internal/"), "\"deny\" \"internal-name\"");
    let cases = folder.path().join("_cases.jsonl");
    let case = r#"{"id":"a","kind":"url","input":{"connect":"a.example.org:443"}}"#;
    fs::write(&cases, case).unwrap();
    let (_, out, _) = explain(folder.path(), &["--batch", cases.to_str().unwrap()]);
    assert!(
        out.starts_with(r#"{"id":"a","verdict":"allow","code":null,"rule":"parent_resolves = true","addresses":[],"#),
        "{out}"
    );
}

#[test]
fn cases_are_told_what_would_be_refused() {
    let folder = with(&[
        ("egress.toml", PROXY),
        ("servers/jira.toml", "url = \"https://mcp.example.com/\"\n"),
    ]);
    let cases = folder.path().join("_cases.jsonl");
    let case = |id: &str, address: &str| {
        format!(
            "{{\"id\":\"{id}\",\"kind\":\"dns\",\"input\":{{\"url\":\"https://trial.example.net/\"}},\
             \"setup\":{{\"dns\":{{\"trial.example.net\":{{\"A\":\"{address}\"}}}}}}}}\n"
        )
    };
    fs::write(&cases, case("a", "1.1.1.1") + &case("b", "10.0.0.1")).unwrap();
    let (code, out, _) = explain(
        folder.path(),
        &["--batch", cases.to_str().unwrap(), "--user", "bob"],
    );
    assert_eq!(code, Some(0));
    let starts = [
        r#"{"id":"a","verdict":"would_refuse","code":"egress.host_not_allowed","rule":"egress.toml:14: [[allow]]","addresses":["1.1.1.1"],"#,
        r#"{"id":"b","verdict":"deny","code":"egress.address_blocked","rule":"private-use","addresses":["10.0.0.1"],"#,
    ];
    for (line, start) in out.lines().zip(starts) {
        assert!(line.starts_with(start), "{line}");
    }
}
