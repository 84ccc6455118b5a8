//! Several processes on one database, and one that is killed: each test runs this binary again as a child.

use std::{
    fs,
    io::{BufRead, BufReader, Lines, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use nix::unistd::{Uid, geteuid, seteuid};
use tollgate::{
    catalog::{Item, ItemKind, Ledger, Pinned},
    store::Store,
};

use super::{Place, item, open, server};

const FOLDER: &str = "TOLLGATE_TEST_STORE_FOLDER";

/// A child that does as it is told, a line at a time.
pub(super) struct Told {
    pub(super) child: Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Told {
    /// Starts it by way of `shell`, which ends in `exec "$@"`.
    pub(super) fn start(shell: &str, folder: &Path) -> Self {
        let mut child = Command::new("sh")
            .args(["-c", shell, "sh"])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "store::processes::does_as_it_is_told"])
            .args(["--ignored", "--nocapture"])
            .env(FOLDER, folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let orders = child.stdin.take().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap()).lines();
        Self {
            child,
            orders,
            answers,
        }
    }

    pub(super) fn tell(&mut self, order: &str) {
        writeln!(self.orders, "{order}").unwrap();
    }

    /// The next answer; `None` where it has ended.
    pub(super) fn answer(&mut self) -> Option<String> {
        let mut lines = self.answers.by_ref().map_while(Result::ok);
        lines.find_map(|line| line.strip_prefix("-> ").map(str::to_owned))
    }

    pub(super) fn ask(&mut self, order: &str) -> String {
        self.tell(order);
        self.answer().unwrap()
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// What is pinned at a version: everything in it says which.
pub(super) fn state(version: u64, items: usize) -> Pinned {
    let tool = |at| {
        let text = format!("version {version} {}", "x".repeat(500));
        item(ItemKind::Tool, &format!("tool-{at:05}"), &text, version)
    };
    Pinned {
        version,
        items: (0..items).map(tool).collect::<Vec<Item>>(),
        ..Pinned::default()
    }
}

/// Puts states of `items` tools there until `times` were put, each over the last, whoever put that.
async fn count(store: &Store, times: usize, items: usize, say: impl Fn(u64)) -> Result<(), String> {
    let told = |error: &dyn std::error::Error| {
        let source = error.source().map(ToString::to_string);
        source.unwrap_or_else(|| error.to_string())
    };
    let a = server("a");
    let mut done = 0;
    while done < times {
        let found = store.read(&a).await.map_err(|error| told(&error))?;
        let version = found.map(|pinned| pinned.version);
        let next = state(version.unwrap_or(0) + 1, items);
        let replaced = store.replace(&a, version, &next).await;
        if replaced.map_err(|error| told(&error))? {
            say(next.version);
            done += 1;
        }
    }
    Ok(())
}

fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "-> {text}").unwrap();
    out.flush().unwrap();
}

#[tokio::test]
#[ignore = "run as a child of the tests below"]
async fn does_as_it_is_told() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else {
        return;
    };
    let mut store = None;
    for order in std::io::stdin().lines() {
        let order = order.unwrap();
        let words: Vec<&str> = order.split(' ').collect();
        match words[..] {
            ["open"] => match open(&folder) {
                Ok(opened) => {
                    store = Some(opened);
                    say("ok");
                }
                Err(error) => say(&error.to_string()),
            },
            ["nobody"] => {
                seteuid(Uid::from_raw(65534)).unwrap();
                say("ok");
            }
            ["count", times, items] => {
                let (times, items) = (times.parse().unwrap(), items.parse().unwrap());
                let store: &Store = store.as_ref().unwrap();
                let kept = |version| say(&format!("kept {version}"));
                match count(store, times, items, kept).await {
                    Ok(()) => say("ok"),
                    Err(why) => say(&why),
                }
            }
            _ => panic!("{order}"),
        }
    }
}

const PLAIN: &str = r#"exec "$@""#;

#[tokio::test]
async fn of_several_processes_each_change_comes_after_the_other() {
    let place = Place::new();
    // Only the first to come makes the keyring, and only one makes the tables.
    let mut children: Vec<_> = (0..4).map(|_| Told::start(PLAIN, place.0.path())).collect();
    children.iter_mut().for_each(|child| child.tell("open"));
    for child in &mut children {
        assert_eq!(child.answer().as_deref(), Some("ok"));
    }
    children
        .iter_mut()
        .for_each(|child| child.tell("count 25 3"));
    let mut versions = Vec::new();
    for child in &mut children {
        loop {
            let answer = child.answer().unwrap();
            match answer.strip_prefix("kept ") {
                Some(version) => versions.push(version.parse::<u64>().unwrap()),
                None => break assert_eq!(answer, "ok"),
            }
        }
    }
    versions.sort_unstable();
    assert_eq!(versions, (1..=100).collect::<Vec<_>>());
    drop(children);
    let read = place.open().read(&server("a")).await.unwrap();
    assert_eq!(read, Some(state(100, 3)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_several_threads_too() {
    let place = Place::new();
    let stores = [place.open(), place.open()];
    let [one, two] = stores.each_ref().map(|store| count(store, 50, 2, |_| ()));
    let (one, two) = tokio::join!(one, two);
    assert_eq!((one, two), (Ok(()), Ok(())));
    let read = stores[0].read(&server("a")).await.unwrap();
    assert_eq!(read, Some(state(100, 2)));
}

#[tokio::test]
async fn what_was_acknowledged_survives_kill_9_and_nothing_is_half() {
    const ITEMS: usize = 120;
    let place = Place::new();
    for round in 1..=8 {
        let mut child = Told::start(PLAIN, place.0.path());
        assert_eq!(child.ask("open"), "ok");
        child.tell(&format!("count 100000 {ITEMS}"));
        let mut last = 0;
        for _ in 0..3 + round {
            last = kept(&child.answer().unwrap());
        }
        child.child.kill().unwrap();
        child.child.wait().unwrap();
        // What it said before it died was acknowledged too.
        while let Some(answer) = child.answer() {
            last = kept(&answer);
        }
        let found = place.open().read(&server("a")).await.unwrap().unwrap();
        // The one after the last may have been on disk without being told.
        assert!([last, last + 1].contains(&found.version), "{last}");
        assert_eq!(found, state(found.version, ITEMS));
    }
}

fn kept(answer: &str) -> u64 {
    answer.strip_prefix("kept ").unwrap().parse().unwrap()
}

/// As root nothing is read-only by its mode, so that the child first becomes somebody else.
#[test]
fn a_folder_that_cannot_be_written_is_told() {
    for made in [false, true] {
        let place = Place::new();
        let folder = place.0.path();
        drop(super::Keyring::open(&folder.join("keyring")).unwrap());
        if made {
            drop(place.open());
        }
        let mut child = Told::start(PLAIN, folder);
        if geteuid().is_root() {
            for name in ["", "keyring", "tollgate.db"] {
                drop(std::os::unix::fs::chown(
                    folder.join(name),
                    Some(65534),
                    None,
                ));
            }
            assert_eq!(child.ask("nobody"), "ok");
        }
        let mode = |mode| {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(folder, fs::Permissions::from_mode(mode)).unwrap();
        };
        mode(0o500);
        let said = child.ask("open").replace(folder.to_str().unwrap(), "DIR");
        mode(0o700);
        let expected = if made {
            "cannot open the database `DIR/tollgate.db`; let this user write to its folder, and see that there is room"
        } else {
            "cannot use `DIR/tollgate.db` as database; let this user read and write it, and write to its folder"
        };
        assert_eq!(said, expected);
        assert_eq!(child.ask("open"), "ok");
    }
}
