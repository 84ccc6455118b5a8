//! What comes back from a provider, or pretends to.

use serde_json::json;
use tollgate::connect::{Error, State};

use super::{ISSUER, OTHER, SERVER, World, metadata};

/// The token endpoint that codes go to.
const TOKEN: &str = "http://127.0.0.2:9000/token";

#[tokio::test]
async fn only_the_browser_and_the_user_that_began_come_back() {
    let world = World::new().await;
    let (process, ann, eve) = (world.process(), world.permit("ann"), world.permit("eve"));
    let begun = process.start(&ann).await;
    let other = process.start(&eve).await;
    let right = begun.right();
    let cookie = begun.cookie();

    let nobody = process.answered(&right, &[], ann.owner(), &ann).await;
    assert!(matches!(nobody, Err(Error::Browser)));
    let another = [other.cookie(), (cookie.0.clone(), other.cookie().1)];
    let another = process.answered(&right, &another, ann.owner(), &ann).await;
    assert!(matches!(another, Err(Error::Browser)), "another browser");
    let victim = process
        .answered(&right, std::slice::from_ref(&cookie), eve.owner(), &eve)
        .await;
    assert!(matches!(victim, Err(Error::Browser)), "another user");
    let mut tenant = ann.owner().clone();
    tenant.tenant = "other".into();
    let tenant = process.answered(&right, &[cookie], &tenant, &ann).await;
    assert!(matches!(tenant, Err(Error::Browser)), "another tenant");

    assert_eq!(world.asked("POST http://127.0.0.2:9000/token"), [""; 0]);
    process.finish(&begun, &right).await.unwrap();
    assert_eq!(process.state(&eve).await, State::Connecting(1_795_990_200));
    assert_eq!(
        process.records().await[2..],
        [
            "connect refused refused connect.browser",
            "connect refused refused connect.browser",
            "connect refused refused connect.browser",
            "connect refused refused connect.browser",
            "connect connected allowed -",
        ]
    );
}

#[tokio::test]
async fn a_state_is_good_once_and_only_as_it_was_given() {
    let world = World::new().await;
    let (process, ann) = (world.process(), world.permit("ann"));
    let begun = process.start(&ann).await;
    let state = begun.state();
    for forged in [
        "",
        "demo:ann",
        &state[1..],
        &state.to_lowercase(),
        &format!("{state}="),
    ] {
        let query = [("code", "the-code"), ("state", forged), ("iss", ISSUER)];
        let ended = process.finish(&begun, &query).await;
        assert!(matches!(ended, Err(Error::State)), "{forged}");
    }
    let doubled = [begun.right().as_slice(), &[("state", "x")]].concat();
    assert!(matches!(
        process.finish(&begun, &doubled).await,
        Err(Error::State)
    ));
    let doubled = [begun.right().as_slice(), &[("code", "mine")]].concat();
    assert!(matches!(
        process.finish(&begun, &doubled).await,
        Err(Error::State)
    ));

    process.finish(&begun, &begun.right()).await.unwrap();
    let again = process.finish(&begun, &begun.right()).await;
    assert!(matches!(again, Err(Error::State)), "a replay");
    assert_eq!(world.posted(TOKEN).len(), 1);
}

#[tokio::test]
async fn of_two_who_come_back_at_once_one_gets_it() {
    let world = World::new().await;
    let (one, other, ann) = (world.process(), world.process(), world.permit("ann"));
    let begun = one.start(&ann).await;
    let right = begun.right();
    let (first, second) = tokio::join!(one.finish(&begun, &right), other.finish(&begun, &right));
    assert_eq!(u8::from(first.is_ok()) + u8::from(second.is_ok()), 1);
    assert_eq!(world.posted(TOKEN).len(), 1);
}

#[tokio::test]
async fn a_flow_ends_after_ten_minutes() {
    let world = World::new().await;
    let (process, ann, bob) = (world.process(), world.permit("ann"), world.permit("bob"));
    let (early, late) = (process.start(&ann).await, process.start(&bob).await);
    world.wait(599);
    process.finish(&early, &early.right()).await.unwrap();
    world.wait(1);
    let ended = process.finish(&late, &late.right()).await;
    assert!(matches!(ended, Err(Error::State)));
    assert_eq!(world.posted(TOKEN).len(), 1);
}

#[tokio::test]
async fn another_issuers_answer_neither_counts_nor_uses_the_flow_up() {
    let world = World::new().await;
    let (process, ann) = (world.process(), world.permit("ann"));
    let begun = process.start(&ann).await;
    let state = begun.state();
    let (code, state) = (("code", "the-code"), ("state", &*state));
    let error = [
        ("error", "access_denied"),
        ("error_description", "call 555-0100"),
    ];
    for wrong in [
        &[code, state, ("iss", OTHER)][..],
        &[code, state, ("iss", "http://127.0.0.2:9000/")],
        &[code, state, ("iss", "")],
        &[code, state],
        &[error[0], error[1], state, ("iss", OTHER)],
        &[error[0], error[1], state],
    ] {
        let ended = process.finish(&begun, wrong).await.unwrap_err();
        assert!(matches!(ended, Error::IssuerMismatch), "{wrong:?}");
        assert!(
            !format!("{ended} {ended:?}").contains("555"),
            "nothing is shown"
        );
    }
    assert_eq!(world.posted(TOKEN).len(), 0);
    process.finish(&begun, &begun.right()).await.unwrap();
}

#[tokio::test]
async fn an_issuer_that_promises_nothing_may_leave_its_name_out() {
    let world = World::new().await;
    let quiet = json!({"authorization_response_iss_parameter_supported": false});
    world.answer(&[(
        "GET http://127.0.0.2:9000/.well-known/oauth-authorization-server",
        metadata(ISSUER, quiet),
    )]);
    let (process, ann) = (world.process(), world.permit("ann"));
    let begun = process.start(&ann).await;
    let state = begun.state();
    let wrong = [("code", "the-code"), ("state", &*state), ("iss", OTHER)];
    let ended = process.finish(&begun, &wrong).await;
    assert!(matches!(ended, Err(Error::IssuerMismatch)));
    process.finish(&begun, &wrong[..2]).await.unwrap();
}

#[tokio::test]
async fn a_providers_refusal_is_shown_cut_and_cleaned() {
    let world = World::new().await;
    let (process, ann) = (world.process(), world.permit("ann"));
    let begun = process.start(&ann).await;
    let state = begun.state();
    let html = format!(
        "<script>alert(1)</script>\u{1b}[2J\u{202e}{}",
        "x".repeat(400)
    );
    let query = [
        ("error", "access_denied"),
        ("error_description", &*html),
        ("state", &*state),
        ("iss", ISSUER),
    ];
    let Error::Denied { error, description } = process.finish(&begun, &query).await.unwrap_err()
    else {
        panic!("denied");
    };
    assert_eq!(error, "access_denied");
    let shown = format!("<script>alert(1)</script>[2J{}", "x".repeat(228));
    assert_eq!(description, Some(shown), "the page escapes it");
    let again = process.finish(&begun, &begun.right()).await;
    assert!(matches!(again, Err(Error::State)), "that was its end");
    assert_eq!(process.state(&ann).await, State::NotConnected);

    let refused = json!({"status": 400, "body": {
        "error": "invalid_grant",
        "error_description": "<b>no</b>",
    }});
    world.answer(&[("POST http://127.0.0.2:9000/token", refused)]);
    let begun = process.start(&ann).await;
    let ended = process.finish(&begun, &begun.right()).await.unwrap_err();
    assert!(matches!(ended, Error::Denied { error, .. } if error == "invalid_grant"));
    let records = process.records().await;
    assert_eq!(records[1], "connect refused refused connect.denied");
}

#[tokio::test]
async fn the_browser_goes_back_to_an_allowed_place_with_a_status() {
    let world = World::new().await;
    let (process, ann) = (world.process(), world.permit("ann"));
    for wrong in [
        "https://app.example.com.evil.test/done",
        "https://app.example.com@evil.test/done",
        "http://app.example.com/done",
        "https://app.example.com/doner",
        "https://app.example.com/done/../admin",
        "//app.example.com/done",
        "javascript:alert(1)",
    ] {
        let ended = process.try_start(&ann, Some(wrong), ISSUER).await;
        let Err(Error::Unusable { what, .. }) = ended else {
            panic!("{wrong}");
        };
        assert_eq!(
            what,
            "the page to go back to lies below none of [connect] return_to; add it there, or begin without it"
        );
    }
    let place = "https://app.example.com/done?x=1";
    let goes = async |query: &[(&str, &str)]| {
        let begun = process.try_start(&ann, Some(place), ISSUER).await.unwrap();
        let state = begun.state();
        let query = [query, &[("state", &*state), ("iss", ISSUER)]].concat();
        let finished = process.finish(&begun, &query).await.unwrap();
        finished.return_to.unwrap()
    };
    assert_eq!(
        goes(&[("code", "the-code")]).await,
        "https://app.example.com/done?x=1&status=connected&server=demo"
    );
    assert_eq!(
        goes(&[("error", "access_denied")]).await,
        "https://app.example.com/done?x=1&status=denied&server=demo"
    );
    world.answer(&[("POST http://127.0.0.2:9000/token", json!({"status": 503}))]);
    assert_eq!(
        goes(&[("code", "the-code")]).await,
        "https://app.example.com/done?x=1&status=failed&server=demo"
    );
}

#[tokio::test]
async fn policy_judges_the_server_again() {
    let world = World::new().await;
    let (process, ann) = (world.process(), world.permit("ann"));
    let begun = process.start(&ann).await;
    let (right, cookies) = (begun.right(), [begun.cookie()]);
    let auth = ann.server().auth.clone();
    let moved = world.permit_at("http://127.0.0.1:9000/other", "ann", auth);
    assert_ne!(SERVER, "http://127.0.0.1:9000/other");
    let ended = process
        .answered(&right, &cookies, ann.owner(), &moved)
        .await;
    assert!(matches!(ended, Err(Error::Unusable { .. })), "it moved");
    let bob = world.permit("bob");
    let ended = process.answered(&right, &cookies, ann.owner(), &bob).await;
    assert!(matches!(ended, Err(Error::Unusable { .. })), "not for ann");
    assert_eq!(world.posted(TOKEN).len(), 0);
    process.finish(&begun, &right).await.unwrap();
}

#[tokio::test]
async fn one_person_has_ten_flows_at_a_time() {
    let world = World::new().await;
    let (process, ann) = (world.process(), world.permit("ann"));
    for _ in 0..10 {
        process.start(&ann).await;
    }
    let ended = process.try_start(&ann, None, ISSUER).await;
    assert!(matches!(ended, Err(Error::Transient { .. })));
    process.start(&world.permit("bob")).await;
    world.wait(600);
    process.start(&ann).await;
}
