mod connect;
mod keyring;

use std::{fs, path::Path};

use super::*;
use crate::{
    catalog::{self, ItemKind, pins_file},
    config::Environment,
};

fn loader(folder: &Path, files: &[(&str, &str)]) -> Loader {
    for (path, text) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().expect("has a parent")).expect("a folder");
        fs::write(path, text).expect("written");
    }
    let environment = Environment {
        state_directory: Some("/nonexistent/state".into()),
        private_allowlist: Some("localhost, gone.corp.example".into()),
        access_mode: Some("admins".into()),
        proxies: vec!["HTTPS_PROXY".into()],
        ..Environment::default()
    };
    Loader::new(folder, environment)
}

const FILES: &[(&str, &str)] = &[
    (
        "tollgate.toml",
        "[identity.keys]\n[dns]\nservers = [\"10.0.0.53\"]\n[[dns.zone]]\nsuffix = \"corp.example\"\nservers = [\"10.1.0.53\"]\n",
    ),
    ("servers/a.toml", "url = \"http://localhost:9000/mcp\"\n"),
    (
        "servers/b.toml",
        "url = \"https://10.0.0.1/mcp\"\naccess = \"everyone\"\n",
    ),
    ("servers/c.toml", "url = \"https://c.corp.example/\"\n"),
    (
        "egress.toml",
        "[[private]]\nhost = \"c.corp.example\"\nport = 443\nfor = [\"server:c\"]\n",
    ),
];

#[test]
fn a_folder_without_faults_is_summed_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let loader = loader(folder.path(), FILES);
    let report = Report::new(&loader, &loader.load().expect("no faults"));
    let text = report
        .text(Styles::plain())
        .replace(&folder.path().display().to_string(), "DIR");
    assert_eq!(
        text,
        "\
policy    DIR: no faults
servers   a at http://localhost:9000, for admins of default, pin = \"first-use\"
          b at https://10.0.0.1, for everyone of default, pin = \"first-use\"
          c at https://c.corp.example, for admins of default, pin = \"first-use\"
keys      0
private   c.corp.example port 443 for server:c (egress.toml:1: [[private]])
          localhost port 9000 for server:a (TOOLS_PRIVATE_NETWORK_ALLOWLIST)
proxy     none
agents    127.0.0.1:8700, plain
egress    127.0.0.1:8701, plain
ops       127.0.0.1:8702
web       127.0.0.1:8703, plain
identity  keys
dns       10.0.0.53:53
          10.1.0.53:53 for corp.example
access    TOOLS_ACCESS_MODE: admins, whatever files say
offer     allowed: every server that a caller may use
state     /nonexistent/state
store     sqlite:/nonexistent/state/tollgate.db
keyring   /nonexistent/state/keyring, guarded by the mode of the file alone
mark      /nonexistent/state/vault.mark, beside the database: an older copy of both together is not noticed; [vault] mark puts it elsewhere
restart   state_dir, store, listen (but allowed_origins), identity (but admins), vault and audit take effect at the next start
warning   HTTPS_PROXY is set and ignored: Tollgate uses no proxy on its way out
warning   there is no key, so nobody can call; make one with `tollgate agent-key new`
warning   servers are for admins and nobody is one; name some in `[identity] admins`, or set access = \"everyone\"
warning   TOOLS_PRIVATE_NETWORK_ALLOWLIST names `gone.corp.example`, where no server is registered
warning   server `b` cannot be reached: `https://10.0.0.1` is in 10.0.0.0/8 (private use, RFC 1918); a [[private]] table in egress.toml with host = \"10.0.0.1\", port = 443 and for = [\"server:b\"] would open it, or `10.0.0.1` in TOOLS_PRIVATE_NETWORK_ALLOWLIST
"
    );
    let json: serde_json::Value = serde_json::from_str(&json(&report)).expect("JSON");
    assert_eq!(json["faults"], serde_json::json!([]));
    assert_eq!(json["store"], "sqlite:/nonexistent/state/tollgate.db");
    assert_eq!(json["servers"][1]["at"], "https://10.0.0.1");
    assert_eq!(
        json["private_grants"][1]["origin"],
        "TOOLS_PRIVATE_NETWORK_ALLOWLIST"
    );
}

#[test]
fn tools_that_want_somebody_to_be_asked_are_warned_of() {
    let folder = tempfile::tempdir().expect("a folder");
    let many: String = (0..9)
        .map(|number| format!("[tools.t{number}]\napproval = \"ask\"\n"))
        .collect();
    let files = [
        (
            "servers/a.toml",
            "url = \"https://a.example/\"\n[tools.send]\napproval = \"ask\"\n[tools.drop]\napproval = \"always-ask\"\n\
             [tools.read]\napproval = \"never\"\n[tools.gone]\napproval = \"ask\"\nhidden = true\n[tools.plain]\n",
        ),
        (
            "servers/b.toml",
            &*format!("url = \"https://b.example/\"\n{many}"),
        ),
        ("servers/c.toml", "url = \"https://c.example/\"\n"),
    ];
    let loader = loader(folder.path(), &files);
    let report = Report::new(&loader, &loader.load().expect("no faults"));
    let text = report.text(Styles::plain());
    let asking: Vec<_> = text
        .lines()
        .filter(|line| line.contains("refuses every call"))
        .collect();
    assert_eq!(
        asking,
        [
            "warning   server `a` refuses every call of `drop`, `send` (approval.unavailable): approval = \"ask\" and \
             \"always-ask\" want somebody to be asked, which this version cannot; set approval = \"never\", or remove it for \
             read_only to decide",
            "warning   server `b` refuses every call of `t0`, `t1`, `t2`, `t3`, `t4`, `t5`, `t6`, `t7`, … (approval.unavailable): \
             approval = \"ask\" and \"always-ask\" want somebody to be asked, which this version cannot; set approval = \
             \"never\", or remove it for read_only to decide",
        ]
    );
}

#[test]
fn faults_name_their_files_as_they_are_found_from_here() {
    let folder = tempfile::tempdir().expect("a folder");
    let loader = loader(folder.path(), &[("servers/a.toml", "ur = 1\n")]);
    let faults = loader.load().expect_err("faults");
    let faults: Vec<Fault> = faults
        .into_iter()
        .map(|fault| in_folder(&loader, fault))
        .collect();
    let text =
        listed(&faults, Styles::plain()).replace(&folder.path().display().to_string(), "DIR");
    assert_eq!(
        text,
        "\
DIR/servers/a.toml:1:1: `url` is missing; add it
DIR/servers/a.toml:1:1: ur: unknown key; did you mean `url`?
2 faults
"
    );
    let json: serde_json::Value = serde_json::from_str(&json(&of(&faults))).expect("JSON");
    assert_eq!(json["faults"][1]["line"], 1);
    assert_eq!(json["faults"][1]["key"], "ur");
}

#[test]
fn a_server_whose_tenants_nobody_is_of_is_warned_of() {
    let said = |files: &[(&str, &str)]| {
        let folder = tempfile::tempdir().expect("a folder");
        let loader = loader(folder.path(), files);
        let report = Report::new(&loader, &loader.load().expect("no faults"));
        report.text(Styles::plain())
    };
    let server = (
        "servers/a.toml",
        "url = \"https://mcp.example.com/\"\ntenants = [\"acme\"]\n",
    );
    let warning = "warning   nobody can use server `a`: its tenants are acme, and ";
    let local = said(&[server]);
    let expected = format!("{warning}the local user is of tenant `default`\n");
    assert!(local.contains(&expected), "{local}");

    let keys = ("tollgate.toml", "[identity.keys]\n");
    let key = |tenant: &str| {
        let digest = "0a".repeat(32);
        format!(
            "[[key]]\nsha256 = \"{digest}\"\nagent = \"a\"\nuser = \"u\"\ntenant = \"{tenant}\"\n"
        )
    };
    let other = said(&[server, keys, ("keys.toml", &key("default"))]);
    let expected = format!("{warning}no key is of one of them\n");
    assert!(other.contains(&expected), "{other}");
    let own = said(&[server, keys, ("keys.toml", &key("acme"))]);
    assert!(!own.contains("nobody can use"), "{own}");
}

#[test]
fn pins_are_counted_and_a_missing_file_is_pointed_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let item = |kind, name: &str, definition: &str| {
        let made = catalog::Item::new(kind, name.into(), definition, 1, catalog::By::Operator);
        made.expect("a definition")
    };
    let pinned = catalog::Pinned {
        version: 4,
        items: vec![
            item(ItemKind::Tool, "get", r#"{"name":"get"}"#),
            item(ItemKind::Instructions, "", r#""hi""#),
        ],
        ..catalog::Pinned::default()
    };
    let text = pins_file::write("a", &pinned);
    let server = "url = \"https://mcp.example.com/\"\npin = \"file\"\n";
    let files = [
        ("servers/a.toml", server),
        ("servers/b.toml", server),
        ("pins/a.json", &text),
    ];
    let loader = loader(folder.path(), &files);
    let report = Report::new(&loader, &loader.load().expect("no faults"));
    let text = report.text(Styles::plain());
    for line in [
        "a at https://mcp.example.com, for admins of default, pin = \"file\" (version 4, 1 tool, 1 other item)\n",
        "b at https://mcp.example.com, for admins of default, pin = \"file\"\n",
        "warning   server `b` offers nothing: pins/b.json is not there; write it with `tollgate pin b --accept-all` while \
         tollgate runs\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
    let report: serde_json::Value = serde_json::from_str(&json(&report)).expect("JSON");
    assert_eq!(report["servers"][0]["pin"], "file");
    assert_eq!(report["servers"][0]["pins"]["tools"], 1);
    assert_eq!(report["servers"][1]["pins"], serde_json::Value::Null);
}

#[test]
fn the_rules_of_the_proxy_are_listed_and_pointed_at() {
    let egress = r#"
report_until = 2099-01-31
[[allow]]
host = "*.example.com"
who = { tenants = ["default"], users = ["ann"], groups = ["eng"], agents = ["ci-*"] }
report_until = 2099-01-31
[[allow]]
host = "git.example.org:22"
tls = "opaque"
[[allow]]
host = "mcp.example.org"
scheme = "http"
methods = ["GET", "HEAD"]
paths = ["/a/*"]
also_server = true
[[allow]]
host = "git.example.org:22"
[[deny]]
host = "bad.example.com"
report_until = 2001-01-31
"#;
    let parent =
        "[egress.parent]\nurl = \"http://proxy.example.org:3128\"\nparent_resolves = true\n";
    let folder = tempfile::tempdir().expect("a folder");
    let files = [
        ("egress.toml", egress),
        ("servers/a.toml", "url = \"https://mcp.example.org/\"\n"),
        ("tollgate.toml", parent),
    ];
    let loader = loader(folder.path(), &files);
    let report = Report::new(&loader, &loader.load().expect("no faults"));
    let text = report.text(Styles::plain());
    let said = |from: &str, to: &str| {
        let start = text.find(from).expect("there");
        text[start..start + text[start..].find(to).expect("there")].to_owned()
    };
    assert_eq!(
        said("proxy     ", "agents    "),
        "\
proxy     allow *.example.com, tenants default, users ann, groups eng, agents ci-*, only reported until 2099-01-31T00:00:00Z (egress.toml:3: [[allow]])
          allow git.example.org:22, tenants default, tls opaque (egress.toml:7: [[allow]])
          allow mcp.example.org, only http, tenants default, methods GET HEAD, paths /a/*, also a server's (egress.toml:10: [[allow]])
          allow git.example.org:22, tenants default (egress.toml:16: [[allow]])
          deny bad.example.com, only reported until 2001-01-31T00:00:00Z (egress.toml:18: [[deny]])
          hosts without a rule are only reported until 2099-01-31T00:00:00Z
parent    http://proxy.example.org:3128, which is given names to resolve
"
    );
    for warning in [
        "warning   egress.toml:3: [[allow]] is for nobody: no caller can be whom its `who` names\n",
        "warning   egress.toml:16: [[allow]] never decides: egress.toml:7: [[allow]] allows all of it before\n",
        "warning   egress.toml:18: [[deny]] no longer reports, since its report_until has passed; remove the key\n",
    ] {
        assert!(text.contains(warning), "{text}");
    }
    let json: serde_json::Value = serde_json::from_str(&json(&report)).expect("JSON");
    assert_eq!(
        json["proxy"]["rules"][2],
        serde_json::json!({
            "effect": "allow", "host": "mcp.example.org", "scheme": "http", "tenants": ["default"], "users": [],
            "groups": [], "agents": [], "tls": "pass", "methods": ["GET", "HEAD"], "paths": ["/a/*"],
            "report_until": null, "also_server": true, "origin": "egress.toml:10: [[allow]]"
        })
    );
    assert_eq!(json["proxy"]["report_until"], "2099-01-31T00:00:00Z");
    assert_eq!(json["proxy"]["parent"]["resolves"], true);
}

#[test]
fn secrets_that_others_may_read_are_warned_of() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().expect("a folder");
    let auth =
        "url = \"https://a.example.org/\"\n[auth]\nmode = \"shared\"\nsecret = \"file:_secret\"\n";
    let loader = loader(
        folder.path(),
        &[("_secret", "s3\n"), ("servers/a.toml", auth)],
    );
    let told = |mode| {
        let file = folder.path().join("_secret");
        fs::set_permissions(file, fs::Permissions::from_mode(mode)).expect("chmod");
        let report = Report::new(&loader, &loader.load().expect("no faults"));
        report.text(Styles::plain())
    };
    let warning = format!(
        "warning   the secret `{}/_secret` may be read by group or others (mode 0640)",
        folder.path().display()
    );
    assert!(told(0o640).contains(&warning));
    assert!(!told(0o600).contains("may be read by group"));
}
