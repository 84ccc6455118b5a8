//! Cases of the corpus about bytes, through the listener. A name of the cases leads to loopback by a static grant, so that
//! what is let through is seen to be dialled, and nothing leaves this machine.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;
use tokio::io::AsyncReadExt as _;

use crate::{
    support::{
        client::patiently,
        gate::{Gate, Policy},
        tunnels::{Client, target},
    },
    tunnel::{cases, flight, large},
};

const HOST: &str = "api.example.net";
const KEY: &str = "tg_corpuscorpuscorpuscorpuscorpuscorpuscorp";

/// Lets everyone to the host of the cases, on a port that is at `address`.
fn rules(port: u16, host: &str, address: &str) -> String {
    format!(
        "[[allow]]\nhost = \"{host}\"\n[[private]]\nhost = \"{HOST}\"\nport = {port}\naddress = \"{address}\"\n\
         for = [\"proxy\"]\n"
    )
}

/// What an answer says about a case. Nobody listens where the allowed ones lead.
fn verdict(head: &str) -> &'static str {
    let status = head.split(' ').nth(1).unwrap_or_default();
    match status {
        "403" => "deny",
        "502" if head.contains("(egress.connect_failed)") => "allow",
        status if status.starts_with('4') => "error",
        _ => "something else",
    }
}

fn expected(case: &Value, found: &str) -> bool {
    [&case["expect"], &case["also_ok"]].contains(&&Value::from(found))
}

#[tokio::test]
async fn heads_of_the_corpus_have_their_verdicts() {
    // Nothing of a test listens on this address.
    let rules = rules(80, HOST, "127.93.7.1");
    let local = Gate::start(&Policy::local("").file("egress.toml", &*rules));
    let keys = [(KEY, "agent = \"ci\"\nuser = \"ann\"")];
    let keyed = Gate::start(&Policy::keys(&keys, "").file("egress.toml", rules));
    let credential = STANDARD.encode(format!(":{KEY}"));
    let (mut told, mut wrong) = (0, Vec::new());
    for (id, case) in cases() {
        let input = &case["input"];
        let raw = input["raw"].as_str().map(str::to_owned);
        let Some(raw) = raw.or_else(|| large(input)) else {
            continue;
        };
        told += 1;
        let gate = match raw.contains("Proxy-Authorization") {
            true => &keyed,
            false => &local,
        };
        let mut client = Client::new(gate).await;
        // A large head is answered before it was all taken.
        client.offer(raw.replace("eDp5", &credential)).await;
        let head = client.head().await;
        if !expected(&case, verdict(&head)) {
            wrong.push(format!("{id}: {head}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(told, 27);
    local.stop().await;
    keyed.stop().await;
}

#[tokio::test]
async fn tunnels_of_the_corpus_have_their_verdicts() {
    let (listener, address) = target().await;
    let port = address.port();
    let rules = rules(port, &format!("{HOST}:{port}"), "127.0.0.1");
    let gate = Gate::start(&Policy::local("").file("egress.toml", rules));
    let mut told = 0;
    for (id, case) in cases() {
        let input = &case["input"];
        if input["connect"].is_null() {
            continue;
        }
        told += 1;
        let padding = input["client_hello_bytes"]
            .as_u64()
            .map_or(0, |bytes| bytes - 1200);
        let bytes = match input["first_bytes"].as_str() {
            Some(bytes) => bytes.as_bytes().to_vec(),
            None => flight(
                input["tls_sni"].as_str().unwrap_or(HOST),
                input["ech"] == true,
                usize::try_from(padding).unwrap(),
            ),
        };
        let mut client = Client::tunnel(&gate, &format!("{HOST}:{port}")).await;
        let (mut target, _) = patiently(listener.accept()).await.unwrap();
        let (first, second) = bytes.split_at(bytes.len() / 2);
        client.send(first).await;
        client.offer(second).await;
        let mut arrived = vec![0; bytes.len()];
        let found = match patiently(target.read_exact(&mut arrived)).await {
            Ok(_) => "allow",
            Err(_) => "deny",
        };
        assert!(found == "deny" || arrived == bytes, "{id}");
        assert!(expected(&case, found), "{id}: {found}");
    }
    assert_eq!(told, 6);
    drop(listener);
    gate.stop().await;
}
