//! Every `url` and `dns` case of a corpus gets its expected verdict.
//!
//! `TOLLGATE_CORPUS=FILE` judges another file of the same format.

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    path::PathBuf,
    process::{Command, Stdio},
};

use serde::Deserialize;
use tollgate::cli::explain;

const SHIPPED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/egress.jsonl");

#[derive(Deserialize)]
struct Case {
    id: String,
    kind: String,
    expect: String,
    also_ok: Option<String>,
    reason: String,
}

#[derive(Deserialize)]
struct Verdict {
    id: String,
    verdict: String,
    reason: String,
}

/// The cases of the judge, as text and by id.
fn cases(text: &str) -> (String, BTreeMap<String, Case>) {
    let mut lines = String::new();
    let mut cases = BTreeMap::new();
    for (index, line) in text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
    {
        let case: Case = serde_json::from_str(line)
            .unwrap_or_else(|error| panic!("line {}: {error}", index + 1));
        match case.kind.as_str() {
            "url" | "dns" => {
                lines.push_str(line);
                lines.push('\n');
                let id = case.id.clone();
                assert!(
                    cases.insert(id, case).is_none(),
                    "line {}: its id stands twice",
                    index + 1
                );
            }
            "redirect" | "http" | "oauth" => {}
            other => panic!("line {}: unknown kind `{other}`", index + 1),
        }
    }
    (lines, cases)
}

fn mismatches(mut cases: BTreeMap<String, Case>, verdicts: &[u8]) -> Vec<String> {
    let mut wrong = Vec::new();
    for line in verdicts
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty())
    {
        let got: Verdict = serde_json::from_slice(line).expect("a verdict");
        let case = cases.remove(&got.id).expect("a verdict belongs to a case");
        if got.verdict != case.expect && Some(&got.verdict) != case.also_ok.as_ref() {
            wrong.push(format!(
                "{}: expected {} ({}), got {} ({})",
                got.id, case.expect, case.reason, got.verdict, got.reason
            ));
        }
    }
    wrong.extend(cases.into_keys().map(|id| format!("{id}: no verdict")));
    wrong
}

#[test]
fn every_case_gets_its_verdict() {
    let file = std::env::var_os("TOLLGATE_CORPUS").map_or_else(|| SHIPPED.into(), PathBuf::from);
    let text =
        fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let (lines, cases) = cases(&text);
    assert!(
        !cases.is_empty(),
        "{} has no case of kind url or dns",
        file.display()
    );
    let (mut verdicts, mut faults) = (Vec::new(), Vec::new());
    explain::batch(lines.as_bytes(), &mut verdicts, &mut faults).unwrap();
    assert_eq!(
        String::from_utf8(faults).unwrap(),
        "",
        "lines that could not be read"
    );
    let wrong = mismatches(cases, &verdicts);
    assert!(
        wrong.is_empty(),
        "{} mismatches:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// What the binary answers for `input`: exit code, output, faults.
fn run(input: &str) -> (Option<i32>, Vec<u8>, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tollgate"))
        .args(["explain", "--batch"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut stdin = child.stdin.take().expect("it was piped");
    let input = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("it ends");
    let written = writer.join().expect("the writer ends");
    written.expect("every case is read");
    (
        output.status.code(),
        output.stdout,
        String::from_utf8(output.stderr).expect("text"),
    )
}

#[test]
fn the_binary_answers_like_the_library() {
    let (lines, cases) = cases(&fs::read_to_string(SHIPPED).unwrap());
    let (code, verdicts, faults) = run(&lines);
    assert_eq!((code, faults.as_str()), (Some(0), ""));
    let wrong = mismatches(cases, &verdicts);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_verdict_names_code_rule_addresses_and_reason() {
    let (code, verdicts, _) = run(
        r#"{"id":"a","kind":"dns","input":{"url":"https://a.test/"},"setup":{"dns":{"a.test":{"A":["10.0.0.5"]}}},"allowlist":["*"]}"#,
    );
    assert_eq!(code, Some(0));
    assert_eq!(
        String::from_utf8(verdicts).unwrap(),
        "{\"id\":\"a\",\"verdict\":\"deny\",\"code\":\"egress.address_blocked\",\"rule\":\"private-use\",\
         \"addresses\":[\"10.0.0.5\"],\"reason\":\"`a.test` leads to 10.0.0.5, in 10.0.0.0/8 (private use, RFC 1918); \
         a [[private]] table in egress.toml with host = \\\"a.test\\\", port = 443 and for = [\\\"proxy\\\"] would open it\"}\n"
    );
}

#[test]
fn a_bad_line_is_named_and_the_others_are_judged() {
    let (code, verdicts, faults) = run(concat!(
        r#"{"id":"a","kind":"http","input":{"raw":"GET"},"allowlist":["*"]}"#,
        "\n",
        r#"{"id":"b","kind":"url","input":{"url":"http://1.1.1.1/"},"setup":{"proxy":1},"allowlist":["*"]}"#,
        "\n",
        "\n",
        "{\n",
        r#"{"id":"c","kind":"url","input":{"url":"http://1.1.1.1/","x":1},"allowlist":["*"]}"#,
        "\n",
        r#"{"id":"d","kind":"url","input":{"url":"http://1.1.1.1/"},"allowlist":["*.net"]}"#,
        "\n",
        r#"{"id":"e","kind":"url","input":{"connect":"1.1.1.1:443"},"allowlist":["1.1.1.1"]}"#,
        "\n",
    ));
    assert_eq!(code, Some(64));
    let verdicts = String::from_utf8(verdicts).unwrap();
    assert_eq!(verdicts.lines().count(), 1);
    assert!(
        verdicts.starts_with(r#"{"id":"e","verdict":"allow","#),
        "{verdicts}"
    );
    let named: Vec<&str> = faults
        .lines()
        .filter_map(|line| line.split(':').next())
        .collect();
    assert_eq!(
        named,
        ["line 1", "line 2", "line 4", "line 5", "line 6"],
        "{faults}"
    );
}
