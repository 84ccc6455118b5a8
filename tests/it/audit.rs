//! The journal on a real disk.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::Value;
use tempfile::TempDir;
use tollgate::{
    audit::{
        Break, Broken, Head, Journal, Kind, OnFailure, OpenError, Options, Phase, Record,
        verify_folder,
    },
    clock::Clock,
    telemetry::Metrics,
};

/// A clock that stands still.
struct Fixed;

impl Clock for Fixed {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1_795_989_600)
    }
}

/// A folder for one test; `audit` in it is the journal's.
pub(crate) fn folder() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let folder = dir.path().join("state/audit");
    (dir, folder)
}

pub(crate) fn open(options: Options) -> Result<Journal, OpenError> {
    Journal::open(options, Arc::new(Fixed), &Metrics::new())
}

pub(crate) fn record(tool: &str) -> Record {
    let mut record = Record::new(Fixed.now(), Kind::Call, Phase::Decision);
    record.tool = Some(tool.into());
    record
}

/// The files of records, oldest first.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
        .collect();
    files.sort();
    files
}

pub(crate) fn records(folder: &Path) -> Vec<Value> {
    let texts = files(folder)
        .into_iter()
        .map(|file| fs::read_to_string(file).expect("UTF-8"));
    let lines = texts.collect::<String>();
    lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

pub(crate) fn head(folder: &Path) -> Head {
    verify_folder(folder).expect("the chain holds").head
}

#[tokio::test]
async fn a_durable_record_is_on_disk_when_the_call_returns() {
    let (_dir, folder) = folder();
    let journal = open(Options::new(&folder)).expect("a new folder");
    let _recorded = journal.intent(record("a")).await.expect("kept");
    let found = records(&folder);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0]["phase"], "intent");
    assert_eq!(found[0]["seq"], 1);
    assert_eq!(found[0]["prev"], "0".repeat(64));
    assert_eq!(journal.health().head, head(&folder));
    assert_eq!(journal.health().failure, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_tasks_share_syncs_and_lose_nothing() {
    let (_dir, folder) = folder();
    let metrics = Metrics::new();
    let journal =
        Journal::open(Options::new(&folder), Arc::new(Fixed), &metrics).expect("a new folder");
    let tasks: Vec<_> = (0..64)
        .map(|task| {
            let journal = journal.clone();
            tokio::spawn(async move {
                for call in 0..20 {
                    let _intent = journal
                        .intent(record(&format!("{task}-{call}")))
                        .await
                        .expect("kept");
                    let _read = journal.read(record("read")).expect("queued");
                    let _outcome = journal
                        .outcome(record(&format!("{task}-{call}")))
                        .await
                        .expect("kept");
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic");
    }
    journal.close().await.expect("all is written");
    let found = records(&folder);
    assert_eq!(found.len(), 64 * 20 * 3);
    assert_eq!(head(&folder).seq, 64 * 20 * 3);
    for task in 0..64 {
        let phases: Vec<_> = found
            .iter()
            .filter(|record| record["tool"] == format!("{task}-7"))
            .map(|record| record["phase"].clone())
            .collect();
        assert_eq!(phases, ["intent", "outcome"]);
    }
    let text = metrics.render();
    assert!(
        text.contains("tollgate_audit_records_total{kind=\"call\"} 3840\n"),
        "{text}"
    );
    assert!(text.contains("tollgate_audit_healthy 1\n"));
}

#[tokio::test]
async fn what_waits_goes_to_the_disk_with_the_next_durable_record_in_one_sync() {
    let (_dir, folder) = folder();
    let mut options = Options::new(&folder);
    options.linger = Duration::from_secs(3_600);
    let metrics = Metrics::new();
    let journal = Journal::open(options, Arc::new(Fixed), &metrics).expect("a new folder");
    for _ in 0..63 {
        let _recorded = journal.queue(record("read")).expect("queued");
    }
    assert!(metrics.render().contains("tollgate_audit_queue_depth 63\n"));
    let _recorded = journal.intent(record("call")).await.expect("kept");
    assert_eq!(head(&folder).seq, 64);
    let text = metrics.render();
    assert!(text.contains("tollgate_audit_syncs_total 1\n"), "{text}");
    assert!(text.contains("tollgate_audit_queue_depth 0\n"), "{text}");
}

#[tokio::test]
async fn a_read_reaches_the_disk_by_itself() {
    let (_dir, folder) = folder();
    let journal = open(Options::new(&folder)).expect("a new folder");
    let _recorded = journal.queue(record("read")).expect("queued");
    tokio::time::timeout(Duration::from_secs(30), async {
        while journal.health().head.seq == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("the writer lingers for a moment");
    assert_eq!(records(&folder)[0]["tool"], "read");
}

#[tokio::test]
async fn a_closed_journal_has_written_everything_and_takes_nothing_more() {
    let (_dir, folder) = folder();
    let mut options = Options::new(&folder);
    options.linger = Duration::from_secs(3_600);
    let journal = open(options).expect("a new folder");
    for _ in 0..10 {
        let _recorded = journal.queue(record("read")).expect("queued");
    }
    journal.close().await.expect("all is written");
    assert_eq!(head(&folder).seq, 10);
    let refused = journal.intent(record("late")).await.expect_err("closed");
    assert_eq!(
        refused.to_string(),
        "records cannot be kept: the journal is closed"
    );
    assert!(journal.queue(record("late")).is_err());
    assert!(journal.admit_read().is_err());
    journal.close().await.expect("closed already");
    let next = open(Options::new(&folder)).expect("the folder is free");
    assert_eq!(next.health().head.seq, 10);
}

#[tokio::test]
async fn dropping_the_last_handle_writes_what_waits_and_a_restart_goes_on_with_the_chain() {
    let (_dir, folder) = folder();
    for start in 0..3_u64 {
        let journal = open(Options::new(&folder)).expect("the chain holds");
        assert_eq!(journal.health().head.seq, start * 2);
        let _recorded = journal.queue(record("read")).expect("queued");
        let _recorded = journal.queue(record("read")).expect("queued");
    }
    assert_eq!(head(&folder).seq, 6);
    assert_eq!(files(&folder).len(), 1);
}

#[tokio::test]
async fn files_are_followed_by_the_next_one_before_they_grow_too_large() {
    let (_dir, folder) = folder();
    let mut options = Options::new(&folder);
    options.rotate_bytes = 1_000;
    let journal = open(options.clone()).expect("a new folder");
    for _ in 0..10 {
        let _recorded = journal.intent(record("call")).await.expect("kept");
    }
    drop(journal);
    let journal = open(options).expect("the chain holds");
    let _recorded = journal.intent(record("call")).await.expect("kept");
    let names: Vec<_> = files(&folder)
        .iter()
        .map(|path| path.file_name().expect("a name").to_owned())
        .collect();
    assert_eq!(
        names[..2],
        ["00000000000000000001.jsonl", "00000000000000000004.jsonl"]
    );
    assert!(
        files(&folder)
            .iter()
            .all(|file| fs::metadata(file).expect("a file").len() <= 1_000)
    );
    assert_eq!(head(&folder).seq, 11);
}

#[tokio::test]
async fn a_full_queue_refuses_and_never_blocks() {
    let (_dir, folder) = folder();
    let mut options = Options::new(&folder);
    options.queue_bytes = 1_000;
    let journal = open(options.clone()).expect("a new folder");
    let large = Record {
        args_keys: vec!["k".repeat(64); 32],
        ..record("large")
    };
    let refused = journal.queue(large.clone()).expect_err("over the bytes");
    assert_eq!(refused.0, "too many records wait for the disk");
    assert!(journal.read(large.clone()).is_err());
    let _recorded = journal.queue(record("small")).expect("room again");
    drop(journal);

    options.on_failure = OnFailure::Reads;
    let metrics = Metrics::new();
    let journal = Journal::open(options, Arc::new(Fixed), &metrics).expect("the chain holds");
    let _counted = journal.read(large.clone()).expect("reads go on");
    assert!(journal.admit_read().is_ok());
    assert!(journal.intent(large).await.is_err(), "side effects do not");
    assert!(
        metrics
            .render()
            .contains("tollgate_audit_records_lost_total 1\n")
    );
}

#[test]
fn two_processes_never_share_a_folder() {
    let (_dir, folder) = folder();
    let journal = open(Options::new(&folder)).expect("a new folder");
    let refused = open(Options::new(&folder)).expect_err("locked");
    assert!(matches!(&refused, OpenError::Locked { path } if path == &folder.join("lock")));
    drop(journal);
    open(Options::new(&folder)).expect("free again");
}

#[test]
fn only_this_user_can_read_records_and_loose_files_are_refused() {
    let (_dir, folder) = folder();
    let journal = open(Options::new(&folder)).expect("a new folder");
    let _recorded = journal.queue(record("read")).expect("queued");
    drop(journal);
    let mode = |path: &Path| {
        fs::metadata(path)
            .expect("it is there")
            .permissions()
            .mode()
            & 0o7777
    };
    let file = files(&folder).remove(0);
    assert_eq!(
        (mode(&folder), mode(&file), mode(&folder.join("lock"))),
        (0o700, 0o600, 0o600)
    );

    let set = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("ours")
    };
    set(&file, 0o640);
    let refused = open(Options::new(&folder)).expect_err("loose file");
    assert!(
        refused.to_string().contains("has mode 0640, expected uid"),
        "{refused}"
    );
    set(&file, 0o600);
    set(&folder, 0o750);
    assert!(matches!(
        open(Options::new(&folder)),
        Err(OpenError::Loose { mode: 0o750, .. })
    ));
    set(&folder, 0o700);
    let moved = folder.with_extension("moved");
    fs::rename(&folder, &moved).expect("ours");
    std::os::unix::fs::symlink(&moved, &folder).expect("ours");
    assert!(matches!(
        open(Options::new(&folder)),
        Err(OpenError::Unusable { .. })
    ));
}

/// A folder with three files of three records each, and its files.
async fn nine() -> (TempDir, PathBuf, Vec<PathBuf>) {
    let (dir, folder) = folder();
    let mut options = Options::new(&folder);
    options.rotate_bytes = 1_000;
    let journal = open(options).expect("a new folder");
    for _ in 0..9 {
        let _recorded = journal.intent(record("call")).await.expect("kept");
    }
    drop(journal);
    let files = files(&folder);
    assert_eq!(files.len(), 3);
    (dir, folder, files)
}

fn broken(folder: &Path) -> (PathBuf, u64, Break) {
    match verify_folder(folder).expect_err("the chain is broken") {
        Broken::Chain { file, line, source } => (file, line, source),
        Broken::Unreadable { path, source } => panic!("{}: {source}", path.display()),
    }
}

#[tokio::test]
async fn verification_names_the_first_break_across_files() {
    let (_dir, folder, files) = nine().await;
    let whole = verify_folder(&folder).expect("the chain holds");
    assert_eq!((whole.first, whole.head.seq), (1, 9));
    let middle = fs::read_to_string(&files[1]).expect("UTF-8");
    let lines: Vec<_> = middle.split_inclusive('\n').collect();
    let order = |expected, found| Break::Order { expected, found };

    fs::write(&files[1], middle.replacen("\"call\"", "\"list\"", 1)).expect("ours");
    assert_eq!(broken(&folder), (files[1].clone(), 1, Break::Content(4)));
    fs::write(&files[1], [lines[0], lines[2]].concat()).expect("ours");
    assert_eq!(broken(&folder), (files[1].clone(), 2, order(5, 6)));
    fs::write(&files[1], [lines[1], lines[0], lines[2]].concat()).expect("ours");
    assert_eq!(broken(&folder), (files[1].clone(), 1, order(4, 5)));
    fs::write(&files[1], [lines[0], lines[1]].concat()).expect("ours");
    assert_eq!(broken(&folder), (files[2].clone(), 1, order(6, 7)));
    fs::write(&files[1], &middle[..middle.len() - 1]).expect("ours");
    assert_eq!(broken(&folder), (files[1].clone(), 3, Break::Cut));
    fs::remove_file(&files[1]).expect("ours");
    assert_eq!(broken(&folder), (files[2].clone(), 1, order(4, 7)));
    fs::write(&files[1], &middle).expect("ours");
    assert_eq!(verify_folder(&folder).expect("whole again"), whole);

    // What is missing at either end shows in the result.
    fs::remove_file(&files[0]).expect("ours");
    assert_eq!(verify_folder(&folder).expect("the rest holds").first, 4);
    fs::remove_file(&files[2]).expect("ours");
    assert_eq!(head(&folder).seq, 6);
    assert_ne!(head(&folder), whole.head);
}

#[tokio::test]
async fn a_chain_that_does_not_verify_at_its_end_is_not_continued() {
    let (_dir, folder, files) = nine().await;
    let last = fs::read_to_string(&files[2]).expect("UTF-8");
    fs::write(&files[2], last.replacen("\"call\"", "\"list\"", 2)).expect("ours");
    let refused = open(Options::new(&folder)).expect_err("broken");
    assert!(
        matches!(&refused, OpenError::Broken { file, source: Break::Content(7) } if file == &files[2]),
        "{refused:?}"
    );
    // The remedy that the error names.
    fs::rename(&files[2], folder.with_extension("evidence")).expect("ours");
    let journal = open(Options::new(&folder)).expect("the rest holds");
    let _recorded = journal.intent(record("call")).await.expect("kept");
    assert_eq!(head(&folder).seq, 7);
}

#[tokio::test]
async fn a_torn_line_is_moved_aside_and_told_of() {
    let (_dir, folder, files) = nine().await;
    let last = fs::read(&files[2]).expect("readable");
    fs::write(&files[2], &last[..last.len() - 100]).expect("ours");
    let journal = open(Options::new(&folder)).expect("a torn line is no break");
    let _recorded = journal.intent(record("call")).await.expect("kept");
    let found = records(&folder);
    let told: Vec<_> = found[8..]
        .iter()
        .map(|record| (&record["seq"], &record["kind"], &record["method"]))
        .collect();
    let (lifecycle, call) = (Value::from("lifecycle"), Value::from("call"));
    assert_eq!(
        told,
        [
            (&Value::from(9), &lifecycle, &Value::from("audit.torn")),
            (&Value::from(10), &call, &Value::Null)
        ]
    );
    assert_eq!(head(&folder).seq, 10);
    let torn = fs::read(files[2].with_extension("torn")).expect("kept");
    let line = last
        .split(|byte| *byte == b'\n')
        .nth(2)
        .expect("three lines");
    assert_eq!(torn.strip_suffix(b"\n"), Some(&line[..line.len() - 99]));
}

#[tokio::test]
async fn a_file_that_holds_only_a_torn_line_gives_way_to_the_one_before() {
    let (_dir, folder, files) = nine().await;
    fs::write(&files[2], "{\"id\":\"01").expect("ours");
    let journal = open(Options::new(&folder)).expect("a torn line is no break");
    let _recorded = journal.intent(record("call")).await.expect("kept");
    drop(journal);
    assert_eq!(head(&folder).seq, 8);
    assert_eq!(
        fs::read(files[2].with_extension("torn")).expect("kept"),
        b"{\"id\":\"01\n"
    );
}
