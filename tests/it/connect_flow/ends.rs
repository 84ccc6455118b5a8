//! How connections end: disconnected, replaced, forgotten.

use std::sync::Arc;

use http::HeaderName;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tollgate::{
    connect::{Error, Revoked, State},
    policy::Auth,
};

use super::{ISSUER, SERVER, World, metadata, soon, tokens};
use crate::support::{dialer::Behaviour, upstream::Upstream};

const REVOKE: &str = "http://127.0.0.2:9000/revoke";

/// The tokens that were to be revoked, in order.
fn revoked(world: &World) -> Vec<(String, String)> {
    let text = |form: &Value, name: &str| form[name].as_str().unwrap().to_owned();
    let posted = world.posted(REVOKE).into_iter();
    posted
        .map(|form| (text(&form, "token_type_hint"), text(&form, "token")))
        .collect()
}

fn pair(hint: &str, token: &str) -> (String, String) {
    (hint.to_owned(), token.to_owned())
}

#[tokio::test]
async fn disconnecting_revokes_deletes_and_keeps_the_registration() {
    let world = World::new().await;
    let (process, ann, bob) = (world.process(), world.permit("ann"), world.permit("bob"));
    process.connect(&ann).await;
    process.connect(&bob).await;
    let ended = process.connections.disconnect(&ann, soon()).await.unwrap();
    assert_eq!(ended, Revoked::Yes);
    assert_eq!(
        revoked(&world),
        [pair("refresh_token", "rt-1"), pair("access_token", "at-1")]
    );
    assert_eq!(process.state(&ann).await, State::NotConnected);
    assert!(matches!(
        process.token(&ann).await,
        Err(Error::Required { .. })
    ));
    assert_eq!(process.state(&bob).await, State::Connected);
    let again = process.connections.disconnect(&ann, soon()).await.unwrap();
    assert_eq!(again, Revoked::Unsupported, "there is nothing");
    assert_eq!(process.start(&ann).await.sent()["client_id"], "c-1");
    assert_eq!(world.asked("POST http://127.0.0.2:9000/register").len(), 1);
    assert_eq!(world.asked("DELETE "), [""; 0]);
    let records = process.records().await;
    let ends = records.iter().filter(|one| one.contains("disconnected"));
    assert_eq!(ends.count(), 1);
}

#[tokio::test]
async fn it_is_deleted_whatever_the_provider_says() {
    let mut world = World::new().await;
    let process = world.process();
    for (answer, outcome) in [
        (json!({"status": 503}), Revoked::No),
        (json!({"closes": true}), Revoked::No),
        (json!({"status": 200}), Revoked::Yes),
    ] {
        let ann = world.permit("ann");
        process.connect(&ann).await;
        world.answer(&[("POST http://127.0.0.2:9000/revoke", answer)]);
        let ended = process.connections.disconnect(&ann, soon()).await.unwrap();
        assert_eq!(ended, outcome);
        assert_eq!(process.state(&ann).await, State::NotConnected);
    }
    world.knobs.revoke = false;
    let ann = world.permit("ann");
    process.connect(&ann).await;
    let asked = world.posted(REVOKE).len();
    let ended = process.connections.disconnect(&ann, soon()).await.unwrap();
    assert_eq!(ended, Revoked::Unsupported);
    assert_eq!(world.posted(REVOKE).len(), asked);
    let records = process.journal.health();
    assert_eq!(records.failure, None);
}

#[tokio::test]
async fn what_a_late_refresh_brings_is_revoked_and_never_kept() {
    let (arrived, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (told, waits) = (arrived.clone(), go_on.clone());
    let slow = Upstream::plain(move |mut connection| {
        let (told, waits) = (told.clone(), waits.clone());
        async move {
            while let Some(request) = connection.request().await {
                let number = if request.contains("refresh_token") {
                    told.notify_one();
                    waits.notified().await;
                    "2"
                } else {
                    "1"
                };
                let body = tokens(number, "read")["body"].to_string();
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length";
                let answer = format!("{head}: {}\r\n\r\n{body}", body.len());
                connection.write(answer.as_bytes()).await;
            }
        }
    })
    .await;
    let world = World::with(&[("127.0.0.4", Behaviour::Leads(slow.address))]).await;
    let elsewhere = json!({"token_endpoint": "http://127.0.0.4:9000/token"});
    world.answer(&[(
        "GET http://127.0.0.2:9000/.well-known/oauth-authorization-server",
        metadata(ISSUER, elsewhere),
    )]);
    let (process, ann) = (world.process(), world.permit("ann"));
    let shown = process.preview(&ann).await.unwrap();
    let begun = process.confirm(&ann, None, &shown.confirmation).await;
    let begun = begun.unwrap();
    process.finish(&begun, &begun.right()).await.unwrap();
    assert_eq!(process.token(&ann).await.unwrap(), "Bearer at-1");
    world.wait(3600);
    process.token(&ann).await.unwrap();
    arrived.notified().await;
    process.connections.disconnect(&ann, soon()).await.unwrap();
    go_on.notify_one();
    process.connections.drain().await;
    assert_eq!(
        revoked(&world),
        [
            pair("refresh_token", "rt-1"),
            pair("access_token", "at-1"),
            pair("refresh_token", "rt-2"),
            pair("access_token", "at-2"),
        ]
    );
    let process = world.process();
    assert_eq!(process.state(&ann).await, State::NotConnected);
}

#[tokio::test]
async fn a_new_connection_replaces_the_old_one_and_is_not_revoked_with_it() {
    let world = World::new().await;
    let (process, ann) = (world.process(), world.permit("ann"));
    process.connect(&ann).await;
    world.answer(&[("POST http://127.0.0.2:9000/token", tokens("2", "read"))]);
    process.connect(&ann).await;
    assert_eq!(process.token(&ann).await.unwrap(), "Bearer at-2");
    process.connections.drain().await;
    assert_eq!(
        revoked(&world),
        [],
        "one client's grants are one to its provider"
    );
}

#[tokio::test]
async fn what_another_client_replaces_is_revoked() {
    let world = World::new().await;
    let (process, ann) = (world.process(), world.permit("ann"));
    process.connect(&ann).await;
    let mut terms = tollgate::connect::Terms::clone(&world.terms.load());
    terms.public_url = "https://moved.example.com".into();
    world.terms.store(terms.into());
    world.answer(&[("POST http://127.0.0.2:9000/token", tokens("2", "read"))]);
    assert_eq!(process.connect(&ann).await.sent()["client_id"], "c-2");
    process.connections.drain().await;
    assert_eq!(
        revoked(&world),
        [pair("refresh_token", "rt-1"), pair("access_token", "at-1")]
    );
}

#[tokio::test]
async fn a_server_is_forgotten_with_all_that_is_known_of_it() {
    let world = World::new().await;
    let (process, ann, bob) = (world.process(), world.permit("ann"), world.permit("bob"));
    process.connect(&ann).await;
    process.connect(&bob).await;
    let cyd = world.permit("cyd");
    let begun = process.start(&cyd).await;
    let forgotten = process.connections.forget(&ann, soon()).await.unwrap();
    assert_eq!(
        (forgotten.connections, forgotten.revoked, forgotten.shared),
        (2, 2, 0)
    );
    assert_eq!(revoked(&world).len(), 4);
    assert_eq!(
        world.asked("DELETE "),
        ["DELETE http://127.0.0.2:9000/register/c-1"]
    );
    for permit in [&ann, &bob, &cyd] {
        assert_eq!(process.state(permit).await, State::NotConnected);
    }
    let ended = process.finish(&begun, &begun.right()).await;
    assert!(matches!(ended, Err(Error::State)));
    assert_eq!(process.start(&ann).await.sent()["client_id"], "c-2");
    let again = process.connections.forget(&ann, soon()).await.unwrap();
    assert_eq!((again.connections, again.revoked, again.shared), (0, 0, 0));
}

#[tokio::test]
async fn a_static_secret_is_for_one_person_and_one_url() {
    let world = World::new().await;
    let process = world.process();
    let key = Auth::Header(HeaderName::from_static("x-api-key"));
    let ann = world.permit_at(SERVER, "ann", key.clone());
    let bob = world.permit_at(SERVER, "bob", key.clone());
    assert_eq!(process.state(&ann).await, State::NotConnected);
    for wrong in [&b""[..], b"two\r\nlines", b"\xff"] {
        let ended = process.connections.enter(&ann, wrong).await;
        assert!(matches!(ended, Err(Error::Secret)));
    }
    process.connections.enter(&ann, b"first").await.unwrap();
    process
        .connections
        .enter(&ann, b"Token second")
        .await
        .unwrap();
    assert_eq!(process.token(&ann).await.unwrap(), "Token second");
    let view = process.view(&ann).await;
    assert_eq!((view.state, &*view.mode), (State::Connected, "header"));
    assert!(matches!(
        process.token(&bob).await,
        Err(Error::Required { .. })
    ));

    let moved = world.permit_at("http://127.0.0.1:9000/moved", "ann", key);
    let again = State::NeedsReconnect("origin_changed".into());
    assert_eq!(process.state(&moved).await, again);
    assert!(matches!(
        process.token(&moved).await,
        Err(Error::Reconnect {
            reason: "origin_changed",
            ..
        })
    ));
    let ended = process.connections.disconnect(&ann, soon()).await.unwrap();
    assert_eq!(ended, Revoked::Unsupported);
    assert_eq!(process.state(&ann).await, State::NotConnected);

    let oauth = process.connections.enter(&world.permit("ann"), b"x").await;
    assert!(
        matches!(oauth, Err(Error::Unusable { .. })),
        "nobody enters a token"
    );
}

#[tokio::test]
async fn the_operator_sees_every_connection() {
    let world = World::new().await;
    let process = world.process();
    for user in ["ann", "bob"] {
        process.connect(&world.permit(user)).await;
    }
    let cyd = world.permit_at(SERVER, "cyd", Auth::Bearer);
    process.connections.enter(&cyd, b"secret").await.unwrap();
    let none = tollgate::policy::Snapshot::default();
    let all = process.connections.all(&none).await.unwrap();
    let mut seen: Vec<_> = all
        .iter()
        .map(|one| (&*one.user, &*one.mode, one.state == State::Connected))
        .collect();
    seen.sort_unstable();
    assert_eq!(
        seen,
        [
            ("ann", "oauth", true),
            ("bob", "oauth", true),
            ("cyd", "secret", true)
        ]
    );
    let link = process.connections.link("demo");
    assert_eq!(link, "https://tollgate.example.com/connect/demo");
}
