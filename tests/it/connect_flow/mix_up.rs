//! Mix-up (RFC 9700, section 4.4): no endpoint of an issuer lies where another is known.

use std::sync::Arc;

use serde_json::{Value, json};
use tollgate::{
    connect::Error,
    policy::{Auth, Endpoints, OAuth, Permit, Server},
};

use super::{ISSUER, OTHER, World, metadata, registration, resource, tokens};
use crate::support::permit::Maker;

const OURS: &str = "GET http://127.0.0.2:9000/.well-known/oauth-authorization-server";
const MEMBERS: [&str; 4] = [
    "authorization_endpoint",
    "token_endpoint",
    "registration_endpoint",
    "revocation_endpoint",
];

/// A second server of the tenant, on the same machine.
fn other(url: &str, tenant: &'static str, auth: Auth) -> Arc<Server> {
    let maker = Maker {
        tenant,
        auth,
        ..Maker::new(url)
    };
    Arc::new(maker.server("other"))
}

fn oauth(knobs: OAuth) -> Auth {
    Auth::OAuth(Box::new(OAuth {
        allow_http_loopback: true,
        ..knobs
    }))
}

/// The second server, guarded by [`OTHER`], which signs people in at 127.0.0.4, and gives them tokens at 127.0.0.5.
fn guarded(world: &World) -> Arc<Server> {
    let elsewhere = json!({
        "authorization_endpoint": "http://127.0.0.4:9000/authorize",
        "token_endpoint": "http://127.0.0.5:9000/token",
    });
    let mut resource = resource(&[OTHER]);
    resource["body"]["resource"] = json!("http://127.0.0.1:9000/other");
    world.answer(&[
        (
            "GET http://127.0.0.1:9000/.well-known/oauth-protected-resource/other",
            resource,
        ),
        (
            "GET http://127.0.0.3:9000/.well-known/oauth-authorization-server",
            metadata(OTHER, elsewhere),
        ),
        ("POST http://127.0.0.3:9000/register", registration("o-1")),
        ("POST http://127.0.0.3:9000/token", tokens("2", "read")),
    ]);
    other(
        "http://127.0.0.1:9000/other",
        "default",
        oauth(OAuth::default()),
    )
}

/// The issuer of the first server names this of its endpoints at `origin` from now on.
fn crosses(world: &World, member: &str, origin: &str) {
    let others = json!({ member: format!("{origin}/x") });
    world.answer(&[(OURS, metadata(ISSUER, others))]);
}

/// Which endpoint crosses, and where.
fn crossing<T>(result: Result<T, Error>) -> Option<(&'static str, String)> {
    match result {
        Err(Error::MixUp {
            endpoint, origin, ..
        }) => Some((endpoint, origin)),
        _ => None,
    }
}

/// By what another is known there; nobody but the operator is told.
fn known_by<T>(result: Result<T, Error>) -> String {
    let Some(error) = result.err() else {
        return "nothing".to_owned();
    };
    let told = error.to_string();
    match error {
        Error::MixUp { by, .. } if !told.contains(&by) => by,
        _ => told,
    }
}

#[tokio::test]
async fn an_endpoint_where_a_pinned_issuer_is_known_is_refused() {
    let mut world = World::new().await;
    world.others = vec![guarded(&world)];
    let (process, ann) = (world.process(), world.permit("ann"));
    // Nobody has connected to the other server yet, and nobody knows its issuer.
    crosses(&world, "authorization_endpoint", OTHER);
    let shown = process.preview(&ann).await.unwrap();
    assert_eq!(shown.sign_in_host, "127.0.0.3:9000");

    process
        .preview(&world.permit_to("other", "bob"))
        .await
        .unwrap();
    // Now it is known: also to a page that was opened before.
    let begun = process.confirm(&ann, None, &shown.confirmation).await;
    assert_eq!(
        crossing(begun),
        Some(("authorization_endpoint", OTHER.into()))
    );
    for origin in [OTHER, "http://127.0.0.4:9000", "http://127.0.0.5:9000"] {
        for member in MEMBERS {
            crosses(&world, member, origin);
            let refused = crossing(process.preview(&ann).await);
            assert_eq!(refused, Some((member, origin.into())));
        }
    }
    assert_eq!(
        known_by(process.preview(&ann).await),
        "what is pinned of server `other`"
    );
    // Another port of the same machine is another origin, and nobody's.
    crosses(&world, "authorization_endpoint", "http://127.0.0.3:9001");
    let shown = process.preview(&ann).await.unwrap();
    assert_eq!(shown.sign_in_host, "127.0.0.3:9001");
    assert_eq!(world.asked("POST http://127.0.0.2"), [""; 0], "no client");
    let records = process.records().await;
    let mix_up = "connect mix_up refused connect.mix_up".to_owned();
    assert_eq!(
        records.iter().filter(|record| **record == mix_up).count(),
        14
    );
    assert!(records.contains(&"connect begun refused connect.mix_up".to_owned()));
}

#[tokio::test]
async fn a_code_is_not_shown_to_who_was_found_out_meanwhile() {
    let mut world = World::new().await;
    world.others = vec![guarded(&world)];
    let (process, ann) = (world.process(), world.permit("ann"));
    let others = json!({
        "authorization_endpoint": "http://127.0.0.4:9000/authorize",
        "authorization_response_iss_parameter_supported": false,
    });
    world.answer(&[(OURS, metadata(ISSUER, others))]);
    let shown = process.preview(&ann).await.unwrap();
    let begun = process
        .confirm(&ann, None, &shown.confirmation)
        .await
        .unwrap();
    process
        .preview(&world.permit_to("other", "bob"))
        .await
        .unwrap_err();
    // The operator says who is who.
    let knobs = OAuth {
        issuer: Some(OTHER.into()),
        ..OAuth::default()
    };
    world.others = vec![other(
        "http://127.0.0.1:9000/other",
        "default",
        oauth(knobs),
    )];
    process
        .preview(&world.permit_to("other", "bob"))
        .await
        .unwrap();
    let state = begun.state();
    let ended = process
        .finish_as(
            &begun,
            &[("code", "the-code"), ("state", &*state)],
            &world.permit("ann"),
        )
        .await;
    assert_eq!(
        crossing(ended),
        Some(("authorization_endpoint", "http://127.0.0.4:9000".into()))
    );
    assert_eq!(
        world.posted("http://127.0.0.2:9000/token"),
        [Value::Null; 0]
    );
}

#[tokio::test]
async fn a_server_that_takes_up_another_issuer_leads_nobody_to_its_old_one() {
    let world = World::new().await;
    let (process, ann) = (world.process(), world.permit("ann"));
    process.connect(&ann).await;
    world.answer(&[
        (
            "GET http://127.0.0.1:9000/.well-known/oauth-protected-resource/mcp",
            resource(&[OTHER]),
        ),
        (
            "GET http://127.0.0.3:9000/.well-known/oauth-authorization-server",
            metadata(
                OTHER,
                json!({"authorization_endpoint": format!("{ISSUER}/authorize")}),
            ),
        ),
    ]);
    assert_eq!(
        crossing(process.preview(&ann).await),
        Some(("authorization_endpoint", ISSUER.into()))
    );
    assert_eq!(process.token(&ann).await.unwrap(), "Bearer at-1");
}

#[tokio::test]
async fn whom_the_files_of_other_servers_name_is_known() {
    let mut world = World::new().await;
    let process = world.process();
    let named = |knobs: OAuth| other("http://127.0.0.1:9000/other", "default", oauth(knobs));
    let issuer = OAuth {
        issuer: Some(OTHER.into()),
        ..OAuth::default()
    };
    let trusted = OAuth {
        trusted_issuer: Some(OTHER.into()),
        ..OAuth::default()
    };
    let fixed = OAuth {
        issuer: Some("http://127.0.0.4:9000".into()),
        endpoints: Some(Endpoints {
            authorization: format!("{OTHER}/authorize").into(),
            token: "http://127.0.0.5:9000/token".into(),
            revocation: None,
            registration: None,
        }),
        ..OAuth::default()
    };
    crosses(&world, "authorization_endpoint", OTHER);
    for knobs in [issuer.clone(), trusted, fixed.clone()] {
        world.others = vec![named(knobs)];
        let refused = process.preview(&world.permit("ann")).await;
        assert_eq!(known_by(refused), "the file of server `other`");
        let refused = crossing(process.preview(&world.permit("ann")).await);
        assert_eq!(refused, Some(("authorization_endpoint", OTHER.into())));
    }
    // The code that people bring from there would be shown there, and the token to the server.
    crosses(&world, "token_endpoint", "http://127.0.0.5:9000");
    world.others = vec![named(fixed)];
    let refused = crossing(process.preview(&world.permit("ann")).await);
    assert_eq!(
        refused,
        Some(("token_endpoint", "http://127.0.0.5:9000".into()))
    );
    crosses(&world, "authorization_endpoint", OTHER);
    // A server of another tenant says nothing here, nor does one without OAuth.
    for stranger in [
        other("http://127.0.0.1:9000/other", "apart", oauth(issuer)),
        other("http://127.0.0.3:9000/", "default", Auth::Bearer),
    ] {
        world.others = vec![stranger];
        process.preview(&world.permit("ann")).await.unwrap();
    }
}

/// The world as it is: realms of one origin, one issuer for several servers, and who signs people in elsewhere.
#[tokio::test]
async fn what_belongs_together_goes_on() {
    let mut world = World::new().await;
    let process = world.process();
    let realm = "http://127.0.0.3:9000/realms/two";
    let elsewhere = json!({"authorization_endpoint": "http://127.0.0.4:9000/two"});
    world.others = vec![guarded(&world)];
    process
        .preview(&world.permit_to("other", "bob"))
        .await
        .unwrap();
    world.answer(&[
        (
            "GET http://127.0.0.1:9000/.well-known/oauth-protected-resource/mcp",
            resource(&[realm]),
        ),
        (
            "GET http://127.0.0.3:9000/.well-known/oauth-authorization-server/realms/two",
            metadata(realm, elsewhere),
        ),
    ]);
    // Another realm of the same origin, which signs people in where the first does.
    let shown = process.preview(&world.permit("ann")).await.unwrap();
    assert_eq!(
        (&*shown.issuer, &*shown.sign_in_host),
        (realm, "127.0.0.4:9000")
    );

    // One issuer for both servers, whose token endpoint is at a third place.
    let mut world = World::new().await;
    let process = world.process();
    world.others = vec![guarded(&world)];
    let apart = json!({"token_endpoint": "http://127.0.0.4:9000/token"});
    let mut of_other = resource(&[ISSUER]);
    of_other["body"]["resource"] = json!("http://127.0.0.1:9000/other");
    world.answer(&[
        (
            "GET http://127.0.0.1:9000/.well-known/oauth-protected-resource/other",
            of_other,
        ),
        (OURS, metadata(ISSUER, apart)),
    ]);
    process
        .preview(&world.permit_to("other", "bob"))
        .await
        .unwrap();
    let shown = process.preview(&world.permit("ann")).await.unwrap();
    assert_eq!(shown.endpoint_hosts, ["127.0.0.4:9000"]);
}

#[tokio::test]
async fn the_operator_vouches_for_an_issuer() {
    let mut world = World::new().await;
    world.others = vec![guarded(&world)];
    let process = world.process();
    process
        .preview(&world.permit_to("other", "bob"))
        .await
        .unwrap();
    crosses(&world, "authorization_endpoint", OTHER);
    assert!(process.preview(&world.permit("ann")).await.is_err());
    world.knobs.issuer = Some(ISSUER.into());
    let ann: Permit = world.permit("ann");
    let shown = process.preview(&ann).await.unwrap();
    assert_eq!(shown.sign_in_host, "127.0.0.3:9000");
    process
        .confirm(&ann, None, &shown.confirmation)
        .await
        .unwrap();
    // For this issuer, not for another that the server names.
    world.knobs.issuer = Some("http://127.0.0.4:9000".into());
    assert!(process.preview(&world.permit("ann")).await.is_err());
}
