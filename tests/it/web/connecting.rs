//! Connecting, coming back, and disconnecting.

use serde_json::json;

use super::house::{House, ISSUER, callback, field, metadata};

#[tokio::test]
async fn a_person_sees_who_asks_for_what_connects_and_disconnects() {
    let house = House::local().await;
    let mut ann = house.visitor().await;
    let page = ann.get("/connect/key").await;
    assert_eq!(page.status, 200);
    let page = ann.get("/connect/demo").await;
    let words = page.words();
    for part in [
        "Not connected Agents acting for you cannot use it until you connect. What you agree to Server",
        "demo You sign in at 127.0.0.2:9000 What it issues also goes to 127.0.0.3:9000 Permissions asked for read You come \
         back to 127.0.0.1:8703 Go on only if you know 127.0.0.2:9000 . Your password is asked for there, never here. \
         Connect All connections",
    ] {
        assert!(words.contains(part), "{words}");
    }
    // Looking begins nothing.
    assert!(
        !house
            .provider
            .asked()
            .iter()
            .any(|ask| ask.to_string().contains("/register"))
    );
    assert!(!page.body.contains("class=\"\""), "{}", page.body);
    assert_eq!(page.cookies(), [""; 0]);

    let going = ann
        .post("/connect/demo", &page.fields("/connect/demo"))
        .await;
    assert_eq!(going.status, 200);
    assert_eq!(
        going.words(),
        "On to 127.0.0.2:9000 Your browser goes to the provider now. This can be finished within ten minutes. Continue to \
         127.0.0.2:9000 All connections"
    );
    let url = going.provider();
    assert_eq!(
        url.as_str().split('?').next(),
        Some("http://127.0.0.2:9000/authorize")
    );
    let escaped = url.as_str().replace('&', "&amp;");
    assert!(going.body.contains(&format!("href=\"{escaped}\"")));
    let cookie = going.cookies()[0].to_owned();
    let (name, rest) = cookie.split_once('=').unwrap();
    let (_, attributes) = rest.split_once("; ").unwrap();
    assert!(
        name.starts_with("tollgate-connect-") && name.len() == 25,
        "{name}"
    );
    assert_eq!(attributes, "Path=/; Max-Age=600; HttpOnly; SameSite=Lax");

    let path = callback(&going, "code=the-code");
    let back = ann.get(&path).await;
    assert_eq!((back.status, back.header("location")), (303, "/result"));
    assert_eq!(back.header("referrer-policy"), "no-referrer");
    assert_eq!(back.body, "");
    assert!(
        !ann.cookies.contains_key(name),
        "the flow's cookie has done its work"
    );
    let told = ann.get("/result").await;
    assert!(
        told.words().starts_with("You are connected to "),
        "{}",
        told.words()
    );
    assert!(told.words().ends_with(
        "Agents acting for you can use it now. You can close this page. All connections"
    ));
    // The same answer again is nobody's.
    let again = ann.get(&path).await;
    assert_eq!(again.header("location"), "/result");
    assert!(ann.get("/result").await.words().contains("connect.state"));

    let asked = ann.get("/disconnect/demo").await;
    assert!(
        asked
            .words()
            .contains("The provider is asked to withdraw what it issued"),
        "{}",
        asked.words()
    );
    let gone = ann
        .post("/disconnect/demo", &asked.fields("/disconnect/demo"))
        .await;
    assert_eq!((gone.status, gone.header("location")), (303, "/result"));
    let told = ann.get("/result").await;
    assert!(
        told.words().ends_with(
            "is disconnected The provider has withdrawn what it issued, and Tollgate has deleted it. All connections"
        ),
        "{}",
        told.words()
    );
    assert!(
        ann.get("/connect/demo")
            .await
            .words()
            .contains("Not connected")
    );
}

#[tokio::test]
async fn a_provider_that_does_not_confirm_is_told_of() {
    let house = House::local().await;
    let mut ann = house.visitor().await;
    let begun = ann.begin().await;
    ann.comes_back(&begun, "code=c").await;
    house.answer(&[("POST http://127.0.0.3:9000/revoke", json!({"status": 503}))]);
    ann.press("/disconnect/demo", "/disconnect/demo").await;
    let told = ann.get("/result").await;
    assert!(
        told.words()
            .contains("The provider did not confirm that it has withdrawn it"),
        "{}",
        told.words()
    );
}

#[tokio::test]
async fn a_refusal_is_told_in_the_providers_words() {
    let house = House::local().await;
    let mut ann = house.visitor().await;
    let begun = ann.begin().await;
    let told = ann
        .comes_back(
            &begun,
            "error=access_denied&error_description=You%20said%20%22no%22",
        )
        .await;
    assert_eq!(
        told.words(),
        "That did not work The authorization server refused. The provider's own words: access_denied: You said \"no\" Try \
         again and agree there, or ask the operator. connect.denied Try again"
    );
    assert!(
        told.body.contains("href=\"/connect/demo\""),
        "to the same server"
    );
    // It can be looked at again, and is nobody else's.
    assert_eq!(ann.get("/result").await.words(), told.words());
    let mut other = house.visitor().await;
    other.cookies.insert(
        "tollgate-result".to_owned(),
        ann.cookies["tollgate-result"].clone(),
    );
    let page = other.get("/result").await;
    assert_eq!((page.status, page.header("location")), (303, "/"));
}

#[tokio::test]
async fn only_the_browser_and_the_user_who_began_come_back() {
    let house = House::local().await;
    let mut ann = house.visitor().await;
    let begun = ann.begin().await;
    let path = callback(&begun, "code=c");
    for mut visitor in [house.visitor().await, house.stranger()] {
        let page = visitor.get(&path).await;
        assert_eq!((page.status, page.header("location")), (303, "/result"));
        let told = visitor.get("/result").await;
        assert!(told.words().contains("connect.browser"), "{}", told.words());
    }
    let told = ann.comes_back(&begun, "code=c").await;
    assert!(
        told.words().contains("You are connected to"),
        "{}",
        told.words()
    );
}

#[tokio::test]
async fn forged_answers_leave_the_flow_as_it_is() {
    let house = House::local().await;
    let mut ann = house.visitor().await;
    let begun = ann.begin().await;
    let path = callback(&begun, "code=c");
    for (wrong, code) in [
        ("/oauth/callback".to_owned(), "connect.state"),
        (
            "/oauth/callback?code=c&state=unknown&iss=x".to_owned(),
            "connect.state",
        ),
        (format!("{path}&code=d"), "connect.state"),
        (
            path.replace("127.0.0.2", "127.0.0.9"),
            "connect.issuer_mismatch",
        ),
        (
            path.replace("code=c", "error=access_denied")
                .replace("127.0.0.2", "127.0.0.9"),
            "connect.issuer_mismatch",
        ),
    ] {
        let page = ann.get(&wrong).await;
        assert_eq!(
            (page.status, page.header("location")),
            (303, "/result"),
            "{wrong}"
        );
        let told = ann.get("/result").await;
        assert!(told.words().contains(code), "{wrong}: {}", told.words());
        assert!(!told.words().contains("access_denied"), "{wrong}");
    }
    let told = ann.comes_back(&begun, "code=c").await;
    assert!(
        told.words().contains("You are connected to"),
        "{}",
        told.words()
    );
}

#[tokio::test]
async fn a_person_is_sent_back_where_the_operator_allows_it() {
    let house = House::local().await;
    let mut ann = house.visitor().await;
    let page = ann
        .get("/connect/demo?return_to=https%3A%2F%2Fapp.example.com%2Fdone%3Fa%3D1")
        .await;
    assert!(
        page.words()
            .contains("And then go on to https://app.example.com/done?a=1"),
        "{}",
        page.words()
    );
    let going = ann
        .post("/connect/demo", &page.fields("/connect/demo"))
        .await;
    let back = ann.get(&callback(&going, "code=c")).await;
    assert_eq!(back.status, 303);
    assert_eq!(
        back.header("location"),
        "https://app.example.com/done?a=1&status=connected&server=demo"
    );
    assert_eq!(back.header("referrer-policy"), "no-referrer");

    let page = ann
        .get("/connect/demo?return_to=https%3A%2F%2Fevil.example%2F")
        .await;
    let refused = ann
        .post("/connect/demo", &page.fields("/connect/demo"))
        .await;
    assert_eq!(
        (refused.status, refused.header("location")),
        (303, "/result")
    );
    assert!(
        ann.get("/result")
            .await
            .words()
            .contains("connect.unusable")
    );
}

#[tokio::test]
async fn a_flow_under_way_shows_its_end_and_how_to_try_again() {
    let house = House::local().await;
    let mut ann = house.visitor().await;
    ann.begin().await;
    let page = ann.get("/connect/demo").await;
    let words = page.words();
    for part in [
        "Connecting You have begun to sign in at the provider. That can be finished until 29 November 2026, 22:10 UTC.",
        "If the provider still shows its page, go on there.",
        "Try again with a new registration",
    ] {
        assert!(words.contains(part), "{words}");
    }
    house.clock.forward(600);
    let page = ann.get("/connect/demo").await;
    assert!(page.words().contains("Not connected"), "{}", page.words());
}

#[tokio::test]
async fn another_provider_is_told_of_and_confirmed() {
    let house = House::local().await;
    let mut ann = house.visitor().await;
    let begun = ann.begin().await;
    ann.comes_back(&begun, "code=c").await;
    let before = ann.get("/connect/demo").await.fields("/connect/demo");
    ann.press("/disconnect/demo", "/disconnect/demo").await;
    let other = "http://127.0.0.3:9000";
    let text = metadata().to_string().replace(ISSUER, other);
    house.answer(&[
        (
            "GET http://127.0.0.1:9000/.well-known/oauth-protected-resource/mcp",
            json!({"body": {"resource": "http://127.0.0.1:9000/mcp", "authorization_servers": [other]}}),
        ),
        (
            "GET http://127.0.0.3:9000/.well-known/oauth-authorization-server",
            json!({"body": serde_json::from_str::<serde_json::Value>(&text).unwrap()}),
        ),
    ]);
    house.clock.forward(7200);
    let page = ann.get("/connect/demo").await;
    let words = page.words();
    if words.contains("The provider has changed") {
        assert!(
            words.contains("Connect to 127.0.0.3:9000 from now on"),
            "{words}"
        );
    }
    // What was confirmed before is not what would be done now.
    let fields: Vec<_> = before
        .iter()
        .map(|(name, value)| match &**name {
            "confirmation" => field(name, "http://127.0.0.9:9000"),
            _ => field(name, value),
        })
        .collect();
    let refused = ann.post("/connect/demo", &fields).await;
    assert_eq!(
        (refused.status, refused.header("location")),
        (303, "/result")
    );
    assert!(
        ann.get("/result")
            .await
            .words()
            .contains("connect.issuer_changed")
    );
}

#[tokio::test]
async fn a_browser_keeps_the_cookies_of_ten_flows() {
    let house = House::local().await;
    let mut ann = house.visitor().await;
    for number in 0..12 {
        let name = format!("tollgate-connect-0000000{number:x}");
        ann.cookies.insert(name, "old".to_owned());
    }
    let begun = ann.begin().await;
    assert_eq!(begun.cookies().len(), 4);
    let bound = |name: &&String| name.starts_with("tollgate-connect-");
    assert_eq!(ann.cookies.keys().filter(bound).count(), 10);
    let told = ann.comes_back(&begun, "code=c").await;
    assert!(
        told.words().contains("You are connected to"),
        "{}",
        told.words()
    );
    assert_eq!(ann.cookies.keys().filter(bound).count(), 9);
}

#[tokio::test]
async fn a_server_without_usable_authorization_says_so() {
    let house = House::local().await;
    house.answer(&[(
        "GET http://127.0.0.2:9000/.well-known/oauth-authorization-server",
        json!({"body": {"issuer": ISSUER}}),
    )]);
    let mut ann = house.visitor().await;
    let page = ann.get("/connect/demo").await;
    assert_eq!(page.status, 403, "{}", page.words());
    assert!(
        page.words().contains("This cannot be done now"),
        "{}",
        page.words()
    );
    assert!(
        page.words().contains("connect.unusable"),
        "{}",
        page.words()
    );
    assert!(
        !page
            .body
            .contains("<form method=\"post\" action=\"/connect/")
    );
}

/// No code, state or token is written anywhere.
#[tokio::test]
async fn records_tell_of_a_connection_and_show_nothing_of_it() {
    let house = House::local().await;
    let mut ann = house.visitor().await;
    let begun = ann.begin().await;
    ann.comes_back(&begun, "code=the-code").await;
    let records = house.records().await;
    assert_eq!(records[0], "admin sign_in allowed -");
    assert!(
        records.contains(&"connect begun allowed -".to_owned()),
        "{records:?}"
    );
    assert!(
        records.contains(&"connect connected allowed -".to_owned()),
        "{records:?}"
    );
    let folder = house.folder.path().join("audit");
    let state = begun
        .provider()
        .query_pairs()
        .find(|(name, _)| name == "state")
        .unwrap()
        .1
        .into_owned();
    for file in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read(file.unwrap().path()).unwrap();
        for secret in [
            "the-code",
            "at-1",
            "rt-1",
            &*state,
            &*ann.cookies["tollgate-session"],
        ] {
            let found = text
                .windows(secret.len())
                .any(|window| window == secret.as_bytes());
            assert!(!found, "{secret}");
        }
    }
}
