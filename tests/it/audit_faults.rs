//! The journal in a process that is killed, and on a disk that is full: each test runs this binary again as a child.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Duration,
};

use tollgate::audit::{Journal, Options};

use crate::{
    audit::{files, folder, head, open, record, records},
    support::disk::Disk,
};

const FOLDER: &str = "TOLLGATE_TEST_AUDIT_FOLDER";

/// Runs the ignored test `name` of this file as a child, by way of `shell` (which ends in `exec "$@"`).
fn child(shell: &str, name: &str, folder: &Path) -> Child {
    Command::new("sh")
        .args(["-c", shell, "sh"])
        .arg(std::env::current_exe().expect("this binary"))
        .args([
            "--exact",
            &format!("audit_faults::{name}"),
            "--ignored",
            "--nocapture",
        ])
        .env(FOLDER, folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a shell")
}

/// The folder that the parent named; `None` where someone runs the ignored tests by hand.
fn named() -> Option<String> {
    std::env::var(FOLDER).ok()
}

fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}").expect("the parent reads");
    out.flush().expect("the parent reads");
}

#[tokio::test]
#[ignore = "run as a child of `acknowledged_records_survive_kill_9`"]
async fn writes_until_it_is_killed() {
    let Some(folder) = named() else { return };
    let mut options = Options::new(folder);
    options.rotate_bytes = 20_000;
    let journal = open(options).expect("the chain holds");
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..16 {
        let journal = journal.clone();
        tasks.spawn(async move {
            for call in 0.. {
                let tool = format!("{task}-{call}");
                let _recorded = journal.intent(record(&tool)).await.expect("kept");
                say(&format!("kept {tool}"));
            }
        });
    }
    tasks.join_all().await;
}

#[test]
fn acknowledged_records_survive_kill_9() {
    let (_dir, folder) = folder();
    let mut kept = Vec::new();
    for round in 1..=5 {
        let mut child = child(r#"exec "$@""#, "writes_until_it_is_killed", &folder);
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        while kept.len() < round * 400 {
            let line = lines
                .next()
                .expect("it runs until it is killed")
                .expect("UTF-8");
            kept.extend(
                line.strip_prefix("kept ")
                    .map(|tool| format!("{round} {tool}")),
            );
        }
        child.kill().expect("our own child");
        child.wait().expect("our own child");
        // What it said before it died was acknowledged too.
        kept.extend(lines.map_while(Result::ok).filter_map(|line| {
            let tool = line.strip_prefix("kept ")?;
            Some(format!("{round} {tool}"))
        }));
        // Marks the end of the round; opening moves a torn line aside.
        let journal = open(Options::new(&folder)).expect("killed, not broken");
        let _recorded = journal.queue(record("round")).expect("queued");
    }
    let mut round = 1;
    let mut found = std::collections::HashSet::new();
    for record in records(&folder) {
        match record["tool"].as_str() {
            Some("round") => round += 1,
            Some(tool) => assert!(found.insert(format!("{round} {tool}"))),
            None => assert_eq!(record["kind"], "lifecycle"),
        }
    }
    assert!(kept.len() >= 2_000);
    let lost: Vec<_> = kept.iter().filter(|tool| !found.contains(*tool)).collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
    assert_eq!(head(&folder).seq, records(&folder).len() as u64);
    assert!(files(&folder).len() > 5);
}

/// A child that does as it is told, a line at a time.
struct Told {
    child: Child,
    orders: ChildStdin,
    answers: std::io::Lines<BufReader<ChildStdout>>,
}

impl Told {
    fn start(shell: &str, folder: &Path) -> Self {
        let mut child = child(shell, "does_as_it_is_told", folder);
        let orders = child.stdin.take().expect("piped");
        let answers = BufReader::new(child.stdout.take().expect("piped")).lines();
        Self {
            child,
            orders,
            answers,
        }
    }

    fn ask(&mut self, order: &str) -> String {
        writeln!(self.orders, "{order}").expect("the child reads");
        let mut answers = self.answers.by_ref().map(|line| line.expect("UTF-8"));
        let answer = answers.find_map(|line| line.strip_prefix("-> ").map(str::to_owned));
        answer.expect("the child answers")
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

async fn obey(journal: &Journal, order: &str) -> String {
    let kept = match order.split_once(' ') {
        Some(("keep", tool)) => journal.intent(record(tool)).await.map(drop),
        Some(("read", tool)) => journal
            .admit_read()
            .and_then(|()| journal.read(record(tool)))
            .map(drop),
        _ => journal.health().failure.map_or(Ok(()), Err),
    };
    kept.map_or_else(|error| error.to_string(), |()| "ok".to_owned())
}

#[test]
#[ignore = "run as a child of the tests of a full disk"]
fn does_as_it_is_told() {
    let Some(folder) = named() else { return };
    let mut options = Options::new(folder);
    options.retry = Duration::from_millis(20);
    let journal = open(options).expect("the chain holds");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    for order in std::io::stdin().lines() {
        let answer = runtime.block_on(obey(&journal, &order.expect("UTF-8")));
        say(&format!("-> {answer}"));
    }
}

/// Keeps records until one is refused; returns those that were kept and the refusal.
fn fill(told: &mut Told) -> (Vec<String>, String) {
    let mut kept = Vec::new();
    for call in 0.. {
        let answer = told.ask(&format!("keep call-{call}"));
        if answer != "ok" {
            return (kept, answer);
        }
        kept.push(format!("call-{call}"));
    }
    unreachable!("the loop has no end")
}

fn recover(told: &mut Told) {
    while told.ask("health") != "ok" {
        std::thread::yield_now();
    }
    assert_eq!(told.ask("keep after"), "ok");
    assert_eq!(told.ask("read after"), "ok");
}

fn tools(folder: &Path) -> Vec<String> {
    let name = |record: &serde_json::Value| {
        record["tool"]
            .as_str()
            .or_else(|| record["method"].as_str())
            .map(str::to_owned)
    };
    records(folder).iter().filter_map(name).collect()
}

#[test]
fn a_file_that_cannot_grow_stops_side_effects_until_it_can() {
    let (_dir, folder) = folder();
    // 8 KiB a file, in the shell's blocks of 512 bytes; the signal is ignored so that the write fails instead.
    let limited = r#"trap '' XFSZ; ulimit -S -f 16; exec "$@""#;
    let mut told = Told::start(limited, &folder);
    let (kept, refusal) = fill(&mut told);
    assert!(!kept.is_empty());
    assert!(
        refusal.starts_with("records cannot be kept: File too large"),
        "{refusal}"
    );
    assert!(told.ask("keep more").starts_with("records cannot be kept"));
    assert!(told.ask("read more").starts_with("records cannot be kept"));
    let pid = told.child.id().to_string();
    let raised = Command::new("prlimit")
        .args(["--pid", &pid, "--fsize=unlimited:"])
        .status();
    assert!(raised.expect("util-linux").success());
    recover(&mut told);
    drop(told);
    let found = tools(&folder);
    // The refused record was kept after all, and the gap is told behind it.
    let mut expected = kept.clone();
    expected.extend([
        format!("call-{}", kept.len()),
        "audit.recovered".to_owned(),
        "after".to_owned(),
    ]);
    assert_eq!(found[..expected.len()], expected);
    head(&folder);
}

#[test]
fn a_full_disk_stops_side_effects_until_there_is_room() {
    let (dir, _) = folder();
    let disk = dir.path().join("disk");
    let Some(_disk) = Disk::mount(&disk, "32k") else {
        // Mounting takes privileges that not every machine gives; the limit above exercises the same path.
        return;
    };
    let folder = disk.join("audit");
    let ballast = disk.join("ballast");
    let mut told = Told::start(r#"exec "$@""#, &folder);
    assert_eq!(told.ask("keep first"), "ok");
    fs::write(&ballast, [0; 16 << 10]).expect("room for it");
    let (kept, refusal) = fill(&mut told);
    assert!(
        refusal.starts_with("records cannot be kept: No space left on device"),
        "{refusal}"
    );
    assert!(told.ask("read more").starts_with("records cannot be kept"));
    fs::remove_file(&ballast).expect("ours");
    recover(&mut told);
    drop(told);
    let found = tools(&folder);
    let head = head(&folder);
    assert_eq!(found[0], "first");
    assert_eq!(found[1..=kept.len()], kept);
    assert_eq!(found[kept.len() + 2], "audit.recovered");
    assert!(head.seq >= kept.len() as u64 + 4);
}

#[tokio::test]
async fn a_file_that_was_removed_is_noticed_and_the_chain_goes_on() {
    let (_dir, folder) = folder();
    let mut options = Options::new(&folder);
    options.retry = Duration::from_millis(1);
    let journal = open(options).expect("a new folder");
    let _recorded = journal.intent(record("first")).await.expect("kept");
    fs::remove_file(files(&folder).remove(0)).expect("ours");
    let refused = journal
        .intent(record("second"))
        .await
        .expect_err("not kept");
    assert_eq!(refused.0, "the file was removed while it was written to");
    while journal.health().failure.is_some() {
        tokio::task::yield_now().await;
    }
    let _recorded = journal.intent(record("third")).await.expect("kept");
    assert_eq!(tools(&folder), ["second", "audit.recovered", "third"]);
    assert_eq!(head(&folder).seq, 4);
}
