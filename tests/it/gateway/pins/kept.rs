//! Pins that outlive the process, and pins that are a file.

use tollgate::{
    app::reload::Outcome,
    catalog::{By, Item, ItemKind, Pinned, pins_file},
};

use super::*;
use crate::support::gate::write;

#[tokio::test]
async fn a_restart_knows_what_was_pinned() {
    let (says, _tools, gate) = showing(&format!("[{WEATHER},{FAULT}]")).await;
    let agent = Agent::modern("s");
    agent.good(&gate).await;
    says.set(&list(&format!(r#"[{{"name":"get_weather"}},{FAULT}]"#)));
    let gate = gate.restart().await;
    assert_eq!(
        refused(&agent, &gate, "get_weather").await,
        "catalog.drifted"
    );
    assert_eq!(offered(&agent, &gate).await, format!("[{FAULT}]"));
    says.set(&list(&format!("[{WEATHER},{FAULT}]")));
    assert_eq!(offered(&agent, &gate).await, format!("[{WEATHER},{FAULT}]"));
    agent.good(&gate).await;
}

#[tokio::test]
async fn pins_that_somebody_else_wrote_offer_nothing() {
    let (_says, _tools, gate) = showing(&format!("[{WEATHER}]")).await;
    let agent = Agent::modern("s");
    agent.good(&gate).await;
    let file = gate.folder().with_file_name("state").join("tollgate.db");
    let database = rusqlite::Connection::open(file).unwrap();
    let changed = "UPDATE pin_items SET definition = replace(definition, 'tells', 'steals')";
    assert_eq!(database.execute(changed, []).unwrap(), 1);
    drop(database);
    let gate = gate.restart().await;
    for agent in Agent::both("s", &gate).await {
        let reply = gate.send(agent.request("1", "tools/list", "")).await;
        let code = &reply.json()["error"]["data"]["code"];
        assert_eq!(code, "catalog.pins_unusable");
        let refused = refused(&agent, &gate, "get_weather").await;
        assert_eq!(refused, "catalog.pins_unusable");
    }
}

#[tokio::test]
async fn a_pins_file_alone_says_what_is_offered() {
    let says = Says::new(&list(&format!("[{WEATHER},{FAULT}]")));
    let tools = Tools::start(says.answering("tools/list")).await;
    let policy = Policy::local("").server("s", tools.address, "pin = \"file\"", "");
    let gate = Gate::start(&policy);
    let agents = Agent::both("s", &gate).await;
    for agent in &agents {
        assert_eq!(offered(agent, &gate).await, "[]");
        let refused = refused(agent, &gate, "get_weather").await;
        assert_eq!(refused, "catalog.unreviewed");
    }
    let name = "get_weather".into();
    let item = Item::new(ItemKind::Tool, name, WEATHER, 1, By::Operator).unwrap();
    let pinned = Pinned {
        version: 1,
        items: vec![item],
        ..Pinned::default()
    };
    let pins = gate.folder().join("pins");
    std::fs::create_dir(&pins).unwrap();
    write(&pins.join("s.json"), &pins_file::write("s", &pinned));
    assert!(matches!(gate.handle.reload(), Outcome::Changed { .. }));
    for agent in &agents {
        assert_eq!(offered(agent, &gate).await, format!("[{WEATHER}]"));
        agent.good(&gate).await;
        let refused = refused(agent, &gate, "get_fault").await;
        assert_eq!(refused, "catalog.unreviewed");
    }
}

/// Pins are of a server at its address: another one is another server, and the first is known where it comes back.
#[tokio::test]
async fn a_server_that_moves_is_another_and_is_known_where_it_was() {
    let one = Says::new(&list(&format!("[{WEATHER}]")));
    let other = Says::new(&list(r#"[{"name":"get_weather","title":"other"}]"#));
    let first = Tools::start(one.answering("tools/list")).await;
    let second = Tools::start(other.answering("tools/list")).await;
    let policy = Policy::local("").server("s", first.address, "", "");
    let gate = Gate::start(&policy);
    let agent = Agent::modern("s");
    agent.good(&gate).await;
    let file = |name: &str| gate.folder().join(name);
    let move_to = |from: &Tools, to: &Tools| {
        for name in ["servers/s.toml", "egress.toml"] {
            let text = std::fs::read_to_string(file(name)).unwrap();
            let port = |tools: &Tools| tools.address.port().to_string();
            write(&file(name), &text.replace(&port(from), &port(to)));
        }
        assert!(matches!(gate.handle.reload(), Outcome::Changed { .. }));
    };
    move_to(&first, &second);
    assert!(offered(&agent, &gate).await.contains("other"));
    agent.good(&gate).await;
    one.set(&list(r#"[{"name":"get_weather","title":"evil"}]"#));
    move_to(&second, &first);
    assert_eq!(offered(&agent, &gate).await, "[]");
    assert_eq!(
        refused(&agent, &gate, "get_weather").await,
        "catalog.drifted"
    );
    assert_eq!(
        catalog(&gate.stop().await),
        ["pinned", "pinned", "drifted get_weather catalog.drifted"]
    );
}
