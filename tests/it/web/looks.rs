//! What the pages say.

use super::house::{HOSTILE, House};

#[tokio::test]
async fn the_first_page_says_how_everything_stands() {
    let house = House::local().await;
    let mut ann = house.visitor().await;
    let page = ann.get("/").await;
    assert_eq!(
        page.words(),
        format!(
            "Your connections These are the servers that agents acting for you may use. {HOSTILE} Not connected demo Agents \
             acting for you cannot use it until you connect. Connect – {HOSTILE} Key No secret yet key Agents acting for you \
             cannot use it until you enter a secret. Enter a secret – Key Open Ready open It needs no connection. shared \
             Ready It is used with a credential that the operator keeps. token No secret yet Agents acting for you cannot \
             use it until you enter a secret. Enter a secret – token"
        )
    );
    let begun = ann.begin().await;
    let page = ann.get("/").await;
    assert!(
        page.words().contains(
            "Connecting demo You have begun to sign in at the provider. That can be finished until 29 November 2026, 22:10 UTC. \
             Go on"
        ),
        "{}",
        page.words()
    );
    ann.comes_back(&begun, "code=c").await;
    let page = ann.get("/").await;
    assert!(
        page.words().contains(
            "Connected demo Agents acting for you can use it. It is renewed by itself. Provider 127.0.0.2:9000 Permissions \
             read Since 29 November 2026, 22:00 UTC Renewed before 29 November 2026, 23:00 UTC Details"
        ),
        "{}",
        page.words()
    );
}

#[tokio::test]
async fn who_may_use_nothing_sees_nothing() {
    let house = House::local().await;
    let mut ann = house.visitor().await;
    house.policy.store(Default::default());
    assert_eq!(
        ann.get("/").await.words(),
        "Your connections No server is open to you. The operator decides which are."
    );
    // A server of another tenant is not there, like one that nobody registered.
    for path in ["/connect/foreign", "/connect/nobody", "/disconnect/demo"] {
        let page = ann.get(path).await;
        assert_eq!(page.status, 404, "{path}");
        assert!(page.words().contains("policy.server_unknown"), "{path}");
    }
}

/// What other people named is text, wherever it stands.
#[tokio::test]
async fn nothing_that_others_say_becomes_markup() {
    let house = House::local().await;
    let scopes = format!("read {HOSTILE}");
    let challenge = format!(
        "Bearer resource_metadata=\"http://127.0.0.1:9000/.well-known/oauth-protected-resource/mcp\", \
         scope=\"{}\"",
        scopes.replace('"', "\\\"")
    );
    house.answer(&[(
        "POST http://127.0.0.1:9000/mcp",
        serde_json::json!({"status": 401, "headers": {"www-authenticate": challenge}}),
    )]);
    let mut ann = house.visitor().await;
    for path in ["/", "/connect/demo", "/disconnect/demo"] {
        let page = ann.get(path).await;
        assert_eq!(page.status, 200, "{path}");
        assert!(
            page.body.contains("&lt;img src=x onerror=alert(1)&gt;"),
            "{path}"
        );
        assert!(!page.body.contains("<img"), "{path}");
    }
    let page = ann
        .get("/connect/demo?return_to=%22%3E%3Cimg%20src%3Dx%3E")
        .await;
    assert!(!page.body.contains("<img"));
    let told = ann.begin().await;
    let refused = ann
        .comes_back(
            &told,
            "error=%3Cimg%3E&error_description=%3Cscript%3Ealert(1)%3C/script%3E",
        )
        .await;
    assert!(!refused.body.contains("<img") && !refused.body.contains("<script"));
    assert!(
        refused.words().contains("<script>alert(1)</script>"),
        "{}",
        refused.words()
    );
}

#[tokio::test]
async fn pages_have_landmarks_labels_and_one_heading() {
    let house = House::local().await;
    let mut ann = house.visitor().await;
    for path in [
        "/",
        "/connect/demo",
        "/connect/key",
        "/disconnect/key",
        "/sign-ins",
        "/nothing",
    ] {
        let page = ann.get(path).await;
        for part in [
            "<html lang=\"en\">",
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">",
            "<a class=\"skip\" href=\"#main\">",
            "<header>",
            "<main id=\"main\">",
            "<footer>",
        ] {
            assert!(page.body.contains(part), "{path}: {part}");
        }
        assert_eq!(page.body.matches("<h1>").count(), 1, "{path}");
        for input in page.body.split("<input ").skip(1) {
            let input = input.split_once('>').unwrap().0;
            let labelled = input.contains("type=\"hidden\"") || input.contains("id=\"secret\"");
            assert!(labelled, "{path}: {input}");
        }
    }
}
