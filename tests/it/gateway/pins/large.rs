//! Large catalogues.

use super::*;

#[tokio::test]
async fn ten_thousand_tools_are_pinned_and_compared() {
    const TOOLS: usize = 10_000;
    const PAGE: usize = 2_500;
    let all: Vec<String> = (0..TOOLS)
        .map(|n| {
            format!(
                r#"{{"name":"get_{n}","description":"tool {n}","inputSchema":{{"type":"object","properties":{{"city":{{"type":"string"}}}}}}}}"#
            )
        })
        .collect();
    let changed = Says::new("");
    let script = {
        let changed = changed.clone();
        move |seen: &Seen| {
            (seen.method() == "tools/list").then(|| {
                let from = seen.json["params"]["cursor"].as_str().unwrap_or("0");
                let from: usize = from.parse().unwrap();
                let mut page = all[from..from + PAGE].join(",");
                if changed.now() == "changed" {
                    page = page.replacen("\"tool 2501\"", "\"evil\"", 1);
                }
                let next = match from + PAGE {
                    TOOLS => String::new(),
                    next => format!(r#","nextCursor":"{next}""#),
                };
                say::result(seen.modern(), &format!(r#"{{"tools":[{page}]{next}}}"#))
            })
        }
    };
    let (_tools, gate) = before(script, "").await;
    let agent = Agent::modern("s");
    let page = async |from: usize| {
        let cursor = format!(r#""cursor":"{from}""#);
        let reply = gate.send(agent.request("1", "tools/list", &cursor)).await;
        reply.json()["result"]["tools"].as_array().unwrap().len()
    };
    assert_eq!(page(7_500).await, PAGE);
    changed.set("changed");
    assert_eq!(page(2_500).await, PAGE - 1);
    assert_eq!(refused(&agent, &gate, "get_2501").await, "catalog.drifted");
    let reply = gate.send(agent.call("1", "get_9999")).await;
    assert_eq!(reply.json()["result"]["content"][0]["text"], "ok get_9999");
    assert_eq!(gate.metric("tollgate_catalog_pinned_total"), 10_000);
}

#[tokio::test]
async fn a_schema_of_five_mebibytes_is_pinned() {
    let city = "x".repeat(5 << 20);
    let tool = format!(
        r#"{{"name":"get_weather","inputSchema":{{"type":"object","properties":{{"city":{{"description":"{city}"}}}}}}}}"#
    );
    let says = Says::new(&list(&format!("[{tool}]")));
    let limits = "[limits]\nresponse_bytes = 16777216\n";
    let (_tools, gate) = before(says.answering("tools/list"), limits).await;
    let agent = Agent::modern("s");
    assert_eq!(offered(&agent, &gate).await.len(), tool.len() + 2);
    agent.good(&gate).await;
    says.set(&list(&format!("[{}]", tool.replace("city", "town"))));
    assert_eq!(offered(&agent, &gate).await, "[]");
    assert_eq!(
        refused(&agent, &gate, "get_weather").await,
        "catalog.drifted"
    );
}
