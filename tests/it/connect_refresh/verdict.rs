//! Tokens that a server refuses for good: everybody is told so, and none is shut out for long.

use tollgate::{connect::State, vault::Credential};

use super::{
    LATER, Process, World,
    issuer::{Plan, Reuse},
    told,
};

const AGAIN: &str = "connect.reconnect refused";

fn ended(reason: &str) -> State {
    State::NeedsReconnect(reason.to_owned())
}

/// A world in which the server has refused `at-1`, and `at-2` that came in its place.
async fn refused() -> (World, Process) {
    let world = World::connected(Reuse::Kills).await;
    let process = world.process("process", 0);
    let permit = world.permit();
    let other = process.after_refusal(&permit, "at-1").await.unwrap();
    assert_eq!(other, "at-2");
    assert_eq!(process.refused_again(&permit, "at-2").await, AGAIN);
    (world, process)
}

#[tokio::test]
async fn everybody_is_told_that_a_token_is_refused_and_nobody_sends_it() {
    let (world, process) = refused().await;
    let permit = world.permit();
    let other = world.process("other", 59);
    for process in [&process, &other] {
        assert_eq!(process.state(&permit).await, ended("refused"));
        let none = process.token(&permit).await.unwrap_err();
        assert_eq!(told(&none), AGAIN);
        let none = process.after_refusal(&permit, "at-2").await.unwrap_err();
        assert_eq!(told(&none), AGAIN);
    }
    assert_eq!(world.issuer.refreshes(), 1);
    process.connections.drain().await;
    assert_eq!(
        process.records().await,
        [
            "credential refreshed allowed -",
            "connect reconnect_needed refused connect.reconnect"
        ]
    );
}

#[tokio::test]
async fn a_minute_later_it_is_tried_and_a_server_that_takes_it_ends_the_verdict() {
    let (world, process) = refused().await;
    let permit = world.permit();
    process.clock.set(60);
    assert_eq!(process.token(&permit).await.unwrap(), "at-2");
    assert_eq!(process.state(&permit).await, ended("refused"));
    let of = |token: &str| Credential::bearer(token.as_bytes()).unwrap();
    process.connections.taken(&permit, &of("at-2"));
    process.connections.drain().await;
    assert_eq!(process.state(&permit).await, State::Connected);
    assert_eq!(
        process.records().await,
        [
            "credential refreshed allowed -",
            "connect reconnect_needed refused connect.reconnect",
            "connect usable_again allowed -"
        ]
    );
}

#[tokio::test]
async fn a_server_that_took_another_token_says_nothing_of_this_one() {
    let (world, process) = refused().await;
    let permit = world.permit();
    let used = Credential::bearer(b"at-1").unwrap();
    process.connections.taken(&permit, &used);
    process.connections.drain().await;
    assert_eq!(process.state(&permit).await, ended("refused"));
}

#[tokio::test]
async fn one_that_refuses_it_once_more_is_left_alone_for_another_minute() {
    let (world, process) = refused().await;
    let permit = world.permit();
    process.clock.set(60);
    assert_eq!(process.refused_again(&permit, "at-2").await, AGAIN);
    process.clock.set(119);
    let none = process.token(&permit).await.unwrap_err();
    assert_eq!(told(&none), AGAIN);
    // A clock that was set back holds nobody up.
    process.clock.set(30);
    assert_eq!(process.token(&permit).await.unwrap(), "at-2");
    process.connections.drain().await;
    let records = process.records().await;
    let told = records.iter().filter(|one| one.contains("needed"));
    assert_eq!(told.count(), 1, "once is enough");
}

#[tokio::test]
async fn a_new_connection_ends_the_verdict() {
    let (world, process) = refused().await;
    let permit = world.permit();
    process.connect(&permit).await;
    assert_eq!(process.state(&permit).await, State::Connected);
    assert_eq!(process.token(&permit).await.unwrap(), "at-3");
    // What is said of the old one is of nothing that is there.
    assert_eq!(process.refused_again(&permit, "at-2").await, AGAIN);
    assert_eq!(process.state(&permit).await, State::Connected);
    assert_eq!(process.token(&permit).await.unwrap(), "at-3");
}

#[tokio::test]
async fn a_refresh_ends_the_verdict() {
    let (world, process) = refused().await;
    let permit = world.permit();
    process.clock.set(LATER);
    assert_eq!(process.token(&permit).await.unwrap(), "at-3");
    assert_eq!(process.state(&permit).await, State::Connected);
}

/// A verdict does not hide that nobody knows what became of a refresh token.
#[tokio::test]
async fn a_lost_rotation_is_told_as_one_after_a_verdict() {
    let world = World::connected(Reuse::Kills).await;
    let permit = world.permit();
    let process = world.process("process", LATER);
    world.issuer.plan(Plan::HangUp);
    let lost = process.token(&permit).await.unwrap_err();
    assert_eq!(told(&lost), "connect.unavailable");
    assert_eq!(process.refused_again(&permit, "at-1").await, AGAIN);
    process.clock.set(LATER + 3600);
    let lost = process.token(&permit).await.unwrap_err();
    assert_eq!(told(&lost), "connect.reconnect rotation_lost");
    assert_eq!(process.state(&permit).await, ended("rotation_lost"));
}
