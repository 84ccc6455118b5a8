//! The database: what is kept in it comes back, and what is not Tollgate's own is refused and left as it is.

mod disk;
mod grants;
mod processes;
mod reseal;
mod tamper;
mod vault;

use std::{
    fs,
    os::unix::fs::{PermissionsExt, chown, symlink},
    path::{Path, PathBuf},
    sync::Arc,
};

use futures_util::future::join_all;
use rusqlite::Connection;
use tempfile::TempDir;
use tollgate::{
    catalog::{By, Item, ItemKind, Ledger, LedgerError, Pinned, ServerKey},
    private::Loose,
    store::{Error, Store},
    telemetry::Metrics,
    vault::Keyring,
};

/// A folder with a keyring, and a place for a database.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("tollgate.db")
    }

    fn open(&self) -> Store {
        open(self.0.path()).unwrap()
    }

    fn refused(&self) -> Error {
        open(self.0.path()).unwrap_err()
    }

    /// Somebody else's connection.
    fn sql(&self) -> Connection {
        Connection::open(self.file()).unwrap()
    }
}

fn open(folder: &Path) -> Result<Store, Error> {
    let keyring = Keyring::open(&folder.join("keyring")).unwrap();
    let metrics = Arc::<Metrics>::default();
    Store::open(&folder.join("tollgate.db"), &keyring, metrics)
}

fn server(name: &str) -> ServerKey {
    ServerKey {
        name: name.into(),
        endpoint: format!("https://{name}.example:443/mcp").into(),
    }
}

fn item(kind: ItemKind, name: &str, text: &str, version: u64) -> Item {
    let definition = format!("{{\"description\":\"{text}\",\"name\":\"{name}\"}}");
    Item::new(kind, name.into(), &definition, version, By::FirstUse).unwrap()
}

fn tools(version: u64, names: &[&str]) -> Pinned {
    let tool = |name: &&str| item(ItemKind::Tool, name, "does something", 1);
    Pinned {
        version,
        reviewed: false,
        views: vec![[7; 32]],
        items: names.iter().map(tool).collect(),
    }
}

/// One of everything, in order.
fn everything() -> Pinned {
    let mut tools = [
        item(ItemKind::Tool, "same", "for one era", 1),
        item(ItemKind::Tool, "same", "for another", 3),
    ];
    tools.sort_by(|one, other| one.key().cmp(&other.key()));
    let accepted = |item| Item {
        by: By::Operator,
        ..item
    };
    let [first, second] = tools;
    Pinned {
        version: 3,
        reviewed: true,
        views: vec![[1; 32], [0; 32], [2; 32]],
        items: vec![
            item(ItemKind::Tool, "Zürich", "größer als ASCII", 2),
            first,
            accepted(second),
            item(ItemKind::Prompt, "a", "", 1),
            item(ItemKind::Template, "file:///{path}", "", u64::MAX),
            item(ItemKind::Instructions, "", "", 1),
        ],
    }
}

fn content(folder: &Path) -> Vec<u8> {
    let files = ["tollgate.db", "tollgate.db-wal", "tollgate.db-shm"];
    let read = |name| fs::read(folder.join(name)).unwrap_or_default();
    files.into_iter().flat_map(read).collect()
}

#[tokio::test]
async fn what_is_pinned_comes_back_now_and_after_a_restart() {
    let place = Place::new();
    let store = place.open();
    let (a, b) = (server("a"), server("b"));
    assert_eq!(store.read(&a).await.unwrap(), None);
    assert!(store.replace(&a, None, &everything()).await.unwrap());
    assert!(store.replace(&b, None, &Pinned::default()).await.unwrap());
    let moved = ServerKey {
        endpoint: "https://a.example:8443/mcp".into(),
        ..a.clone()
    };
    for store in [store, place.open()] {
        assert_eq!(store.read(&a).await.unwrap(), Some(everything()));
        assert_eq!(store.read(&b).await.unwrap(), Some(Pinned::default()));
        assert_eq!(store.read(&moved).await.unwrap(), None);
    }
}

#[tokio::test]
async fn another_version_is_not_replaced() {
    let place = Place::new();
    let store = place.open();
    let a = server("a");
    assert!(!store.replace(&a, Some(1), &tools(2, &["x"])).await.unwrap());
    assert_eq!(store.read(&a).await.unwrap(), None);
    assert!(store.replace(&a, None, &tools(1, &["x"])).await.unwrap());
    for expected in [None, Some(0), Some(2), Some(u64::MAX)] {
        let replaced = store.replace(&a, expected, &tools(2, &["y"])).await;
        assert!(!replaced.unwrap(), "{expected:?}");
    }
    assert_eq!(store.read(&a).await.unwrap(), Some(tools(1, &["x"])));
    assert!(store.replace(&a, Some(1), &tools(2, &["y"])).await.unwrap());
    assert_eq!(store.read(&a).await.unwrap(), Some(tools(2, &["y"])));
}

#[tokio::test]
async fn only_what_changed_is_written() {
    let place = Place::new();
    let store = place.open();
    let a = server("a");
    let rows = || -> Vec<(i64, String)> {
        let sql = place.sql();
        let mut all = sql
            .prepare("SELECT rowid, name FROM pin_items ORDER BY rowid")
            .unwrap();
        let rows = all.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
        rows.unwrap().map(Result::unwrap).collect()
    };
    let row = |id, name: &str| (id, name.to_owned());
    let before = tools(1, &["a", "b", "c"]);
    assert!(store.replace(&a, None, &before).await.unwrap());
    assert_eq!(rows(), [row(1, "a"), row(2, "b"), row(3, "c")]);
    let mut after = tools(2, &["a", "c", "d"]);
    after.items[1].by = By::Operator;
    assert!(store.replace(&a, Some(1), &after).await.unwrap());
    // `c` was written again, since it is another's word now.
    assert_eq!(rows(), [row(1, "a"), row(4, "c"), row(5, "d")]);
    assert_eq!(store.read(&a).await.unwrap(), Some(after));
}

#[tokio::test]
async fn a_new_database_is_made_once_and_only_for_this_user() {
    let place = Place::new();
    drop(place.open());
    assert!(
        place
            .open()
            .replace(&server("a"), None, &everything())
            .await
            .unwrap()
    );
    let mode = fs::metadata(place.file()).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    let store = place.open();
    for beside in ["tollgate.db-wal", "tollgate.db-shm"] {
        let found = fs::metadata(place.0.path().join(beside)).unwrap();
        assert_eq!(found.permissions().mode() & 0o7777, 0o600, "{beside}");
    }
    let sql = place.sql();
    let one = |text| -> String { sql.query_row(text, [], |row| row.get(0)).unwrap() };
    assert_eq!(one("PRAGMA journal_mode"), "wal");
    assert_eq!(
        one("SELECT group_concat(version || ' ' || made_by) FROM migrations"),
        [1, 2, 3, 4, 5]
            .map(|version| format!("{version} {}", env!("CARGO_PKG_VERSION")))
            .join(",")
    );
    drop(store);
}

#[test]
fn a_database_of_a_later_version_is_refused_and_kept() {
    let place = Place::new();
    drop(place.open());
    let sql = place.sql();
    sql.execute("INSERT INTO migrations VALUES (7, '9.0.0')", [])
        .unwrap();
    sql.close().unwrap();
    let before = content(place.0.path());
    let error = place.refused();
    assert!(
        matches!(
            error,
            Error::Later {
                found: 7,
                known: 5,
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(error.code().as_str(), "store.unavailable");
    assert_eq!(
        error
            .to_string()
            .replace(place.0.path().to_str().unwrap(), "DIR"),
        "`DIR/tollgate.db` has version 7, expected at most 5; run the version of tollgate that wrote it, or restore a \
         backup from before"
    );
    assert_eq!(content(place.0.path()), before);
}

#[test]
fn a_file_of_something_else_is_refused_and_kept() {
    let place = Place::new();
    let write = |bytes: &[u8]| {
        fs::write(place.file(), bytes).unwrap();
        fs::set_permissions(place.file(), fs::Permissions::from_mode(0o600)).unwrap();
    };
    write(b"");
    let sql = place.sql();
    sql.execute_batch("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)")
        .unwrap();
    sql.close().unwrap();
    let theirs = fs::read(place.file()).unwrap();
    for bytes in [&theirs[..], &b"a text that is no database\n".repeat(99)] {
        write(bytes);
        let error = place.refused();
        assert!(matches!(error, Error::Foreign { .. }), "{error}");
        assert_eq!(fs::read(place.file()).unwrap(), bytes);
    }
    // A file of no bytes is what a start leaves that was killed at once.
    write(b"");
    drop(place.open());
}

#[test]
fn a_file_that_others_may_use_is_refused_and_kept() {
    let place = Place::new();
    drop(place.open());
    let before = content(place.0.path());
    let wal = place.0.path().join("tollgate.db-wal");
    fs::write(&wal, b"").unwrap();
    for path in [place.file(), wal] {
        for mode in [0o640, 0o604, 0o620, 0o602, 0o660, 0o666, 0o610] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let error = place.refused();
            assert!(
                matches!(&error, Error::Loose(Loose { path: at, mode: found, .. }) if (at, *found) == (&path, mode)),
                "{error}"
            );
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        // Only root gives files away.
        if nix::unistd::geteuid().is_root() {
            chown(&path, Some(65534), None).unwrap();
            let error = place.refused();
            assert!(
                matches!(error, Error::Loose(Loose { uid: 65534, .. })),
                "{error}"
            );
            chown(&path, Some(0), None).unwrap();
        }
    }
    assert_eq!(content(place.0.path()), before);
    drop(place.open());
}

#[test]
fn what_is_no_file_is_refused() {
    let elsewhere = Place::new();
    drop(elsewhere.open());
    let before = content(elsewhere.0.path());
    for beside in ["", "-wal", "-shm", "-journal"] {
        let place = Place::new();
        let path = place.0.path().join(format!("tollgate.db{beside}"));
        symlink(elsewhere.file(), &path).unwrap();
        assert!(
            matches!(place.refused(), Error::NotAFile { .. }),
            "{beside}"
        );
        fs::remove_file(&path).unwrap();
        symlink("nowhere", &path).unwrap();
        assert!(
            matches!(place.refused(), Error::NotAFile { .. }),
            "{beside}"
        );
        assert!(!place.0.path().join("nowhere").exists());
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(
            matches!(place.refused(), Error::NotAFile { .. }),
            "{beside}"
        );
    }
    assert_eq!(content(elsewhere.0.path()), before);
}

#[test]
fn a_folder_may_be_reached_by_a_link() {
    let place = Place::new();
    let link = place.0.path().join("link");
    let real = place.0.path().join("real");
    fs::create_dir(&real).unwrap();
    symlink(&real, &link).unwrap();
    drop(open(&link).unwrap());
    assert!(real.join("tollgate.db").exists());
}

#[tokio::test]
async fn what_waits_is_bounded() {
    let place = Place::new();
    let store = place.open();
    let a = server("a");
    let blocker = place.sql();
    blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
    let pinned = tools(1, &["x"]);
    // The first waits for the lock, 64 wait for it, and the others find no room.
    let asked = async {
        let first = store.replace(&a, None, &pinned);
        let reads = join_all((0..70).map(|_| store.read(&a)));
        futures_util::join!(first, reads)
    };
    let release = async { blocker.execute_batch("ROLLBACK").unwrap() };
    let ((first, reads), ()) = futures_util::join!(asked, release);
    assert!(first.unwrap());
    let refused: Vec<_> = reads.into_iter().filter_map(Result::err).collect();
    assert!(matches!(refused.len(), 6 | 7), "{}", refused.len());
    for error in refused {
        assert_eq!(error.code().as_str(), "store.unavailable");
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert_eq!(source, "too much waits for the database; try again later");
    }
    assert_eq!(store.read(&a).await.unwrap(), Some(pinned));
}

#[tokio::test]
async fn a_file_that_was_moved_away_is_noticed() {
    let place = Place::new();
    let store = place.open();
    let a = server("a");
    assert!(store.replace(&a, None, &tools(1, &["x"])).await.unwrap());
    let away = place.0.path().join("away");
    fs::rename(place.file(), &away).unwrap();
    let error = store.read(&a).await.unwrap_err();
    assert!(matches!(error, LedgerError::Unavailable { .. }));
    let error = store
        .replace(&a, Some(1), &tools(2, &["y"]))
        .await
        .unwrap_err();
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(
        source.replace(place.0.path().to_str().unwrap(), "DIR"),
        "`DIR/tollgate.db` was moved or replaced while tollgate runs; put it back, or restart tollgate"
    );
    fs::rename(&away, place.file()).unwrap();
    assert_eq!(store.read(&a).await.unwrap(), Some(tools(1, &["x"])));
}

#[tokio::test]
async fn a_closed_database_is_one_file_and_takes_nothing_more() {
    let place = Place::new();
    let store = place.open();
    let a = server("a");
    assert!(store.replace(&a, None, &tools(1, &["x"])).await.unwrap());
    store.close().await;
    assert!(!place.0.path().join("tollgate.db-wal").exists());
    let error = store.read(&a).await.unwrap_err();
    assert_eq!(
        std::error::Error::source(&error).unwrap().to_string(),
        "the database is closed"
    );
    store.close().await;
    assert_eq!(place.open().read(&a).await.unwrap(), Some(tools(1, &["x"])));
}

#[tokio::test]
async fn uses_and_failures_are_counted() {
    let place = Place::new();
    let keyring = Keyring::open(&place.0.path().join("keyring")).unwrap();
    let metrics = Arc::<Metrics>::default();
    let store = Store::open(&place.file(), &keyring, metrics.clone()).unwrap();
    let a = server("a");
    assert!(store.replace(&a, None, &tools(1, &["x"])).await.unwrap());
    store.read(&a).await.unwrap();
    place
        .sql()
        .execute("UPDATE pins SET version = 9", [])
        .unwrap();
    store.read(&a).await.unwrap_err();
    let text = metrics.render();
    for line in [
        r#"tollgate_store_operations_total{operation="read"} 2"#,
        r#"tollgate_store_operations_total{operation="replace"} 1"#,
        r#"tollgate_store_failures_total{code="catalog.pins_unusable"} 1"#,
        "tollgate_store_seconds_count 3",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[tokio::test]
async fn nothing_of_the_keyring_is_shown_or_stored() {
    let place = Place::new();
    let store = place.open();
    assert!(
        store
            .replace(&server("a"), None, &everything())
            .await
            .unwrap()
    );
    assert_eq!(format!("{store:?}"), "Store { .. }");
    let keyring = fs::read_to_string(place.0.path().join("keyring")).unwrap();
    drop(store);
    let stored = content(place.0.path());
    assert!(stored.windows(4).any(|part| part == b"same"), "plain text");
    for line in ["root ", "data "] {
        let line = keyring.lines().find(|found| found.starts_with(line));
        let digits = line.unwrap().rsplit_once(' ').unwrap().1;
        let key: Vec<u8> = (0..64)
            .step_by(2)
            .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
            .collect();
        for secret in [digits.as_bytes(), &key] {
            assert!(!stored.windows(secret.len()).any(|part| part == secret));
        }
    }
}
