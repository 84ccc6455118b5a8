//! Keys and databases of whole processes: rotated while they run, found to be older, and forgotten.

mod lost;
mod mark;
mod older;
mod spool;
mod stale;

use tollgate::{
    connect::{GrantKey, GrantRow, GrantState, Records},
    store::Store,
    subject::Owner,
    telemetry::Metrics,
    vault::{Keyring, Vault},
};
use uuid::Uuid;

use super::*;

const KEY: &str = "6465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f80818283\n";

/// Writes a private file beside the policy.
fn write(place: &Place, name: &str, text: &str) -> PathBuf {
    let path = place.policy().join(name);
    fs::write(&path, text).expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("a mode");
    path
}

pub(super) fn ask(place: &Place, words: &[&str]) -> Output {
    let policy = place.policy();
    let policy = ["--policy", policy.to_str().expect("a path")];
    tollgate(&[words, &policy].concat())
}

pub(super) fn json(place: &Place, words: &[&str]) -> Value {
    let output = ask(place, &[words, &["--json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    serde_json::from_str(&stdout(&output)).expect("JSON")
}

/// What is wrong, where something is.
pub(super) fn refused(place: &Place, words: &[&str], code: i32) -> String {
    let output = ask(place, words);
    assert_eq!(output.status.code(), Some(code), "{}", stdout(&output));
    stderr(&output)
}

/// Uses the database as another process does.
fn with_store<T>(place: &Place, work: impl AsyncFnOnce(&Store, &Keyring) -> T) -> T {
    let keyring = Keyring::open(&place.state().join("keyring")).expect("a keyring");
    let metrics = std::sync::Arc::<Metrics>::default();
    let store =
        Store::open(&place.state().join("tollgate.db"), &keyring, metrics).expect("a database");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let result = work(&store, &keyring).await;
        store.close().await;
        result
    })
}

fn whose(user: &str) -> GrantKey {
    GrantKey {
        owner: Owner {
            tenant: "default".into(),
            user: user.into(),
        },
        server: "notes".into(),
    }
}

/// A row of its own for each user.
fn record(user: &str) -> Uuid {
    let mut bytes = [1; 16];
    bytes[..user.len()].copy_from_slice(user.as_bytes());
    Uuid::from_bytes(bytes)
}

pub(super) fn connect(place: &Place, user: &str) {
    let keyring = Keyring::open(&place.state().join("keyring")).expect("a keyring");
    connect_under(place, user, &keyring.vault());
}

/// The same by a process that knows these keys.
pub(super) fn connect_under(place: &Place, user: &str, vault: &Vault) {
    with_store(place, async |store, _| {
        let mut row = GrantRow {
            record: record(user),
            key: whose(user),
            grant: [7; 16],
            version: 1,
            issuer: "https://as.example/".into(),
            client: "client-1".into(),
            resource: None,
            state: GrantState::Active,
            expires_at: None,
            next_try: None,
            lease: None,
            kid: vault.primary(),
            sealed: Vec::new(),
            created_at: 1_700_000_000,
        };
        row.sealed = vault.seal(&row.binding(), b"tokens");
        store.put_grant(row).await.expect("a row");
    });
}

pub(super) fn end(served: Served) {
    served.signal(Signal::SIGTERM);
    assert_eq!(served.end(), Some(0));
}

#[test]
fn keys_are_rotated_while_a_process_runs() {
    let place = Place::new();
    let mut served = Served::start(&place);
    for user in ["ann", "bob"] {
        connect(&place, user);
    }
    let before = json(&place, &["keys", "status"]);
    let old = before["keys"][0]["kid"].as_str().expect("a key").to_owned();
    assert_eq!(
        (&before["keys"][0]["state"], &before["keys"][0]["rows"]),
        (&"primary".into(), &3.into())
    );

    let said = refused(&place, &["keys", "rotate", "--disable", &old], 1);
    assert!(
        said.contains(&format!("3 rows are sealed under the key {old} still")),
        "{said}"
    );
    let rotated = ask(&place, &["keys", "rotate"]);
    assert_eq!(rotated.status.code(), Some(0), "{}", stderr(&rotated));
    assert!(
        stdout(&rotated).starts_with("the primary key is "),
        "{}",
        stdout(&rotated)
    );
    served.until("rows were sealed under the primary key");
    let after = json(&place, &["keys", "status"]);
    assert_eq!(after["keys"][0]["rows"], 0, "{after}");
    assert_eq!(
        (&after["keys"][1]["state"], &after["keys"][1]["rows"]),
        (&"primary".into(), &3.into())
    );
    let new = after["keys"][1]["kid"].as_str().expect("a key");
    let ops = served.address("ops");
    let metrics = http(&ops, "GET /metrics");
    let line = format!("tollgate_vault_records{{kid=\"{new}\"}} 3\n");
    assert!(metrics.contains(&line), "{metrics}");

    for (option, kid, told) in [
        ("--destroy", &*old, "it is not disabled"),
        ("--disable", new, "rows are sealed under the key"),
        ("--disable", "x", "`x` is no name of a key"),
        (
            "--enable",
            "0000000000000000",
            "the keyring has no such key",
        ),
    ] {
        let said = refused(&place, &["keys", "rotate", option, kid], 1);
        assert!(said.contains(told), "{said}");
    }
    for option in ["--disable", "--enable", "--disable", "--destroy"] {
        json(&place, &["keys", "rotate", option, &old]);
    }
    assert_eq!(
        json(&place, &["keys", "status"])["keys"]
            .as_array()
            .expect("keys")
            .len(),
        1
    );
    end(served);
    end(Served::start(&place));
    let events = place.events().join("\n");
    for event in ["keys_rotate", "keys_disable", "keys_enable", "keys_destroy"] {
        assert!(events.contains(event), "{events}");
    }
}

#[test]
fn a_keyring_of_an_earlier_version_goes_on_and_is_upgraded_when_asked() {
    let place = Place::new();
    fs::create_dir(place.state()).expect("a folder");
    fs::set_permissions(place.state(), fs::Permissions::from_mode(0o700)).expect("a mode");
    let keyring = place.state().join("keyring");
    let first =
        "tollgate-keyring 1\n1 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n";
    fs::write(&keyring, first).expect("a file");
    fs::set_permissions(&keyring, fs::Permissions::from_mode(0o600)).expect("a mode");
    end(Served::start(&place));
    connect(&place, "ann");
    assert_eq!(fs::read_to_string(&keyring).expect("a file"), first);
    let shown = ask(&place, &["keys", "status"]);
    assert_eq!(
        stdout(&shown),
        format!(
            "{}, guarded by its mode alone\nwritten by an earlier version; `tollgate keys init` brings it up to date\n  \
             f5526df39562884a  primary       2 rows\n",
            keyring.display()
        )
    );
    assert_eq!(json(&place, &["keys", "init"])["current"], true);
    assert_eq!(
        json(&place, &["keys", "init"])["done"],
        "already as it should be"
    );
    let served = Served::start(&place);
    assert_eq!(
        json(&place, &["keys", "status"])["keys"][0]["kid"],
        "f5526df39562884a"
    );
    end(served);
}

#[test]
fn a_keyring_is_sealed_and_its_key_changed_without_a_pause() {
    let place = Place::new();
    end(Served::start(&place));
    write(&place, "old.key", KEY);
    write(&place, "new.key", &KEY.replace('6', "7"));
    let with = |key: &str| {
        write(
            &place,
            "tollgate.toml",
            &format!("{}\n[vault]\nkey = \"file:{key}\"\n", place.text()),
        )
    };
    with("old.key");
    let mut served = Served::start_after(
        &place,
        "the keyring is not sealed yet; run `tollgate keys init`",
    );
    assert_eq!(
        json(&place, &["keys", "init"])["sealed_for"][0],
        "d72c90f81cbc1d23"
    );
    let both = json(&place, &["keys", "rotate", "--kek", "file:new.key"]);
    assert_eq!(
        both["sealed_for"].as_array().expect("keys").len(),
        2,
        "{both}"
    );
    let said = refused(&place, &["keys", "rotate", "--kek-done"], 1);
    assert!(
        said.contains(
            "too, which follows the key d72c90f81cbc1d23 of [vault] key and would be dropped"
        ),
        "{said}"
    );
    assert_eq!(
        json(&place, &["keys", "status"])["sealed_for"],
        both["sealed_for"]
    );
    let status = json(&place, &["status"]);
    assert_eq!(
        (&status["vault"]["sealed"], &status["vault"]["older"]),
        (&true.into(), &false.into())
    );
    let held = place.state().join("keyring");
    assert!(
        fs::read_to_string(&held)
            .expect("a file")
            .starts_with("tollgate-keyring 2 sealed\n")
    );
    served.signal(Signal::SIGTERM);
    served.until("stopped");

    with("new.key");
    end(Served::start(&place));
    assert_eq!(
        json(&place, &["keys", "rotate", "--kek-done"])["sealed_for"]
            .as_array()
            .expect("keys")
            .len(),
        1
    );
    end(Served::start(&place));

    with("old.key");
    let before = fs::read(&held).expect("a file");
    let said = refused(&place, &["serve"], 1);
    assert!(said.contains("is sealed for the key "), "{said}");
    assert!(
        said.contains("found the key d72c90f81cbc1d23 in [vault] key"),
        "{said}"
    );
    place.settings("");
    let said = refused(&place, &["serve"], 1);
    assert!(
        said.contains("is sealed, and [vault] key names no key that opens it"),
        "{said}"
    );
    assert_eq!(fs::read(&held).expect("a file"), before);
    assert!(!place.socket().exists());
}

#[test]
fn the_key_comes_from_systemd_or_last_from_the_environment() {
    let place = Place::new();
    let key = write(&place, "kek", KEY);
    let init = |source: &str, name: &str, value: &str| {
        write(
            &place,
            "tollgate.toml",
            &format!("{}\n[vault]\nkey = \"{source}\"\n", place.text()),
        );
        let policy = place.policy();
        let words = [
            "keys",
            "init",
            "--json",
            "--policy",
            policy.to_str().expect("a path"),
        ];
        command(&words)
            .env(name, value)
            .output()
            .expect("the program runs")
    };
    let folder = key.parent().expect("a folder").to_str().expect("a path");
    let made = init("credential:kek", "CREDENTIALS_DIRECTORY", folder);
    assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
    assert!(stdout(&made).contains("d72c90f81cbc1d23"));
    let same = init("env:TOLLGATE_KEK", "TOLLGATE_KEK", KEY.trim_end());
    assert_eq!(same.status.code(), Some(0), "{}", stderr(&same));
    assert!(stdout(&same).contains("already as it should be"));
    let none = init("env:TOLLGATE_KEK", "OTHER", KEY);
    assert_eq!(none.status.code(), Some(1));
    assert!(
        stderr(&none).contains("cannot use `env:TOLLGATE_KEK`"),
        "{}",
        stderr(&none)
    );
}

#[test]
fn a_process_leaves_no_core_file() {
    let place = Place::new();
    let served = Served::start(&place);
    let limits = fs::read_to_string(format!("/proc/{}/limits", served.child.id())).expect("limits");
    let core = limits
        .lines()
        .find(|line| line.starts_with("Max core file size"));
    let words: Vec<&str> = core.expect("a limit").split_whitespace().collect();
    assert_eq!(words, ["Max", "core", "file", "size", "0", "0", "bytes"]);
    end(served);
}
