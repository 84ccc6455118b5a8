//! Processes of the operating system on one database: each runs this binary again, and does as it is told.

use std::{
    io::{BufRead, BufReader, Lines, Write},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use nix::{
    sys::{
        signal::{Signal, kill},
        wait::{WaitPidFlag, WaitStatus, waitpid},
    },
    unistd::Pid,
};

use super::{
    LATER, LEASE, SERVER, World,
    issuer::{Plan, Reuse},
    permit, process, told,
};

const PARTS: [&str; 4] = [
    "TOLLGATE_TEST_REFRESH_FOLDER",
    "TOLLGATE_TEST_REFRESH_NAME",
    "TOLLGATE_TEST_REFRESH_SECONDS",
    "TOLLGATE_TEST_REFRESH_ISSUER",
];

/// A process that prints its token once it is told to.
pub(super) struct Other {
    child: Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Other {
    pub(super) fn start(folder: &Path, name: &str, seconds: u64, issuer: SocketAddr) -> Self {
        let parts = [
            folder.to_str().unwrap().to_owned(),
            name.to_owned(),
            seconds.to_string(),
            issuer.to_string(),
        ];
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "connect_refresh::processes::does_as_it_is_told"])
            .args(["--ignored", "--nocapture"])
            .envs(PARTS.into_iter().zip(parts))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let orders = child.stdin.take().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut other = Self {
            child,
            orders,
            answers,
        };
        assert_eq!(other.answer(), "ready");
        other
    }

    /// Has it ask for a token.
    pub(super) fn ask(&mut self) {
        writeln!(self.orders, "token").unwrap();
    }

    /// What it says next.
    pub(super) fn answer(&mut self) -> String {
        let mut lines = self.answers.by_ref().map_while(Result::ok);
        lines
            .find_map(|line| line.strip_prefix("-> ").map(str::to_owned))
            .unwrap()
    }

    pub(super) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Stops it: none of its threads runs on return.
    fn stop(&self) {
        kill(self.pid(), Signal::SIGSTOP).unwrap();
        let stopped = waitpid(self.pid(), Some(WaitPidFlag::WUNTRACED)).unwrap();
        assert_eq!(stopped, WaitStatus::Stopped(self.pid(), Signal::SIGSTOP));
    }

    fn go_on(&self) {
        kill(self.pid(), Signal::SIGCONT).unwrap();
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).unwrap())
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl World {
    pub(super) fn other(&self, name: &str, seconds: u64) -> Other {
        Other::start(self.folder.path(), name, seconds, self.issuer.address)
    }
}

#[tokio::test]
#[ignore = "run as a child of the tests of this module"]
async fn does_as_it_is_told() {
    let Some(folder) = std::env::var_os(PARTS[0]).map(PathBuf::from) else {
        return;
    };
    let [name, seconds, issuer] = [1, 2, 3].map(|part| std::env::var(PARTS[part]).unwrap());
    let process = process(&folder, &name, seconds.parse().unwrap());
    let permit = permit(&issuer, "ann", SERVER);
    say("ready");
    let (tell, mut orders) = tokio::sync::mpsc::channel(1);
    std::thread::spawn(move || {
        for order in std::io::stdin().lines().map_while(Result::ok) {
            tell.blocking_send(order).unwrap();
        }
    });
    while orders.recv().await.is_some() {
        match process.token(&permit).await {
            Ok(token) => say(&token),
            Err(error) => say(&told(&error)),
        }
    }
}

fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "-> {text}").unwrap();
    out.flush().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_eight_processes_one_asks() {
    let world = World::connected(Reuse::Kills).await;
    let mut others: Vec<_> = (0..8)
        .map(|number| world.other(&format!("p{number}"), LATER))
        .collect();
    for other in &mut others {
        other.ask();
    }
    let tokens: Vec<_> = others.iter_mut().map(Other::answer).collect();
    assert_eq!(tokens, vec!["at-2"; 8]);
    assert_eq!(world.issuer.refreshes(), 1);
    assert!(world.issuer.is_alive("rt-2"), "what is stored works");
    let last = world.process("last", 2 * LATER);
    assert_eq!(last.token(&world.permit()).await.unwrap(), "at-3");
}

/// The provider had the request when its process was stopped, the lease ran out, and another took over: what was stopped
/// comes back with an answer that nobody else has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_that_was_stopped_loses_nothing() {
    let world = World::connected(Reuse::Refuses).await;
    world.issuer.plan(Plan::HoldLast);
    let mut stopped = world.other("stopped", LATER);
    stopped.ask();
    world.issuer.done(1).await;
    stopped.stop();
    world.issuer.release();

    let taking_over = world.process("taking-over", LATER + LEASE);
    let ended = taking_over.token(&world.permit()).await.unwrap_err();
    assert_eq!(told(&ended), "connect.reconnect rotation_lost");
    assert_eq!(world.issuer.refreshes(), 2);

    stopped.go_on();
    assert_eq!(stopped.answer(), "at-2");
    let next = world.process("next", LATER + LEASE);
    assert_eq!(next.token(&world.permit()).await.unwrap(), "at-2");
    assert_eq!(world.issuer.refreshes(), 2);
    assert!(world.issuer.is_alive("rt-2"));
}

/// The same with a provider that gives new tokens to whoever took over: the later ones stay.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_that_was_stopped_overwrites_nothing_newer() {
    let world = World::connected(Reuse::Graces).await;
    world.issuer.plan(Plan::HoldLast);
    let mut stopped = world.other("stopped", LATER);
    stopped.ask();
    world.issuer.done(1).await;
    stopped.stop();
    world.issuer.release();

    let taking_over = world.process("taking-over", LATER + LEASE);
    assert_eq!(taking_over.token(&world.permit()).await.unwrap(), "at-3");

    stopped.go_on();
    assert_eq!(stopped.answer(), "at-3");
    let next = world.process("next", LATER + LEASE);
    assert_eq!(next.token(&world.permit()).await.unwrap(), "at-3");
    assert_eq!(world.issuer.refreshes(), 2);
}
