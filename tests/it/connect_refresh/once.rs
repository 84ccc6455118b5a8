//! However many ask at once, the provider is asked once.

use futures_util::future::join_all;
use tollgate::{
    policy::{Auth, Permit, Shared},
    secret::Secret,
};

use super::{
    LATER, World, bare,
    issuer::{Plan, Reuse},
    permit, soon, told,
};
use crate::support::permit::Maker;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_sixty_four_who_find_a_token_over_one_asks() {
    let world = World::connected(Reuse::Kills).await;
    let later = world.process("later", LATER);
    let permit = world.permit();
    let tokens = join_all((0..64).map(|_| later.token(&permit))).await;
    let tokens: Vec<_> = tokens.into_iter().map(Result::unwrap).collect();
    assert_eq!(tokens, vec!["at-2"; 64]);
    assert_eq!(world.issuer.refreshes(), 1);
    assert!(world.issuer.is_alive("rt-2"));
    let again = world.process("again", LATER);
    assert_eq!(again.token(&permit).await.unwrap(), "at-2");
    assert_eq!(world.issuer.refreshes(), 1);
    later.connections.drain().await;
    assert_eq!(later.records().await, ["credential refreshed allowed -"]);
}

#[tokio::test]
async fn who_leaves_does_not_break_off_what_was_asked() {
    let world = World::connected(Reuse::Kills).await;
    let later = world.process("later", LATER);
    let permit = world.permit();
    world.issuer.plan(Plan::HoldLast);
    let asking = Box::pin(later.token(&permit));
    let arrived = Box::pin(world.issuer.arrived(1));
    // The caller's future is dropped while the provider has the request.
    futures_util::future::select(asking, arrived).await;
    world.issuer.release();
    assert_eq!(later.token(&permit).await.unwrap(), "at-2");
    assert_eq!(world.issuer.refreshes(), 1);
}

#[tokio::test]
async fn a_token_near_its_end_is_used_while_another_is_asked_for() {
    let world = World::connected(Reuse::Kills).await;
    let near = world.process("near", 3600 - 30);
    let permit = world.permit();
    world.issuer.plan(Plan::HoldFirst);
    for _ in 0..20 {
        assert_eq!(near.token(&permit).await.unwrap(), "at-1");
    }
    world.issuer.arrived(1).await;
    world.issuer.release();
    near.connections.drain().await;
    assert_eq!(near.token(&permit).await.unwrap(), "at-2");
    assert_eq!(world.issuer.refreshes(), 1);
}

#[tokio::test]
async fn a_token_far_from_its_end_is_not_refreshed() {
    let world = World::connected(Reuse::Kills).await;
    let early = world.process("early", 3600 - 71);
    assert_eq!(early.token(&world.permit()).await.unwrap(), "at-1");
    early.connections.drain().await;
    assert_eq!(world.issuer.refreshes(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_refused_token_is_refreshed_once_and_not_again() {
    let world = World::connected(Reuse::Kills).await;
    let process = world.process("process", 60);
    let permit = world.permit();
    let others = join_all((0..64).map(|_| process.after_refusal(&permit, "at-1"))).await;
    let others: Vec<_> = others.into_iter().map(Result::unwrap).collect();
    assert_eq!(others, vec!["at-2"; 64]);
    assert_eq!(world.issuer.refreshes(), 1);
    // Whoever still holds the old one is given the new one, and nothing is asked.
    assert_eq!(
        process.after_refusal(&permit, "at-1").await.unwrap(),
        "at-2"
    );
    let refused = process.after_refusal(&permit, "at-2").await.unwrap_err();
    assert_eq!(told(&refused), "connect.reconnect refused");
    assert_eq!(world.issuer.refreshes(), 1);
}

#[tokio::test]
async fn without_a_refresh_token_only_the_person_can_go_on() {
    let world = World::connected(Reuse::Kills).await;
    let process = world.process("process", LATER);
    let permit = world.permit();
    world.issuer.plan(Plan::Refuse("invalid_grant"));
    for _ in 0..3 {
        let ended = process.token(&permit).await.unwrap_err();
        assert_eq!(told(&ended), "connect.reconnect revoked");
    }
    assert_eq!(world.issuer.refreshes(), 1);
    process.connections.drain().await;
    assert_eq!(
        process.records().await,
        [
            "credential refresh_failed refused connect.reconnect",
            "connect reconnect_needed refused connect.reconnect",
        ]
    );
}

#[tokio::test]
async fn nobody_connected_and_nobody_elses_connection() {
    let world = World::connected(Reuse::Kills).await;
    let process = world.process("process", 0);
    let issuer = world.issuer.address.to_string();
    let bob = permit(&issuer, "bob", super::SERVER);
    let none = process.token(&bob).await.unwrap_err();
    assert_eq!(told(&none), "connect.required");
    let none = process.after_refusal(&bob, "at-1").await.unwrap_err();
    assert_eq!(told(&none), "connect.required");
}

#[tokio::test]
async fn a_token_goes_to_no_other_url_than_it_was_made_for() {
    let world = World::connected(Reuse::Kills).await;
    let process = world.process("process", 0);
    let issuer = world.issuer.address.to_string();
    for url in [
        "https://tools.example.org/mcp",
        "https://tools.example.com:8443/mcp",
        "https://tools.example.com/other",
    ] {
        let moved = permit(&issuer, "ann", url);
        let ended = process.token(&moved).await.unwrap_err();
        assert_eq!(told(&ended), "connect.reconnect origin_changed", "{url}");
    }
    assert_eq!(process.token(&world.permit()).await.unwrap(), "at-1");
}

fn with(auth: Auth) -> Permit {
    Maker {
        auth,
        ..Maker::new(super::SERVER)
    }
    .permit()
}

#[tokio::test]
async fn secrets_are_sent_as_they_were_entered() {
    let world = World::new(Reuse::Kills).await;
    let process = world.process("process", 0);
    let bearer = with(Auth::Bearer);
    let none = process.token(&bearer).await.unwrap_err();
    assert_eq!(told(&none), "connect.required");
    process
        .connections
        .enter(&bearer, b"ann's-own")
        .await
        .unwrap();
    assert_eq!(process.token(&bearer).await.unwrap(), "ann's-own");
    assert_eq!(
        process.after_refusal(&bearer, "older").await.unwrap(),
        "ann's-own"
    );

    let header = with(Auth::Header("x-api-key".parse().unwrap()));
    let sent = process
        .connections
        .credential(&header, soon())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(sent.name(), "x-api-key");
    assert_eq!(sent.value(), "ann's-own");

    process
        .connections
        .disconnect(&bearer, soon())
        .await
        .unwrap();
    let none = process.token(&bearer).await.unwrap_err();
    assert_eq!(told(&none), "connect.required");
}

#[tokio::test]
async fn a_shared_secret_and_none_at_all() {
    let world = World::new(Reuse::Kills).await;
    let process = world.process("process", 0);
    let shared = with(Auth::Shared(Shared {
        header: None,
        secret: Some(Secret::new(b"everybody's".to_vec()).into()),
    }));
    assert_eq!(process.token(&shared).await.unwrap(), "everybody's");
    let refused = process
        .after_refusal(&shared, "everybody's")
        .await
        .unwrap_err();
    assert_eq!(told(&refused), "connect.unusable");
    let none = with(Auth::None);
    let sent = process.connections.credential(&none, soon()).await.unwrap();
    assert!(sent.map(|sent| bare(&sent)).is_none());
}
