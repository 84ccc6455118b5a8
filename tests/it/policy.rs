//! The shipped policy folder: it works, and its README says what is true.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use sha2::{Digest, Sha256};
use tollgate::{
    app::load::{Loader, find_folder},
    clock::{Clock, SystemClock},
    config::{Endpoint, Environment},
    policy::{Access, lints},
    refusal::Code,
};

fn shipped() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("policy")
}

fn readme() -> String {
    fs::read_to_string(shipped().join("README.md")).expect("the README is there")
}

/// The part of the README under `## heading`.
fn section(readme: &str, heading: &str) -> String {
    let start = readme
        .find(&format!("\n## {heading}\n"))
        .expect("the section is there");
    let rest = &readme[start + 4..];
    rest[..rest.find("\n## ").unwrap_or(rest.len())].to_owned()
}

fn environment() -> Environment {
    Environment {
        state_directory: Some("/nonexistent/state".into()),
        ..Environment::default()
    }
}

/// A copy of the shipped folder, with modes that a checkout may lack.
fn copy() -> tempfile::TempDir {
    let copy = tempfile::tempdir().expect("a folder");
    for name in ["", "servers"] {
        fs::create_dir_all(copy.path().join(name)).expect("a folder");
        for entry in fs::read_dir(shipped().join(name)).expect("the folder is there") {
            let entry = entry.expect("an entry");
            if entry.file_type().expect("a type").is_file() {
                let text = fs::read(entry.path()).expect("read");
                fs::write(copy.path().join(name).join(entry.file_name()), text).expect("written");
            }
        }
    }
    copy
}

#[test]
fn the_shipped_folder_loads_and_means_what_its_remarks_say() {
    let folder = copy();
    let loaded = Loader::new(folder.path(), environment())
        .load()
        .expect("no faults");
    let (settings, policy) = (&loaded.settings, &loaded.policy);
    assert_eq!(
        settings.listen.agents,
        Some(Endpoint::Tcp("127.0.0.1:8700".parse().expect("an address")))
    );
    let fresh = tollgate::config::read(None, &environment()).expect("no faults");
    assert_eq!(**settings, fresh, "every key stands there with its default");
    assert_eq!(policy.servers["deepwiki"].access, Access::Everyone);
    assert_eq!(policy.servers["notes"].access, Access::Admins);
    assert_eq!(
        policy.servers.len(),
        2,
        "names that begin with `_` are left out"
    );
    assert_eq!(policy.addresses.grants.len(), 1);
    assert_eq!(policy.proxy.allow.len(), 3);
    assert_eq!(policy.proxy.deny.len(), 1);
    let now = SystemClock.now();
    assert_eq!(lints(policy, None, now), [""; 0], "no rule is idle");
}

#[test]
fn the_drafts_of_the_shipped_folder_are_sound() {
    let folder = copy();
    let servers = folder.path().join("servers");
    for name in ["wiki", "github"] {
        let (draft, file) = (format!("_{name}.toml"), format!("{name}.toml"));
        fs::rename(servers.join(draft), servers.join(file)).expect("renamed");
    }
    let faults = Loader::new(folder.path(), environment())
        .load()
        .expect_err("the root and the secret are missing");
    let text: Vec<String> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(
        text,
        [
            &*format!(
                "servers/github.toml:18:17: auth.client_secret: `{}`: cannot be read: No such file or directory (os error 2); put it there, or correct the path",
                folder.path().join("github.secret").display()
            ),
            "servers/wiki.toml:8:7: ca[0]: `servers/corp-root.pem`: cannot be read: No such file or directory (os error 2); put it there, or correct the path"
        ]
    );
}

#[test]
fn a_folder_may_be_named() {
    assert_eq!(find_folder(Some(&shipped())), Ok(shipped()));
}

/// Every table of every file, with a key in it that does not exist: the faults then list the keys that do.
const EVERY_TABLE: &[(&str, &str, &str)] = &[
    (
        "tollgate.toml",
        "`tollgate.toml`",
        "zzzzzz = 1\n[listen]\nzzzzzz = 1\n[listen.tls]\nzzzzzz = 1\n[identity]\nzzzzzz = 1\n[identity.admins]\n\
         zzzzzz = 1\n[identity.local]\nzzzzzz = 1\n[store]\nzzzzzz = 1\n[audit]\nzzzzzz = 1\n[limits]\nzzzzzz = 1\n[dns]\nzzzzzz = 1\n\
         [[dns.zone]]\nzzzzzz = 1\n[egress]\nzzzzzz = 1\n[egress.parent]\nzzzzzz = 1\n[vault]\nzzzzzz = 1\n\
         [connect]\nzzzzzz = 1\n[web]\nzzzzzz = 1\n",
    ),
    (
        "servers/a.toml",
        "`servers/NAME.toml`",
        "zzzzzz = 1\n[auth]\nmode = \"oauth\"\nzzzzzz = 1\n[auth.endpoints]\nzzzzzz = 1\n\
         [auth.extra_authorize_params]\nzzzzzz = 1\n[relay]\nzzzzzz = 1\n[limits]\nzzzzzz = 1\n[tools.NAME]\nzzzzzz = 1\n",
    ),
    (
        "egress.toml",
        "`egress.toml`",
        "zzzzzz = 1\n[[allow]]\nzzzzzz = 1\n[allow.who]\nzzzzzz = 1\n[[deny]]\nzzzzzz = 1\n[deny.who]\nzzzzzz = 1\n\
         [[private]]\nzzzzzz = 1\n[tunnels]\nzzzzzz = 1\n",
    ),
    (
        "keys.toml",
        "`keys.toml`",
        "zzzzzz = 1\n[[key]]\nzzzzzz = 1\n",
    ),
];

/// The dotted keys that the faults of `text` list as known.
fn known(file: &str, text: &str) -> BTreeSet<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(file);
    fs::create_dir_all(path.parent().expect("has a parent")).expect("a folder");
    fs::write(&path, text).expect("written");
    let faults = Loader::new(folder.path(), environment())
        .load()
        .expect_err("faults");
    let mut keys = BTreeSet::new();
    let mut tables = 0;
    for fault in &faults {
        let Some(list) = fault.message.strip_prefix("unknown key; expected ") else {
            continue;
        };
        let list = list.trim_start_matches("one of ");
        tables += 1;
        let table = fault
            .key
            .strip_suffix("zzzzzz")
            .expect("the key that does not exist");
        let table = table.replace("[0]", "");
        keys.extend(
            list.split(", ")
                .map(|key| format!("{table}{}", key.trim_matches('`'))),
        );
    }
    assert_eq!(tables, text.matches("zzzzzz").count(), "{faults:?}");
    keys
}

/// The words in backticks of the first column of a section's table.
fn documented(section: &str) -> BTreeSet<String> {
    let lines = section.lines().filter(|line| line.starts_with("| `"));
    let columns = lines.filter_map(|line| line.split('|').nth(1));
    columns.flat_map(quoted).collect()
}

/// The keys in a section's paragraph that begins with "Not available".
fn lacking(section: &str) -> Vec<String> {
    let block = section
        .split("\n\n")
        .find(|block| block.starts_with("Not available"));
    let block = block.unwrap_or_default();
    quoted(block)
}

fn quoted(text: &str) -> Vec<String> {
    let words = text.split('`').skip(1).step_by(2);
    words
        .filter(|word| !word.contains(['"', ':']))
        .map(str::to_owned)
        .collect()
}

#[test]
fn what_the_readme_calls_not_available_is_refused_as_such() {
    let readme = readme();
    for (file, heading, _) in EVERY_TABLE {
        for key in lacking(&section(&readme, heading)) {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().expect("has a parent")).expect("a folder");
            fs::write(&path, format!("{key} = 1\n")).expect("written");
            let loaded = Loader::new(folder.path(), environment()).load();
            let faults = loaded.expect_err("a fault");
            assert!(
                faults.iter().any(|fault| fault.key == key
                    && fault.message == "this key is not available in this version; remove it"),
                "{file}: {key}: {faults:?}"
            );
        }
    }
}

#[test]
fn the_readme_lists_every_key_and_no_other() {
    let readme = readme();
    for (file, heading, text) in EVERY_TABLE {
        let mut known = known(file, text);
        let documented = documented(&section(&readme, heading));
        // Tables that hold others are known by them.
        for table in [
            "listen", "identity", "store", "audit", "limits", "dns", "egress", "vault", "connect",
            "web",
        ] {
            if *file == "tollgate.toml" {
                known.remove(table);
            }
        }
        assert_eq!(known, documented, "{file}");
    }
}

#[test]
fn the_readme_lists_every_refusal_with_its_remedy() {
    let expected: Vec<String> = Code::ALL
        .iter()
        .map(|code| format!("| `{}` | {} |", code.as_str(), code.remedy()))
        .collect();
    let section = section(&readme(), "Refusals");
    let rows: Vec<&str> = section
        .lines()
        .filter(|line| line.starts_with("| `"))
        .collect();
    let (expected, rows) = (expected.join("\n"), rows.join("\n"));
    assert!(
        rows == expected,
        "policy/README.md, under \"Refusals\", should list:\n{expected}"
    );
}

/// Runs the program with an environment of its own.
fn tollgate(folder: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tollgate"))
        .args(words)
        .env_clear()
        .env("STATE_DIRECTORY", "/nonexistent/state")
        .env("TOLLGATE_POLICY", folder)
        .output()
        .expect("the program starts")
}

#[test]
fn check_tells_by_its_exit_code() {
    let folder = copy();
    let sound = tollgate(folder.path(), &["check"]);
    assert_eq!(sound.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&sound.stdout).contains(": no faults\n"));
    fs::write(folder.path().join("egress.toml"), "privat = 1\n").expect("written");
    let faulty = tollgate(folder.path(), &["check"]);
    assert_eq!(faulty.status.code(), Some(78));
    let expected = format!(
        "{}/egress.toml:1:1: privat: unknown key; did you mean `private`?\n1 fault\n",
        folder.path().display()
    );
    assert_eq!(String::from_utf8_lossy(&faulty.stdout), expected);
    assert_eq!(
        tollgate(folder.path(), &["check", "--jsn"]).status.code(),
        Some(64)
    );
}

#[test]
fn a_made_key_is_part_of_the_policy() {
    let folder = copy();
    fs::write(folder.path().join("tollgate.toml"), "[identity.keys]\n").expect("written");
    let words = ["agent-key", "new", "--agent", "ci", "--user", "ann"];
    let made = tollgate(folder.path(), &words);
    assert_eq!(made.status.code(), Some(0));
    let shown = String::from_utf8(made.stdout).expect("text");
    assert!(
        shown.starts_with("tg_") && shown.ends_with('\n'),
        "the key alone"
    );
    let loaded = Loader::new(folder.path(), environment())
        .load()
        .expect("no faults");
    let digest: [u8; 32] = Sha256::digest(shown.trim_end()).into();
    assert_eq!(&*loaded.policy.keys[&digest].subject.user, "ann");
}
