//! What a failure on the way to a server looks like: a failed tool result where a model waits for one, an error where a
//! client does. It ends the request, and never the turn.

use std::sync::{Arc, Mutex};

use super::{Agent, SHORT};
use crate::support::{
    client::{Ask, Reply},
    gate::{Gate, Policy},
    sound as say,
    tools::{Seen, Step, Tools},
};

const PROGRESS: &str = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{}}"#;

/// What a client of that era sends to read a resource.
fn read(agent: &Agent) -> Ask {
    let ask = agent.request("\"r\"", "resources/read", r#""uri":"a:b""#);
    match agent.is_modern() {
        true => ask.with("Mcp-Name", "a:b"),
        false => ask,
    }
}

/// Whether a reply is the error of this code, with all that it says.
fn is_error(reply: &Reply, code: &str) {
    let body = reply.json();
    let error = &body["error"];
    assert_eq!(
        (reply.status, &body["id"]),
        (200, &"r".into()),
        "{}",
        reply.body
    );
    assert_eq!(
        (&error["code"], &error["data"]["code"]),
        (&(-32603).into(), &code.into()),
        "{}",
        reply.body
    );
    let (message, remedy) = (error["message"].as_str(), error["data"]["remedy"].as_str());
    let (message, remedy) = (message.unwrap(), remedy.unwrap());
    assert!(message.starts_with(&format!("{code}: ")), "{message}");
    assert!(message.ends_with(&format!("; {remedy}")), "{message}");
}

fn faults() -> Vec<(&'static str, Vec<Step>, &'static str)> {
    let part = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
    let say = |text: &str| Step::Say(text.as_bytes().to_vec());
    let (stream, event) = (say::stream, || say::event(PROGRESS));
    vec![
        ("no answer", vec![Step::Hang], "egress.first_byte_timeout"),
        (
            "half a body",
            vec![say(part), Step::Hang],
            "egress.idle_timeout",
        ),
        (
            "a body that breaks",
            vec![say(part), Step::Reset],
            "egress.connection_lost",
        ),
        ("a reset", vec![Step::Reset], "egress.connection_lost"),
        (
            "no HTTP",
            vec![say("hello\r\n\r\n"), Step::Hang],
            "egress.response_head_invalid",
        ),
        ("500", say::status(500, "text/plain", ""), "upstream.status"),
        (
            "401",
            say::status(401, "text/plain", ""),
            "upstream.unauthorized",
        ),
        (
            "HTML",
            say::status(200, "text/html", ""),
            "upstream.content_type",
        ),
        ("no JSON", say::json("hello"), "upstream.malformed"),
        (
            "a silent stream",
            vec![stream(), event(), Step::Hang],
            "egress.idle_timeout",
        ),
        (
            "a stream that breaks",
            vec![stream(), event(), Step::Reset],
            "egress.connection_lost",
        ),
        (
            "a stream that stops",
            vec![stream(), event(), say::end()],
            "upstream.no_answer",
        ),
        (
            "a stream of nonsense",
            say::events(&["hello"]),
            "upstream.malformed",
        ),
    ]
}

#[tokio::test]
async fn a_failed_call_is_a_failed_result_and_a_failed_request_an_error() {
    let cell = Arc::<Mutex<Vec<Step>>>::default();
    let script = {
        let cell = cell.clone();
        move |seen: &Seen| {
            let fails = seen.tool() == "get_fault" || seen.method() == "resources/read";
            fails.then(|| cell.lock().unwrap().clone())
        }
    };
    let tools = Tools::start(script).await;
    let gate = Gate::start(&Policy::local("").server("s", tools.address, "", SHORT));
    let agents = Agent::both("s", &gate).await;
    for (what, steps, code) in faults() {
        *cell.lock().unwrap() = steps;
        for agent in &agents {
            let reply = gate.send(agent.call("7", "get_fault")).await;
            assert_eq!(agent.refusal(&reply), code, "{what}");
            is_error(&gate.send(read(agent)).await, code);
            // The connection, the session and the next call are fine.
            agent.good(&gate).await;
        }
    }
    gate.stop().await;
}

/// Nothing could be sent at all.
#[tokio::test]
async fn a_connection_that_does_not_come_about_is_a_failed_result_too() {
    let gone = Tools::start(|_| None).await;
    let other = Tools::start(|_| None).await;
    let policy = Policy::local("").server("s", gone.address, "", "").at(
        "tls",
        &format!("https://{}/mcp", other.address),
        other.address.port(),
        "era = \"modern\"",
        SHORT,
    );
    let gate = Gate::start(&policy);
    let agents = Agent::both("s", &gate).await;
    for agent in &agents {
        agent.good(&gate).await;
    }
    drop(gone);
    // Whatever is left of the kept connection is used up.
    for agent in &agents {
        gate.send(agent.call("0", "get_weather")).await;
    }
    for agent in &agents {
        let reply = gate.send(agent.call("7", "send_mail")).await;
        assert_eq!(agent.refusal(&reply), "egress.connect_failed");
    }
    is_error(&gate.send(read(&agents[1])).await, "egress.connect_failed");
    let agent = Agent::modern("tls");
    let reply = gate.send(agent.call("7", "send_mail")).await;
    assert_eq!(agent.refusal(&reply), "egress.tls_failed");
    is_error(&gate.send(read(&agent)).await, "egress.tls_failed");
    gate.stop().await;
}
