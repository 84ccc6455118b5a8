//! Processes that are killed while the provider has their request, and a database that is gone between the exchange and the save.

use std::fs;

use super::{
    LATER, LEASE, World,
    issuer::{Plan, Reuse},
    told,
};

impl World {
    fn move_database_away(&self) {
        fs::rename(self.database(), self.folder.path().join("away")).unwrap();
    }

    fn move_database_back(&self) {
        fs::rename(self.folder.path().join("away"), self.database()).unwrap();
    }

    /// Kills a process that has put its result on the disk, since the database would not take it.
    pub(super) async fn spooled_and_killed(&self, name: &str) {
        self.issuer.plan(Plan::HoldLast);
        let mut killed = self.other(name, LATER);
        killed.ask();
        self.issuer.done(1).await;
        self.move_database_away();
        self.issuer.release();
        assert_eq!(killed.answer(), "at-2");
        killed.kill();
        self.move_database_back();
    }
}

/// Killed while the provider has the request and has done nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_the_provider_never_saw_is_sent_again() {
    let world = World::connected(Reuse::Kills).await;
    world.issuer.plan(Plan::HoldFirst);
    let mut killed = world.other("killed", LATER);
    killed.ask();
    world.issuer.arrived(1).await;
    killed.kill();

    let later = world.process("later", LATER + LEASE);
    assert_eq!(later.token(&world.permit()).await.unwrap(), "at-2");
    assert_eq!(world.issuer.refreshes(), 2);
    assert!(world.issuer.is_alive("rt-2"));
}

/// The same for a token that is still good: nobody tries the same refresh token again before that is over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_crash_a_good_token_is_used_to_its_end() {
    let world = World::connected(Reuse::Kills).await;
    world.issuer.plan(Plan::HoldFirst);
    let mut killed = world.other("killed", 3600 - 50);
    killed.ask();
    assert_eq!(killed.answer(), "at-1");
    world.issuer.arrived(1).await;
    killed.kill();

    let due = world.process("due", 3600 - 50 + LEASE);
    assert_eq!(due.token(&world.permit()).await.unwrap(), "at-1");
    due.connections.drain().await;
    assert_eq!(world.issuer.refreshes(), 1);

    let over = world.process("over", 3600);
    assert_eq!(over.token(&world.permit()).await.unwrap(), "at-2");
    assert_eq!(world.issuer.refreshes(), 2);
}

/// Killed after the provider rotated and before its answer came: without grace the connection is lost, which is told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_was_lost_is_told_as_such() {
    let world = World::connected(Reuse::Kills).await;
    world.issuer.plan(Plan::HoldLast);
    let mut killed = world.other("killed", LATER);
    killed.ask();
    world.issuer.done(1).await;
    killed.kill();

    let later = world.process("later", LATER + LEASE);
    for _ in 0..3 {
        let lost = later.token(&world.permit()).await.unwrap_err();
        assert_eq!(told(&lost), "connect.reconnect rotation_lost");
    }
    assert_eq!(world.issuer.refreshes(), 2, "one more try, and no other");
}

/// The same with a provider that forgives.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_was_lost_is_asked_for_again_with_grace() {
    let world = World::connected(Reuse::Graces).await;
    world.issuer.plan(Plan::HoldLast);
    let mut killed = world.other("killed", LATER);
    killed.ask();
    world.issuer.done(1).await;
    killed.kill();

    let later = world.process("later", LATER + LEASE);
    assert_eq!(later.token(&world.permit()).await.unwrap(), "at-3");
    assert_eq!(world.issuer.refreshes(), 2);
}

/// The connection breaks after the provider rotated: its outcome is not known, in one process as little as in another.
#[tokio::test]
async fn an_answer_that_broke_off_is_told_as_lost() {
    let world = World::connected(Reuse::Kills).await;
    world.issuer.plan(Plan::HangUp);
    let process = world.process("process", LATER);
    let broken = process.token(&world.permit()).await.unwrap_err();
    assert_eq!(told(&broken), "connect.unavailable");
    process.clock.set(LATER + 2);
    let lost = process.token(&world.permit()).await.unwrap_err();
    assert_eq!(told(&lost), "connect.reconnect rotation_lost");
    assert_eq!(world.issuer.refreshes(), 2);
}

/// The database is gone between the exchange and the save: the result is used from the spool, and saved later.
#[tokio::test]
async fn what_the_database_does_not_take_is_kept_and_saved_later() {
    let world = World::connected(Reuse::Kills).await;
    let process = world.process("process", LATER);
    world.issuer.plan(Plan::HoldLast);
    let permit = world.permit();
    let (token, ()) = tokio::join!(process.token(&permit), async {
        world.issuer.done(1).await;
        world.move_database_away();
        world.issuer.release();
    });
    assert_eq!(token.unwrap(), "at-2");
    assert_eq!(process.spooled(), 1);
    assert_eq!(process.token(&permit).await.unwrap(), "at-2");
    world.move_database_back();
    process.connections.drain().await;
    assert_eq!(process.spooled(), 0);
    let other = world.process("other", LATER);
    assert_eq!(other.token(&permit).await.unwrap(), "at-2");
    assert_eq!(world.issuer.refreshes(), 1);
    assert!(world.issuer.is_alive("rt-2"));
}

/// Killed after that: the next process of the same folder saves it first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_killed_process_kept_is_taken_up_by_the_next() {
    let world = World::connected(Reuse::Kills).await;
    world.spooled_and_killed("killed").await;

    assert_eq!(world.spooled("killed"), 1);
    let next = world.process("killed", LATER + 1);
    assert_eq!(next.token(&world.permit()).await.unwrap(), "at-2");
    assert_eq!(next.spooled(), 0);
    let other = world.process("other", LATER + 1);
    assert_eq!(other.token(&world.permit()).await.unwrap(), "at-2");
    assert_eq!(world.issuer.refreshes(), 1);
}

/// The person disconnected while the result waited: it is revoked, and never stored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_for_the_database_is_revoked_where_its_connection_is_gone() {
    let world = World::connected(Reuse::Kills).await;
    world.spooled_and_killed("killed").await;
    let permit = world.permit();
    let other = world.process("other", LATER + 1);
    other
        .connections
        .disconnect(&permit, super::soon())
        .await
        .unwrap();

    let next = world.process("killed", LATER + 1);
    let none = next.token(&permit).await.unwrap_err();
    assert_eq!(told(&none), "connect.required");
    assert!(world.issuer.revoked().contains(&"rt-2".to_owned()));
    assert_eq!(next.spooled(), 0);
}
