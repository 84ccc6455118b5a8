//! Requests that the process does not live to answer.

use super::{Agent, ends, sound};
use crate::support::{
    client::{Exchange, patiently},
    gate::Gate,
};

/// A request whose body is awaited: the rest of it never comes.
async fn unfinished(gate: &Gate) -> Exchange {
    let ask = Agent::modern("s").call("1", "get_weather");
    let bytes = ask
        .with("Expect", "100-continue")
        .bytes(&gate.address.to_string());
    let part = &bytes[..bytes.len() - 10];
    let begun = patiently(Exchange::begin(gate.connect().await, part)).await;
    let begun = begun.expect("an invitation");
    assert_eq!(begun.status(), 100);
    begun
}

#[tokio::test]
async fn a_request_whose_body_was_still_coming_leaves_its_record() {
    let (_tools, gate) = sound().await;
    let begun = [unfinished(&gate).await, unfinished(&gate).await];
    gate.handle.cut();
    let records = gate.stop().await;
    assert_eq!(ends(&records), ["request refused listen.client_gone"; 2]);
    let record = records.iter().find(|record| record["kind"] == "request");
    let record = record.expect("a record");
    assert_eq!(
        (&record["server"], &record["user"]),
        (&"s".into(), &"ann".into())
    );
    drop(begun);
}
