//! Rows that were changed behind Tollgate's back: none gives a token, and each is on record.

use rusqlite::Connection;

use super::{SERVER, World, issuer::Reuse, permit, told};

/// What a change does to the rows of two users.
fn change(world: &World, sql: &str) {
    let changed = world.sql().execute(sql, []).unwrap();
    assert!(changed > 0, "{sql}");
}

async fn two() -> World {
    let world = World::connected(Reuse::Kills).await;
    let issuer = world.issuer.address.to_string();
    let bob = permit(&issuer, "bob", SERVER);
    world.process("second", 0).connect(&bob).await;
    world
}

#[tokio::test]
async fn a_row_that_was_changed_or_moved_gives_no_token() {
    let swap = "UPDATE grants SET sealed =
        (SELECT other.sealed FROM grants AS other WHERE other.user <> grants.user)";
    let swap_whole = "UPDATE grants SET user = CASE user WHEN 'ann' THEN 'bob2' ELSE 'ann' END";
    let changes = [
        ("sealed", swap),
        ("user", swap_whole),
        (
            "tenant",
            "UPDATE grants SET record = zeroblob(16) WHERE user = 'ann'",
        ),
        ("grant", "UPDATE grants SET grant_id = zeroblob(16)"),
        ("short", "UPDATE grants SET grant_id = x'00'"),
        (
            "issuer",
            "UPDATE grants SET issuer = 'https://evil.example'",
        ),
        ("client", "UPDATE grants SET client = 'other'"),
        (
            "resource",
            "UPDATE grants SET resource = 'https://evil.example'",
        ),
        ("version", "UPDATE grants SET version = version + 1"),
        ("cut", "UPDATE grants SET sealed = substr(sealed, 1, 100)"),
        ("empty", "UPDATE grants SET sealed = x''"),
    ];
    for (name, sql) in changes {
        let world = two().await;
        change(&world, sql);
        let process = world.process("process", 0);
        for _ in 0..3 {
            let refused = process.token(&world.permit()).await.unwrap_err();
            assert_eq!(told(&refused), "connect.reconnect unreadable", "{name}");
        }
        assert_eq!(
            process.records().await,
            ["credential tampered refused vault.record"],
            "{name}"
        );
        assert_eq!(world.issuer.refreshes(), 0, "{name}");
    }
}

#[tokio::test]
async fn a_row_that_was_given_to_another_server_gives_no_token() {
    let world = World::connected(Reuse::Kills).await;
    change(&world, "UPDATE grants SET server = 'elsewhere'");
    let process = world.process("process", 0);
    let refused = process.token(&world.permit()).await.unwrap_err();
    assert_eq!(told(&refused), "connect.required");
    change(
        &world,
        "UPDATE grants SET server = 'demo', tenant = 'other'",
    );
    let process = world.process("again", 0);
    let refused = process.token(&world.permit()).await.unwrap_err();
    assert_eq!(told(&refused), "connect.required");
}

#[tokio::test]
async fn an_older_version_that_is_put_back_gives_no_token() {
    let world = World::connected(Reuse::Kills).await;
    let old = sealed(&world.sql());
    let later = world.process("later", super::LATER);
    assert_eq!(later.token(&world.permit()).await.unwrap(), "at-2");
    assert_ne!(sealed(&world.sql()), old);
    world
        .sql()
        .execute("UPDATE grants SET sealed = ?1", [&old])
        .unwrap();
    let process = world.process("process", super::LATER);
    let refused = process.token(&world.permit()).await.unwrap_err();
    assert_eq!(told(&refused), "connect.reconnect unreadable");
}

#[tokio::test]
async fn hints_beside_the_seal_change_nothing_that_matters() {
    let world = World::connected(Reuse::Kills).await;
    let hints = "UPDATE grants SET state = 'revoked', expires_at = 4000000000, created_at = 0";
    change(&world, hints);
    let process = world.process("process", 0);
    assert_eq!(process.token(&world.permit()).await.unwrap(), "at-1");
    let over = world.process("over", super::LATER);
    assert_eq!(over.token(&world.permit()).await.unwrap(), "at-2");
}

#[tokio::test]
async fn who_connects_again_is_connected() {
    let world = World::connected(Reuse::Kills).await;
    change(&world, "UPDATE grants SET sealed = x'00'");
    let process = world.process("process", 0);
    process.token(&world.permit()).await.unwrap_err();
    process.connect(&world.permit()).await;
    assert_eq!(process.token(&world.permit()).await.unwrap(), "at-2");
}

fn sealed(sql: &Connection) -> Vec<u8> {
    sql.query_row("SELECT sealed FROM grants", [], |row| row.get(0))
        .unwrap()
}
