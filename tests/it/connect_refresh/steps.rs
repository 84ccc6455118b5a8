//! `kill -9` at each step of a refresh, as it is taken: before and after the claim, before the request, before and after its
//! result is saved, while a spool is taken up, and while a process that ends waits for its request. What the provider has
//! under way when its process is killed is in [`super::crash`].

use super::{
    LATER, LEASE, World,
    issuer::{Plan, Reuse},
    told,
};

impl World {
    /// Kills a process that obeys `order`, once it has come to `step`.
    fn killed_at(&self, step: &str, name: &str, seconds: u64, order: &str) {
        let mut killed = self.other_at(step, name, seconds);
        killed.order(order);
        assert_eq!(killed.answer(), "held");
        killed.kill();
    }

    /// What the next process is told that begins so many seconds after the beginning.
    async fn next(&self, seconds: u64) -> String {
        let next = self.process(&format!("next-{seconds}"), seconds);
        let token = next.token(&self.permit()).await;
        next.connections.drain().await;
        token.unwrap_or_else(|error| told(&error))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn before_the_claim_nothing_is_held_up() {
    let world = World::connected(Reuse::Kills).await;
    world.killed_at("claim", "killed", LATER, "token");
    assert_eq!(world.next(LATER).await, "at-2");
    assert_eq!(world.issuer.refreshes(), 1);
    assert!(world.issuer.is_alive("rt-2"));
}

/// `claimed` is durable and known to nobody, `dial` under the claim with the tokens in hand.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn between_the_claim_and_the_request_the_lease_is_waited_for() {
    for step in ["claimed", "dial"] {
        let world = World::connected(Reuse::Kills).await;
        world.killed_at(step, "killed", LATER, "token");
        let soon = world.process("soon", LATER + 1);
        let held_up = soon.token_before(&world.permit(), super::at_once()).await;
        let code = told(&held_up.unwrap_err());
        assert_eq!(code, "connect.unavailable", "{step}: not to be made again");
        assert_eq!(world.issuer.refreshes(), 0, "{step}");

        assert_eq!(world.next(LATER + LEASE).await, "at-2", "{step}");
        assert_eq!(world.issuer.refreshes(), 1, "{step}");
        assert!(world.issuer.is_alive("rt-2"), "{step}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_takes_over_may_be_killed_like_the_first() {
    let world = World::connected(Reuse::Kills).await;
    world.killed_at("dial", "first", LATER, "token");
    world.killed_at("claimed", "second", LATER + LEASE, "token");
    world.killed_at("dial", "third", LATER + 2 * LEASE, "token");
    assert_eq!(world.next(LATER + 3 * LEASE).await, "at-2");
    assert_eq!(world.issuer.refreshes(), 1);
    assert!(world.issuer.is_alive("rt-2"));
}

/// The answer was read, and is nowhere yet: what the provider forgot is lost, which is told as such.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn before_the_save_the_provider_decides_what_is_left() {
    let cases = [
        (Reuse::Kills, "connect.reconnect rotation_lost"),
        (Reuse::Refuses, "connect.reconnect rotation_lost"),
        (Reuse::Graces, "at-3"),
    ];
    for (reuse, left) in cases {
        let world = World::connected(reuse).await;
        world.killed_at("save", "killed", LATER, "token");
        assert_eq!(world.issuer.refreshes(), 1, "{reuse:?}");
        for _ in 0..2 {
            assert_eq!(world.next(LATER + LEASE).await, left, "{reuse:?}");
        }
        assert_eq!(world.issuer.refreshes(), 2, "{reuse:?}: no third");
    }
}

/// Saved, and nobody was told: the refresh token that stands is the one that the provider knows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_the_save_the_new_token_stands() {
    let world = World::connected(Reuse::Kills).await;
    world.killed_at("saved", "killed", LATER, "token");
    assert_eq!(world.next(LATER).await, "at-2");
    assert_eq!(world.issuer.refreshes(), 1);
    assert_eq!(world.next(2 * LATER).await, "at-3");
    assert_eq!(world.issuer.refreshes(), 2);
    assert!(world.issuer.is_alive("rt-3"));
}

/// A refusal that was not saved is found once more, as one whose reason nobody can know; one that was saved stands.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn around_the_save_of_a_refusal() {
    let cases = [
        ("save", 2, "connect.reconnect rotation_lost"),
        ("saved", 1, "connect.reconnect revoked"),
    ];
    for (step, requests, left) in cases {
        let world = World::connected(Reuse::Kills).await;
        world.issuer.plan(Plan::Refuse("invalid_grant"));
        world.issuer.plan(Plan::Refuse("invalid_grant"));
        world.killed_at(step, "killed", LATER, "token");
        assert_eq!(world.next(LATER + LEASE).await, left, "{step}");
        assert_eq!(world.issuer.refreshes(), requests, "{step}");
    }
}

/// A provider in trouble took nothing: its refresh token still works, after the lease or after the pause.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn around_the_save_of_a_failure() {
    for (step, seconds) in [("save", LEASE), ("saved", 2)] {
        let world = World::connected(Reuse::Kills).await;
        world.issuer.plan(Plan::Status(503, None));
        world.killed_at(step, "killed", LATER, "token");
        assert_eq!(world.next(LATER + seconds).await, "at-2", "{step}");
        assert_eq!(world.issuer.refreshes(), 2, "{step}");
        assert!(world.issuer.is_alive("rt-2"), "{step}");
    }
}

/// A token that a server refused, and which is good by its own words: it stays in use until it is refused again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forced_refresh_is_taken_over_like_another() {
    let world = World::connected(Reuse::Kills).await;
    world.killed_at("dial", "killed", 0, "refused at-1");
    let next = world.process("next", LEASE);
    assert_eq!(next.token(&world.permit()).await.unwrap(), "at-1");
    let other = next.after_refusal(&world.permit(), "at-1").await;
    assert_eq!(other.unwrap(), "at-2");
    assert_eq!(world.issuer.refreshes(), 1);
    assert!(world.issuer.is_alive("rt-2"));
}

/// What waits on the disk is saved once, whether the process that takes it up is killed before or after that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_a_spool_is_taken_up() {
    for step in ["overwrite", "overwritten"] {
        let world = World::connected(Reuse::Kills).await;
        world.spooled_and_killed("killed").await;
        let mut second = world.other_at(step, "killed", LATER + 1);
        assert_eq!(second.answer(), "held", "{step}");
        second.kill();

        assert_eq!(world.spooled("killed"), 1, "{step}");
        let third = world.process("killed", LATER + 1);
        assert_eq!(third.token(&world.permit()).await.unwrap(), "at-2");
        assert_eq!(third.spooled(), 0, "{step}");
        assert_eq!(world.next(LATER + 1).await, "at-2", "{step}");
        assert_eq!(world.issuer.refreshes(), 1, "{step}");
        assert_eq!(world.next(2 * LATER).await, "at-3", "{step}");
    }
}

/// It begins nothing more, and is killed while the provider has its request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_a_process_that_ends_waits_for_its_request() {
    let world = World::connected(Reuse::Kills).await;
    world.issuer.plan(Plan::HoldFirst);
    let mut killed = world.other("killed", 3600 - 50);
    killed.ask();
    assert_eq!(killed.answer(), "at-1");
    world.issuer.arrived(1).await;
    killed.order("end");
    assert_eq!(killed.answer(), "ending");
    killed.kill();
    assert_eq!(world.next(3600 - 50 + LEASE).await, "at-1");
    assert_eq!(world.issuer.refreshes(), 1);
    assert_eq!(world.next(3600).await, "at-2");
    assert_eq!(world.issuer.refreshes(), 2);
    assert!(world.issuer.is_alive("rt-2"));
}
