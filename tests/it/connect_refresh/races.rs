//! Ends and beginnings of a connection while it is refreshed, and what is under way when a process ends.

use super::{
    LATER, World,
    issuer::{Plan, Reuse},
    soon, told,
};

#[tokio::test]
async fn the_result_of_a_connection_that_has_ended_is_revoked() {
    let world = World::connected(Reuse::Kills).await;
    let process = world.process("process", LATER);
    let permit = world.permit();
    world.issuer.plan(Plan::HoldFirst);
    let (token, ()) = tokio::join!(process.token(&permit), async {
        world.issuer.arrived(1).await;
        world.sql().execute("DELETE FROM grants", []).unwrap();
        world.issuer.release();
    });
    assert_eq!(told(&token.unwrap_err()), "connect.required");
    process.connections.drain().await;
    assert_eq!(world.issuer.revoked(), ["rt-2", "at-2"]);
    assert_eq!(process.records().await, ["credential revoked allowed -"]);
}

#[tokio::test]
async fn who_disconnects_during_a_refresh_is_disconnected() {
    let world = World::connected(Reuse::Kills).await;
    let process = world.process("process", LATER);
    let permit = world.permit();
    world.issuer.plan(Plan::HoldLast);
    let (token, ()) = tokio::join!(process.token(&permit), async {
        world.issuer.done(1).await;
        process
            .connections
            .disconnect(&permit, soon())
            .await
            .unwrap();
        world.issuer.release();
    });
    assert_eq!(told(&token.unwrap_err()), "connect.required");
    process.connections.drain().await;
    assert!(world.issuer.revoked().contains(&"rt-2".to_owned()));
    assert!(!world.issuer.is_alive("rt-2"));
    let rows: i64 = world
        .sql()
        .query_row("SELECT count(*) FROM grants", [], |row| row.get(0))
        .unwrap();
    assert_eq!(rows, 0);
}

#[tokio::test]
async fn a_new_connection_is_not_overwritten_by_the_refresh_of_the_old() {
    let world = World::connected(Reuse::Kills).await;
    let process = world.process("process", LATER);
    let permit = world.permit();
    world.issuer.plan(Plan::HoldLast);
    let (token, ()) = tokio::join!(process.token(&permit), async {
        world.issuer.done(1).await;
        // The refresh has taken the second tokens: these are the third.
        process.connect(&permit).await;
        world.issuer.release();
    });
    assert_eq!(token.unwrap(), "at-3");
    process.connections.drain().await;
    assert!(world.issuer.revoked().contains(&"rt-2".to_owned()));
    assert!(world.issuer.is_alive("rt-3"));
    let next = world.process("next", LATER);
    assert_eq!(next.token(&permit).await.unwrap(), "at-3");
}

#[tokio::test]
async fn a_process_that_ends_waits_for_its_request_and_begins_no_other() {
    let world = World::connected(Reuse::Kills).await;
    let process = world.process("process", LATER);
    let permit = world.permit();
    world.issuer.plan(Plan::HoldLast);
    let (token, (), ()) = tokio::join!(
        process.token(&permit),
        async {
            world.issuer.arrived(1).await;
            process.connections.drain().await;
        },
        async {
            world.issuer.done(1).await;
            world.issuer.release();
        }
    );
    assert_eq!(token.unwrap(), "at-2");
    process.clock.set(3 * LATER);
    let late = world.process("late", LATER);
    assert_eq!(late.token(&permit).await.unwrap(), "at-2");
    late.connections.drain().await;
    let refused = late.after_refusal(&permit, "at-2").await.unwrap_err();
    assert_eq!(told(&refused), "connect.unavailable");
    assert_eq!(world.issuer.refreshes(), 1);
}
