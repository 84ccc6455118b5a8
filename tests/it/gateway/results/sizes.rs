//! The smallest and the largest results, and what cutting a large one takes.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::{Agent, answering, called, offering, read_on, result, text};
use crate::support::{
    client::{Ask, Exchange},
    gate::write,
    tools::Tools,
};

#[tokio::test]
async fn the_smallest_bound_holds_and_leaves_a_way_to_the_rest() {
    let said = "\u{1}é\"\\".repeat(700);
    // JSON text in a text: its quotes are escaped anew.
    let structured = json!(vec![""; 700]);
    let whole = json!({ "content": [text(&said)], "structuredContent": { "k": structured } });
    let limits = "[limits]\nresult_bytes = 1024\n";
    let (_tools, gate) = offering(whole, "", limits).await;
    for agent in Agent::both("s", &gate).await {
        let cut = called(&gate, &agent, "json").await;
        assert!(cut.to_string().len() <= 1024, "{cut}");
        let handle = &cut["_meta"]["io.tollgate/cut"]["handle"];
        let (mut offset, mut read) = (json!(0), String::new());
        while !offset.is_null() {
            let arguments = json!({ "handle": handle, "offset": offset });
            let piece = result(&read_on(&gate, &agent, &arguments).await);
            assert!(piece.to_string().len() <= 1024, "{piece}");
            read.push_str(piece["content"][0]["text"].as_str().unwrap());
            offset = piece["_meta"]["io.tollgate/read"]["next"].clone();
        }
        let shown = said.replace('\u{1}', r"\u{0001}");
        assert_eq!(read, format!(r#"{shown}{{"k":{structured}}}"#));
    }
    gate.stop().await;
}

/// Nearly 4 MiB, as one text.
fn large() -> String {
    let letters = ('a'..='z').cycle().take(400_000);
    letters
        .chain("the end".chars())
        .collect::<String>()
        .repeat(10)
}

const LARGE: &str = "[limits]\nresponse_bytes = 8388608\n";

#[tokio::test]
async fn four_mebibytes_are_cut_and_their_last_bytes_read() {
    let said = large();
    let whole = json!({ "content": [text(&said)] });
    let (_tools, gate) = offering(whole, "", LARGE).await;
    for agent in Agent::both("s", &gate).await {
        for form in ["json", "events"] {
            let cut = called(&gate, &agent, form).await;
            assert!((60_000..=65_536).contains(&cut.to_string().len()));
            let shown = cut["content"][0]["text"].as_str().unwrap();
            assert!(shown.starts_with("abcdef") && shown.ends_with("the end"));
            let mark = &cut["_meta"]["io.tollgate/cut"];
            let bytes = mark["bytes"].as_u64().unwrap();
            assert!(bytes > 4_000_000);
            let arguments = json!({ "handle": mark["handle"], "offset": bytes - 100 });
            let last = result(&read_on(&gate, &agent, &arguments).await);
            let last_text = last["content"][0]["text"].as_str().unwrap();
            assert!(last_text.len() > 80 && said.ends_with(last_text));
            assert_eq!(last["_meta"]["io.tollgate/read"]["next"], Value::Null);
        }
    }
    gate.stop().await;
}

/// A process of its own, so that its memory is nobody else's.
struct Served {
    child: Child,
    address: String,
}

impl Served {
    fn start(home: &Path, port: u16) -> Self {
        let policy = home.join("policy");
        for made in [&policy, &policy.join("servers"), &home.join("state")] {
            fs::create_dir(made).unwrap();
            fs::set_permissions(made, fs::Permissions::from_mode(0o700)).unwrap();
        }
        let state = home.join("state");
        let main = format!(
            "state_dir = \"{}\"\n[listen]\nagents = \"127.0.0.1:0\"\negress = \"\"\nweb = \"\"\nops = \"\"\n[identity.local]\nuser = \"ann\"\n",
            state.display()
        );
        write(&policy.join("tollgate.toml"), &main);
        let server =
            format!("url = \"http://127.0.0.1:{port}/mcp\"\nread_only = [\"*\"]\n{LARGE}\n");
        write(&policy.join("servers/s.toml"), &server);
        let grant =
            format!("[[private]]\nhost = \"127.0.0.1\"\nport = {port}\nfor = [\"server:s\"]\n");
        write(&policy.join("egress.toml"), &grant);
        let mut child = Command::new(env!("CARGO_BIN_EXE_tollgate"))
            .args(["serve", "--workers", "1", "--policy"])
            .arg(&policy)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        log.read_line(&mut line).unwrap();
        let started: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
        let listeners = started["listeners"].as_str().unwrap();
        let mut places = listeners.split(", ");
        let address = places.find_map(|place| place.strip_prefix("agents "));
        let address = address.unwrap_or_else(|| panic!("{listeners}")).to_owned();
        // What it logs later must not fill a pipe.
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        Self { child, address }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "this is an agent's side: it connects to Tollgate, on loopback"
    )]
    async fn send(&self, ask: Ask) -> Value {
        let stream = TcpStream::connect(&self.address).await.unwrap();
        let begun = Exchange::begin(Box::new(stream), &ask.bytes(&self.address)).await;
        result(&begun.unwrap().whole().await)
    }

    /// The most memory that it ever had, in KiB.
    fn most(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let number = line.unwrap().trim_end_matches("kB").trim();
        number.parse().unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The most memory of a process that cut one answer of `said`.
async fn most(said: &str, form: &str) -> u64 {
    let tools = Tools::start(answering(json!({ "content": [text(said)] }))).await;
    let home = tempfile::tempdir().unwrap();
    let served = Served::start(home.path(), tools.address.port());
    let params = format!(r#""name":"get_fault","arguments":{{"as":"{form}"}}"#);
    let ask = Agent::modern("s").request("1", "tools/call", &params);
    let cut = served.send(ask).await;
    assert!(cut["_meta"]["io.tollgate/cut"]["handle"].is_string());
    served.most()
}

/// Beside the answer itself; what cutting anything takes once is not counted. The copy that is kept is.
#[tokio::test]
async fn cutting_four_mebibytes_takes_twelve_more_at_most() {
    let said = large();
    let answer = said.len() as u64 >> 10;
    for form in ["json", "events"] {
        let small = most(&"x".repeat(100_000), form).await;
        let extra = most(&said, form).await.saturating_sub(small + answer);
        assert!(extra <= 12 << 10, "{form}: {extra} KiB");
    }
}
