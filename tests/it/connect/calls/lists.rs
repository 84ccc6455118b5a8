//! Servers that list nothing for strangers: pinned with the first connection, and listed from then on for everybody.

use serde_json::json;

use super::{PAGE, tools as names};
use crate::support::{
    agent::Agent,
    gate::{Policy, catalog},
    log::Log,
    protected::{Doorkeeper, House},
    tools::Tools,
};

const ANN: &str = "tg_ann_0123456789abcdef00";
const BOB: &str = "tg_bob_0123456789abcdef00";

async fn house(keys: &str) -> (Tools, House) {
    let keeper = Doorkeeper::letting(&["Bearer good"]);
    let tools = Tools::start(move |seen| keeper.says("authorization", seen)).await;
    let users = [
        (ANN, "agent = \"a\"\nuser = \"ann\""),
        (BOB, "agent = \"a\"\nuser = \"bob\""),
    ];
    let keys = format!("access = \"everyone\"\n{keys}");
    let policy =
        Policy::keys(&users, "").server("s", tools.address, &keys, "[auth]\nmode = \"bearer\"\n");
    (tools, House::of_keys(&policy))
}

#[tokio::test]
async fn lists_are_pinned_with_the_first_connection() {
    let (tools, mut house) = house("").await;
    let [ann, bob] = [ANN, BOB].map(|key| Agent::modern("s").with_key(key));
    let bob_in_session = house.session(bob.clone(), "{}").await;
    let list = |agent: &Agent| agent.request("1", "tools/list", "");
    for agent in [&ann, &bob, &bob_in_session] {
        assert_eq!(names(&house.send(list(agent)).await), [""; 0]);
        let prompts = house.send(agent.request("1", "prompts/list", "")).await;
        assert_eq!(prompts.json()["result"]["prompts"], json!([]));
    }
    assert!(tools.seen().is_empty());
    house.enter("ann", "s", "good").await;
    let made = house.pipeline.made.recv().await.unwrap();
    house.pipeline.gateway.connected(&made).await;
    let pinned = ["get_weather", "get_fault", "send_mail", "delete_all"];
    assert_eq!(names(&house.send(list(&ann)).await), pinned);
    // Whoever is not connected sees what is pinned, in its canonical order, and is told where to connect.
    let mut sorted = pinned;
    sorted.sort_unstable();
    for agent in [&bob, &bob_in_session] {
        let reply = house.send(list(agent)).await;
        assert_eq!(names(&reply), sorted);
        assert_eq!(reply.json()["result"]["nextCursor"], json!(null));
        let prompts = house.send(agent.request("1", "prompts/list", "")).await;
        assert_eq!(
            prompts.json()["result"]["prompts"],
            json!([{ "name": "p" }])
        );
        let refused = super::text(&house.send(agent.call("1", "get_weather")).await);
        assert!(
            refused.starts_with("connect.required: ") && refused.contains(PAGE),
            "{refused}"
        );
    }
    let shown: Vec<_> = tools
        .seen()
        .iter()
        .map(|seen| seen.header("authorization").map(str::to_owned))
        .collect();
    assert!(
        shown
            .iter()
            .all(|shown| shown.as_deref() == Some("Bearer good")),
        "{shown:?}"
    );
    let told = catalog(&house.pipeline.records().await);
    assert_eq!(
        told.iter().filter(|line| *line == "read").count(),
        1,
        "{told:?}"
    );
    assert!(told.contains(&"pinned".to_owned()), "{told:?}");
}

#[tokio::test]
async fn a_server_of_unknown_era_promises_nothing_to_strangers() {
    let (_tools, house) = house("").await;
    let agent = Agent::modern("s").with_key(ANN);
    let reply = house.send(agent.request("1", "server/discover", "")).await;
    assert_eq!(reply.status, 400);
    let error = &reply.json()["error"];
    assert_eq!(error["data"]["code"], "upstream.sessions_only");
    assert!(
        error["message"].as_str().unwrap().contains(PAGE),
        "{}",
        reply.body
    );
}

#[tokio::test]
async fn a_modern_server_is_described_by_what_is_pinned() {
    let (_tools, house) = house("era = \"modern\"\ntitle = \"Notes\"\n").await;
    let agent = Agent::modern("s").with_key(ANN);
    let reply = house.send(agent.request("1", "server/discover", "")).await;
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        reply.json()["result"],
        json!({
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": { "tools": { "listChanged": true } },
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "s", "title": "Notes", "version": version } }
        })
    );
}

#[tokio::test]
async fn a_first_secret_that_the_server_refuses_is_told_to_the_operator_as_somebody_elses() {
    let (_tools, mut house) = house("").await;
    house.enter("ann", "s", "wrong").await;
    let made = house.pipeline.made.recv().await.unwrap();
    let (log, guard) = Log::begin();
    house.pipeline.gateway.connected(&made).await;
    drop(guard);
    let log = log.text();
    let told = "the lists could not be read with the first connection: the server does not take what the user has just \
                connected with";
    assert!(log.contains(told), "{log}");
    assert!(log.contains("user=ann"), "{log}");
    assert!(!log.contains("your connection"), "{log}");
}
