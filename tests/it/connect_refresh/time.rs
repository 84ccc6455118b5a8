//! Waiting as a provider asks for it, lifetimes of all kinds, and clocks that are set.

use std::time::Duration;

use futures_util::{future::join_all, poll};
use tokio::time;

use super::{
    LATER, LEASE, World, at_once,
    issuer::{Plan, Reuse},
    told,
};

#[tokio::test]
async fn a_provider_is_left_alone_as_long_as_it_wants() {
    let world = World::connected(Reuse::Kills).await;
    let permit = world.permit();
    let process = world.process("process", LATER);
    world.issuer.plan(Plan::Status(503, Some("120")));
    for _ in 0..5 {
        let waits = process.token(&permit).await.unwrap_err();
        assert_eq!(told(&waits), "connect.unavailable");
    }
    // What it wants holds for every process.
    let other = world.process("other", LATER + 119);
    let waits = other.token(&permit).await.unwrap_err();
    assert_eq!(told(&waits), "connect.unavailable");
    assert_eq!(world.issuer.refreshes(), 1);

    let later = world.process("later", LATER + 121);
    assert_eq!(later.token(&permit).await.unwrap(), "at-2");
    assert_eq!(world.issuer.refreshes(), 2);
    process.connections.drain().await;
    assert_eq!(
        process.records().await,
        ["credential refresh_failed failed connect.unavailable"]
    );
}

#[tokio::test]
async fn a_provider_in_trouble_takes_no_token_that_is_good() {
    let world = World::connected(Reuse::Kills).await;
    let permit = world.permit();
    let process = world.process("process", 3600 - 30);
    world.issuer.plan(Plan::Status(500, None));
    for _ in 0..5 {
        assert_eq!(process.token(&permit).await.unwrap(), "at-1");
    }
    world.issuer.done(1).await;
    for _ in 0..5 {
        assert_eq!(process.token(&permit).await.unwrap(), "at-1");
    }
    process.connections.drain().await;
    assert_eq!(world.issuer.refreshes(), 1);
}

#[tokio::test]
async fn after_an_answer_that_broke_off_a_good_token_is_used_to_its_end() {
    let world = World::connected(Reuse::Kills).await;
    let permit = world.permit();
    let process = world.process("process", 3600 - 30);
    world.issuer.plan(Plan::HangUp);
    assert_eq!(process.token(&permit).await.unwrap(), "at-1");
    world.issuer.done(1).await;
    process.connections.drain().await;
    let still = world.process("still", 3600 - 1);
    assert_eq!(still.token(&permit).await.unwrap(), "at-1");
    still.connections.drain().await;
    assert_eq!(world.issuer.refreshes(), 1);
    let over = world.process("over", 3600);
    let lost = over.token(&permit).await.unwrap_err();
    assert_eq!(told(&lost), "connect.reconnect rotation_lost");
    assert_eq!(world.issuer.refreshes(), 2);
}

#[tokio::test]
async fn a_refused_refresh_leaves_the_token_to_its_end() {
    let world = World::connected(Reuse::Kills).await;
    let permit = world.permit();
    let process = world.process("process", 3600 - 30);
    world.issuer.plan(Plan::Refuse("invalid_grant"));
    assert_eq!(process.token(&permit).await.unwrap(), "at-1");
    world.issuer.done(1).await;
    process.connections.drain().await;
    for _ in 0..5 {
        assert_eq!(process.token(&permit).await.unwrap(), "at-1");
    }
    let over = world.process("over", 3600);
    let ended = over.token(&permit).await.unwrap_err();
    assert_eq!(told(&ended), "connect.reconnect revoked");
    assert_eq!(world.issuer.refreshes(), 1, "the refresh token is gone");
}

#[tokio::test]
async fn a_clock_that_is_set_forth_costs_one_refresh() {
    let world = World::connected(Reuse::Kills).await;
    let permit = world.permit();
    let process = world.process("process", 0);
    assert_eq!(process.token(&permit).await.unwrap(), "at-1");
    process.clock.set(LATER);
    for _ in 0..20 {
        process.token(&permit).await.unwrap();
    }
    world.issuer.done(1).await;
    process.connections.drain().await;
    for _ in 0..20 {
        assert_eq!(process.token(&permit).await.unwrap(), "at-2");
    }
    assert_eq!(world.issuer.refreshes(), 1);
}

#[tokio::test]
async fn a_clock_that_is_set_back_costs_none() {
    let world = World::connected(Reuse::Kills).await;
    let permit = world.permit();
    let process = world.process("process", LATER);
    assert_eq!(process.token(&permit).await.unwrap(), "at-2");
    for seconds in [0, LATER, 60, LATER + 60] {
        process.clock.set(seconds);
        for _ in 0..20 {
            assert_eq!(process.token(&permit).await.unwrap(), "at-2");
        }
    }
    process.connections.drain().await;
    assert_eq!(world.issuer.refreshes(), 1);
    // Another process begins while the clock is wrong.
    let other = world.process("other", 0);
    assert_eq!(other.token(&permit).await.unwrap(), "at-2");
    other.connections.drain().await;
    assert_eq!(world.issuer.refreshes(), 1);
}

/// The clock is set while the provider has a request: whatever it says, that stays the only one.
#[tokio::test]
async fn a_clock_that_is_set_forth_and_back_during_a_refresh_costs_none() {
    let world = World::connected(Reuse::Kills).await;
    let permit = world.permit();
    let process = world.process("process", LATER);
    world.issuer.plan(Plan::HoldLast);
    let waiting = || join_all((0..64).map(|_| process.token(&permit)));
    let (first, second) = tokio::join!(waiting(), async {
        world.issuer.done(1).await;
        process.clock.set(24 * LATER);
        let mut more = Box::pin(waiting());
        assert!(poll!(&mut more).is_pending());
        process.clock.set(0);
        world.issuer.release();
        more.await
    });
    for token in first.into_iter().chain(second) {
        assert_eq!(token.unwrap(), "at-2");
    }
    for seconds in [0, LATER, LATER + 60] {
        process.clock.set(seconds);
        assert_eq!(process.token(&permit).await.unwrap(), "at-2", "{seconds}");
    }
    process.connections.drain().await;
    assert_eq!(world.issuer.refreshes(), 1);
    assert!(world.issuer.is_alive("rt-2"));
}

/// The same while another process has a request under way, whose lease seems to end in the far future.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_is_set_back_during_the_refresh_of_another_costs_none() {
    let world = World::connected(Reuse::Kills).await;
    let permit = world.permit();
    world.issuer.plan(Plan::HoldLast);
    let mut ahead = world.other("ahead", 3 * LATER);
    ahead.ask();
    world.issuer.done(1).await;
    let back = world.process("back", LATER);
    let held_up = back.token_before(&permit, at_once()).await.unwrap_err();
    assert_eq!(told(&held_up), "connect.unavailable");
    world.issuer.release();
    assert_eq!(ahead.answer(), "at-2");
    assert_eq!(back.token(&permit).await.unwrap(), "at-2");
    assert_eq!(world.issuer.refreshes(), 1);
    assert!(world.issuer.is_alive("rt-2"));
}

#[tokio::test]
async fn a_lease_that_a_clock_left_behind_holds_up_no_longer_than_another() {
    let world = World::connected(Reuse::Kills).await;
    let far = "UPDATE grants SET holder = x'07', until = 4000000000, sent = 1";
    world.sql().execute(far, []).unwrap();
    let process = world.process("process", LATER);
    let held_up = process.token_before(&world.permit(), at_once()).await;
    assert_eq!(told(&held_up.unwrap_err()), "connect.unavailable");
    assert_eq!(world.issuer.refreshes(), 0);
    time::pause();
    time::advance(Duration::from_secs(LEASE)).await;
    time::resume();
    assert_eq!(process.token(&world.permit()).await.unwrap(), "at-2");
    assert_eq!(world.issuer.refreshes(), 1);
}

#[tokio::test]
async fn a_short_lived_token_is_refreshed_once_it_is_over() {
    let world = World::new(Reuse::Kills).await;
    let permit = world.permit();
    world.issuer.lives(20);
    let first = world.process("first", 0);
    first.connect(&permit).await;
    let nearly = world.process("nearly", 19);
    assert_eq!(nearly.token(&permit).await.unwrap(), "at-1");
    nearly.connections.drain().await;
    assert_eq!(world.issuer.refreshes(), 0);
    let over = world.process("over", 20);
    assert_eq!(over.token(&permit).await.unwrap(), "at-2");
}
