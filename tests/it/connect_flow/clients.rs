//! Registrations: one for a tenant, an issuer and a redirect URI.

use serde_json::{Value, json};
use tollgate::{
    connect::{Error, State, Terms},
    policy::{PreRegistered, Registration},
    secret::Secret,
};

use super::{ISSUER, World, metadata, tokens};

const REGISTER: &str = "POST http://127.0.0.2:9000/register";
const TOKEN: &str = "http://127.0.0.2:9000/token";

/// What is answered to a probe by a provider that knows the client.
fn wrong_code() -> Value {
    json!({"status": 400, "body": {"error": "invalid_grant"}})
}

/// And by one that does not.
fn unknown_client() -> Value {
    json!({"status": 401, "body": {"error": "invalid_client"}})
}

#[tokio::test]
async fn a_client_is_shared_by_users_processes_and_restarts() {
    let world = World::new().await;
    let mut ids = Vec::new();
    for user in ["ann", "bob", "cyd"] {
        let process = world.process();
        ids.push(process.connect(&world.permit(user)).await.sent()["client_id"].clone());
    }
    assert_eq!(ids, ["c-1", "c-1", "c-1"]);
    assert_eq!(world.asked(REGISTER).len(), 1);
    assert_eq!(world.posted(TOKEN).len(), 3, "nobody was probed");
}

#[tokio::test]
async fn of_two_who_register_at_once_one_registration_stays() {
    let world = World::new().await;
    let (one, other) = (world.process(), world.process());
    let (ann, bob) = (world.permit("ann"), world.permit("bob"));
    let (first, second) = tokio::join!(one.start(&ann), other.start(&bob));
    let ids = [&first, &second].map(|begun| begun.sent()["client_id"].clone());
    assert_eq!(ids[0], ids[1]);
    let (made, undone) = (world.asked(REGISTER).len(), world.asked("DELETE "));
    assert_eq!(made - undone.len(), 1, "{undone:?}");
    assert!(!undone.iter().any(|ask| ask.ends_with(&ids[0])));
}

#[tokio::test]
async fn another_redirect_uri_is_another_client() {
    let world = World::new().await;
    let (process, ann) = (world.process(), world.permit("ann"));
    process.connect(&ann).await;
    world.terms.store(
        Terms {
            public_url: "https://moved.example.com".into(),
            ..Terms::default()
        }
        .into(),
    );
    let sent = process.start(&ann).await.sent();
    assert_eq!(sent["client_id"], "c-2");
    assert_eq!(
        sent["redirect_uri"],
        "https://moved.example.com/oauth/callback"
    );
}

#[tokio::test]
async fn a_client_that_still_lives_is_kept_after_a_lost_flow() {
    let world = World::new().await;
    let (process, ann, bob) = (world.process(), world.permit("ann"), world.permit("bob"));
    process.start(&ann).await;
    process.start(&bob).await;
    assert_eq!(world.posted(TOKEN).len(), 0, "nothing is lost yet");
    world.answer(&[("POST http://127.0.0.2:9000/token", wrong_code())]);
    process.start(&bob).await;
    assert_eq!(world.posted(TOKEN).len(), 1, "he tries again");
    world.wait(600);
    assert_eq!(process.start(&ann).await.sent()["client_id"], "c-1");
    assert_eq!(world.posted(TOKEN).len(), 2, "both have ended");
    assert_eq!(
        process.start(&world.permit("cyd")).await.sent()["client_id"],
        "c-1"
    );
    assert_eq!(world.posted(TOKEN).len(), 2, "not again so soon");
    assert_eq!(world.asked(REGISTER).len(), 1);
}

#[tokio::test]
async fn a_dead_client_is_registered_again_once_and_its_connections_end() {
    let world = World::new().await;
    let (process, ann, bob) = (world.process(), world.permit("ann"), world.permit("bob"));
    process.connect(&ann).await;
    process.start(&bob).await;
    world.answer(&[("POST http://127.0.0.2:9000/token", unknown_client())]);
    world.wait(600);
    let begun = process.start(&bob).await;
    assert_eq!(begun.sent()["client_id"], "c-2");
    assert_eq!(world.asked(REGISTER).len(), 2);
    let dead = State::NeedsReconnect("client_dead".into());
    assert_eq!(process.state(&ann).await, dead);

    world.answer(&[("POST http://127.0.0.2:9000/token", tokens("2", "read"))]);
    process.finish(&begun, &begun.right()).await.unwrap();
    assert_eq!(process.connect(&ann).await.sent()["client_id"], "c-2");
    assert_eq!(process.state(&ann).await, State::Connected);
    assert_eq!(world.asked(REGISTER).len(), 2);
}

#[tokio::test]
async fn a_provider_out_of_order_kills_no_client() {
    let world = World::new().await;
    let (process, ann) = (world.process(), world.permit("ann"));
    process.start(&ann).await;
    world.wait(600);
    for odd in [
        json!({"status": 500}),
        json!({"status": 404}),
        json!({"closes": true}),
    ] {
        world.answer(&[("POST http://127.0.0.2:9000/token", odd)]);
        assert_eq!(process.start(&ann).await.sent()["client_id"], "c-1");
    }
    assert_eq!(world.asked(REGISTER).len(), 1);
}

#[tokio::test]
async fn a_client_that_is_refused_with_its_code_is_not_used_again() {
    let world = World::new().await;
    let (process, ann) = (world.process(), world.permit("ann"));
    let begun = process.start(&ann).await;
    world.answer(&[("POST http://127.0.0.2:9000/token", unknown_client())]);
    let ended = process.finish(&begun, &begun.right()).await;
    assert!(matches!(ended, Err(Error::Denied { error, .. }) if error == "invalid_client"));
    assert_eq!(process.start(&ann).await.sent()["client_id"], "c-2");
    assert_eq!(world.posted(TOKEN).len(), 1, "what is dead is not probed");
}

#[tokio::test]
async fn a_client_whose_secret_ends_before_the_flow_is_registered_again() {
    let world = World::new().await;
    let (process, ann) = (world.process(), world.permit("ann"));
    let ends_at = super::BEGIN + 7200;
    let confidential = json!({"status": 201, "body": {
        "client_id": "short",
        "client_secret": "s3cret",
        "client_secret_expires_at": ends_at,
        "token_endpoint_auth_method": "client_secret_basic",
    }});
    let methods = json!({"token_endpoint_auth_methods_supported": ["client_secret_basic"]});
    world.answer(&[
        (
            "POST http://127.0.0.2:9000/register",
            json!([confidential, super::registration("c-2")]),
        ),
        (
            "GET http://127.0.0.2:9000/.well-known/oauth-authorization-server",
            metadata(ISSUER, methods),
        ),
    ]);
    assert_eq!(process.connect(&ann).await.sent()["client_id"], "short");
    world.wait(6599);
    assert_eq!(
        process.start(&world.permit("bob")).await.sent()["client_id"],
        "short"
    );
    world.wait(1);
    assert_eq!(
        process.start(&world.permit("cyd")).await.sent()["client_id"],
        "c-2"
    );
    let dead = State::NeedsReconnect("client_dead".into());
    assert_eq!(process.state(&ann).await, dead);
}

#[tokio::test]
async fn the_operators_client_and_the_document_need_no_registration() {
    let mut world = World::new().await;
    let process = world.process();
    let document = "https://tollgate.example.com/oauth/client-metadata.json";
    let mut terms = Terms::clone(&world.terms.load());
    terms.client_metadata_url = Some(document.into());
    world.terms.store(terms.into());
    let knows = json!({"client_id_metadata_document_supported": true});
    world.answer(&[(
        "GET http://127.0.0.2:9000/.well-known/oauth-authorization-server",
        metadata(ISSUER, knows),
    )]);
    let ann = world.permit("ann");
    assert_eq!(process.start(&ann).await.sent()["client_id"], document);
    let published: Value =
        serde_json::from_str(&process.connections.client_metadata().unwrap()).unwrap();
    assert_eq!(published["client_id"], document);

    world.knobs.client = Some(PreRegistered {
        id: "operators".into(),
        secret: Some(Secret::new(b"s3cret".to_vec()).into()),
    });
    world.knobs.issuer = Some(ISSUER.into());
    let ann = world.permit("ann");
    assert_eq!(process.start(&ann).await.sent()["client_id"], "operators");
    world.knobs.registration = Registration::Dcr;
    let ann = world.permit("ann");
    assert_eq!(process.start(&ann).await.sent()["client_id"], "c-1");
    assert_eq!(world.asked(REGISTER).len(), 1);
}

#[tokio::test]
async fn without_any_way_to_a_client_the_operator_is_told() {
    let world = World::new().await;
    let (process, ann) = (world.process(), world.permit("ann"));
    world.answer(&[(
        "POST http://127.0.0.2:9000/register",
        json!({"status": 403}),
    )]);
    let ended = process.try_start(&ann, None, ISSUER).await;
    assert!(matches!(ended, Err(Error::Client { .. })));
    assert_eq!(process.state(&ann).await, State::NotConnected);
}

/// The authorization server names no place to register.
fn registers_nobody() -> (&'static str, Value) {
    let mut said = metadata(ISSUER, json!({}));
    let body = said["body"].as_object_mut().unwrap();
    body.remove("registration_endpoint").unwrap();
    (
        "GET http://127.0.0.2:9000/.well-known/oauth-authorization-server",
        said,
    )
}

#[tokio::test]
async fn who_registers_nobody_is_told_of_before_anything_is_pressed() {
    let mut world = World::new().await;
    world.answer(&[registers_nobody()]);
    let seen = world.process().preview(&world.permit("ann")).await;
    let Err(error) = seen else {
        panic!("{seen:?}");
    };
    assert_eq!(error.code().as_str(), "connect.client");
    world.knobs.registration = Registration::Dcr;
    let seen = world.process().preview(&world.permit("ann")).await;
    assert!(matches!(seen, Err(Error::Client { .. })), "{seen:?}");
    assert_eq!(world.asked(REGISTER).len(), 0);
}

#[tokio::test]
async fn a_client_that_was_registered_once_serves_where_nobody_else_is() {
    let world = World::new().await;
    world.process().connect(&world.permit("ann")).await;
    world.answer(&[registers_nobody()]);
    world.wait(25 * 60 * 60);
    let (process, bob) = (world.process(), world.permit("bob"));
    process.preview(&bob).await.unwrap();
    assert_eq!(process.start(&bob).await.sent()["client_id"], "c-1");
}
