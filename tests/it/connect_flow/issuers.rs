//! Issuers and hosts are pinned; what is another asks each person, or is followed where the operator says so.

use rusqlite::Connection;
use serde_json::json;
use tollgate::{
    connect::{Challenge, Error, State},
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
async fn another_issuer_is_confirmed_by_each_person_for_themselves() {
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

    let begun = process.try_start(&ann, None, OTHER).await.unwrap();
    assert_eq!(
        begun.sent()["client_id"],
        "other-1",
        "clients do not follow"
    );
    let state = begun.state();
    let right = [("code", "the-code"), ("state", &*state), ("iss", OTHER)];
    process.finish(&begun, &right).await.unwrap();
    assert_eq!(process.token(&ann).await.unwrap(), "Bearer at-2");
    let line = b"Bearer error=\"insufficient_scope\", scope=\"write\"";
    let more = Challenge(vec![line.to_vec().into()]);
    let more = process.connections.more_wanted(&ann, &more).await;
    assert!(matches!(more, Some(Error::MoreScopes { .. })), "as always");
    assert_eq!(
        process.preview(&ann).await.unwrap().scopes,
        ["read", "write"]
    );
    // What she did is hers: his connection goes on, and he is asked when he makes another.
    assert_eq!(process.state(&bob).await, State::Connected);
    assert_eq!(process.token(&bob).await.unwrap(), "Bearer at-1");
    for person in [&ann, &bob] {
        let preview = process.preview(person).await.unwrap();
        assert_eq!(preview.issuer_changed_from.as_deref(), Some(ISSUER));
    }
    let Err(Error::IssuerChanged { .. }) = process.try_start(&bob, None, ISSUER).await else {
        panic!("he has not seen it");
    };
    let records = process.records().await;
    let confirmed = |record: &&String| *record == "connect issuer_confirmed allowed -";
    assert_eq!(records.iter().filter(confirmed).count(), 1);
    let ended = "connect reconnect_needed refused connect.reconnect".to_owned();
    assert!(!records.contains(&ended), "{records:?}");
}

#[tokio::test]
async fn an_operator_who_names_the_new_issuer_moves_everybody() {
    let mut world = World::new().await;
    let process = world.process();
    let (ann, bob) = (world.permit("ann"), world.permit("bob"));
    process.connect(&ann).await;
    process.connect(&bob).await;
    migrate(&world);
    let begun = process.try_start(&ann, None, OTHER).await.unwrap();
    let state = begun.state();
    let right = [("code", "the-code"), ("state", &*state), ("iss", OTHER)];
    process.finish(&begun, &right).await.unwrap();

    world.knobs.issuer = Some(OTHER.into());
    let (ann, bob, eve) = (
        world.permit("ann"),
        world.permit("bob"),
        world.permit("eve"),
    );
    let preview = process.preview(&eve).await.unwrap();
    assert_eq!(
        (&*preview.issuer, preview.issuer_changed_from),
        (OTHER, None),
        "nobody has to confirm what the operator wrote"
    );
    assert_eq!(process.token(&ann).await.unwrap(), "Bearer at-2");
    let changed = State::NeedsReconnect("issuer_changed".into());
    assert_eq!(process.state(&bob).await, changed);
    // The pin has moved, whatever the file says later.
    world.knobs.issuer = None;
    let bob = world.permit("bob");
    assert_eq!(process.state(&bob).await, changed);
    let preview = process.preview(&bob).await.unwrap();
    assert_eq!(preview.issuer_changed_from, None);
}

#[tokio::test]
async fn a_flow_through_the_issuer_of_before_is_not_ended() {
    let mut world = World::new().await;
    let (process, bob) = (world.process(), world.permit("bob"));
    let begun = process.start(&bob).await;
    migrate(&world);
    // Somebody else's word changes nothing for him.
    process
        .try_start(&world.permit("ann"), None, OTHER)
        .await
        .unwrap();
    world.knobs.on_issuer_change = OnIssuerChange::Follow;
    process.preview(&world.permit("ann")).await.unwrap();
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
    let mut world = World::new().await;
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
    // Whoever sees that and goes on connects; only the operator puts the pin right.
    process.connect(&ann).await;
    let preview = process.preview(&ann).await.unwrap();
    assert!(preview.issuer_changed_from.is_some());
    world.knobs.on_issuer_change = OnIssuerChange::Follow;
    process.preview(&world.permit("eve")).await.unwrap();
    world.knobs.on_issuer_change = OnIssuerChange::Ask;
    let preview = process.preview(&world.permit("eve")).await.unwrap();
    assert_eq!(preview.issuer_changed_from, None);
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
