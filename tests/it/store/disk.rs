//! A disk that is full: what is pinned stays, and changes go on once there is room.

use std::{fs, process::Command};

use tollgate::catalog::Ledger;

use super::{
    Place, open,
    processes::{Told, state},
    server,
};
use crate::support::disk::Disk;

const ITEMS: usize = 40;

/// Replaces until that is refused; returns the last version that was kept, and the refusal.
fn fill(child: &mut Told) -> (u64, String) {
    child.tell(&format!("count 100000 {ITEMS}"));
    let mut last = 0;
    loop {
        let answer = child.answer().unwrap();
        match answer.strip_prefix("kept ") {
            Some(version) => last = version.parse().unwrap(),
            None => return (last, answer),
        }
    }
}

#[tokio::test]
async fn a_file_that_cannot_grow_keeps_what_there_is() {
    let place = Place::new();
    // 256 KiB a file, in the shell's blocks of 512 bytes; the signal is ignored so that the write fails instead.
    let limited = r#"trap '' XFSZ; ulimit -S -f 512; exec "$@""#;
    let mut child = Told::start(limited, place.0.path());
    assert_eq!(child.ask("open"), "ok");
    let (last, refusal) = fill(&mut child);
    assert!(last > 0);
    assert_eq!(
        refusal,
        "the database refuses; see that its disk works and has room"
    );
    let found = place.open().read(&server("a")).await.unwrap();
    assert_eq!(found, Some(state(last, ITEMS)));
    let pid = child.child.id().to_string();
    let raised = Command::new("prlimit")
        .args(["--pid", &pid, "--fsize=unlimited:"])
        .status();
    assert!(raised.unwrap().success());
    let next = last + 1;
    assert_eq!(
        child.ask(&format!("count 1 {ITEMS}")),
        format!("kept {next}")
    );
    assert_eq!(child.answer().as_deref(), Some("ok"));
    drop(child);
    let found = place.open().read(&server("a")).await.unwrap();
    assert_eq!(found, Some(state(next, ITEMS)));
}

#[tokio::test]
async fn a_full_disk_keeps_what_there_is() {
    let place = Place::new();
    let disk = place.0.path().join("disk");
    let Some(_disk) = Disk::mount(&disk, "512k") else {
        // Mounting takes privileges that not every machine gives; the limit above exercises the same path.
        return;
    };
    let ballast = disk.join("ballast");
    fs::write(&ballast, [0; 200 << 10]).unwrap();
    let mut child = Told::start(r#"exec "$@""#, &disk);
    assert_eq!(child.ask("open"), "ok");
    let (last, refusal) = fill(&mut child);
    assert!(last > 0);
    assert_eq!(
        refusal,
        "the database refuses; see that its disk works and has room"
    );
    fs::remove_file(&ballast).unwrap();
    let next = last + 1;
    assert_eq!(
        child.ask(&format!("count 1 {ITEMS}")),
        format!("kept {next}")
    );
    assert_eq!(child.answer().as_deref(), Some("ok"));
    drop(child);
    let found = open(&disk).unwrap().read(&server("a")).await.unwrap();
    assert_eq!(found, Some(state(next, ITEMS)));
}
