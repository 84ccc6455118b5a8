//! Secrets that the operator keeps in the vault of a whole process: set, listed, counted, taken away.

use std::{fs::File, io::ErrorKind, os::fd::OwnedFd};

use nix::{
    pty::openpty,
    sys::termios::{LocalFlags, tcgetattr},
};

use super::{
    vault::{ask, end, json, refused},
    *,
};

/// A process with the servers `notes`, of two tenants, and `wiki`.
fn served() -> (Place, Served) {
    let place = Place::new();
    let servers = place.policy().join("servers");
    fs::create_dir(&servers).expect("a folder");
    fs::set_permissions(&servers, fs::Permissions::from_mode(0o700)).expect("a mode");
    server(&place, "notes", "tenants = [\"default\", \"acme\"]\n");
    server(&place, "wiki", "tenants = [\"default\"]\n");
    let served = Served::start(&place);
    (place, served)
}

fn server(place: &Place, name: &str, keys: &str) {
    let keys = format!("{keys}[auth]\nmode = \"shared\"\n");
    open(place, name, &keys);
}

/// As [`server`], but without a secret.
fn open(place: &Place, name: &str, keys: &str) {
    let file = place.policy().join(format!("servers/{name}.toml"));
    let text = format!("url = \"https://{name}.example/mcp\"\n{keys}");
    fs::write(&file, text).expect("a file");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("a mode");
}

/// Runs `tollgate secret set` with this on standard input.
fn set(place: &Place, words: &[&str], secret: &[u8]) -> Output {
    let policy = place.policy();
    let policy = ["--policy", policy.to_str().expect("a path")];
    let mut child = command(&[&["secret", "set"], words, &policy].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(secret).expect("the program reads");
    drop(stdin);
    child.wait_with_output().expect("an end")
}

fn wrong(place: &Place) -> Vec<(String, String, Option<String>)> {
    let listed = json(place, &["secret", "list"]);
    let listed = listed.as_array().expect("an array");
    let text = |secret: &Value, key: &str| secret[key].as_str().map(str::to_owned);
    let row = |secret: &Value| {
        let name = |key| text(secret, key).expect("a name");
        (name("server"), name("tenant"), text(secret, "wrong"))
    };
    listed.iter().map(row).collect()
}

fn row(server: &str, tenant: &str, wrong: Option<&str>) -> (String, String, Option<String>) {
    (
        server.to_owned(),
        tenant.to_owned(),
        wrong.map(str::to_owned),
    )
}

#[test]
fn secrets_are_set_listed_counted_and_removed() {
    let (place, served) = served();
    assert_eq!(
        wrong(&place),
        [
            row("notes", "acme", Some("missing")),
            row("notes", "default", Some("missing")),
            row("wiki", "default", Some("missing")),
        ]
    );
    let status = stdout(&ask(&place, &["status"]));
    assert!(
        status.contains("secret    wiki (default) has none; `tollgate secret set wiki`\n"),
        "{status}"
    );
    let connections = stdout(&ask(&place, &["connections", "--server", "wiki"]));
    assert_eq!(
        connections,
        "0 connections\nwiki  everybody (default)  no secret yet: `tollgate secret set wiki`\n  shared\n"
    );
    let before = json(&place, &["keys", "status"])["keys"][0]["rows"].clone();

    let kept = set(&place, &["wiki"], b"sekrit-4711\n");
    assert_eq!(
        (kept.status.code(), &*stdout(&kept)),
        (
            Some(0),
            "the secret for `wiki` is kept for tenant `default`\n"
        ),
        "{}",
        stderr(&kept)
    );
    let kept = set(&place, &["notes", "--tenant", "acme"], b"sekrit-4712");
    assert_eq!(kept.status.code(), Some(0), "{}", stderr(&kept));
    assert_eq!(
        wrong(&place),
        [
            row("notes", "acme", None),
            row("notes", "default", Some("missing")),
            row("wiki", "default", None),
        ]
    );
    let listed = stdout(&ask(&place, &["secret", "list"]));
    assert!(
        listed.starts_with("2 secrets\nnotes (acme)  set 20") && !listed.contains("sekrit"),
        "{listed}"
    );
    let after = json(&place, &["keys", "status"])["keys"][0]["rows"].clone();
    assert_eq!((before, after), (1.into(), 3.into()));

    for (words, secret, told) in [
        (
            &["notes"][..],
            "x",
            "server `notes` is for several tenants (default, acme); name one with --tenant",
        ),
        (
            &["ghost"],
            "x",
            "no server `ghost` in the policy that holds",
        ),
        (
            &["wiki", "--tenant", "acme"],
            "x",
            "it is not for tenant `acme`, found default",
        ),
        (
            &["wiki"],
            "",
            "expected a secret of 1 to 8192 visible ASCII characters, found nothing",
        ),
        (
            &["wiki"],
            "two words",
            "connect.secret: this secret cannot be sent",
        ),
    ] {
        let output = set(&place, words, secret.as_bytes());
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains(told), "{}", stderr(&output));
    }

    // What no file asks for any more is told of, and goes.
    fs::remove_file(place.policy().join("servers/wiki.toml")).expect("a file");
    assert_eq!(place.run("reload").status.code(), Some(0));
    assert_eq!(wrong(&place)[2], row("wiki", "default", Some("unused")));
    for server in ["wiki", "notes"] {
        let removed = ask(&place, &["secret", "remove", server]);
        assert_eq!(removed.status.code(), Some(0), "{}", stderr(&removed));
    }
    let said = refused(&place, &["secret", "remove", "notes"], 1);
    assert!(
        said.contains("no secret is kept for server `notes`"),
        "{said}"
    );
    let left = json(&place, &["keys", "status"])["keys"][0]["rows"].clone();
    assert_eq!(left, 1);
    end(served);
    let said = String::from_utf8(set(&place, &["notes", "--tenant", "acme"], b"x").stderr);
    assert!(said.expect("text").contains("no tollgate answers at"));

    let events = place.events();
    let count = |event: &str| events.iter().filter(|found| *found == event).count();
    assert_eq!(count("admin secret_set"), 4, "{events:?}");
    assert_eq!(count("admin secret_remove"), 2, "{events:?}");
    for folder in [place.state(), place.state().join("audit")] {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let Ok(content) = fs::read(&path) else {
                continue;
            };
            let found = content.windows(6).any(|window| window == b"sekrit");
            assert!(!found, "{}", path.display());
        }
    }
}

#[test]
fn a_secret_follows_the_keys_and_is_forgotten_with_everything() {
    let (place, mut served) = served();
    assert_eq!(set(&place, &["wiki"], b"sekrit").status.code(), Some(0));
    let old = json(&place, &["keys", "status"])["keys"][0]["kid"].clone();
    let old = old.as_str().expect("a key");
    assert_eq!(ask(&place, &["keys", "rotate"]).status.code(), Some(0));
    served.until("rows were sealed under the primary key");
    let keys = json(&place, &["keys", "status"]);
    assert_eq!(
        (&keys["keys"][0]["rows"], &keys["keys"][1]["rows"]),
        (&0.into(), &2.into())
    );
    for option in ["--disable", "--destroy"] {
        json(&place, &["keys", "rotate", option, old]);
    }
    assert_eq!(wrong(&place)[2], row("wiki", "default", None));
    end(served);
    let reset = json(&place, &["vault", "reset", "--forget-all", "--yes"]);
    assert_eq!(reset["rows"], 1);
    let served = Served::start(&place);
    assert_eq!(wrong(&place)[2], row("wiki", "default", Some("missing")));
    assert_eq!(set(&place, &["wiki"], b"sekrit").status.code(), Some(0));
    let removed = ask(&place, &["server", "remove", "wiki"]);
    assert_eq!(removed.status.code(), Some(0), "{}", stderr(&removed));
    let said = stdout(&removed);
    assert!(
        said.contains("\n1 secret of the vault removed; it is still valid at its provider\n"),
        "{said}"
    );
    assert_eq!(wrong(&place)[2], row("wiki", "default", Some("missing")));
    end(served);
}

#[test]
fn a_secret_that_is_typed_is_not_shown_and_the_terminal_is_as_before() {
    let (place, served) = served();
    for (typed, told, exit) in [
        ("sekrit-1\n", "", Some(0)),
        ("sekrit-2\u{3}", "nothing was changed", Some(1)),
    ] {
        let pty = openpty(None, None).expect("a terminal");
        let screen = || -> OwnedFd { pty.slave.try_clone().expect("a terminal") };
        let policy = place.policy();
        let policy = policy.to_str().expect("a path");
        let mut child = command(&["secret", "set", "wiki", "--policy", policy])
            .stdin(screen())
            .stderr(screen())
            .stdout(screen())
            .spawn()
            .expect("the program runs");
        let mut master = File::from(pty.master);
        let mut shown = String::new();
        let mut read = |until: &str, master: &mut File| {
            while !shown.contains(until) {
                let mut some = [0; 512];
                match master.read(&mut some) {
                    Ok(0) => break,
                    Ok(length) => shown += &String::from_utf8_lossy(&some[..length]),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => panic!("{error}"),
                }
            }
            shown.clone()
        };
        read("(not shown): ", &mut master);
        // It asks before it is quiet: what is typed before that would be lost.
        while tcgetattr(&pty.slave)
            .expect("a terminal")
            .local_flags
            .contains(LocalFlags::ECHO)
        {
            std::thread::yield_now();
        }
        master.write_all(typed.as_bytes()).expect("typed");
        assert_eq!(child.wait().expect("an end").code(), exit);
        let shown = read(
            if told.is_empty() {
                "is kept for tenant"
            } else {
                told
            },
            &mut master,
        );
        assert!(!shown.contains("sekrit"), "{shown}");
        let flags = tcgetattr(&pty.slave).expect("a terminal").local_flags;
        assert!(flags.contains(LocalFlags::ECHO | LocalFlags::ICANON | LocalFlags::ISIG));
    }
    assert_eq!(wrong(&place)[2], row("wiki", "default", None));
    end(served);
}

#[test]
fn nobody_types_a_secret_for_a_server_that_takes_none() {
    let (place, served) = served();
    open(&place, "open", "tenants = [\"default\"]\n");
    let reloaded = place.run("reload");
    assert_eq!(reloaded.status.code(), Some(0), "{}", stderr(&reloaded));
    for (words, told) in [
        (&["ghost"][..], "no server `ghost` in the policy that holds"),
        (&["open"], "its file asks for none"),
        (&["notes"], "name one with --tenant"),
        (
            &["wiki", "--tenant", "acme"],
            "it is not for tenant `acme`, found default",
        ),
    ] {
        let pty = openpty(None, None).expect("a terminal");
        let policy = place.policy();
        let policy = ["--policy", policy.to_str().expect("a path")];
        // It ends, though nobody types.
        let output = command(&[&["secret", "set"], words, &policy].concat())
            .stdin(pty.slave)
            .output()
            .expect("the program runs");
        assert_eq!(output.status.code(), Some(1));
        let said = stderr(&output);
        assert!(said.contains(told) && !said.contains("not shown"), "{said}");
    }
    end(served);
}
