use std::{
    fs::{self, Permissions},
    os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink},
    path::Path,
    thread,
};

use clap::Parser;

use super::*;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

/// A policy folder that asks for keys.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("tollgate.toml"), "[identity.keys]\n").expect("written");
    folder
}

fn did(folder: &Path, words: &[&str]) -> Result<String, String> {
    let policy = folder.display().to_string();
    let start = ["agent-key", "--policy", &policy];
    let line = start.iter().chain(words);
    let line = Line::try_parse_from(line).map_err(|error| error.to_string())?;
    act(line.args).map_err(|trouble| match trouble {
        Trouble::Failed(why) => why,
        Trouble::Faults(faults) => faults.iter().map(|fault| format!("{fault}\n")).collect(),
    })
}

fn keys(folder: &Path) -> String {
    fs::read_to_string(folder.join("keys.toml")).expect("the file is there")
}

#[test]
fn a_new_key_is_shown_once_and_known_by_its_hash() {
    let folder = folder();
    let key = did(folder.path(), &["new", "--agent", "ci", "--user", "ann"]).expect("made");
    let key = key.strip_suffix('\n').expect("a line");
    assert_eq!((key.len(), &key[..3]), (67, "tg_"));
    let digest = id::hex(&Sha256::digest(key));
    assert_eq!(
        keys(folder.path()),
        format!("[[key]]\nsha256 = \"{digest}\"\nagent = \"ci\"\nuser = \"ann\"\n")
    );
    assert_eq!(
        did(folder.path(), &["list"]).expect("listed"),
        format!(
            "{}  agent ci, user ann of default, call, without end\n",
            &digest[..16]
        )
    );
}

#[test]
fn a_new_file_is_for_the_group_that_may_read_the_folder() {
    for (folder_mode, mode) in [
        (0o700, 0o600),
        (0o710, 0o600),
        (0o750, 0o640),
        (0o755, 0o640),
    ] {
        let folder = folder();
        fs::set_permissions(folder.path(), Permissions::from_mode(folder_mode)).expect("chmod");
        // Only root may give a file to a group that it is no member of.
        let group = if nix::unistd::geteuid().is_root() {
            4711
        } else {
            fs::metadata(folder.path()).expect("there").gid()
        };
        chown(folder.path(), None, Some(group)).expect("chgrp");
        did(folder.path(), &["new", "--agent", "ci", "--user", "ann"]).expect("made");
        let made = fs::metadata(folder.path().join("keys.toml")).expect("there");
        assert_eq!((made.mode() & 0o7777, made.gid()), (mode, group));
    }
}

#[test]
fn every_option_reaches_the_key() {
    let folder = folder();
    let words = [
        "new",
        "--agent",
        "a \"quoted\" \\ name",
        "--user",
        "app",
        "--tenant",
        "acme",
        "--group",
        "eng",
        "--group",
        "ops",
        "--act-for",
        "*",
        "--assert-groups",
        "--expires",
        "2027-01-31",
    ];
    did(folder.path(), &words).expect("made");
    let listed = did(folder.path(), &["list", "--json"]).expect("listed");
    let listed: serde_json::Value = serde_json::from_str(&listed).expect("JSON");
    assert_eq!(listed["agent"], "a \"quoted\" \\ name");
    assert_eq!(listed["tenant"], "acme");
    assert_eq!(listed["groups"], serde_json::json!(["eng", "ops"]));
    assert_eq!(listed["scopes"], serde_json::json!(["call", "act-for"]));
    assert_eq!(listed["expires"], "2027-01-31T00:00:00Z");
    let text = keys(folder.path());
    assert!(
        text.contains("may_act_for = [\"*\"]\nmay_assert_groups = true\nexpires = 2027-01-31\n")
    );
}

#[test]
fn what_would_not_be_taken_up_is_not_written() {
    let folder = folder();
    for (words, why) in [
        (
            ["new", "--agent", "", "--user", "u"],
            "key[0].agent: expected 1 to 128 visible characters",
        ),
        (
            ["new", "--agent", "a\n[[key]]", "--user", "u"],
            "key[0].agent: expected 1 to 128 visible characters",
        ),
    ] {
        let said = did(folder.path(), &words).expect_err("refused");
        assert!(said.contains(why), "{said}");
    }
    let late = [
        "new",
        "--agent",
        "a",
        "--user",
        "u",
        "--expires",
        "2027-01-31\n[[key]]",
    ];
    assert!(
        did(folder.path(), &late)
            .expect_err("refused")
            .contains("expected a date such as 2027-01-31")
    );
    assert!(!folder.path().join("keys.toml").exists());

    fs::write(folder.path().join("keys.toml"), "[[key]]\nagent = 5\n").expect("written");
    let said = did(folder.path(), &["new", "--agent", "a", "--user", "u"]).expect_err("refused");
    assert!(
        said.contains("keys.toml:2:9: key[0].agent: found the integer 5, expected a string"),
        "{said}"
    );
    assert_eq!(keys(folder.path()), "[[key]]\nagent = 5\n");
}

#[test]
fn revoking_removes_one_key_and_keeps_the_remarks() {
    let folder = folder();
    let [one, two, three] = ["1a", "2b", "2c"].map(|digit| digit.repeat(32));
    let text = format!(
        "# our keys\n\n# for CI\n[[key]]\nsha256 = \"{one}\"\nagent = \"ci\"\nuser = \"ann\"\ngroups = [\n  \"eng\",\n]\n\n\
         # for the app\n[[key]]\nsha256 = \"{two}\" # rotated\nagent = \"app\"\nuser = \"bob\"\n\n[[key]]\nsha256 = \"{three}\"\n\
         agent = \"x\"\nuser = \"y\"\n# the end\n"
    );
    fs::write(folder.path().join("keys.toml"), &text).expect("written");
    assert_eq!(
        did(folder.path(), &["revoke", "key:2B2B2B2B"]).expect("revoked"),
        "revoked 2b2b2b2b2b2b2b2b: agent `app`, user `bob`\n"
    );
    let expected = format!(
        "# our keys\n\n# for CI\n[[key]]\nsha256 = \"{one}\"\nagent = \"ci\"\nuser = \"ann\"\ngroups = [\n  \"eng\",\n]\n\n\
         # for the app\n\n[[key]]\nsha256 = \"{three}\"\nagent = \"x\"\nuser = \"y\"\n# the end\n"
    );
    assert_eq!(keys(folder.path()), expected);
    assert!(
        did(folder.path(), &["revoke", "2b2b2b2b"])
            .expect_err("gone")
            .contains("begins no key's SHA-256")
    );
    assert!(
        did(folder.path(), &["revoke", "1a1a"])
            .expect_err("short")
            .contains("at least 8 hexadecimal digits")
    );
    did(folder.path(), &["revoke", &three]).expect("revoked");
    did(folder.path(), &["revoke", &one]).expect("revoked");
    assert_eq!(
        keys(folder.path()),
        "# our keys\n\n# for CI\n\n# for the app\n\n# the end\n"
    );
}

#[test]
fn keys_in_another_form_are_left_to_their_author() {
    let folder = folder();
    let text = format!(
        "key = [{{ sha256 = \"{}\", agent = \"a\", user = \"u\" }}]\n",
        "1a".repeat(32)
    );
    fs::write(folder.path().join("keys.toml"), &text).expect("written");
    let said = did(folder.path(), &["revoke", "1a1a1a1a"]).expect_err("refused");
    assert_eq!(
        said,
        "the key is not written as a `[[key]]` table; remove it from keys.toml by hand"
    );
    assert!(did(folder.path(), &["new", "--agent", "a", "--user", "u"]).is_err());
    assert_eq!(keys(folder.path()), text);
}

#[test]
fn links_modes_and_loose_files_are_respected() {
    let folder = folder();
    let real = folder.path().join("_real");
    fs::write(&real, "# here\n").expect("written");
    fs::set_permissions(&real, Permissions::from_mode(0o640)).expect("chmod");
    symlink("_real", folder.path().join("keys.toml")).expect("linked");
    did(folder.path(), &["new", "--agent", "a", "--user", "u"]).expect("made");
    assert!(
        fs::read_to_string(&real)
            .expect("there")
            .starts_with("# here\n\n[[key]]\n")
    );
    assert_eq!(
        fs::metadata(&real).expect("there").permissions().mode() & 0o7777,
        0o640
    );
    assert!(folder.path().join("keys.toml").is_symlink());

    fs::set_permissions(&real, Permissions::from_mode(0o666)).expect("chmod");
    let said = did(folder.path(), &["list"]).expect_err("refused");
    assert!(
        said.contains("is writable by group or others (mode 0666)"),
        "{said}"
    );
}

#[test]
fn writers_at_once_lose_nothing() {
    let folder = folder();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..5 {
                    did(folder.path(), &["new", "--agent", "a", "--user", "u"]).expect("made");
                }
            });
        }
    });
    assert_eq!(
        did(folder.path(), &["list"])
            .expect("listed")
            .lines()
            .count(),
        40
    );
    let names = fs::read_dir(folder.path()).expect("there").count();
    assert_eq!(names, 2, "no temporary file is left");
}

#[test]
fn no_key_is_made_where_it_would_be_a_mistake() {
    let folder = folder();
    fs::write(folder.path().join("tollgate.toml"), "[identity.local]\n").expect("written");
    let said = did(folder.path(), &["new", "--agent", "a", "--user", "u"]).expect_err("refused");
    assert_eq!(
        said,
        "every caller is the local user, so a key would be a mistake; add `[identity.keys]` to tollgate.toml, and remove \
         `[identity.local]`, first"
    );
}

#[test]
fn a_key_that_has_expired_is_not_made_and_is_listed_as_such() {
    let folder = folder();
    let new = [
        "new",
        "--agent",
        "a",
        "--user",
        "u",
        "--expires",
        "2020-01-01",
    ];
    assert_eq!(
        did(folder.path(), &new).expect_err("refused"),
        "--expires has passed, so the key would open nothing; name a later time"
    );
    assert!(!folder.path().join("keys.toml").exists());
    let text = format!(
        "[[key]]\nsha256 = \"{}\"\nagent = \"a\"\nuser = \"u\"\nexpires = 2020-01-01\n",
        "1a".repeat(32)
    );
    fs::write(folder.path().join("keys.toml"), text).expect("written");
    assert_eq!(
        did(folder.path(), &["list"]).expect("listed"),
        "1a1a1a1a1a1a1a1a  agent a, user u of default, call, expired 2020-01-01T00:00:00Z\n"
    );
}
