//! `offer = "connected"`: servers that the caller has no credential for are not offered.

use serde_json::{Value, json};

use super::{PAGE, text, tools as names};
use crate::support::{
    agent::Agent,
    client::{Reply, patiently},
    gate::Policy,
    protected::{Doorkeeper, House},
    tools::Tools,
};

const ANN: &str = "tg_ann_0123456789abcdef00";
const BOB: &str = "tg_bob_0123456789abcdef00";

struct Rig {
    keeper: Doorkeeper,
    tools: Tools,
    house: House,
}

impl Rig {
    /// The server `s`, which lets in whoever shows `good`; `keys` stand above the tables of its file.
    async fn with(keys: &str) -> Self {
        let keeper = Doorkeeper::letting(&["Bearer good"]);
        let own = keeper.clone();
        let tools = Tools::start(move |seen| own.says("authorization", seen)).await;
        let users = [
            (ANN, "agent = \"a\"\nuser = \"ann\""),
            (BOB, "agent = \"a\"\nuser = \"bob\""),
        ];
        let keys = format!("access = \"everyone\"\n{keys}");
        let policy = Policy::keys(&users, "")
            .top("offer = \"connected\"\n")
            .server("s", tools.address, &keys, "[auth]\nmode = \"bearer\"\n");
        let house = House::of_keys(&policy);
        Self {
            keeper,
            tools,
            house,
        }
    }

    /// An agent of each era.
    async fn agents(&self, key: &str) -> [Agent; 2] {
        let modern = Agent::modern("s").with_key(key);
        let legacy = self.house.session(modern.clone(), "{}").await;
        [modern, legacy]
    }

    async fn send(&self, agent: &Agent, method: &str, params: &str) -> Reply {
        self.house.send(agent.request("1", method, params)).await
    }

    async fn listed(&self, agent: &Agent) -> Vec<String> {
        names(&self.send(agent, "tools/list", "").await)
    }

    /// Code and message of what is refused.
    async fn refused(&self, agent: &Agent, method: &str, params: &str) -> (String, String) {
        let ask = agent.request("1", method, params);
        let ask = match method {
            "resources/read" if agent.is_modern() => ask.set("Mcp-Name", "file:///a"),
            _ => ask,
        };
        let reply = self.house.send(ask).await;
        let body = reply.json();
        let words = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let error = &body["error"];
        (words(&error["data"]["code"]), words(&error["message"]))
    }

    /// Nothing of the server is offered to this agent.
    async fn check_withheld(&self, agent: &Agent) {
        for (method, array) in [
            ("tools/list", "tools"),
            ("prompts/list", "prompts"),
            ("resources/list", "resources"),
            ("resources/templates/list", "resourceTemplates"),
        ] {
            let reply = self.send(agent, method, "").await;
            assert_eq!(
                reply.json()["result"][array],
                json!([]),
                "{method}: {}",
                reply.body
            );
        }
        // Neither whether it exists nor what its arguments are.
        for tool in ["get_weather", "no_such_tool"] {
            let params = format!(r#""name":"{tool}","arguments":{{"wrong":[]}}"#);
            let refused = self.refused(agent, "tools/call", &params).await;
            assert_eq!(refused.0, "catalog.tool_unknown");
            let told = format!("no tool `{tool}` on server `s`");
            assert!(refused.1.contains(&told), "{}", refused.1);
        }
        for (method, params, told) in [
            (
                "prompts/get",
                r#""name":"p""#,
                "no prompt `p` on server `s`",
            ),
            (
                "resources/read",
                r#""uri":"file:///a""#,
                "nothing of this name on server `s`",
            ),
            (
                "completion/complete",
                r#""ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"b"}"#,
                "nothing of this name on server `s`",
            ),
        ] {
            let refused = self.refused(agent, method, params).await;
            assert_eq!(refused.0, "mcp.invalid_params", "{method}");
            assert!(refused.1.contains(told), "{}", refused.1);
        }
    }
}

#[tokio::test]
async fn a_session_has_no_log_of_a_server_that_is_not_offered() {
    let rig = Rig::with("").await;
    let [_, agent] = rig.agents(ANN).await;
    let refused = rig
        .refused(&agent, "logging/setLevel", r#""level":"info""#)
        .await;
    assert_eq!(refused.0, "mcp.method_unknown");
}

const ALL: [&str; 4] = ["get_weather", "get_fault", "send_mail", "delete_all"];

#[tokio::test]
async fn nothing_of_a_server_is_offered_without_a_credential_though_others_have_one() {
    let rig = Rig::with("").await;
    rig.house.enter("bob", "s", "good").await;
    let (ann, bob) = (rig.agents(ANN).await, rig.agents(BOB).await);
    for agent in &bob {
        assert_eq!(rig.listed(agent).await, ALL);
    }
    let seen = rig.tools.seen().len();
    for agent in &ann {
        rig.check_withheld(agent).await;
    }
    assert_eq!(rig.tools.seen().len(), seen, "nothing is asked of it");
    rig.house.enter("ann", "s", "good").await;
    for agent in &ann {
        assert_eq!(rig.listed(agent).await, ALL);
        let reply = rig.house.send(agent.call("1", "get_weather")).await;
        let told = &reply.json()["result"]["content"][0]["text"];
        assert_eq!(*told, "ok get_weather");
    }
}

#[tokio::test]
async fn a_credential_that_is_refused_withdraws_the_server_until_there_is_another() {
    let rig = Rig::with("builtin = true\n").await;
    rig.house.enter("ann", "s", "good").await;
    let agents = rig.agents(ANN).await;
    rig.keeper.forget("Bearer good");
    // Who was offered it is told why it fails.
    let told = text(&rig.house.send(agents[0].call("1", "get_weather")).await);
    assert!(
        told.starts_with("connect.reconnect: ") && told.contains(PAGE),
        "{told}"
    );
    let own = ["tollgate__read_result", "tollgate__connections"];
    for agent in &agents {
        assert_eq!(rig.listed(agent).await, own);
        let reply = rig.house.send(agent.call("1", own[1])).await;
        assert_eq!(
            reply.json()["result"]["content"][0]["text"],
            format!("`s`: the connection has ended (refused); open {PAGE} and connect again")
        );
    }
    rig.keeper
        .treat("Bearer new", crate::support::protected::Treat::In);
    rig.house.enter("ann", "s", "new").await;
    for agent in &agents {
        assert!(rig.listed(agent).await.starts_with(&ALL.map(str::to_owned)));
    }
}

#[tokio::test]
async fn a_session_is_told_that_there_are_tools_once_there_is_a_credential() {
    let mut rig = Rig::with("").await;
    let [_, agent] = rig.agents(ANN).await;
    let stream = rig.house.open_stream(agent.bare("GET")).await;
    rig.house.enter("ann", "s", "good").await;
    let made = rig.house.pipeline.made.recv().await.unwrap();
    rig.house.pipeline.gateway.connected(&made).await;
    let told = patiently(stream.whole()).await;
    assert_eq!(
        told.json(),
        json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" })
    );
    assert_eq!(rig.listed(&agent).await, ALL);
}

#[tokio::test]
async fn a_subscription_is_told_that_there_are_tools_once_there_is_a_credential() {
    let mut rig = Rig::with("").await;
    let agent = Agent::modern("s").with_key(ANN);
    let listen = |id: &str, filter: &str| agent.request(id, "subscriptions/listen", filter);
    let asked = listen(
        "\"l\"",
        r#""notifications":{"toolsListChanged":true,"promptsListChanged":true}"#,
    );
    let stream = rig.house.open_stream(asked).await;
    let silent = rig
        .house
        .open_stream(listen("7", r#""notifications":{}"#))
        .await;
    assert_eq!(stream.status(), 200);
    rig.house.enter("ann", "s", "good").await;
    let made = rig.house.pipeline.made.recv().await.unwrap();
    rig.house.pipeline.gateway.connected(&made).await;
    let events = |reply: &Reply| -> Vec<Value> {
        let lines = reply.body.lines();
        let data = lines.filter_map(|line| line.strip_prefix("data: "));
        data.map(|text| serde_json::from_str(text).unwrap())
            .collect()
    };
    let meta = json!({ "io.modelcontextprotocol/subscriptionId": "l" });
    assert_eq!(
        events(&patiently(stream.whole()).await),
        [
            json!({ "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                "params": { "notifications": { "toolsListChanged": true }, "_meta": meta } }),
            json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": { "_meta": meta } }),
            json!({ "jsonrpc": "2.0", "id": "l", "result": { "resultType": "complete", "_meta": meta } }),
        ]
    );
    let meta = json!({ "io.modelcontextprotocol/subscriptionId": 7 });
    assert_eq!(
        events(&patiently(silent.whole()).await),
        [
            json!({ "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                "params": { "notifications": {}, "_meta": meta } }),
            json!({ "jsonrpc": "2.0", "id": 7, "result": { "resultType": "complete", "_meta": meta } }),
        ]
    );
    assert_eq!(rig.listed(&agent).await, ALL);
}

#[tokio::test]
async fn a_server_says_nothing_to_models_before_there_is_a_credential() {
    let rig = Rig::with("era = \"modern\"\n").await;
    let agent = Agent::modern("s").with_key(ANN);
    let reply = rig.send(&agent, "server/discover", "").await;
    let body = reply.json();
    let result = &body["result"];
    assert_eq!(
        result["capabilities"],
        json!({ "tools": { "listChanged": true } })
    );
    assert_eq!(result["instructions"], json!(null));
    let rig = Rig::with("").await;
    let reply = rig
        .house
        .send(Agent::modern("s").with_key(ANN).hello("2025-11-25", "{}"))
        .await;
    let body = reply.json();
    assert_eq!(body["result"]["instructions"], json!(null));
    assert!(rig.tools.seen().is_empty());
}
