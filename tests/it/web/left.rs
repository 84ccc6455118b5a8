//! A person whose server was taken away still sees what is kept of it, by name, and can end it.

use super::house::{House, field};

/// The part of the first page about what is no longer offered.
fn left(words: &str) -> Option<&str> {
    words
        .split_once("No longer offered to you")
        .map(|(_, left)| left)
}

const LEFT: &str = " Agents acting for you cannot use these servers any more. What is kept of your connections stays until \
    you end them. ";

#[tokio::test]
async fn a_connection_outlives_the_offer_and_ends_by_its_owners_hand() {
    for (file_goes, told, revoked) in [
        (
            false,
            "The provider has withdrawn what it issued, and Tollgate has deleted it.",
            1,
        ),
        // Without a file nothing is sent to its provider.
        (
            true,
            "The provider did not confirm that it has withdrawn it",
            0,
        ),
    ] {
        let house = House::local().await;
        let mut ann = house.visitor().await;
        let begun = ann.begin().await;
        ann.comes_back(&begun, "code=c").await;
        assert_eq!(left(&ann.get("/").await.words()), None);
        house.withdraw("demo", file_goes);

        let home = ann.get("/").await.words();
        let expected = format!("{LEFT}demo Disconnect – demo");
        assert_eq!(
            left(&home),
            Some(&*expected),
            "by its name and nothing else"
        );
        assert_eq!(ann.get("/connect/demo").await.status, 404);
        let page = ann.get("/disconnect/demo").await;
        assert_eq!(
            page.words(),
            "Disconnect demo This server is no longer offered to you. What is kept of your connection is deleted, and its \
             provider is asked to withdraw what it issued, as far as the operator still names the server. Disconnect All \
             connections"
        );
        let forged = [field("proof", "0")];
        assert_eq!(ann.post("/disconnect/demo", &forged).await.status, 403);
        let gone = ann
            .post("/disconnect/demo", &page.fields("/disconnect/demo"))
            .await;
        assert_eq!((gone.status, gone.header("location")), (303, "/result"));
        let result = ann.get("/result").await.words();
        assert!(result.contains(told), "{result}");
        assert_eq!(house.posted("http://127.0.0.3:9000/revoke"), 2 * revoked);

        assert_eq!(left(&ann.get("/").await.words()), None);
        assert_eq!(ann.get("/disconnect/demo").await.status, 404);
        assert_eq!(house.sql("DELETE FROM grants"), 0, "it is deleted");
        let records = house.records().await;
        let ended = "connect disconnected allowed -".to_owned();
        assert!(records.contains(&ended), "{records:?}");
    }
}

#[tokio::test]
async fn a_secret_outlives_the_offer_too() {
    let house = House::local().await;
    let mut ann = house.visitor().await;
    let mut fields = ann.get("/connect/key").await.fields("/connect/key");
    fields.push(field("secret", "k-1"));
    ann.post("/connect/key", &fields).await;
    house.withdraw("key", true);
    let home = ann.get("/").await.words();
    assert_eq!(left(&home), Some(&*format!("{LEFT}key Disconnect – key")));
    ann.press("/disconnect/key", "/disconnect/key").await;
    assert_eq!(left(&ann.get("/").await.words()), None);
    assert_eq!(house.sql("DELETE FROM sealed WHERE kind = 'secret'"), 0);
}

#[tokio::test]
async fn a_server_that_one_has_nothing_of_is_unknown() {
    let house = House::local().await;
    let mut ann = house.visitor().await;
    let begun = ann.begin().await;
    ann.comes_back(&begun, "code=c").await;
    let fields = ann.get("/disconnect/demo").await.fields("/disconnect/demo");
    ann.post("/disconnect/demo", &fields).await;
    house.withdraw("demo", false);
    let page = ann.get("/disconnect/demo").await;
    let other = ann.get("/disconnect/nothing").await;
    assert_eq!((page.status, other.status), (404, 404));
    assert_eq!(
        page.words().replace("demo", "nothing"),
        other.words(),
        "it is told like one that there is not"
    );
    assert_eq!(ann.post("/disconnect/demo", &fields).await.status, 404);
}
