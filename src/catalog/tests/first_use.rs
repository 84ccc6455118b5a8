//! What is taken at the first use of a view, and what is not any more.

use super::*;

#[tokio::test]
async fn the_first_whole_list_is_pinned_before_anything_is_offered() {
    let world = World::new();
    assert_eq!(world.find(View::plain(), "a"), Found::Unknown);
    assert!(!world.book().await.is_settled(View::plain(), List::Tools));
    let report = world
        .whole(View::plain(), r#"[{"name":"a","x":1.0},{"name":"b"}]"#)
        .await;
    let taken = report.taken.expect("it is the first list");
    assert_eq!((taken.version, taken.items.len()), (1, 2));
    assert!(report.blocks.is_empty());
    let kept = world.ledger.only();
    assert_eq!(
        (kept.version, kept.reviewed, kept.views.len()),
        (1, false, 1)
    );
    let tool = world.tool(View::plain(), "a");
    assert_eq!((tool.name(), tool.version()), ("a", 1));
    assert_eq!(tool.digest(), &kept.items[0].digest);
    assert!(world.book().await.is_settled(View::plain(), List::Tools));
    assert!(!world.book().await.is_settled(View::plain(), List::Prompts));
}

#[tokio::test]
async fn a_restart_offers_what_was_pinned_once_a_list_shows_it() {
    let first = World::new();
    first
        .whole(View::plain(), r#"[{"name":"a"},{"name":"b"}]"#)
        .await;
    let world = World::over(first.ledger.clone());
    assert_eq!(world.find(View::plain(), "a"), Found::Unknown);
    let changed = r#"[{"name":"a"},{"name":"b","title":"B"}]"#;
    assert_eq!(world.page(View::plain(), changed).await, ["a"]);
    world.tool(View::plain(), "a");
    assert_eq!(
        world.find(View::plain(), "b"),
        Found::Blocked(Reason::Drifted)
    );
    assert_eq!(world.ledger.only().version, 1);
}

#[tokio::test]
async fn views_are_a_union_and_absence_is_no_drift() {
    let world = World::new();
    world
        .whole(View::plain(), r#"[{"name":"a"},{"name":"b"}]"#)
        .await;
    let report = world
        .whole(other_view(), r#"[{"name":"b","title":"B"},{"name":"c"}]"#)
        .await;
    assert!(report.blocks.is_empty());
    let kept = world.ledger.only();
    let named = |name| kept.named(ItemKind::Tool, name).len();
    assert_eq!((named("a"), named("b"), named("c")), (1, 2, 1));
    assert_eq!((kept.version, kept.views.len()), (2, 2));
    assert_eq!(world.find(other_view(), "a"), Found::Unknown);
    let (one, other) = (
        world.tool(View::plain(), "b"),
        world.tool(other_view(), "b"),
    );
    assert_ne!(one.digest(), other.digest());
    assert_eq!((one.version(), other.version()), (1, 2));
}

#[tokio::test]
async fn what_one_view_may_not_see_is_not_taken_by_the_way_of_another() {
    let world = World::new();
    world.whole(View::plain(), r#"[{"name":"a"}]"#).await;
    let evil = r#"[{"name":"a","description":"evil"},{"name":"b"}]"#;
    assert_eq!(world.page(View::plain(), evil).await, Vec::<String>::new());
    let report = world.whole(other_view(), evil).await;
    assert_eq!(report.taken.expect("the first list").items, []);
    assert!(world.book().await.is_settled(other_view(), List::Tools));
    assert_eq!(
        world.find(other_view(), "a"),
        Found::Blocked(Reason::Drifted)
    );
    assert_eq!(
        world.find(other_view(), "b"),
        Found::Blocked(Reason::Unreviewed)
    );
}

#[tokio::test]
async fn a_server_that_shows_nothing_yet_is_not_settled() {
    let world = World::new();
    let report = world.whole(View::plain(), "[]").await;
    assert!(report.taken.is_none());
    assert_eq!(world.ledger.only(), Pinned::default());
    assert!(!world.book().await.is_settled(View::plain(), List::Tools));
}

#[tokio::test]
async fn of_two_that_pin_at_once_the_second_looks_again() {
    let world = World::new();
    let rival = {
        let rival = World::new();
        rival.whole(View::plain(), r#"[{"name":"a"}]"#).await;
        rival.ledger.only()
    };
    *world.ledger.rival.lock().expect("no panic") = Some(rival);
    let report = world
        .whole(View::plain(), r#"[{"name":"a"},{"name":"b"}]"#)
        .await;
    assert!(report.taken.is_none());
    assert_eq!(reasons(&report), [("b", "unreviewed")]);
    world.tool(View::plain(), "a");
    assert_eq!(world.ledger.only().version, 1);
}

#[tokio::test]
async fn without_its_ledger_nothing_is_offered() {
    for (error, code) in [
        (
            (|| LedgerError::Unavailable {
                server: "demo".into(),
                source: "gone".into(),
            }) as fn() -> LedgerError,
            Code::StoreUnavailable,
        ),
        (
            || LedgerError::Forged {
                server: "demo".into(),
            },
            Code::PinsUnusable,
        ),
    ] {
        let world = World::new();
        let book = world.book().await;
        let turn = book.turn(View::plain(), List::Tools).await.expect("a turn");
        *world.ledger.fails.lock().expect("no panic") = Some(error);
        let refused = turn.finish(&shown(List::Tools, r#"[{"name":"a"}]"#)).await;
        assert_eq!(refused.expect_err("it is not kept").code(), code);
        assert_eq!(world.find(View::plain(), "a"), Found::Unknown);
        let world = World::over(world.ledger.clone());
        let closed = world.catalog.open(world.permit.server()).await;
        assert_eq!(closed.expect_err("it cannot be read").code(), code);
    }
}

#[tokio::test]
async fn views_variants_and_sizes_are_bounded() {
    let world = World::new();
    let mark = |at: usize| std::array::from_fn(|place| if place == 0 { at as u8 } else { 0xee });
    let full = Pinned {
        version: 1,
        views: (2..MAX_VIEWS).map(mark).collect(),
        ..Pinned::default()
    };
    let key = ServerKey::of(world.permit.server());
    world
        .ledger
        .rows
        .lock()
        .expect("no panic")
        .insert(key, full);
    let variants = (0..16).map(|at| format!(r#"{{"name":"a","n":{at}}}"#));
    let variants = variants.collect::<Vec<_>>().join(",");
    for (at, revision) in Revision::SERVED[..3].iter().enumerate() {
        let view = View::of(*revision, &Offer::default());
        let tools = format!(r#"[{variants},{{"name":"b{at}"}}]"#);
        world.whole(view, &tools).await;
    }
    let kept = world.ledger.only();
    assert_eq!(kept.views.len(), MAX_VIEWS);
    assert_eq!(kept.named(ItemKind::Tool, "a").len(), MAX_VARIANTS);
    assert_eq!(kept.items.len(), MAX_VARIANTS + 2);
    let turn = World::new().book().await;
    let turn = turn.turn(View::plain(), List::Tools).await.expect("a turn");
    let large = format!(r#"[{{"name":"a","x":"{}"}}]"#, "x".repeat(MAX_BYTES));
    let refused = turn.finish(&shown(List::Tools, &large)).await;
    assert_eq!(
        refused.expect_err("too large").code(),
        Code::CatalogTooLarge
    );
}
