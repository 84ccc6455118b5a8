//! Nothing secret is written down, logged, counted, told in errors, or sent on.

use std::{
    io,
    sync::{Arc, Mutex},
};

use super::ends;
use crate::support::{
    agent::Agent,
    client::Ask,
    gate::{Gate, Policy},
    sound,
    tools::{Seen, Step, Tools},
};

/// What every secret of this test holds, and nothing else does.
const MARK: &str = "SENTINEL";
const KEY: &str = "tg_SENTINEL_key_0123456789";

/// Keeps what is logged with the mark in it.
#[derive(Clone, Default)]
struct Marked(Arc<Mutex<Vec<String>>>);

impl io::Write for Marked {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        if text.contains(MARK) {
            self.0.lock().unwrap().push(text.into_owned());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn script(seen: &Seen) -> Option<Vec<Step>> {
    let how = seen.json["params"]["arguments"]["how"].as_str()?;
    let body = "SENTINEL says the server";
    Some(match how {
        "status" => sound::status(500, "text/plain", body),
        "html" => sound::status(200, "text/html", body),
        "broken" => sound::json(body),
        "redirect" => vec![Step::Say(
            b"HTTP/1.1 302 Found\r\nLocation: http://localhost/?token=SENTINEL\r\nContent-Length: 0\r\n\r\n".to_vec(),
        )],
        "stream" => sound::events(&[body]),
        "reset" => vec![Step::Reset],
        _ => return None,
    })
}

fn laden(ask: Ask) -> Ask {
    ask.with("Cookie", "session=SENTINEL")
        .with("X-Api-Key", "SENTINEL")
        .with("Proxy-Authorization", "Basic SENTINEL")
        .with("X-Forwarded-For", "SENTINEL")
        .with("Baggage", "k=SENTINEL")
}

#[tokio::test]
async fn secrets_stay_where_they_belong() {
    let logged = Marked::default();
    let writer = logged.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    tracing::subscriber::set_global_default(subscriber).unwrap();
    tracing::info!("this line holds {MARK}");
    assert_eq!(
        logged.0.lock().unwrap().drain(..).count(),
        1,
        "logs are captured"
    );

    let tools = Tools::start(script).await;
    let keys = [(KEY, "agent = \"a\"\nuser = \"ann\"")];
    let policy = Policy::keys(&keys, "").server("s", tools.address, "", "");
    let gate = Gate::start(&policy);
    let mut errors = Vec::new();
    for agent in [
        Agent::modern("s").with_key(KEY),
        Agent::modern("s").with_key(KEY).legacy(&gate).await,
    ] {
        let call = |tool: &str, how: &str| {
            laden(agent.request(
                "1",
                "tools/call",
                &format!(r#""name":"{tool}","arguments":{{"how":"{how}","password":"SENTINEL"}}"#),
            ))
        };
        for tool in ["get_weather", "send_mail"] {
            let good = gate.send(call(tool, "well")).await;
            assert_eq!(good.status, 200);
            for how in ["status", "html", "broken", "redirect", "stream", "reset"] {
                errors.push(gate.send(call(tool, how)).await);
            }
        }
        errors.push(gate.send(call("delete_all", "well")).await);
        errors.push(gate.send(call("get_nothing", "well")).await);
        let twice = r#""name":"get_weather","arguments":{"SENTINEL":1,"SENTINEL":"SENTINEL"}"#;
        errors.push(
            gate.send(laden(agent.request("1", "tools/call", twice)))
                .await,
        );
        errors.push(
            gate.send(
                laden(Ask::post("/mcp/s", "{\"password\":\"SENTINEL"))
                    .with("Authorization", &format!("Bearer {KEY}")),
            )
            .await,
        );
        errors.push(
            gate.send(
                Ask::post("/mcp/s", "{}").with("Authorization", "Bearer tg_SENTINEL_unknown"),
            )
            .await,
        );
        errors.push(
            gate.send(Ask::post("/mcp/s", "{}").with("Authorization", "Basic SENTINEL"))
                .await,
        );
        errors.push(
            gate.send(
                Ask::post("/mcp/s?key=SENTINEL", "{}")
                    .with("Authorization", &format!("Bearer {KEY}")),
            )
            .await,
        );
        errors.push(
            gate.send(laden(call("get_weather", "well")).with("Bad Header", "SENTINEL"))
                .await,
        );
    }
    for error in &errors {
        assert!(
            !format!("{}{}", error.head, error.body).contains(MARK),
            "{error:?}"
        );
    }
    for seen in tools.seen() {
        assert!(!seen.head.contains(MARK), "{}", seen.head);
        assert!(
            !seen
                .text
                .replace(r#""password":"SENTINEL""#, "")
                .contains(MARK)
        );
    }
    assert!(!gate.handle.metrics().contains(MARK));
    assert!(!format!("{:?}", gate.handle.status()).contains(MARK));
    Agent::modern("s").with_key(KEY).good(&gate).await;
    let records = gate.stop().await;
    assert!(ends(&records).len() >= errors.len());
    for record in records {
        assert!(!record.to_string().contains(MARK), "{record}");
    }
    assert_eq!(logged.0.lock().unwrap().clone(), Vec::<String>::new());
}
