//! What servers are told while nobody waits for it.

use super::{before, stop};
use crate::support::{
    agent::Agent,
    client::Exchange,
    gate::Gate,
    tools::{Latch, Seen, Step},
};

/// More than one caller may have told at once.
const MANY: usize = 300;

/// Calls `get_fault` and cancels it as soon as the server has it.
async fn give_up(gate: &Gate, agent: &Agent, id: usize, come: &Latch) {
    let call = agent.call(&id.to_string(), "get_fault");
    let bytes = call.bytes(&gate.address.to_string());
    let call = Exchange::unanswered(gate.connect().await, &bytes).await;
    come.wait().await;
    let cancel = format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
    );
    assert_eq!(gate.send(agent.post(&cancel)).await.status, 202);
    drop(call);
}

/// A client needs no connection of its own for each call that it gives up: a server that takes no message must not make
/// Tollgate hold one for each.
#[tokio::test]
async fn a_server_that_takes_no_message_is_told_only_so_many_at_once() {
    let come = Latch::new();
    let script = {
        let come = come.clone();
        move |seen: &Seen| match (seen.method(), seen.tool()) {
            ("tools/call", "get_fault") => Some(vec![Step::Tell(come.clone()), Step::Hang]),
            ("notifications/cancelled", _) => Some(vec![Step::Hang]),
            _ => None,
        }
    };
    let (tools, gate) = before(script, "").await;
    let agent = Agent::modern("s").legacy(&gate).await;
    for id in 0..MANY {
        give_up(&gate, &agent, id, &come).await;
    }
    let open = tools.open();
    assert!(open < MANY, "{open} connections");
    agent.good(&gate).await;
    stop(gate).await;
}
