//! The demonstration, as a newcomer runs it.

use std::{
    io::{BufRead, BufReader, Read},
    process::{Command, Stdio},
};

#[test]
fn every_step_does_what_it_should() {
    let output = Command::new(env!("CARGO_BIN_EXE_tollgate"))
        .args(["demo", "--once"])
        .output()
        .unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    let complaints = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{shown}\n{complaints}");
    assert_eq!(complaints, "");
    assert!(
        !shown.contains('\u{1b}'),
        "colour without a terminal: {shown}"
    );
    assert!(!shown.contains('✘'), "{shown}");
    assert_eq!(shown.matches('✔').count(), 9, "{shown}");
    for line in [
        "→ /mcp/tools  tools/call  get_weather {\"city\":\"Lisbon\"}",
        "← counted 4 of 4",
        "← egress.address_blocked: ",
        "← approval.unavailable: ",
        "refused; the tool server has sent 0 messages",
    ] {
        assert!(shown.contains(line), "`{line}` is missing: {shown}");
    }
}

#[test]
fn it_ends_quietly_when_nobody_reads_on() {
    let mut demo = Command::new(env!("CARGO_BIN_EXE_tollgate"))
        .arg("demo")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut reader = BufReader::new(demo.stdout.take().unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    drop(reader);
    let mut complaints = String::new();
    let mut stderr = demo.stderr.take().unwrap();
    stderr.read_to_string(&mut complaints).unwrap();
    assert_eq!(demo.wait().unwrap().code(), Some(1));
    assert_eq!(complaints, "");
}
