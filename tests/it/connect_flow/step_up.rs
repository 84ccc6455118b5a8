//! Servers that want more.

use serde_json::json;
use tollgate::connect::{Challenge, Error, State};

use super::{World, tokens};

fn challenge(line: &str) -> Challenge {
    Challenge(vec![line.as_bytes().into()])
}

fn insufficient(scope: &str) -> Challenge {
    challenge(&format!(
        "Bearer error=\"insufficient_scope\", scope=\"{scope}\""
    ))
}

#[tokio::test]
async fn what_a_server_wants_besides_is_asked_for_with_the_rest() {
    let world = World::new().await;
    let (process, ann) = (world.process(), world.permit("ann"));
    let more = |wanted: Challenge| {
        let (connections, ann) = (process.connections.clone(), ann.clone());
        async move {
            match connections.more_wanted(&ann, &wanted).await {
                Some(Error::MoreScopes { scopes, .. }) => Some(scopes),
                None => None,
                Some(other) => panic!("{other}"),
            }
        }
    };
    assert_eq!(more(insufficient("write")).await, None, "not connected");
    process.connect(&ann).await;
    for other in [
        "Bearer error=\"invalid_token\"",
        "Bearer scope=\"write\"",
        "Basic",
    ] {
        assert_eq!(more(challenge(other)).await, None, "{other}");
    }
    assert_eq!(more(insufficient("read")).await, None, "it has that");

    let write = vec!["write".to_owned()];
    assert_eq!(more(insufficient("write")).await, Some(write.clone()));
    assert_eq!(process.state(&ann).await, State::MorePermissions(write));
    assert_eq!(
        process.token(&ann).await.unwrap(),
        "Bearer at-1",
        "it works still"
    );
    let other = world.process();
    assert_eq!(other.preview(&ann).await.unwrap().scopes, ["read", "write"]);
    world.answer(&[(
        "POST http://127.0.0.2:9000/token",
        tokens("2", "read write"),
    )]);
    let begun = other.connect(&ann).await;
    assert_eq!(begun.sent()["scope"], "read write");
    assert_eq!(process.state(&ann).await, State::Connected);
    assert_eq!(process.view(&ann).await.scopes, ["read", "write"]);
    assert_eq!(more(insufficient("write")).await, None);
}

#[tokio::test]
async fn the_operator_bounds_it() {
    let mut world = World::new().await;
    world.knobs.scopes_max = Some(vec!["read".into()]);
    let (process, ann) = (world.process(), world.permit("ann"));
    process.connect(&ann).await;
    let wanted = insufficient("read admin");
    assert!(
        process
            .connections
            .more_wanted(&ann, &wanted)
            .await
            .is_none()
    );
    assert_eq!(process.state(&ann).await, State::Connected);
}

#[tokio::test]
async fn nobody_is_asked_for_the_same_more_than_three_times() {
    let world = World::new().await;
    let (process, ann) = (world.process(), world.permit("ann"));
    process.connect(&ann).await;
    let wanted = insufficient("write");
    for time in 0..3 {
        let more = process.connections.more_wanted(&ann, &wanted).await;
        assert!(more.is_some(), "{time}");
        process.connect(&ann).await;
        assert_eq!(process.state(&ann).await, State::Connected, "fewer is fine");
    }
    let process = world.process();
    assert!(
        process
            .connections
            .more_wanted(&ann, &wanted)
            .await
            .is_none()
    );
    let other = insufficient("delete");
    assert!(
        process
            .connections
            .more_wanted(&ann, &other)
            .await
            .is_some()
    );
}

#[tokio::test]
async fn without_a_list_the_scopes_of_the_resource_are_wanted() {
    let world = World::new().await;
    let (process, ann) = (world.process(), world.permit("ann"));
    process.connect(&ann).await;
    let bare = challenge("Bearer error=\"insufficient_scope\"");
    let more = process.connections.more_wanted(&ann, &bare).await;
    assert!(matches!(more, Some(Error::MoreScopes { scopes, .. }) if scopes == ["write"]));
}

#[tokio::test]
async fn a_server_without_a_challenge_is_found_by_its_well_known_places() {
    let world = World::new().await;
    let ann = world.permit("ann");
    world.answer(&[("POST http://127.0.0.1:9000/mcp", json!({"status": 401}))]);
    let preview = world.process().preview(&ann).await.unwrap();
    assert_eq!(preview.scopes, ["read", "write"], "those of the resource");
}
