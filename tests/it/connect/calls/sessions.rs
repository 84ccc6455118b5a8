//! Sessions that clients open before their person has connected.

use std::{pin::pin, time::Duration};

use futures_util::FutureExt as _;
use serde_json::json;
use tokio::time;
use tollgate::deadline::Deadline;

use super::tools as names;
use crate::support::{
    agent::Agent,
    client::patiently,
    gate::Policy,
    protected::{Authority, Doorkeeper, House},
    tools::Tools,
};

async fn house() -> (Tools, House) {
    let keeper = Doorkeeper::letting(&["Bearer good"]);
    let tools = Tools::start(move |seen| keeper.says("authorization", seen)).await;
    let policy = Policy::local("").server("s", tools.address, "", "[auth]\nmode = \"bearer\"\n");
    (tools, House::of_ann(&policy))
}

#[tokio::test]
async fn a_session_begins_at_once_and_reaches_the_server_later() {
    let (tools, house) = house().await;
    let agent = Agent::modern("s");
    let welcome = house.send(agent.hello("2025-11-25", "{}")).await;
    assert_eq!(
        welcome.json()["result"],
        json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "tools": { "listChanged": true } },
            "serverInfo": { "name": "s", "version": env!("CARGO_PKG_VERSION") }
        })
    );
    let agent = house.session(agent, "{}").await;
    assert!(tools.seen().is_empty());
    house.enter("ann", "s", "good").await;
    let listed = house.send(agent.request("1", "tools/list", "")).await;
    assert_eq!(names(&listed).len(), 4);
    let reply = house.send(agent.call("2", "get_weather")).await;
    assert_eq!(
        reply.json()["result"]["content"][0]["text"],
        "ok get_weather"
    );
    let methods: Vec<_> = tools
        .seen()
        .iter()
        .map(|seen| seen.method().to_owned())
        .collect();
    assert_eq!(
        methods,
        [
            "initialize",
            "notifications/initialized",
            "tools/list",
            "tools/list",
            "tools/call"
        ]
    );
    let ids: Vec<_> = tools.of("tools/call")[0]
        .header("mcp-session-id")
        .map(str::to_owned)
        .into_iter()
        .collect();
    assert_eq!(ids, ["up-1"]);
    assert_eq!(house.send(agent.bare("DELETE")).await.status, 200);
    assert_eq!(tools.of("DELETE").len(), 1);
}

#[tokio::test]
async fn a_stream_tells_that_there_are_tools_now() {
    let (tools, mut house) = house().await;
    let agent = house.session(Agent::modern("s"), "{}").await;
    let stream = house.open_stream(agent.bare("GET")).await;
    house.enter("ann", "s", "good").await;
    let made = house.pipeline.made.recv().await.unwrap();
    house.pipeline.gateway.connected(&made).await;
    let told = patiently(stream.whole()).await;
    assert_eq!(told.status, 200);
    assert_eq!(
        told.json(),
        json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" })
    );
    // Whoever comes back speaks to the server, which offers no stream here.
    assert_eq!(house.send(agent.bare("GET")).await.status, 405);
    assert_eq!(tools.of("GET").len(), 1);
}

/// Nobody waits for the provider's whole time to open a session.
#[tokio::test]
async fn a_session_begins_while_a_refresh_hangs() {
    let tools = Tools::start(|_| None).await;
    let provider = Authority::giving(&[]).await;
    provider.says(vec![
        json!({ "body": { "access_token": "t1", "refresh_token": "r1", "token_type": "Bearer", "expires_in": 1 } }),
        json!({ "hangs": true }),
    ]);
    let house = House::of_ann(&provider.policy(tools.address, ""));
    house.connect(&provider).await;
    let permit = house.permit("default", "ann", "s");
    let connections = &house.pipeline.connections;
    let soon = || Deadline::after(Duration::from_secs(30));
    let first = connections.credential(&permit, soon()).await;
    assert!(first.is_ok());
    time::pause();
    time::advance(Duration::from_secs(1)).await;
    time::resume();
    // Ends when the refresh does.
    let mut refresh = pin!(connections.credential(&permit, soon()));
    let welcome = tokio::select! {
        biased;
        ended = &mut refresh => panic!("the refresh ended first: {:?}", ended.err()),
        welcome = house.session(Agent::modern("s"), "{}") => welcome,
    };
    assert_eq!(provider.refreshes(), 1);
    assert!(refresh.as_mut().now_or_never().is_none(), "it hangs yet");
    assert!(welcome.session.is_some());
    // Discovery asked it, in nobody's name.
    assert!(tools.of("initialize").is_empty(), "nobody can be shown");
}
