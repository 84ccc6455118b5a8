//! Answers that come on another stream than their call.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use serde_json::{Value, json};

use super::{Agent, SMALL, before, result, stop};
use crate::support::{
    sound as say,
    tools::{Latch, Seen, Step},
};

/// What the server has to say, with something hidden in it.
fn whole() -> String {
    let said = "\u{202e}x".repeat(5_000);
    json!({ "content": [{ "type": "text", "text": said }] }).to_string()
}

#[tokio::test]
async fn what_is_fetched_again_is_bounded_and_cleaned_too() {
    let (call, gone) = (Arc::new(AtomicU64::default()), Latch::new());
    let script = {
        let gone = gone.clone();
        move |seen: &Seen| match (seen.tool(), seen.header("last-event-id")) {
            ("get_fault", _) => {
                call.store(seen.json["id"].as_u64().unwrap(), Ordering::SeqCst);
                let prime = say::chunk("id: s-0\nretry: 100\ndata: \n\n");
                Some(vec![say::stream(), prime, Step::Closed(gone.clone())])
            }
            ("", Some(_)) if seen.method() == "GET" => {
                let id = call.load(Ordering::SeqCst).to_string();
                let answer = say::message(false, &whole()).replace("$ID", &id);
                let last = say::chunk(&format!("id: s-1\ndata: {answer}\n\n"));
                Some(vec![say::stream(), last, say::end()])
            }
            _ => None,
        }
    };
    let (tools, gate) = before(script, SMALL).await;
    let agent = Agent::modern("s").legacy(&gate).await;
    let mut stream = gate.open(agent.call("1", "get_fault")).await;
    let prime = stream.whole_event().await.unwrap();
    let place = prime.lines().find_map(|line| line.strip_prefix("id: "));
    let place = place.unwrap().to_owned();
    drop(stream);
    gone.wait().await;
    // The client comes back for its answer, loses it, and comes back once more.
    for _ in 0..2 {
        let back = agent.bare("GET").with("Last-Event-ID", &place);
        let event = gate.open(back).await.event().await.unwrap();
        assert!(event.len() <= 8192 + 64, "{}", event.len());
        let cut: Value = serde_json::from_str(&event).unwrap();
        let cut = &cut["result"];
        assert_eq!(
            cut["_meta"]["io.tollgate/untrusted"],
            json!({ "server": "s" })
        );
        let shown = cut["content"][0]["text"].as_str().unwrap();
        assert!(!shown.contains('\u{202e}'), "{shown}");
        let handle = &cut["_meta"]["io.tollgate/cut"]["handle"];
        let own = Agent::modern("tollgate");
        let params =
            format!(r#""name":"read_result","arguments":{{"handle":{handle},"length":4}}"#);
        let piece = result(&gate.send(own.request("1", "tools/call", &params)).await);
        assert_eq!(piece["content"][0]["text"], r"\u{202E}x");
    }
    assert_eq!(tools.of("GET").len(), 2);
    stop(gate).await;
}
