//! Issuers and hosts are pinned; what is another asks a person, or is followed.

use rusqlite::Connection;
use serde_json::json;
use tollgate::{
    connect::{Error, State},
    policy::OnIssuerChange,
};

use super::{ISSUER, OTHER, World, metadata, resource};

/// The server names another authorization server from now on.
fn migrate(world: &World) {
    world.answer(&[
        (
            "GET http://127.0.0.1:9000/.well-known/oauth-protected-resource/mcp",
            resource(&[OTHER]),
        ),
        (
            "GET http://127.0.0.3:9000/.well-known/oauth-authorization-server",
            metadata(OTHER, json!({})),
        ),
        (
            "POST http://127.0.0.3:9000/register",
            super::registration("other-1"),
        ),
        (
            "POST http://127.0.0.3:9000/token",
            super::tokens("2", "read"),
        ),
    ]);
}

#[tokio::test]
async fn another_issuer_is_confirmed_by_a_person_and_takes_nothing_over() {
    let world = World::new().await;
    let (process, ann, bob) = (world.process(), world.permit("ann"), world.permit("bob"));
    process.connect(&ann).await;
    process.connect(&bob).await;
    migrate(&world);
    let preview = process.preview(&ann).await.unwrap();
    assert_eq!(preview.issuer, OTHER);
    assert_eq!(preview.issuer_host, "127.0.0.3:9000");
    assert_eq!(preview.issuer_changed_from.as_deref(), Some(ISSUER));
    let Err(Error::IssuerChanged { pinned, found, .. }) =
        process.try_start(&ann, None, ISSUER).await
    else {
        panic!("the page was of before");
    };
    assert_eq!(pinned, ISSUER);
    assert_eq!(
        found,
        "http://127.0.0.3:9000 with endpoints at 127.0.0.3:9000"
    );
    assert_eq!(
        process.state(&bob).await,
        State::Connected,
        "nobody confirmed"
    );

    let begun = process.try_start(&ann, None, OTHER).await.unwrap();
    assert_eq!(
        begun.sent()["client_id"],
        "other-1",
        "clients do not follow"
    );
    let changed = State::NeedsReconnect("issuer_changed".into());
    assert_eq!(process.state(&bob).await, changed);
    assert!(matches!(
        process.token(&bob).await,
        Err(Error::Reconnect {
            reason: "issuer_changed",
            ..
        })
    ));
    let state = begun.state();
    let right = [("code", "the-code"), ("state", &*state), ("iss", OTHER)];
    process.finish(&begun, &right).await.unwrap();
    assert_eq!(process.token(&ann).await.unwrap(), "Bearer at-2");
    let preview = process.preview(&bob).await.unwrap();
    assert_eq!(preview.issuer_changed_from, None, "it was confirmed");
    assert!(
        process
            .records()
            .await
            .contains(&"connect reconnect_needed refused connect.reconnect".to_owned())
    );
}

#[tokio::test]
async fn a_flow_through_the_issuer_of_before_is_not_ended() {
    let world = World::new().await;
    let (process, ann, bob) = (world.process(), world.permit("ann"), world.permit("bob"));
    let begun = process.start(&bob).await;
    migrate(&world);
    process.try_start(&ann, None, OTHER).await.unwrap();
    let ended = process.finish(&begun, &begun.right()).await;
    assert!(matches!(ended, Err(Error::IssuerChanged { .. })));
    assert_eq!(world.posted("http://127.0.0.2:9000/token").len(), 0);
}

#[tokio::test]
async fn an_operator_may_have_it_followed() {
    let mut world = World::new().await;
    world.knobs.on_issuer_change = OnIssuerChange::Follow;
    let (process, ann) = (world.process(), world.permit("ann"));
    process.connect(&ann).await;
    migrate(&world);
    let preview = process.preview(&ann).await.unwrap();
    assert_eq!(
        (&*preview.issuer, preview.issuer_changed_from),
        (OTHER, None)
    );
    let changed = State::NeedsReconnect("issuer_changed".into());
    assert_eq!(process.state(&ann).await, changed);
    process.try_start(&ann, None, OTHER).await.unwrap();
}

#[tokio::test]
async fn an_endpoint_at_another_host_is_a_change_too() {
    let world = World::new().await;
    let (process, ann) = (world.process(), world.permit("ann"));
    process.connect(&ann).await;
    let elsewhere = json!({"token_endpoint": "http://127.0.0.3:9000/token"});
    world.answer(&[(
        "GET http://127.0.0.2:9000/.well-known/oauth-authorization-server",
        metadata(ISSUER, elsewhere),
    )]);
    let preview = process.preview(&ann).await.unwrap();
    assert_eq!(
        preview.issuer_changed_from.as_deref(),
        Some("http://127.0.0.2:9000 with endpoints at 127.0.0.2:9000")
    );
    assert_eq!(preview.endpoint_hosts, ["127.0.0.3:9000"]);
    let other_path = json!({"token_endpoint": "http://127.0.0.2:9000/other/token"});
    world.answer(&[(
        "GET http://127.0.0.2:9000/.well-known/oauth-authorization-server",
        metadata(ISSUER, other_path),
    )]);
    assert_eq!(
        process.preview(&ann).await.unwrap().issuer_changed_from,
        None
    );
}

/// Whoever publishes metadata knows the first fetch from the second: the page is shown one host, the button another.
#[tokio::test]
async fn hosts_that_nobody_saw_are_not_confirmed_with_their_issuer() {
    let world = World::new().await;
    let (process, ann) = (world.process(), world.permit("ann"));
    let shown = process.preview(&ann).await.unwrap();
    for member in [
        "authorization_endpoint",
        "token_endpoint",
        "revocation_endpoint",
        "registration_endpoint",
    ] {
        world.answer(&[(
            "GET http://127.0.0.2:9000/.well-known/oauth-authorization-server",
            metadata(ISSUER, json!({member: "http://127.0.0.3:9000/x"})),
        )]);
        let begun = process.confirm(&ann, None, &shown.confirmation).await;
        let Err(Error::IssuerChanged { found, .. }) = begun else {
            panic!("{member}: nobody saw that host");
        };
        assert_eq!(
            found,
            "http://127.0.0.2:9000 with endpoints at 127.0.0.2:9000, 127.0.0.3:9000"
        );
    }
    assert_eq!(world.asked("POST http://127.0.0.2"), [""; 0]);
    assert_eq!(world.asked("POST http://127.0.0.3"), [""; 0]);
    // Once they are seen, they are confirmed.
    let shown = process.preview(&ann).await.unwrap();
    assert_eq!(
        shown.issuer_changed_from.as_deref(),
        Some("http://127.0.0.2:9000 with endpoints at 127.0.0.2:9000"),
        "what was refused is not pinned"
    );
    let elsewhere = json!({"authorization_endpoint": "http://127.0.0.3:9000/authorize"});
    world.answer(&[(
        "GET http://127.0.0.2:9000/.well-known/oauth-authorization-server",
        metadata(ISSUER, elsewhere),
    )]);
    let shown = process.preview(&ann).await.unwrap();
    assert_eq!(shown.sign_in_host, "127.0.0.3:9000");
    process
        .confirm(&ann, None, &shown.confirmation)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_provider_that_is_out_of_order_changes_nothing() {
    let world = World::new().await;
    let (process, ann) = (world.process(), world.permit("ann"));
    process.connect(&ann).await;
    world.answer(&[(
        "GET http://127.0.0.1:9000/.well-known/oauth-protected-resource/mcp",
        json!({"status": 503}),
    )]);
    assert!(matches!(
        process.preview(&ann).await,
        Err(Error::Transient { .. })
    ));
    assert_eq!(process.state(&ann).await, State::Connected);
}

#[tokio::test]
async fn a_pin_that_was_changed_is_not_believed() {
    let world = World::new().await;
    let (process, ann) = (world.process(), world.permit("ann"));
    process.preview(&ann).await.unwrap();
    let sql = Connection::open(world.folder.path().join("tollgate.db")).unwrap();
    let changed = sql.execute(
        "UPDATE sealed SET sealed = CAST(sealed || x'00' AS BLOB) WHERE kind = 'discovery'",
        [],
    );
    assert_eq!(changed.unwrap(), 1);
    let preview = process.preview(&ann).await.unwrap();
    assert_eq!(
        preview.issuer_changed_from.as_deref(),
        Some("unreadable: it was changed since it was pinned")
    );
    process.start(&ann).await;
    assert_eq!(
        process.preview(&ann).await.unwrap().issuer_changed_from,
        None
    );
    let records = process.records().await;
    assert_eq!(records[0], "credential tampered refused vault.record");
}

#[tokio::test]
async fn a_flow_that_was_moved_to_another_state_is_none() {
    let world = World::new().await;
    let (process, ann, eve) = (world.process(), world.permit("ann"), world.permit("eve"));
    let (begun, hers) = (process.start(&ann).await, process.start(&eve).await);
    let sql = Connection::open(world.folder.path().join("tollgate.db")).unwrap();
    let moved = sql.execute(
        "UPDATE sealed SET user = 'ann' WHERE kind = 'pending' AND user = 'eve'",
        [],
    );
    assert_eq!(moved.unwrap(), 1);
    let right = hers.right();
    let ended = process
        .answered(&right, &[hers.cookie()], ann.owner(), &ann)
        .await;
    assert!(matches!(ended, Err(Error::State)), "her flow is not his");
    process.finish(&begun, &begun.right()).await.unwrap();
}
