//! `explain` through the real binary, over a policy folder.

mod auth;
mod proxy;

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use tempfile::TempDir;
use tollgate::catalog::{By, Item, ItemKind, Pinned, pins_file};

const JIRA: &str = r#"
kind = "mcp"
url = "https://jira.corp.example/mcp"
access = "everyone"
read_only = ["get_*"]

[tools.create_issue]
approval = "never"

[tools.get_secret]
approval = "ask"

[tools.wipe]
hidden = true
"#;

const DOCS: &str = r#"
kind = "mcp"
url = "https://docs.example.com/mcp"
"#;

const EGRESS: &str = r#"
[[private]]
host = "jira.corp.example"
port = 443
addresses = ["10.20.0.0/16"]
for = ["server:jira"]
"#;

/// A policy folder as an operator would leave it; its name servers answer nothing.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::write(&path, text).expect("the folder can be written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))
            .expect("the folder can be written");
    };
    fs::create_dir(folder.path().join("servers")).expect("the folder can be written");
    for path in [folder.path(), &folder.path().join("servers")] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700))
            .expect("the folder can be written");
    }
    write("tollgate.toml", "[dns]\nservers = [\"127.0.0.1:1\"]\n");
    write("servers/jira.toml", JIRA);
    write("servers/docs.toml", DOCS);
    write("egress.toml", EGRESS);
    folder
}

fn explain(folder: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tollgate"))
        .args(["explain", "--policy"])
        .arg(folder)
        .args(args)
        .output()
        .expect("the binary runs");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

/// About, verdict and rule of each decision, after the verdict of all.
fn decisions(args: &[&str]) -> (Option<i32>, Vec<String>) {
    let folder = folder();
    let (code, out, faults) = explain(folder.path(), &[args, &["--json"]].concat());
    assert_eq!(faults, "");
    let report: serde_json::Value = serde_json::from_str(&out).expect("a report");
    let mut lines = vec![report["verdict"].as_str().expect("text").to_owned()];
    for decision in report["decisions"].as_array().expect("a list") {
        let part = |key: &str| decision[key].as_str().expect("text").to_owned();
        lines.push(format!(
            "{} {} {}",
            part("about"),
            part("verdict"),
            part("rule")
        ));
    }
    (code, lines)
}

#[test]
fn a_person_reads_each_address_and_the_rule_that_decided() {
    let folder = folder();
    let args = [
        "https://jira.corp.example/",
        "--resolve=jira.corp.example=10.20.1.5",
        "--resolve=jira.corp.example=10.9.9.9",
    ];
    let (code, out, faults) = explain(folder.path(), &args);
    assert_eq!((code, faults.as_str()), (Some(1), ""));
    assert_eq!(
        out,
        "https://jira.corp.example (server `jira`)\n\
         tenant default, agent local, user local\n\
         \n  access     allow  access = \"everyone\"\
         \n                    user `local` may use server `jira`\
         \n  10.20.1.5  allow  egress.toml:2: [[private]]\
         \n                    `egress.toml:2: [[private]]` opens it\
         \n  10.9.9.9   deny   private-use\
         \n                    `jira.corp.example` leads to 10.9.9.9, in 10.0.0.0/8 (private use, RFC 1918); \
         `egress.toml:2: [[private]]` names this host, but its addresses do not list this one\
         \n\ndeny\n"
    );
}

#[test]
fn a_tool_is_explained_by_its_server_file() {
    let at = "--resolve=jira.corp.example=10.20.1.5";
    let grant = "10.20.1.5 allow egress.toml:2: [[private]]";
    let access = "access allow access = \"everyone\"";
    for (tool, code, verdict, rule) in [
        ("jira/get_issue", 0, "allow", "tool allow read_only"),
        (
            "jira/create_issue",
            0,
            "allow",
            "tool allow approval = \"never\"",
        ),
        ("jira/delete_issue", 1, "deny", "tool deny approval"),
        (
            "jira/get_secret",
            1,
            "deny",
            "tool deny [tools.get_secret] approval",
        ),
        ("jira/wipe", 1, "deny", "tool deny hidden"),
    ] {
        let expected = [verdict, access, rule, grant].map(str::to_owned).to_vec();
        assert_eq!(decisions(&[tool, at]), (Some(code), expected), "{tool}");
    }
}

#[test]
fn pins_and_hints_are_explained_as_far_as_files_tell() {
    let folder = folder();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::write(&path, text).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("a mode");
    };
    fs::create_dir(folder.path().join("pins")).expect("a folder");
    fs::set_permissions(
        folder.path().join("pins"),
        fs::Permissions::from_mode(0o700),
    )
    .expect("a mode");
    let server = "url = \"https://docs.example.com/mcp\"\nread_only = \"hints\"\n";
    write("servers/docs.toml", server);
    let (code, out, faults) = explain(
        folder.path(),
        &["docs/get", "--resolve=docs.example.com=1.1.1.1"],
    );
    assert_eq!((code, faults.as_str()), (Some(1), ""));
    assert!(
        out.contains(
            "  tool     depends  read_only = \"hints\"\n                  `get` runs unasked if its pinned definition says \
             readOnlyHint, and is refused with approval.unavailable if not; the running process knows: see `tollgate pin \
             docs`\n"
        ),
        "{out}"
    );
    assert!(out.ends_with("\n\ndepends\n"), "{out}");

    write("servers/docs.toml", &format!("{server}pin = \"file\"\n"));
    let pinned = Pinned {
        version: 1,
        items: [
            r#"{"name":"get","annotations":{"readOnlyHint":true}}"#,
            r#"{"name":"put"}"#,
        ]
        .map(|text| {
            let name = if text.contains("get") { "get" } else { "put" };
            Item::new(ItemKind::Tool, name.into(), text, 1, By::Operator).expect("a definition")
        })
        .to_vec(),
        ..Pinned::default()
    };
    write("pins/docs.json", &pins_file::write("docs", &pinned));
    for (tool, code, part) in [
        ("docs/get", 0, "`get` says readOnlyHint in pins/docs.json"),
        ("docs/put", 1, "`put` is not accepted as read-only"),
        ("docs/new", 1, "pins/docs.json has no tool `new`"),
    ] {
        let (ended, out, _) = explain(folder.path(), &[tool, "--resolve=docs.example.com=1.1.1.1"]);
        assert_eq!(ended, Some(code), "{out}");
        assert!(out.contains(part), "{out}");
    }
}

#[test]
fn a_caller_whom_nobody_can_be_is_pointed_out() {
    let folder = folder();
    let note = |args: &[&str]| {
        let always = ["jira", "--resolve=jira.corp.example=10.20.1.5", "--json"];
        let (_, out, _) = explain(folder.path(), &[&always, args].concat());
        let report: serde_json::Value = serde_json::from_str(&out).expect("a report");
        report["note"].as_str().map(str::to_owned)
    };
    assert_eq!(note(&[]), None);
    assert_eq!(note(&["--user", "local"]), None);
    assert_eq!(
        note(&["--user", "eve"]).as_deref(),
        Some(
            "nobody calls as user `eve` of tenant `default`: every caller is user `local` of tenant `default`; this is what \
             would be decided"
        )
    );
    assert!(note(&["--tenant", "other"]).is_some());

    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::write(&path, text).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("a mode");
    };
    write("tollgate.toml", "[identity.keys]\n");
    let digest = "0a".repeat(32);
    let key = format!(
        "[[key]]\nsha256 = \"{digest}\"\nagent = \"a\"\nuser = \"ann\"\nscopes = [\"call\", \"act-for\"]\n\
         may_act_for = [\"bob\"]\n"
    );
    write("keys.toml", &key);
    assert_eq!(note(&[]), None, "nobody in particular");
    assert_eq!(note(&["--user", "ann"]), None);
    assert_eq!(note(&["--user", "bob"]), None);
    assert_eq!(
        note(&["--user", "eve"]).as_deref(),
        Some(
            "nobody calls as user `eve` of tenant `default`: no key in keys.toml names that user or may act for it; this is \
             what would be decided"
        )
    );
    let (_, out, _) = explain(
        folder.path(),
        &[
            "jira",
            "--user",
            "eve",
            "--resolve=jira.corp.example=10.20.1.5",
        ],
    );
    assert!(
        out.contains("agent some-agent, user eve\nnobody calls as user `eve`"),
        "{out}"
    );
}

#[test]
fn the_caller_decides_about_access() {
    let at = "--resolve=docs.example.com=1.1.1.1";
    let (code, lines) = decisions(&["docs", "--user", "bob", at]);
    assert_eq!(code, Some(1));
    assert_eq!(
        lines,
        [
            "deny",
            "access deny access = \"admins\"",
            "1.1.1.1 allow public"
        ]
    );
    let (code, lines) = decisions(&["docs", "--tenant", "other", at]);
    assert_eq!(code, Some(1));
    assert_eq!(
        lines,
        ["deny", "access deny tenants", "1.1.1.1 allow public"]
    );
    let (_, lines) = decisions(&["nope/x"]);
    assert_eq!(lines, ["deny", "access deny servers"]);
}

#[test]
fn what_is_not_registered_is_judged_too() {
    let (code, lines) = decisions(&["http://169.254.169.254/"]);
    assert_eq!(code, Some(1));
    assert_eq!(
        lines,
        [
            "deny",
            "access deny default",
            "169.254.169.254 deny metadata"
        ]
    );
    let (_, lines) = decisions(&["http://localhost:3000/"]);
    assert_eq!(
        lines,
        [
            "deny",
            "access deny default",
            "localhost deny localhost-name"
        ]
    );
    let (_, lines) = decisions(&["https://user@docs.example.com/"]);
    assert_eq!(lines, ["error", "url error malformed"]);
}

#[test]
fn name_servers_that_do_not_answer_are_an_error() {
    let (code, lines) = decisions(&["https://jira.corp.example/"]);
    assert_eq!(code, Some(1));
    assert_eq!(
        lines,
        [
            "error",
            "access allow access = \"everyone\"",
            "jira.corp.example error dns"
        ]
    );
}

#[test]
fn cases_without_an_allowlist_are_judged_by_the_policy() {
    let folder = folder();
    let cases = folder.path().join("_cases.jsonl");
    fs::write(
        &cases,
        concat!(
            r#"{"id":"a","kind":"dns","input":{"url":"https://jira.corp.example/"},"setup":{"dns":{"jira.corp.example":{"A":"10.20.3.4"}}}}"#,
            "\n",
            r#"{"id":"b","kind":"dns","input":{"url":"https://docs.example.com/"},"setup":{"dns":{"docs.example.com":{"A":"1.1.1.1"}}}}"#,
            "\n",
            r#"{"id":"c","kind":"url","input":{"url":"https://other.example.com/"}}"#,
            "\n",
        ),
    )
    .unwrap();
    let (code, out, _) = explain(
        folder.path(),
        &["--batch", cases.to_str().unwrap(), "--user", "bob"],
    );
    assert_eq!(code, Some(0));
    let starts = [
        r#"{"id":"a","verdict":"allow","code":null,"rule":"egress.toml:2: [[private]]","addresses":["10.20.3.4"],"#,
        r#"{"id":"b","verdict":"deny","code":"policy.server_unknown","rule":"access = \"admins\"","addresses":[],"#,
        r#"{"id":"c","verdict":"deny","code":"egress.host_not_allowed","rule":"default","addresses":[],"#,
    ];
    assert_eq!(out.lines().count(), 3);
    for (line, start) in out.lines().zip(starts) {
        assert!(line.starts_with(start), "{line}");
    }
}

#[test]
fn a_faulty_policy_and_a_faulty_question_have_exit_codes_of_their_own() {
    let folder = folder();
    let (code, out, faults) = explain(folder.path(), &["docs", "--resolve", "docs.example.com"]);
    assert_eq!((code, out.as_str()), (Some(64), ""));
    assert!(faults.contains("expected NAME=ADDR"), "{faults}");
    fs::write(
        folder.path().join("servers/docs.toml"),
        "kind = \"mcp\"\nurl = 1\n",
    )
    .unwrap();
    let (code, out, faults) = explain(folder.path(), &["docs"]);
    assert_eq!((code, out.as_str()), (Some(78), ""));
    assert!(faults.contains("servers/docs.toml:2:"), "{faults}");
}

/// Writes more files into the folder that other tests use.
fn with(files: &[(&str, &str)]) -> TempDir {
    let folder = folder();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::write(&path, text).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("written");
    }
    folder
}
