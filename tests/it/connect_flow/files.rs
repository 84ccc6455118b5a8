//! What the operator writes acts at once: a connection that was made with another issuer, endpoint or client is not used,
//! and one whose file was put back is used again.

use rusqlite::Connection;
use tollgate::{
    connect::{Error, State},
    policy::{Endpoints, OAuth, PreRegistered},
};

use super::{ISSUER, OTHER, World};

fn fixed(token: &str) -> OAuth {
    OAuth {
        issuer: Some(ISSUER.into()),
        endpoints: Some(Endpoints {
            authorization: format!("{ISSUER}/authorize").into(),
            token: token.into(),
            revocation: None,
            registration: Some(format!("{ISSUER}/register").into()),
        }),
        ..OAuth::default()
    }
}

fn own_client(id: &str) -> OAuth {
    OAuth {
        issuer: Some(ISSUER.into()),
        client: Some(PreRegistered {
            id: id.into(),
            secret: None,
        }),
        ..OAuth::default()
    }
}

fn naming(issuer: &str) -> OAuth {
    OAuth {
        issuer: Some(issuer.into()),
        ..OAuth::default()
    }
}

#[tokio::test]
async fn a_file_that_names_another_provider_or_client_acts_at_once() {
    let trusting = OAuth {
        trusted_issuer: Some(ISSUER.into()),
        ..naming(OTHER)
    };
    for (before, after, reason) in [
        (OAuth::default(), naming(OTHER), Some("issuer_changed")),
        (naming(ISSUER), naming(OTHER), Some("issuer_changed")),
        (
            OAuth::default(),
            naming("http://127.0.0.2:9000/"),
            Some("issuer_changed"),
        ),
        (OAuth::default(), naming(ISSUER), None),
        (naming(ISSUER), OAuth::default(), None),
        (OAuth::default(), trusting, None),
        (
            OAuth::default(),
            fixed(&format!("{OTHER}/token")),
            Some("issuer_changed"),
        ),
        (OAuth::default(), fixed(&format!("{ISSUER}/token")), None),
        (OAuth::default(), own_client("mine"), Some("client_changed")),
        (own_client("mine"), own_client("mine"), None),
        (
            own_client("mine"),
            own_client("other"),
            Some("client_changed"),
        ),
        (own_client("mine"), naming(ISSUER), Some("client_changed")),
    ] {
        let mut world = World::new().await;
        let case = format!("{before:?} then {after:?}");
        let with = |knobs: OAuth| OAuth {
            allow_http_loopback: true,
            ..knobs
        };
        world.knobs = with(before.clone());
        let (process, ann) = (world.process(), world.permit("ann"));
        process.connect(&ann).await;
        let asked = world.provider.asked().len();
        world.knobs = with(after);
        let later = world.permit("ann");
        match reason {
            None => assert_eq!(
                process.token(&later).await.unwrap(),
                "Bearer at-1",
                "{case}"
            ),
            Some(reason) => {
                for _ in 0..2 {
                    let Err(Error::Reconnect { reason: told, .. }) = process.token(&later).await
                    else {
                        panic!("{case}: it is used");
                    };
                    assert_eq!(told, reason, "{case}");
                }
                assert_eq!(
                    process.state(&later).await,
                    State::NeedsReconnect(reason.into())
                );
            }
        }
        assert_eq!(
            world.provider.asked().len(),
            asked,
            "{case}: nobody is asked"
        );
        world.knobs = with(before);
        let back = world.permit("ann");
        assert_eq!(process.token(&back).await.unwrap(), "Bearer at-1", "{case}");
        let records = process.records().await;
        let told = "connect reconnect_needed refused connect.reconnect".to_owned();
        let times = records.iter().filter(|record| **record == told).count();
        assert_eq!(times, usize::from(reason.is_some()), "{case}: told once");
    }
}

#[tokio::test]
async fn a_flow_that_the_file_is_not_for_any_more_is_not_ended() {
    for after in [
        naming(OTHER),
        own_client("mine"),
        fixed(&format!("{OTHER}/token")),
    ] {
        let mut world = World::new().await;
        let (process, ann) = (world.process(), world.permit("ann"));
        let begun = process.start(&ann).await;
        world.knobs = OAuth {
            allow_http_loopback: true,
            ..after
        };
        let ended = process
            .finish_as(&begun, &begun.right(), &world.permit("ann"))
            .await;
        assert!(matches!(ended, Err(Error::Unusable { .. })));
        assert_eq!(world.posted("http://127.0.0.2:9000/token").len(), 0);
        // The file was put back in time.
        process.finish(&begun, &begun.right()).await.unwrap();
    }
}

#[tokio::test]
async fn a_flow_lasts_as_long_as_it_was_sealed_for() {
    for change in ["expires_at + 86400", "expires_at + 1", "expires_at - 1"] {
        let world = World::new().await;
        let (process, ann) = (world.process(), world.permit("ann"));
        let begun = process.start(&ann).await;
        let sql = Connection::open(world.folder.path().join("tollgate.db")).unwrap();
        let changed = sql.execute(
            &format!("UPDATE sealed SET expires_at = {change} WHERE kind = 'pending'"),
            [],
        );
        assert_eq!(changed.unwrap(), 1);
        let ended = process.finish(&begun, &begun.right()).await;
        assert!(matches!(ended, Err(Error::State)), "{change}");
        assert_eq!(world.posted("http://127.0.0.2:9000/token").len(), 0);
        let records = process.records().await;
        assert!(records.contains(&"credential tampered refused vault.record".to_owned()));
    }
}
