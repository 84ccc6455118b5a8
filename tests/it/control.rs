//! A whole process: start, control socket, reload, drain, signals, exit codes.

mod connections;
mod secrets;
mod state;
mod vault;
mod which;

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    os::unix::{fs::PermissionsExt, net::UnixStream},
    path::{Path, PathBuf},
    process::{Child, ChildStderr, Command, Output, Stdio},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;
use tempfile::TempDir;
use tollgate::app::control::{Answer, AskError, Request, ask};

/// A policy folder and a place for state, in a folder of its own.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().expect("a temporary folder"));
        fs::create_dir(place.policy()).expect("a policy folder");
        place.settings("");
        place
    }

    fn policy(&self) -> PathBuf {
        self.0.path().join("policy")
    }

    fn state(&self) -> PathBuf {
        self.0.path().join("state")
    }

    fn socket(&self) -> PathBuf {
        self.state().join("control.sock")
    }

    /// What `tollgate.toml` says where nothing else is wanted.
    fn text(&self) -> String {
        format!(
            "state_dir = {:?}\n[listen]\nagents = \"127.0.0.1:0\"\negress = \"\"\nops = \"127.0.0.1:0\"\nweb = \"\"\n\
             [dns]\nservers = [\"127.0.0.1:9\"]\n",
            self.state()
        )
    }

    /// Writes `tollgate.toml` with `more` at its top.
    fn settings(&self, more: &str) {
        let text = format!("{more}\n{}", self.text());
        let file = self.policy().join("tollgate.toml");
        fs::write(&file, text).expect("a file");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("a mode");
        fs::set_permissions(self.policy(), fs::Permissions::from_mode(0o700)).expect("a mode");
    }

    fn run(&self, command: &str) -> Output {
        tollgate(&[command, "--policy", self.policy().to_str().expect("a path")])
    }

    fn records(&self) -> Vec<Value> {
        let mut files: Vec<_> = fs::read_dir(self.state().join("audit"))
            .expect("records")
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
            .collect();
        files.sort();
        let text: String = files
            .iter()
            .map(|file| fs::read_to_string(file).expect("records"))
            .collect();
        text.lines()
            .map(|line| serde_json::from_str(line).expect("a record"))
            .collect()
    }

    /// What the process told of itself, in order.
    fn events(&self) -> Vec<String> {
        let text = |record: &Value, key: &str| record[key].as_str().unwrap_or_default().to_owned();
        let own = |record: &&Value| record["kind"] != "request";
        self.records()
            .iter()
            .filter(own)
            .map(|record| format!("{} {}", text(record, "kind"), text(record, "method")))
            .collect()
    }
}

fn tollgate(args: &[&str]) -> Output {
    command(args).output().expect("the program runs")
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command
        .args(args)
        .stdin(Stdio::null())
        .env_remove("TOLLGATE_POLICY");
    command
}

/// `tollgate serve`, once it has said that it started.
struct Served {
    child: Child,
    log: BufReader<ChildStderr>,
    started: Value,
}

impl Served {
    fn start(place: &Place) -> Self {
        let policy = place.policy();
        let args = [
            "serve",
            "--workers",
            "2",
            "--policy",
            policy.to_str().expect("a path"),
        ];
        let mut child = command(&args)
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program runs");
        let mut log = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut line = String::new();
        log.read_line(&mut line).expect("a log line");
        let started: Value =
            serde_json::from_str(&line).unwrap_or_else(|_| panic!("no event: {line}"));
        Self {
            child,
            log,
            started,
        }
    }

    /// The same for one that has something else to say first.
    fn start_after(place: &Place, text: &str) -> Self {
        let mut served = Self::start(place);
        let first = served.started.to_string();
        assert!(first.contains(text), "{first}");
        served.started = serde_json::from_str(&served.until("\"started\"")).expect("an event");
        served
    }

    /// Where the listener of this name stands.
    fn address(&self, name: &str) -> String {
        let listeners = self.started["listeners"].as_str().expect("listeners");
        let found = listeners
            .split(", ")
            .find_map(|listener| listener.strip_prefix(name));
        found.expect("the listener").trim().to_owned()
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).expect("a process id");
        kill(Pid::from_raw(pid), signal).expect("a signal");
    }

    /// Reads the log up to a line that holds `text`.
    fn until(&mut self, text: &str) -> String {
        let mut line = String::new();
        while self.log.read_line(&mut line).expect("a log line") > 0 {
            if line.contains(text) {
                return line;
            }
            line.clear();
        }
        panic!("the log ended without `{text}`");
    }

    fn end(mut self) -> Option<i32> {
        let mut rest = String::new();
        self.log
            .read_to_string(&mut rest)
            .expect("the rest of the log");
        self.child.wait().expect("an end").code()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // A test that failed half-way must not leave its process behind.
        let _ = self.child.kill();
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("text")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("text")
}

#[test]
fn a_process_is_asked_reloaded_and_drained_through_its_socket() {
    let place = Place::new();
    let served = Served::start(&place);
    assert_eq!(
        fs::metadata(place.socket())
            .expect("a socket")
            .permissions()
            .mode()
            & 0o777,
        0o600
    );

    let status = place.run("status");
    assert_eq!(status.status.code(), Some(0), "{}", stderr(&status));
    assert!(
        stdout(&status).starts_with("tollgate  0.1.0 · ready\n"),
        "{}",
        stdout(&status)
    );

    place.settings("unknown = 1");
    let rejected = place.run("reload");
    assert_eq!(rejected.status.code(), Some(1));
    assert!(
        stderr(&rejected).contains("tollgate.toml:1:1: unknown"),
        "{}",
        stderr(&rejected)
    );
    let Ok(Answer::Status(status)) = ask(&place.socket(), Request::Status) else {
        panic!("a status");
    };
    assert_eq!(status.policy.generation, 1);
    assert_eq!(status.policy.rejected.len(), 1);

    place.settings("public_url = \"https://tollgate.example.com\"");
    let reloaded = place.run("reload");
    assert_eq!(reloaded.status.code(), Some(0), "{}", stderr(&reloaded));

    assert_eq!(place.run("drain").status.code(), Some(0));
    assert_eq!(served.end(), Some(0));
    assert!(!place.socket().exists());
    assert_eq!(place.run("status").status.code(), Some(1));
    assert_eq!(
        place.events(),
        [
            "lifecycle start",
            "policy reload",
            "admin reload",
            "policy reload",
            "admin reload",
            "admin drain",
            "lifecycle drain",
            "lifecycle stop"
        ]
    );
}

#[test]
fn signals_reload_and_end_it() {
    let place = Place::new();
    let mut served = Served::start(&place);
    place.settings("unknown = 1");
    served.signal(Signal::SIGHUP);
    served.until("tollgate.toml:1:1: unknown");
    served.signal(Signal::SIGTERM);
    served.until("\"stopped\"");
    assert_eq!(served.end(), Some(0));
    assert_eq!(
        place.events().last().map(String::as_str),
        Some("lifecycle stop")
    );
}

#[test]
fn the_start_says_where_it_listens_and_what_it_does_not_protect() {
    let place = Place::new();
    let served = Served::start(&place);
    let said = served.started.to_string();
    for part in [
        "agents 127.0.0.1:",
        "ops 127.0.0.1:",
        "cooperative mode",
        "\"generation\":1",
    ] {
        assert!(said.contains(part), "`{part}` is not in {said}");
    }
    served.signal(Signal::SIGINT);
    assert_eq!(served.end(), Some(0));
}

#[test]
fn ops_answers_and_an_unknown_server_is_refused_and_recorded() {
    let place = Place::new();
    let served = Served::start(&place);
    for (path, status, part) in [
        ("/livez", "200 OK", "\r\n\r\nok\n"),
        ("/readyz", "200 OK", "\r\n\r\nok\n"),
        ("/metrics", "200 OK", "\ntollgate_policy_generation 1\n"),
        ("/mcp/demo", "404 Not Found", "listen.not_found"),
    ] {
        let answer = http(&served.address("ops"), &format!("GET {path}"));
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}\r\n")),
            "{answer}"
        );
        assert!(answer.contains(part), "{answer}");
    }
    let answer = http(&served.address("agents"), "DELETE /mcp/demo");
    assert!(answer.starts_with("HTTP/1.1 404 Not Found\r\n"), "{answer}");
    served.signal(Signal::SIGTERM);
    assert_eq!(served.end(), Some(0));
    let records = place.records();
    let codes: Vec<_> = records
        .iter()
        .filter_map(|record| record["code"].as_str())
        .collect();
    assert_eq!(codes, ["listen.not_found", "policy.server_unknown"]);
}

#[expect(clippy::disallowed_methods, reason = "the client of a test")]
fn http(address: &str, request: &str) -> String {
    let mut stream = std::net::TcpStream::connect(address).expect("a listener");
    let head = format!("{request} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("the server reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn one_process_for_each_state_folder_and_a_dead_one_makes_room() {
    let place = Place::new();
    let mut first = Served::start(&place);
    let second = place.run("serve");
    assert_eq!(second.status.code(), Some(1));
    let said = stderr(&second);
    let told = format!(
        "a tollgate already runs with state_dir `{}`",
        place.state().display()
    );
    assert!(said.contains(&told), "{said}");

    first.child.kill().expect("a signal");
    first.child.wait().expect("an end");
    assert!(place.socket().exists());
    let served = Served::start(&place);
    served.signal(Signal::SIGTERM);
    assert_eq!(served.end(), Some(0));
}

#[test]
fn what_is_not_understood_is_answered() {
    let place = Place::new();
    let served = Served::start(&place);
    for (request, told) in [
        ("{\"op\":\"fly\"}\n", "not understood"),
        ("nonsense\n", "not understood"),
        (
            &"x".repeat((1 << 20) + 1),
            "one line of at most 1048576 bytes",
        ),
    ] {
        let answer = say(&place.socket(), request);
        assert!(answer.contains(told), "{answer}");
    }
    served.signal(Signal::SIGTERM);
    assert_eq!(served.end(), Some(0));
}

fn say(socket: &Path, text: &str) -> String {
    let mut stream = UnixStream::connect(socket).expect("a socket");
    stream.write_all(text.as_bytes()).expect("the server reads");
    let mut answer = String::new();
    // A reset after the answer is an end as well.
    let _ = stream.read_to_string(&mut answer);
    answer
}

#[test]
fn nobody_there_is_said_so() {
    let place = Place::new();
    let error = ask(&place.socket(), Request::Status).expect_err("nobody");
    assert!(matches!(error, AskError::NotRunning(_)), "{error}");
    let dead = place.0.path().join("dead.sock");
    drop(std::os::unix::net::UnixListener::bind(&dead).expect("a socket"));
    assert!(matches!(
        ask(&dead, Request::Status),
        Err(AskError::NotRunning(_))
    ));
}

#[test]
fn exit_codes_tell_usage_from_configuration() {
    assert_eq!(tollgate(&["--version"]).status.code(), Some(0));
    assert_eq!(tollgate(&["--help"]).status.code(), Some(0));
    assert_eq!(tollgate(&["fly"]).status.code(), Some(64));
    assert_eq!(
        tollgate(&["serve", "--workers", "0"]).status.code(),
        Some(64)
    );
    let place = Place::new();
    place.settings("unknown = 1");
    let faulty = place.run("serve");
    assert_eq!(faulty.status.code(), Some(78));
    assert!(
        stderr(&faulty).starts_with("tollgate: tollgate.toml:1:1: unknown"),
        "{}",
        stderr(&faulty)
    );
}
