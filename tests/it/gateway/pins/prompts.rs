//! Prompts that are asked for by name, and completions for them.

use super::*;

const OLD: &str = r#"[{"name":"p","title":"old"}]"#;
const NEW: &str = r#"[{"name":"p","title":"new"},{"name":"more"}]"#;

/// A server whose prompts the test changes; it gives every prompt that it is asked for.
fn giving(says: &Says) -> impl Fn(&Seen) -> Option<Vec<Step>> + use<> {
    let lists = says.answering("prompts/list");
    move |seen| match seen.method() {
        "prompts/get" => Some(say::result(seen.modern(), r#"{"messages":[]}"#)),
        "completion/complete" => Some(say::result(
            seen.modern(),
            r#"{"completion":{"values":["v"]}}"#,
        )),
        _ => lists(seen),
    }
}

fn prompts(prompts: &str) -> String {
    format!(r#"{{"prompts":{prompts}}}"#)
}

/// What becomes of a get, and of a completion: the code of the refusal, or `given`.
async fn asked(agent: &Agent, gate: &Gate, name: &str) -> String {
    let completion = format!(
        r#""ref":{{"type":"ref/prompt","name":"{name}"}},"argument":{{"name":"a","value":"v"}}"#
    );
    let mut ends = Vec::new();
    for ask in [
        agent.request("1", "prompts/get", &format!(r#""name":"{name}""#)),
        agent.request("1", "completion/complete", &completion),
    ] {
        let reply = gate.send(ask).await;
        let json = reply.json();
        assert_eq!(json["error"].is_null(), json["result"].is_object());
        let code = json["error"]["data"]["code"].as_str().unwrap_or("given");
        ends.push(code.to_owned());
    }
    assert_eq!(ends[0], ends[1]);
    ends.swap_remove(0)
}

#[tokio::test]
async fn a_prompt_that_is_not_offered_is_not_given() {
    let says = Says::new("");
    let (tools, gate) = before(giving(&says), "").await;
    for agent in Agent::both("s", &gate).await {
        says.set(&prompts(OLD));
        assert_eq!(asked(&agent, &gate, "p").await, "given");
        assert_eq!(asked(&agent, &gate, "more").await, "mcp.invalid_params");
        says.set(&prompts(NEW));
        let reply = gate.send(agent.request("1", "prompts/list", "")).await;
        assert_eq!(
            reply.json()["result"]["prompts"],
            json!([{"name": "p", "title": "old"}])
        );
        let given = tools.of("prompts/get").len();
        assert_eq!(asked(&agent, &gate, "p").await, "catalog.drifted");
        assert_eq!(asked(&agent, &gate, "more").await, "catalog.unreviewed");
        assert_eq!(tools.of("prompts/get").len(), given);
        says.set(&prompts(OLD));
        gate.send(agent.request("1", "prompts/list", "")).await;
        assert_eq!(asked(&agent, &gate, "p").await, "given");
    }
    assert_eq!(
        catalog(&gate.stop().await),
        [
            "pinned",
            "drifted p catalog.drifted",
            "unreviewed more catalog.unreviewed",
            "pinned",
        ]
    );
}

#[tokio::test]
async fn a_restart_and_a_pins_file_hold_for_prompts_that_nobody_listed() {
    let says = Says::new(&prompts(OLD));
    let (_tools, gate) = before(giving(&says), "").await;
    assert_eq!(asked(&Agent::modern("s"), &gate, "p").await, "given");
    says.set(&prompts(NEW));
    let gate = gate.restart().await;
    let agent = Agent::modern("s");
    assert_eq!(asked(&agent, &gate, "p").await, "catalog.drifted");
    assert_eq!(asked(&agent, &gate, "more").await, "catalog.unreviewed");

    let tools = Tools::start(giving(&says)).await;
    let policy = Policy::local("").server("s", tools.address, "pin = \"file\"", "");
    let gate = Gate::start(&policy);
    for agent in Agent::both("s", &gate).await {
        assert_eq!(asked(&agent, &gate, "p").await, "catalog.unreviewed");
    }
}

#[tokio::test]
async fn a_server_that_says_that_its_prompts_changed_is_read_before_the_next_is_given() {
    let says = Says::new("");
    let script = {
        let giving = giving(&says);
        move |seen: &Seen| {
            let news = r#"{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}"#;
            match seen.tool() {
                "get_fault" => {
                    let answer = say::message(seen.modern(), &say::text("changed"));
                    Some(say::events(&[news, &answer]))
                }
                _ => giving(seen),
            }
        }
    };
    let (tools, gate) = before(script, "").await;
    for agent in Agent::both("s", &gate).await {
        says.set(&prompts(OLD));
        assert_eq!(asked(&agent, &gate, "p").await, "given");
        agent.good(&gate).await;
        says.set(&prompts(NEW));
        assert_eq!(asked(&agent, &gate, "p").await, "given");
        let read = |method: &str| tools.of(method).len();
        let before = (read("prompts/list"), read("tools/list"));
        let reply = gate.send(agent.call("1", "get_fault")).await;
        assert!(reply.body.contains("changed"), "{}", reply.body);
        assert_eq!(asked(&agent, &gate, "p").await, "catalog.drifted");
        agent.good(&gate).await;
        let after = (read("prompts/list"), read("tools/list"));
        assert_eq!(after, (before.0 + 1, before.1));
    }
}

/// A template is known by its own text; a resource that is of none is the server's to judge.
#[tokio::test]
async fn completions_for_a_template_that_is_not_offered_are_refused() {
    let says = Says::new("");
    let script = {
        let lists = says.answering("resources/templates/list");
        let giving = giving(&Says::new(""));
        move |seen: &Seen| lists(seen).or_else(|| giving(seen))
    };
    let (_tools, gate) = before(script, "").await;
    let templates = |title: &str| {
        format!(r#"{{"resourceTemplates":[{{"uriTemplate":"a://{{x}}","title":"{title}"}}]}}"#)
    };
    for agent in Agent::both("s", &gate).await {
        let completed = async |uri: &str| {
            let about = format!(
                r#""ref":{{"type":"ref/resource","uri":"{uri}"}},"argument":{{"name":"x","value":""}}"#
            );
            let reply = gate
                .send(agent.request("1", "completion/complete", &about))
                .await;
            let code = reply.json()["error"]["data"]["code"].clone();
            code.as_str().unwrap_or("given").to_owned()
        };
        let list = async || {
            gate.send(agent.request("1", "resources/templates/list", ""))
                .await
        };
        says.set(&templates("old"));
        assert_eq!(completed("a://{x}").await, "given");
        list().await;
        assert_eq!(completed("a://{x}").await, "given");
        says.set(&templates("new"));
        list().await;
        assert_eq!(completed("a://{x}").await, "catalog.drifted");
        assert_eq!(completed("a://1").await, "given");
    }
}

#[tokio::test]
async fn what_names_no_prompt_is_refused_here() {
    let says = Says::new(&prompts(OLD));
    let (tools, gate) = before(giving(&says), "").await;
    let agent = Agent::modern("s").legacy(&gate).await;
    for (method, params) in [
        ("prompts/get", ""),
        ("prompts/get", r#""name":7"#),
        ("completion/complete", ""),
        ("completion/complete", r#""ref":{"type":"ref/other"}"#),
        ("completion/complete", r#""ref":{"type":"ref/prompt"}"#),
    ] {
        let reply = gate.send(agent.request("1", method, params)).await;
        let code = &reply.json()["error"]["data"]["code"];
        assert_eq!(code, "mcp.invalid_params", "{method} {params}");
        assert_eq!(tools.of(method).len(), 0);
    }
}
