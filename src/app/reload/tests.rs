use std::{
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    sync::mpsc,
    thread,
};

use super::*;
use crate::config::Environment;

const OTHER: &str = "url = \"https://other.example.com/\"\n";
const SERVER: &str = "url = \"https://mcp.example.com/\"\n";

fn write(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().expect("has a parent")).expect("a folder");
    fs::write(&path, text).expect("written");
    fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("chmod");
}

/// Replaces a file as an editor does: never a moment without a whole one.
fn replace(folder: &Path, path: &str, text: &str) {
    let temporary = format!("{path}.new");
    write(folder, &temporary, text);
    fs::rename(folder.join(temporary), folder.join(path)).expect("renamed");
}

fn start(folder: &Path) -> (Reloader, mpsc::Receiver<Outcome>) {
    let (send, receive) = mpsc::channel();
    let environment = Environment {
        state_directory: Some("/nonexistent/state".into()),
        ..Environment::default()
    };
    let report =
        move |outcome: &Outcome, _: &Loaded| send.send(outcome.clone()).expect("somebody listens");
    let reloader = Reloader::start(Loader::new(folder, environment), report).expect("no faults");
    (reloader, receive)
}

fn names(reloader: &Reloader) -> Vec<String> {
    let current = reloader.current_full();
    let mut names: Vec<_> = current
        .policy
        .servers
        .keys()
        .map(ToString::to_string)
        .collect();
    names.sort();
    names
}

fn changed(generation: u64) -> Outcome {
    Outcome::Changed {
        generation,
        kept: Vec::new(),
    }
}

const UNCHANGED: Outcome = Outcome::Unchanged { kept: Vec::new() };

#[test]
fn a_reload_takes_up_what_changed_and_the_generation_rises_only_then() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "servers/a.toml", SERVER);
    let (reloader, reports) = start(folder.path());
    assert_eq!(reloader.current_full().policy.generation, 1);
    assert_eq!(reloader.reload(), UNCHANGED);

    write(folder.path(), "servers/b.toml", OTHER);
    assert_eq!(reloader.reload(), changed(2));
    assert_eq!(names(&reloader), ["a", "b"]);

    write(
        folder.path(),
        "servers/b.toml",
        &format!("# a remark\n{OTHER}"),
    );
    assert_eq!(reloader.reload(), UNCHANGED);

    write(
        folder.path(),
        "tollgate.toml",
        "[limits]\nrequest_bytes = 2048\n",
    );
    assert_eq!(
        reloader.reload(),
        changed(2),
        "the policy itself is the same"
    );
    assert_eq!(reloader.current_full().settings.limits.request_bytes, 2048);

    write(
        folder.path(),
        "tollgate.toml",
        "[listen]\nops = \"\"\n[limits]\ncall = \"9s\"\n",
    );
    let kept = vec!["listen.ops"];
    assert_eq!(
        reloader.reload(),
        Outcome::Changed {
            generation: 3,
            kept
        }
    );
    let now = reloader.current_full();
    assert!(
        now.settings.listen.ops.is_some(),
        "a listener stays until the restart"
    );
    assert_eq!(now.policy.servers["a"].limits.call, Duration::from_secs(9));
    assert_eq!(reports.try_iter().count(), 5);
}

#[test]
fn faults_keep_the_last_good_one_and_are_told_once() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "servers/a.toml", SERVER);
    let (reloader, reports) = start(folder.path());
    write(folder.path(), "servers/b.toml", OTHER);
    write(folder.path(), "servers/a.toml", "url = \"https://mcp.exam");
    assert_eq!(reloader.poll(), None, "seen once");
    let Some(Outcome::Rejected { faults }) = reloader.poll() else {
        panic!("expected a rejection");
    };
    assert_eq!(faults.len(), 1);
    assert_eq!(
        faults[0].to_string(),
        "servers/a.toml:1:24: invalid basic string, expected `\"`"
    );
    assert_eq!(names(&reloader), ["a"], "nothing of the folder is taken up");
    assert_eq!((reloader.poll(), reloader.poll()), (None, None));
    assert_eq!(reports.try_iter().count(), 1);

    write(folder.path(), "servers/a.toml", SERVER);
    assert_eq!(reloader.poll(), None);
    assert_eq!(reloader.poll(), Some(changed(2)));
    assert_eq!(names(&reloader), ["a", "b"]);
}

#[test]
fn a_file_that_is_still_being_written_is_not_taken_up() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "servers/a.toml", SERVER);
    let (reloader, _reports) = start(folder.path());
    write(
        folder.path(),
        "servers/a.toml",
        &format!("{OTHER}read_only = [\"get_*\"]\n"),
    );
    assert_eq!(reloader.poll(), None);
    write(
        folder.path(),
        "servers/a.toml",
        &format!("{OTHER}read_only = [\"get_*\"]\naccess = \"everyone\"\n"),
    );
    assert_eq!(reloader.poll(), None, "still changing");
    assert_eq!(reloader.poll(), Some(changed(2)));
}

#[test]
fn loose_modes_are_found_while_running() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "servers/a.toml", SERVER);
    let (reloader, _reports) = start(folder.path());
    let file = folder.path().join("servers/a.toml");
    fs::set_permissions(file, Permissions::from_mode(0o666)).expect("chmod");
    assert_eq!(reloader.poll(), None);
    assert!(matches!(reloader.poll(), Some(Outcome::Rejected { .. })));
    assert_eq!(names(&reloader), ["a"]);
}

/// As the kubelet does it: every file is a link through `..data`, which is itself swapped.
#[test]
fn a_config_map_changes_by_a_link() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    write(folder.path(), "..2026_01/server.a.toml", SERVER);
    symlink("..2026_01", at("..data")).expect("linked");
    symlink("..data/server.a.toml", at("server.a.toml")).expect("linked");
    let (reloader, _reports) = start(folder.path());
    assert_eq!(names(&reloader), ["a"]);

    write(folder.path(), "..2026_02/server.a.toml", OTHER);
    symlink("..2026_02", at("..data_tmp")).expect("linked");
    fs::rename(at("..data_tmp"), at("..data")).expect("swapped");
    assert_eq!(reloader.poll(), None);
    assert_eq!(reloader.poll(), Some(changed(2)));
    let target = reloader.current_full().policy.servers["a"]
        .endpoint
        .target()
        .clone();
    assert_eq!(target.host().to_string(), "other.example.com");
}

#[test]
fn concurrent_reloads_end_with_what_the_files_say() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "servers/a.toml", SERVER);
    write(folder.path(), "servers/b.toml", SERVER);
    let (reloader, _reports) = start(folder.path());
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    reloader.reload();
                }
            });
        }
        scope.spawn(|| {
            for round in 0..200 {
                let text = if round % 2 == 0 { OTHER } else { SERVER };
                replace(folder.path(), "servers/a.toml", text);
            }
            replace(
                folder.path(),
                "servers/a.toml",
                &format!("{OTHER}title = \"last\"\n"),
            );
        });
        scope.spawn(|| {
            let mut last = 0;
            for _ in 0..10_000 {
                let now = reloader.current_full();
                assert_eq!(now.policy.servers.len(), 2, "never half a policy");
                assert!(now.policy.generation >= last, "never a step back");
                last = now.policy.generation;
            }
        });
    });
    reloader.reload();
    let last = reloader.current_full().policy.servers["a"].title.clone();
    assert_eq!(last.as_deref(), Some("last"));
}

#[tokio::test(start_paused = true)]
async fn watching_finds_a_change_by_itself() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "servers/a.toml", SERVER);
    let (send, mut receive) = tokio::sync::mpsc::unbounded_channel();
    let environment = Environment {
        state_directory: Some("/nonexistent/state".into()),
        ..Environment::default()
    };
    let report =
        move |outcome: &Outcome, _: &Loaded| send.send(outcome.clone()).expect("somebody listens");
    let reloader = Reloader::start(Loader::new(folder.path(), environment), report);
    let reloader = Arc::new(reloader.expect("no faults"));
    let watch = tokio::spawn(reloader.clone().watch());
    write(folder.path(), "servers/a.toml", OTHER);
    assert_eq!(receive.recv().await, Some(changed(2)));
    watch.abort();
}

#[test]
fn turning_keys_on_waits_for_a_restart_and_holds_nothing_else_off() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "servers/a.toml", SERVER);
    let (reloader, _reports) = start(folder.path());
    let local = reloader.current_full().settings.identity.method.clone();
    write(folder.path(), "tollgate.toml", "[identity.keys]\n");
    let key = format!(
        "[[key]]\nsha256 = \"{}\"\nagent = \"ci\"\nuser = \"ann\"\n",
        "1a".repeat(32)
    );
    write(folder.path(), "keys.toml", &key);
    let taken = |generation| Outcome::Changed {
        generation,
        kept: vec!["identity"],
    };
    assert_eq!(reloader.reload(), taken(2));
    let now = reloader.current_full();
    assert_eq!(now.settings.identity.method, local);
    assert_eq!(now.policy.keys.len(), 1);
    assert_eq!(
        now.policy.admins.users,
        ["local".into()],
        "who is known today keeps what is theirs"
    );
    write(folder.path(), "servers/b.toml", OTHER);
    assert_eq!(reloader.reload(), taken(3));

    write(folder.path(), "tollgate.toml", "");
    assert!(matches!(reloader.reload(), Outcome::Rejected { .. }));
}
