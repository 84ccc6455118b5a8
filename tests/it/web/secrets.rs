//! Secrets that people enter by hand.

use std::sync::Arc;

use tollgate::policy::{Auth, Shared};

use super::house::{House, field, policy};

#[tokio::test]
async fn a_secret_is_entered_replaced_and_removed() {
    let house = House::local().await;
    let mut ann = house.visitor().await;
    let page = ann.get("/connect/key").await;
    assert_eq!(
        page.words(),
        "Enter a secret for Key No secret yet Agents acting for you cannot use it until you enter a secret. Secret A token \
         or key of your own, as the provider of Key shows it. It is sent to this server only, as x-api-key , and shown to \
         nobody. Keep it All connections"
    );
    assert!(page.body.contains("<label for=\"secret\">Secret</label>"));
    let mut fields = page.fields("/connect/key");
    fields.push(field("secret", " sekrit-4711 "));
    let kept = ann.post("/connect/key", &fields).await;
    assert_eq!((kept.status, kept.header("location")), (303, "/result"));
    let told = ann.get("/result").await;
    assert_eq!(
        told.words(),
        "The secret for Key is kept Agents acting for you can use the server now. You can close this page. All connections"
    );
    let page = ann.get("/connect/key").await;
    assert!(
        page.words()
            .contains("Secret kept Agents acting for you can use it."),
        "{}",
        page.words()
    );
    assert!(!page.body.contains("sekrit"));
    let asked = ann.get("/disconnect/key").await;
    assert!(
        asked.words().contains("The secret is deleted."),
        "{}",
        asked.words()
    );
    let gone = ann
        .post("/disconnect/key", &asked.fields("/disconnect/key"))
        .await;
    assert_eq!(gone.status, 303);
    assert!(
        ann.get("/connect/key")
            .await
            .words()
            .contains("No secret yet")
    );
    let asked = ann.get("/disconnect/key").await;
    assert!(
        asked.words().contains("There is nothing to end."),
        "{}",
        asked.words()
    );
    for file in ["tollgate.db", "tollgate.db-wal"] {
        let content = std::fs::read(house.folder.path().join(file)).unwrap();
        assert!(
            !content.windows(6).any(|window| window == b"sekrit"),
            "{file}"
        );
    }
}

#[tokio::test]
async fn what_cannot_be_sent_is_not_kept() {
    let house = House::local().await;
    let mut ann = house.visitor().await;
    for secret in ["", "   ", "two\nlines", "ümlaut", &"x".repeat(8193)] {
        let mut fields = ann.get("/connect/token").await.fields("/connect/token");
        fields.push(field("secret", secret));
        assert_eq!(ann.post("/connect/token", &fields).await.status, 303);
        let told = ann.get("/result").await;
        assert_eq!(
            told.words(),
            "That did not work This secret cannot be sent: expected 1 to 8192 visible ASCII characters. Enter the secret as \
             its provider shows it, without line breaks. connect.secret Try again"
        );
        assert!(told.body.contains("href=\"/connect/token\""));
    }
    assert!(
        ann.get("/connect/token")
            .await
            .words()
            .contains("No secret yet")
    );
}

#[tokio::test]
async fn servers_without_a_secret_of_ones_own_offer_nothing() {
    let house = House::local().await;
    let mut ann = house.visitor().await;
    assert_eq!(
        ann.get("/connect/open").await.words(),
        "Open Ready It needs no connection. All connections"
    );
    let page = ann.get("/connect/shared").await;
    assert_eq!(
        page.words(),
        "shared Ready It is used with a credential that the operator keeps. All connections"
    );
    assert!(!page.body.contains("the-operators-own"));
}

#[tokio::test]
async fn a_server_whose_secret_the_operator_has_not_set_says_so() {
    let house = House::local().await;
    let mut policy = policy();
    let servers = Arc::make_mut(&mut policy.servers);
    let server = servers.get_mut("shared").and_then(Arc::get_mut);
    server.unwrap().auth = Auth::Shared(Shared {
        header: None,
        secret: None,
    });
    house.policy.store(Arc::new(policy));
    let page = house.visitor().await.get("/connect/shared").await;
    assert_eq!(
        page.words(),
        "shared Needs the operator It cannot be used until the operator sets the credential that is kept for it. All \
         connections"
    );
}
