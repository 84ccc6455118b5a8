//! What an operator accepts, and pins that are kept in a file.

use super::*;

fn names(names: &[&str]) -> Accept {
    let chosen = names.iter().map(|name| Chosen {
        name: Arc::from(*name),
        digest: None,
    });
    Accept::Named(chosen.collect())
}

#[tokio::test]
async fn what_was_seen_is_accepted_by_name_and_ends_first_use() {
    let world = World::new();
    let server = world.permit.server().clone();
    world
        .whole(View::plain(), r#"[{"name":"a"},{"name":"b"}]"#)
        .await;
    let now = r#"[{"name":"a","title":"A"},{"name":"b"},{"name":"c"}]"#;
    world.page(View::plain(), now).await;
    let overview = world.catalog.overview(&server).await.expect("pins");
    assert_eq!(overview.pinned.version, 1);
    let seen: Vec<&str> = overview.blocked.iter().map(|item| &*item.name).collect();
    assert_eq!(seen, ["a", "c"]);
    assert_eq!(diff(&overview.pinned.items, &overview.blocked).len(), 3);
    let unseen = world.catalog.accept(&server, &names(&["a", "x"])).await;
    assert_eq!(
        unseen.expect_err("no x").to_string(),
        "nothing named `x` was seen of server `demo`, or is pinned"
    );
    let pinned = world.catalog.accept(&server, &names(&["a"])).await;
    let pinned = pinned.expect("it is kept");
    assert_eq!((pinned.version, pinned.reviewed), (2, true));
    let of = |name: &str| {
        let named = pinned.named(ItemKind::Tool, name);
        named
            .iter()
            .map(|item| (item.version, item.by))
            .collect::<Vec<_>>()
    };
    assert_eq!(of("a"), [(2, By::Operator)]);
    assert_eq!(of("b"), [(1, By::FirstUse)]);
    assert_eq!(of("c"), []);
    assert_eq!(*pinned, world.ledger.only());
    assert_eq!(world.find(View::plain(), "b"), Found::Unknown);
    world.whole(View::plain(), now).await;
    assert_eq!(world.tool(View::plain(), "a").version(), 2);
    assert_eq!(
        world.find(View::plain(), "c"),
        Found::Blocked(Reason::Unreviewed)
    );
    let report = world.whole(other_view(), r#"[{"name":"new"}]"#).await;
    assert_eq!(reasons(&report), [("new", "unreviewed")]);
}

#[tokio::test]
async fn all_can_be_accepted_and_what_other_views_see_stays() {
    let world = World::new();
    let server = world.permit.server().clone();
    world.whole(View::plain(), r#"[{"name":"a"}]"#).await;
    world
        .whole(other_view(), r#"[{"name":"a","title":"A"}]"#)
        .await;
    world
        .page(View::plain(), r#"[{"name":"a","title":"new"}]"#)
        .await;
    let pinned = world.catalog.accept(&server, &Accept::All).await;
    let pinned = pinned.expect("it is kept");
    let titles: Vec<bool> = pinned
        .named(ItemKind::Tool, "a")
        .iter()
        .map(|item| item.definition.contains("title"))
        .collect();
    assert_eq!(titles, [true, true]);
    assert!(pinned.items.iter().all(|item| item.by == By::Operator));
    assert!(
        world
            .catalog
            .overview(&server)
            .await
            .expect("pins")
            .blocked
            .is_empty()
    );
}

#[tokio::test]
async fn a_file_alone_says_what_is_offered() {
    let world = World {
        permit: permit_with("pin = \"file\"", None),
        ..World::new()
    };
    let server = world.permit.server().clone();
    let list = r#"[{"name":"a"},{"name":"b"}]"#;
    assert_eq!(world.page(View::plain(), list).await, Vec::<String>::new());
    let pinned = world.catalog.accept(&server, &names(&["a"])).await;
    let text = pins_file::write("demo", &pinned.expect("it was seen"));
    assert_eq!(world.page(View::plain(), list).await, Vec::<String>::new());
    assert_eq!(world.ledger.only(), Pinned::default());
    let world = World {
        permit: permit_with("pin = \"file\"", Some(&text)),
        ..world
    };
    assert_eq!(world.page(View::plain(), list).await, ["a"]);
    assert_eq!(world.tool(View::plain(), "a").version(), 1);
    assert_eq!(
        world.find(View::plain(), "b"),
        Found::Blocked(Reason::Unreviewed)
    );
}

#[test]
fn the_text_alone_says_what_is_chosen() {
    let digest = "2cacd488a6a76b8b";
    for (written, name, chosen) in [
        ("put", "put", None),
        ("put@2cacd488a6a76b8b", "put", Some(digest)),
        ("@2cacd488a6a76b8b", "", Some(digest)),
        (
            "put@2cacd488a6a76b8b@2cacd488a6a76b8b",
            "put@2cacd488a6a76b8b",
            Some(digest),
        ),
        ("put@", "put@", None),
        ("put@2cacd488a6a76b8", "put@2cacd488a6a76b8", None),
        ("put@2CACD488A6A76B8B", "put@2CACD488A6A76B8B", None),
        ("put@zcacd488a6a76b8b", "put@zcacd488a6a76b8b", None),
    ] {
        let read = Chosen {
            name: name.into(),
            digest: chosen.map(str::to_owned),
        };
        assert_eq!(Chosen::read(written), read, "{written}");
    }
}

#[tokio::test]
async fn a_digest_accepts_one_of_two_definitions_and_nothing_in_its_place() {
    let world = World::new();
    let server = world.permit.server().clone();
    world.whole(View::plain(), r#"[{"name":"a"}]"#).await;
    world.whole(other_view(), r#"[{"name":"a"}]"#).await;
    let one = r#"[{"name":"a","title":"one"}]"#;
    let other = r#"[{"name":"a","title":"other"}]"#;
    world.page(View::plain(), one).await;
    world.page(other_view(), other).await;
    let digest = |list: &str| {
        let item = shown(List::Tools, list).remove(0).item;
        crate::id::hex(&item.expect("a definition").digest)
    };
    let chosen = |list: &str| Accept::Named(vec![Chosen::read(&format!("a@{}", digest(list)))]);
    let old = world
        .catalog
        .accept(&server, &chosen(r#"[{"name":"a"}]"#))
        .await;
    assert_eq!(old.expect_err("it is not seen").code(), Code::Drifted);
    let pinned = world.catalog.accept(&server, &chosen(one)).await;
    let pinned = pinned.expect("it is kept");
    let digests: Vec<String> = pinned
        .items
        .iter()
        .map(|item| crate::id::hex(&item.digest))
        .collect();
    assert_eq!(digests, [digest(one)]);
    assert_eq!(world.page(other_view(), other).await, Vec::<String>::new());
}
