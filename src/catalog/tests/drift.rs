//! What is not as it was pinned.

use super::*;

#[tokio::test]
async fn each_change_is_blocked_alone_and_told_once() {
    let world = World::new();
    world
        .whole(View::plain(), r#"[{"name":"a"},{"name":"b"}]"#)
        .await;
    let list = r#"[{"name":"a","title":"A"},{"name":"b"},{"name":"c"},{"name":"d","x":1,"x":2}]"#;
    let items = shown(List::Tools, list);
    let judged = |book: Book| book.judge(View::plain(), Era::Modern, List::Tools, &items);
    let first = judged(world.book().await);
    assert_eq!(
        reasons(&first.report),
        [("a", "drifted"), ("c", "unreviewed"), ("d", "unusable")]
    );
    assert!(reasons(&judged(world.book().await).report).is_empty());
    world.tool(View::plain(), "b");
    for (name, code) in [
        ("a", Code::Drifted),
        ("c", Code::Unreviewed),
        ("d", Code::UpstreamMalformed),
    ] {
        match world.find(View::plain(), name) {
            Found::Blocked(reason) => assert_eq!(reason.code(), code),
            other => panic!("{name}: {other:?}"),
        }
    }
    assert_eq!(world.page(View::plain(), r#"[{"name":"a"}]"#).await, ["a"]);
    world.tool(View::plain(), "a");
}

#[tokio::test]
async fn the_old_text_of_prompts_stays_and_new_ones_are_left_out() {
    for (list, key) in [(List::Prompts, "name"), (List::Templates, "uriTemplate")] {
        let world = World::new();
        let items = |text: &str| shown(list, &text.replace("KEY", key));
        let book = world.book().await;
        let turn = book.turn(View::plain(), list).await.expect("a turn");
        let first = items(r#"[{"KEY":"a","title":"old"},{"KEY":"b"}]"#);
        turn.finish(&first).await.expect("room");
        let now = items(r#"[{"KEY":"a","title":"new"},{"KEY":"b"},{"KEY":"c"}]"#);
        let book = world.book().await;
        let judged = book.judge(View::plain(), Era::Modern, list, &now);
        let old = first[0].item.as_ref().expect("a definition");
        assert_eq!(
            judged.fates,
            [
                Fate::Replace(old.definition.clone()),
                Fate::Keep,
                Fate::Drop
            ]
        );
        assert_eq!(
            reasons(&judged.report),
            [("a", "drifted"), ("c", "unreviewed")]
        );
        assert!(book.turn(View::plain(), list).await.is_none());
    }
}

#[tokio::test]
async fn instructions_stay_as_they_were_first_heard() {
    let world = World::new();
    let told = async |view, text| {
        let book = world.book().await;
        let (fate, report) = book.instructions(view, text).await.expect("it is kept");
        (fate, report.taken.is_some(), report.blocks.len())
    };
    assert_eq!(told(View::plain(), r#""old""#).await, (Fate::Keep, true, 0));
    assert_eq!(
        told(View::plain(), r#""\u006fld""#).await,
        (Fate::Keep, false, 0)
    );
    let old = Fate::Replace(r#""old""#.into());
    assert_eq!(
        told(View::plain(), r#""new""#).await,
        (old.clone(), false, 1)
    );
    assert_eq!(told(View::plain(), r#""new""#).await, (old, false, 0));
    assert_eq!(
        told(other_view(), r#""other""#).await,
        (Fate::Keep, true, 0)
    );
}

#[tokio::test]
async fn a_server_that_says_that_its_tools_changed_is_read_anew() {
    let world = World::new();
    let list = r#"[{"name":"a"}]"#;
    world.whole(View::plain(), list).await;
    assert!(
        world
            .book()
            .await
            .turn(View::plain(), List::Tools)
            .await
            .is_none()
    );
    world.catalog.changed(world.permit.server(), List::Tools);
    assert_eq!(world.find(View::plain(), "a"), Found::Unknown);
    let found = world
        .catalog
        .find_read(&world.permit, View::plain(), Era::Modern, "a");
    assert!(matches!(found, Found::Offered(_)));
    world.whole(View::plain(), list).await;
    world.tool(View::plain(), "a");
}

#[tokio::test]
async fn names_that_change_from_page_to_page_fill_it_and_stop_nothing() {
    let world = World::new();
    let page = |page: usize| {
        let tools: Vec<String> = (0..MAX_TOOLS)
            .map(|n| format!(r#"{{"name":"{page}-{n}"}}"#))
            .collect();
        format!("[{}]", tools.join(","))
    };
    world.whole(View::plain(), &page(0)).await;
    assert_eq!(world.page(View::plain(), &page(1)).await.len(), 0);
    assert_eq!(world.find(View::plain(), "1-0"), Found::Unknown);
    world.tool(View::plain(), "0-16383");
}

#[tokio::test]
async fn what_callers_of_an_era_cannot_use_is_left_out_for_them() {
    let world = World::new();
    let list = r#"[{"name":"a","inputSchema":{"x-mcp-header":"B"}},{"name":"b"}]"#;
    world.whole(View::plain(), list).await;
    let items = shown(List::Tools, list);
    let book = world.book().await;
    let modern = book.judge(View::plain(), Era::Modern, List::Tools, &items);
    assert_eq!(modern.fates, [Fate::Drop, Fate::Keep]);
    assert_eq!(&*modern.unfit[0].0, "a");
    let legacy = book.judge(View::plain(), Era::Legacy, List::Tools, &items);
    assert_eq!(legacy.fates, [Fate::Keep, Fate::Keep]);
    assert_eq!(world.find(View::plain(), "a"), Found::Unknown);
    let found = world
        .catalog
        .find(&world.permit, View::plain(), Era::Legacy, "a");
    assert!(matches!(found, Found::Offered(tool) if tool.mirrors().is_empty()));
}
