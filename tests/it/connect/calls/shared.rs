//! Secrets that the operator keeps in the vault: what callers are told, and what is sent for them.

use std::sync::Arc;

use serde_json::json;

use super::{text, tools as names};
use crate::support::{
    agent::Agent,
    gate::{Policy, write},
    protected::{Doorkeeper, House},
    tools::Tools,
};

const REFUSAL: &str = "; show this to the operator, who sets the secret with `tollgate secret set SERVER` where Tollgate runs";

struct Rig {
    keeper: Doorkeeper,
    tools: Tools,
    house: House,
}

impl Rig {
    async fn with(top: &str) -> Self {
        let keeper = Doorkeeper::letting(&["everybodys"]);
        let own = keeper.clone();
        let tools = Tools::start(move |seen| own.says("x-api-key", seen)).await;
        let auth = "[auth]\nmode = \"shared\"\nheader = \"X-Api-Key\"\n";
        let policy =
            Policy::local("")
                .top(top)
                .server("s", tools.address, "builtin = true\n", auth);
        Self {
            keeper,
            tools,
            house: House::of_ann(&policy),
        }
    }

    async fn set(&self, secret: &str) {
        let server = &self.house.policy.servers["s"];
        let connections = &self.house.pipeline.connections;
        let tenant = Arc::from("default");
        let set = connections.set_shared(server, &tenant, secret.as_bytes());
        set.await.unwrap();
    }

    async fn refused(&self, agent: &Agent) -> String {
        text(&self.house.send(agent.call("1", "get_weather")).await)
    }

    async fn agents(&self) -> [Agent; 2] {
        let modern = Agent::modern("s");
        let legacy = self.house.session(modern.clone(), "{}").await;
        [modern, legacy]
    }
}

const OWN: [&str; 2] = ["tollgate__read_result", "tollgate__connections"];

#[tokio::test]
async fn calls_are_refused_until_the_operator_sets_it_and_then_all_send_it() {
    let rig = Rig::with("").await;
    let agents = rig.agents().await;
    for agent in &agents {
        assert_eq!(
            rig.refused(agent).await,
            format!(
                "connect.shared_secret: server `s` cannot be used: the secret that the operator keeps for it is not set{REFUSAL}"
            )
        );
        let listed = rig.house.send(agent.request("1", "tools/list", "")).await;
        assert_eq!(names(&listed), OWN);
        let told = rig.house.send(agent.call("1", OWN[1])).await;
        assert_eq!(
            told.json()["result"]["content"][0]["text"],
            "`s`: cannot be used until the operator of Tollgate sets its secret; tell the user so"
        );
    }
    assert!(rig.tools.seen().is_empty());
    rig.set("everybodys").await;
    for agent in &agents {
        let reply = rig.house.send(agent.call("1", "get_weather")).await;
        assert_eq!(
            reply.json()["result"]["content"][0]["text"],
            "ok get_weather"
        );
        let listed = names(&rig.house.send(agent.request("1", "tools/list", "")).await);
        assert!(!listed.contains(&OWN[1].to_owned()), "{listed:?}");
    }
    for seen in rig.tools.of("tools/call") {
        assert_eq!(seen.header("x-api-key"), Some("everybodys"));
        assert_eq!(seen.header("authorization"), None);
    }
}

#[tokio::test]
async fn one_that_the_server_refuses_is_told_of_and_not_sent_again_and_again() {
    let rig = Rig::with("").await;
    rig.set("everybodys").await;
    let [agent, _] = rig.agents().await;
    rig.house.send(agent.call("1", "get_weather")).await;
    rig.keeper.forget("everybodys");
    let before = rig.tools.of("tools/call").len();
    for _ in 0..3 {
        assert_eq!(
            rig.refused(&agent).await,
            format!(
                "connect.shared_secret: server `s` cannot be used: the secret that the operator keeps for it was refused by the server{REFUSAL}"
            )
        );
    }
    assert_eq!(rig.tools.of("tools/call").len(), before + 1);
    rig.keeper
        .treat("another", crate::support::protected::Treat::In);
    rig.set("another").await;
    let reply = rig.house.send(agent.call("1", "get_weather")).await;
    assert_eq!(
        reply.json()["result"]["content"][0]["text"],
        "ok get_weather"
    );
    let records = rig.house.pipeline.records().await;
    let own: Vec<_> = records
        .iter()
        .filter(|record| {
            record["method"]
                .as_str()
                .is_some_and(|method| method.contains("secret") || method.contains("shared"))
        })
        .map(|record| {
            json!([
                record["kind"],
                record["method"],
                record["outcome"],
                record["code"],
                record["tenant"],
                record["user"],
                record["server"]
            ])
        })
        .collect();
    assert_eq!(
        own,
        [
            json!(["admin", "secret_set", "allowed", null, "default", "", "s"]),
            json!([
                "credential",
                "shared_refused",
                "refused",
                "connect.shared_secret",
                "default",
                "",
                "s"
            ]),
            json!(["admin", "secret_set", "allowed", null, "default", "", "s"]),
        ]
    );
}

#[tokio::test]
async fn a_server_whose_secret_is_missing_is_not_offered_where_only_connected_ones_are() {
    let rig = Rig::with("offer = \"connected\"\n").await;
    let agents = rig.agents().await;
    for agent in &agents {
        let reply = rig.house.send(agent.call("1", "get_weather")).await;
        assert_eq!(
            reply.json()["error"]["data"]["code"],
            "catalog.tool_unknown"
        );
        let listed = rig.house.send(agent.request("1", "tools/list", "")).await;
        assert_eq!(names(&listed), OWN);
    }
    rig.set("everybodys").await;
    for agent in &agents {
        let reply = rig.house.send(agent.call("1", "get_weather")).await;
        assert_eq!(
            reply.json()["result"]["content"][0]["text"],
            "ok get_weather"
        );
    }
}

#[tokio::test]
async fn one_beside_the_policy_that_the_server_refuses_is_told_of_by_the_connections_tool() {
    let keeper = Doorkeeper::letting(&["Bearer good"]);
    let own = keeper.clone();
    let tools = Tools::start(move |seen| own.says("authorization", seen)).await;
    let dir = tempfile::tempdir().unwrap();
    let secret = dir.path().join("secret");
    write(&secret, "good\n");
    let auth = format!(
        "[auth]\nmode = \"shared\"\nsecret = \"file:{}\"\n",
        secret.display()
    );
    let policy = Policy::local("").server("s", tools.address, "builtin = true\n", &auth);
    let house = House::of_ann(&policy);
    let agent = Agent::modern("s");
    let listed = names(&house.send(agent.request("1", "tools/list", "")).await);
    assert!(!listed.contains(&OWN[1].to_owned()), "{listed:?}");
    keeper.forget("Bearer good");
    let refused = text(&house.send(agent.call("1", "get_weather")).await);
    assert!(refused.starts_with("connect.unusable: "), "{refused}");
    let listed = names(&house.send(agent.request("1", "tools/list", "")).await);
    assert!(listed.contains(&OWN[1].to_owned()), "{listed:?}");
    let told = house.send(agent.call("1", OWN[1])).await;
    assert_eq!(
        told.json()["result"]["content"][0]["text"],
        "`s`: cannot be used until the operator of Tollgate sets its secret; tell the user so"
    );
}
