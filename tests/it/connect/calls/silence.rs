//! Whatever becomes of tokens and secrets, none is logged, recorded, counted, printed or told.

use std::time::Duration;

use serde_json::{Value, json};
use tollgate::deadline::Deadline;

use crate::support::{
    agent::Agent,
    gate::Policy,
    log::Log,
    protected::{Authority, Doorkeeper, House, Treat},
    tools::Tools,
};

/// Part of every secret.
const MARK: &str = "SENTINEL";

/// Calls in both eras, everything that people and the operator are shown after them, and what errors print.
async fn tried(house: &House, agents: &[Agent; 2], printed: &mut Vec<String>) {
    for agent in agents {
        for tool in ["get_weather", "send_mail"] {
            let reply = house.send(agent.call("1", tool)).await;
            printed.push(format!("{} {}", reply.head, reply.body));
        }
    }
    let connections = &house.pipeline.connections;
    let permit = house.permit("default", "ann", "s");
    let soon = Deadline::after(Duration::from_secs(20));
    let sent = connections.credential(&permit, soon).await;
    printed.push(match sent {
        Ok(sent) => format!("{:?}", sent.map(|sent| sent.value().clone())),
        Err(error) => format!("{error:?} {error}"),
    });
    printed.push(format!("{:?}", connections.state(&permit).await));
    printed.push(format!("{:?}", connections.all(&house.policy).await));
}

/// Nothing of it shows a secret, and neither do the records, some of which tell of each of these.
async fn check(house: House, log: &Log, printed: &[String], events: &[&str]) {
    for text in printed {
        assert!(!text.contains(MARK), "{text}");
    }
    assert!(!house.pipeline.metrics.render().contains(MARK));
    let records = house.pipeline.records().await;
    for event in events {
        assert!(
            records.iter().any(|record| record["method"] == *event),
            "{event}"
        );
    }
    for record in records {
        assert!(!record.to_string().contains(MARK), "{record}");
    }
    log.never_says(MARK);
}

fn tokens(number: u8) -> Value {
    json!({ "body": {
        "access_token": format!("a{number}-SENTINEL"),
        "refresh_token": format!("r{number}-SENTINEL"),
        "token_type": "Bearer"
    } })
}

#[tokio::test]
async fn tokens_are_shown_to_their_server_and_provider_alone() {
    let (log, _guard) = Log::begin();
    let bearer = |number: u8| format!("Bearer a{number}-SENTINEL");
    let keeper = Doorkeeper::letting(&[&bearer(1)]);
    let own = keeper.clone();
    let tools = Tools::start(move |seen| own.says("authorization", seen)).await;
    let provider = Authority::giving(&[]).await;
    provider.says(vec![tokens(1), tokens(2), tokens(3)]);
    let house = House::of_ann(&provider.policy(tools.address, ""));
    house.connect(&provider).await;
    let agents = [
        Agent::modern("s"),
        house.session(Agent::modern("s"), "{}").await,
    ];
    let mut printed = Vec::new();
    tried(&house, &agents, &mut printed).await;
    for treat in [Treat::Narrow, Treat::Shut, Treat::Moved(307)] {
        keeper.treat(&bearer(1), treat);
        tried(&house, &agents, &mut printed).await;
    }
    // Refused, and let in with the next.
    keeper.forget(&bearer(1));
    keeper.treat(&bearer(2), Treat::In);
    tried(&house, &agents, &mut printed).await;
    assert_eq!(provider.refreshes(), 1);
    // Sent to the login page, while the provider refuses in words that repeat what it was sent.
    keeper.treat(&bearer(2), Treat::Away(302));
    tried(&house, &agents, &mut printed).await;
    house.connect(&provider).await;
    keeper.forget(&bearer(2));
    let words = "r3-SENTINEL of a3-SENTINEL has ended";
    provider.says(vec![
        json!({ "status": 400, "body": { "error": "invalid_grant", "error_description": words } }),
    ]);
    tried(&house, &agents, &mut printed).await;
    assert!(provider.refreshes() >= 2);
    let shown: Vec<_> = tools.seen().iter().map(|seen| seen.head.clone()).collect();
    for number in 1..=3 {
        let bearer = bearer(number);
        assert!(shown.iter().any(|head| head.contains(&bearer)), "{bearer}");
    }
    let events = ["connected", "refreshed", "refresh_failed", "tools/call"];
    check(house, &log, &printed, &events).await;
}

#[tokio::test]
async fn secrets_that_people_enter_are_shown_to_their_server_alone() {
    let (log, _guard) = Log::begin();
    let keeper = Doorkeeper::letting(&["Bearer b1-SENTINEL"]);
    let own = keeper.clone();
    let tools = Tools::start(move |seen| own.says("authorization", seen)).await;
    let policy = Policy::local("").server("s", tools.address, "", "[auth]\nmode = \"bearer\"\n");
    let house = House::of_ann(&policy);
    house.enter("ann", "s", "b1-SENTINEL").await;
    let agents = [
        Agent::modern("s"),
        house.session(Agent::modern("s"), "{}").await,
    ];
    let mut printed = Vec::new();
    tried(&house, &agents, &mut printed).await;
    keeper.forget("Bearer b1-SENTINEL");
    tried(&house, &agents, &mut printed).await;
    keeper.treat("Bearer b1-SENTINEL", Treat::Away(307));
    tried(&house, &agents, &mut printed).await;
    check(house, &log, &printed, &["tools/call"]).await;
}

#[tokio::test]
async fn the_secrets_of_the_operator_are_shown_to_their_server_alone() {
    let (log, _guard) = Log::begin();
    let keeper = Doorkeeper::letting(&["Bearer o1-SENTINEL"]);
    let own = keeper.clone();
    let tools = Tools::start(move |seen| own.says("authorization", seen)).await;
    let policy = Policy::local("").server("s", tools.address, "", "[auth]\nmode = \"shared\"\n");
    let house = House::of_ann(&policy);
    let (server, connections) = (&house.policy.servers["s"], &house.pipeline.connections);
    let mut printed = Vec::new();
    let tenant = "default".into();
    for secret in ["two SENTINEL words", "o1-SENTINEL"] {
        let set = connections.set_shared(server, &tenant, secret.as_bytes());
        printed.push(format!("{:?}", set.await));
    }
    let agents = [
        Agent::modern("s"),
        house.session(Agent::modern("s"), "{}").await,
    ];
    tried(&house, &agents, &mut printed).await;
    keeper.forget("Bearer o1-SENTINEL");
    tried(&house, &agents, &mut printed).await;
    printed.push(format!("{:?}", connections.shared(&house.policy).await));
    let events = ["tools/call", "secret_set", "shared_refused"];
    check(house, &log, &printed, &events).await;
}
