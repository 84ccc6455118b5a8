//! Calls that wait for their clients, who hold no connection meanwhile.

use super::Agent;
use crate::support::{
    gate::{Gate, Policy},
    sound as say,
    tools::{Seen, Step, Tools},
};

/// Nine of them are more than all request bodies may hold together.
const LARGE: usize = 8_000_000;

/// What a request holds ends with it: calls that wait for their clients leave room for the requests of others.
#[tokio::test]
async fn calls_that_wait_hold_nothing_of_their_requests() {
    let tools = Tools::start(|seen: &Seen| {
        (seen.tool() == "get_fault")
            .then(|| vec![say::stream(), say::chunk("id: 1\ndata:\n\n"), Step::Hang])
    })
    .await;
    let policy = Policy::local("[limits]\nrequest_bytes = 8388608\n");
    let gate = Gate::start(&policy.server("s", tools.address, "", ""));
    let agent = Agent::modern("s").legacy(&gate).await;
    let large = |id: usize, tool: &str| {
        let text = "x".repeat(LARGE);
        let params = format!(r#""name":"{tool}","arguments":{{"a":"{text}"}}"#);
        let call = agent.request(&id.to_string(), "tools/call", &params);
        call.with("Tollgate-Conversation", &id.to_string())
    };
    for id in 0..9 {
        let mut call = gate.open(large(id, "get_fault")).await;
        assert_eq!(call.status(), 200, "{id}");
        assert!(call.whole_event().await.is_some());
    }
    let reply = gate.send(large(9, "get_weather")).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    gate.handle.cut();
    gate.stop().await;
}

/// Sessions are kept by the thousand, each with what its client said of itself.
#[tokio::test]
async fn what_a_client_says_of_itself_is_bounded() {
    let (tools, gate) = super::sound().await;
    let agent = Agent::modern("s");
    for (bytes, status) in [(20_000, 200), (33_000, 200), (20_000, 200)] {
        let text = "x".repeat(bytes);
        let reply = gate
            .send(agent.hello(
                "2025-11-25",
                &format!(r#"{{"elicitation":{{"x":"{text}"}}}}"#),
            ))
            .await;
        assert_eq!(reply.status, status);
        let opened = reply.header("mcp-session-id").is_some();
        assert_eq!(opened, bytes < 32_768, "{}", reply.body);
        assert!(opened || reply.json()["error"]["code"] == -32602);
    }
    assert_eq!(tools.of("initialize").len(), 2);
    super::stop(gate).await;
}
