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

use futures_util::{future::join_all, poll};

use super::{
    Error, LATER, LEASE, Permit, Process, SERVER, World,
    issuer::{Plan, Reuse},
    permit, process_held, told,
};

const PARTS: [&str; 6] = [
    "TOLLGATE_TEST_REFRESH_FOLDER",
    "TOLLGATE_TEST_REFRESH_NAME",
    "TOLLGATE_TEST_REFRESH_SECONDS",
    "TOLLGATE_TEST_REFRESH_ISSUER",
    "TOLLGATE_TEST_REFRESH_STEP",
    "TOLLGATE_TEST_REFRESH_TIME",
];

/// How a process counts the time that it gives others.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Time {
    Runs,
    /// Its steady clock stands, as that of a machine that sleeps: however long it is stopped or held, nothing of it is
    /// late.
    Stands,
}

/// A process that does as it is told and prints what came of it.
pub(super) struct Other {
    child: Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Other {
    /// Starts one that stops for ever once it comes to `step`, which it says; no process comes to `nowhere`.
    fn start(
        folder: &Path,
        (name, seconds): (&str, u64),
        issuer: SocketAddr,
        step: &str,
        time: Time,
    ) -> Self {
        let parts = [
            folder.to_str().unwrap().to_owned(),
            name.to_owned(),
            seconds.to_string(),
            issuer.to_string(),
            step.to_owned(),
            if time == Time::Runs { "runs" } else { "stands" }.to_owned(),
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
        self.order("token");
    }

    /// Has it do something that [`obeyed`] knows.
    pub(super) fn order(&mut self, order: &str) {
        writeln!(self.orders, "{order}").unwrap();
    }

    /// What it says next.
    pub(super) fn answer(&mut self) -> String {
        let mut lines = self.answers.by_ref().map_while(Result::ok);
        lines
            .find_map(|line| line.strip_prefix("-> ").map(str::to_owned))
            .unwrap()
    }

    /// Ends it as it is (`SIGKILL`).
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
        self.other_at("nowhere", name, seconds)
    }

    pub(super) fn other_at(&self, step: &str, name: &str, seconds: u64) -> Other {
        let (folder, issuer) = (self.folder.path(), self.issuer.address);
        Other::start(folder, (name, seconds), issuer, step, Time::Stands)
    }
}

#[tokio::test]
#[ignore = "run as a child of the tests of this module"]
async fn does_as_it_is_told() {
    let Some(folder) = std::env::var_os(PARTS[0]).map(PathBuf::from) else {
        return;
    };
    let [name, seconds, issuer, step, time] =
        [1, 2, 3, 4, 5].map(|part| std::env::var(PARTS[part]).unwrap());
    let (tell, mut orders) = tokio::sync::mpsc::channel(1);
    // While this runs, a clock that stands is not moved on.
    let reading = tokio::task::spawn_blocking(move || {
        for order in std::io::stdin().lines().map_while(Result::ok) {
            tell.blocking_send(order).unwrap();
        }
    });
    if time == "stands" {
        tokio::time::pause();
    }
    let process = process_held(&folder, &name, seconds.parse().unwrap(), &step);
    let permit = permit(&issuer, "ann", SERVER);
    say("ready");
    while let Some(order) = orders.recv().await {
        say(&obeyed(&process, &permit, &order).await);
    }
    reading.await.unwrap();
}

/// What comes of an order: `token`, which is asked for so many times at once; `refused` by the server, which was sent this
/// token; `end`.
async fn obeyed(process: &Process, permit: &Permit, order: &str) -> String {
    let outcome = |result: Result<String, Error>| result.unwrap_or_else(|error| told(&error));
    match order.split_once(' ') {
        Some(("token", times)) => {
            let times: usize = times.parse().unwrap();
            let tokens = join_all((0..times).map(|_| process.token(permit))).await;
            let mut tokens: Vec<_> = tokens.into_iter().map(outcome).collect();
            tokens.dedup();
            tokens.join(" ")
        }
        Some(("refused", token)) => outcome(process.after_refusal(permit, token).await),
        None if order == "token" => outcome(process.token(permit).await),
        None if order == "end" => {
            let mut ending = Box::pin(process.connections.drain());
            if poll!(&mut ending).is_pending() {
                say("ending");
                ending.await;
            }
            "ended".into()
        }
        _ => panic!("no such order: {order}"),
    }
}

pub(super) fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "-> {text}").unwrap();
    out.flush().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_eight_processes_with_sixty_four_tasks_each_one_asks() {
    let world = World::connected(Reuse::Kills).await;
    let (folder, issuer) = (world.folder.path(), world.issuer.address);
    let start = |number| {
        let name = format!("p{number}");
        Other::start(folder, (&name, LATER), issuer, "nowhere", Time::Runs)
    };
    let mut others: Vec<_> = (0..8).map(start).collect();
    for other in &mut others {
        other.order("token 64");
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

    let mut taking_over = world.other("taking-over", LATER + LEASE);
    taking_over.ask();
    assert_eq!(taking_over.answer(), "connect.reconnect rotation_lost");
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

    let mut taking_over = world.other("taking-over", LATER + LEASE);
    taking_over.ask();
    assert_eq!(taking_over.answer(), "at-3");

    stopped.go_on();
    assert_eq!(stopped.answer(), "at-3");
    let next = world.process("next", LATER + LEASE);
    assert_eq!(next.token(&world.permit()).await.unwrap(), "at-3");
    assert_eq!(world.issuer.refreshes(), 2);
}
