//! Many requests on one connection.

use super::{Agent, sound, stop};
use crate::support::client::Exchange;

#[tokio::test]
async fn refusals_leave_the_connection_usable() {
    let (_tools, gate) = sound().await;
    let host = gate.address.to_string();
    let [modern, legacy] = Agent::both("s", &gate).await;
    let asks = [
        (modern.call("1", "get_weather"), 200),
        (modern.call("2", "get_weather").without("Mcp-Name"), 400),
        (
            modern
                .call("3", "get_weather")
                .set("Origin", "http://evil.example"),
            403,
        ),
        (legacy.call("4", "get_nothing"), 200),
        (
            legacy.call("5", "get_weather").set("Accept", "text/html"),
            406,
        ),
        (legacy.bare("GET"), 405),
        (modern.call("6", "send_mail"), 200),
    ];
    let mut first = None;
    for (ask, status) in &asks {
        let bytes = ask.bytes(&host);
        let exchange: Exchange = match first.take() {
            None => Exchange::begin(gate.connect().await, &bytes).await.unwrap(),
            Some(before) => Exchange::again(before, &bytes).await.unwrap(),
        };
        assert_eq!(exchange.status(), *status);
        first = Some(exchange);
    }
    // All at once: answers come in the order of the requests.
    let all: Vec<u8> = asks.iter().flat_map(|(ask, _)| ask.bytes(&host)).collect();
    let mut exchange = Exchange::begin(gate.connect().await, &all).await.unwrap();
    for (_, status) in &asks[1..] {
        exchange = Exchange::again(exchange, b"").await.unwrap();
        assert_eq!(exchange.status(), *status);
    }
    drop((first, exchange));
    stop(gate).await;
}

#[tokio::test]
async fn a_foreign_host_or_origin_is_refused() {
    let (tools, gate) = sound().await;
    let agent = Agent::modern("s");
    for bytes in [
        agent.call("1", "get_weather").bytes("evil.example"),
        agent
            .call("1", "get_weather")
            .set("Origin", "null")
            .bytes(&gate.address.to_string()),
    ] {
        let reply = Exchange::begin(gate.connect().await, &bytes)
            .await
            .unwrap()
            .whole()
            .await;
        assert_eq!(reply.status, 403, "{}", reply.body);
    }
    assert_eq!(
        stop(gate).await,
        [
            "request refused listen.bad_host",
            "request refused listen.bad_origin"
        ]
    );
    assert_eq!(tools.of("tools/call").len(), 1);
}
