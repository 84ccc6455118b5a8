use std::sync::Arc;

use futures_util::FutureExt as _;

use super::*;
use crate::subject::Scopes;

type All = Arc<Lines<&'static str>>;

fn lines() -> All {
    Arc::new(Lines::new(Gauge::default(), Gauge::default()))
}

fn caller(agent: &str) -> Arc<Subject> {
    Arc::new(Subject {
        tenant: "default".into(),
        agent: agent.into(),
        user: "ann".into(),
        groups: Arc::from([]),
        scopes: Scopes::CALL,
        conversation: None,
        turn: None,
        acting: None,
        evidence: "key:1".into(),
    })
}

fn join(lines: &All, agent: &str, running: usize, waiting: usize) -> Joined<&'static str> {
    let bounds = Bounds { running, waiting };
    lines.join(&"k", &caller(agent), bounds)
}

fn seat(lines: &All, agent: &str, running: usize, waiting: usize) -> Seat<&'static str> {
    match join(lines, agent, running, waiting) {
        Joined::Seated(seat) => seat,
        Joined::Queued(_) => panic!("queued"),
        Joined::Full => panic!("full"),
    }
}

fn turn(lines: &All, agent: &str, running: usize, waiting: usize) -> Turn<&'static str> {
    match join(lines, agent, running, waiting) {
        Joined::Queued(turn) => turn,
        Joined::Seated(_) => panic!("seated"),
        Joined::Full => panic!("full"),
    }
}

/// The seat of a call whose turn has come.
fn came(turn: &mut Turn<&'static str>) -> Option<Seat<&'static str>> {
    turn.come().now_or_never().flatten()
}

fn is_full(lines: &All, agent: &str, running: usize, waiting: usize) -> bool {
    matches!(join(lines, agent, running, waiting), Joined::Full)
}

#[test]
fn so_many_run_and_so_many_wait_in_order() {
    let lines = lines();
    let mut seats: Vec<_> = (0..4).map(|_| seat(&lines, "a", 4, 4)).collect();
    let mut turns: Vec<_> = (0..4).map(|_| turn(&lines, "a", 4, 4)).collect();
    assert!(is_full(&lines, "a", 4, 4));
    assert_eq!((lines.seated.get(), lines.waiting.get()), (4, 4));
    for turn in &mut turns {
        assert!(came(turn).is_none());
        seats.pop();
        seats.insert(0, came(turn).unwrap());
    }
    drop(turns);
    assert_eq!((lines.seated.get(), lines.waiting.get()), (4, 0));
    drop(seats);
    assert_eq!((lines.seated.get(), lines.open.len()), (0, 0));
}

#[test]
fn one_that_gives_up_leaves_its_place() {
    let lines = lines();
    let running = seat(&lines, "a", 1, 2);
    let first = turn(&lines, "a", 1, 2);
    let mut second = turn(&lines, "a", 1, 2);
    assert!(is_full(&lines, "a", 1, 2));
    drop(first);
    let mut third = turn(&lines, "a", 1, 2);
    drop(running);
    let next = came(&mut second).unwrap();
    assert!(came(&mut third).is_none());
    // Its turn comes as it gives up.
    drop(next);
    drop((second, third));
    assert_eq!((lines.seated.get(), lines.open.len()), (0, 0));
}

#[test]
fn callers_take_turns() {
    let lines = lines();
    let mut running = seat(&lines, "a", 1, 64);
    let mut turns = Vec::new();
    for (name, agent) in [
        ("a1", "a"),
        ("a2", "a"),
        ("a3", "a"),
        ("b1", "b"),
        ("c1", "c"),
    ] {
        turns.push((name, turn(&lines, agent, 1, 64)));
    }
    let mut order = Vec::new();
    while !turns.is_empty() {
        drop(running);
        let next = turns
            .iter_mut()
            .enumerate()
            .find_map(|(at, (name, turn))| Some((at, *name, came(turn)?)));
        let (at, name, next) = next.unwrap();
        running = next;
        order.push(name);
        drop(turns.remove(at));
        // One that always comes again does not go before those that wait.
        if name == "b1" {
            turns.push(("b2", turn(&lines, "b", 1, 64)));
        }
    }
    assert_eq!(order, ["a1", "b1", "c1", "a2", "b2", "a3"]);
}

#[test]
fn a_call_that_steps_aside_lets_others_run_but_no_more_in_all() {
    let lines = lines();
    let first = seat(&lines, "a", 1, 2);
    let mut second = turn(&lines, "a", 1, 2);
    let aside = first.spot().step_aside();
    let seated = came(&mut second).unwrap();
    let mut third = turn(&lines, "a", 1, 2);
    assert!(is_full(&lines, "a", 1, 2));
    // It goes on at once; the next runs when both are over.
    drop(aside);
    drop(seated);
    assert!(came(&mut third).is_none());
    drop(first);
    drop(came(&mut third).unwrap());
    assert_eq!(lines.open.len(), 0);
}

#[test]
fn another_policys_seats_are_for_calls_that_come_and_those_that_wait() {
    let lines = lines();
    let _one = seat(&lines, "a", 1, 4);
    let mut two = turn(&lines, "a", 1, 4);
    let mut three = turn(&lines, "a", 3, 4);
    let (two, three) = (came(&mut two).unwrap(), came(&mut three).unwrap());
    let mut four = turn(&lines, "a", 1, 4);
    drop(two);
    assert!(came(&mut four).is_none());
    drop(three);
    assert!(came(&mut four).is_none(), "one runs, and one may");
}

#[test]
fn a_drain_sends_away_who_waits_and_lets_run_what_may() {
    let lines = lines();
    let running = seat(&lines, "a", 1, 4);
    let mut waiting = turn(&lines, "a", 1, 4);
    lines.drain();
    assert!(waiting.come().now_or_never().unwrap().is_none());
    assert!(is_full(&lines, "a", 1, 4));
    drop(running);
    drop(seat(&lines, "a", 1, 4));
}

/// Threads that come, wait, give up and end at random leave nothing behind and never see too many at once.
#[test]
fn many_threads_keep_the_bound() {
    use std::sync::atomic::AtomicUsize;
    let lines = lines();
    let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for thread in 0..4usize {
            let (lines, now, most) = (&lines, &now, &most);
            scope.spawn(move || {
                for round in 0..5_000usize {
                    let agent = if thread % 2 == 0 { "a" } else { "b" };
                    let seat = match join(lines, agent, 2, 8) {
                        Joined::Seated(seat) => seat,
                        Joined::Queued(mut turn) if round % 3 != 0 => match wait(&mut turn) {
                            Some(seat) => seat,
                            None => continue,
                        },
                        _ => continue,
                    };
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::yield_now();
                    now.fetch_sub(1, Ordering::SeqCst);
                    drop(seat);
                }
            });
        }
    });
    assert!(most.into_inner() <= 2);
    assert_eq!((lines.seated.get(), lines.waiting.get()), (0, 0));
    assert_eq!(lines.open.len(), 0);
}

/// Waits as a thread of its own does.
fn wait(turn: &mut Turn<&'static str>) -> Option<Seat<&'static str>> {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(turn.come())
}
