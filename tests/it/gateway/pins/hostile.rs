//! Servers, and callers, that try to get more offered than was pinned, or to cost more than they should.

use std::{
    future::Future,
    pin::Pin,
    sync::atomic::{AtomicUsize, Ordering},
};

use tollgate::{
    catalog::{Ledger, LedgerError, Pinned, ServerKey},
    store::Store,
};

use super::*;
use crate::{
    gateway::quiet,
    support::{
        gate::eventually,
        pipeline::{Door, Pipeline},
        tools::Latch,
    },
};

/// A page of `array`; in each item, `KEY` stands for what names it.
fn page(array: &str, key: &str, items: &str) -> String {
    format!(r#"{{"{array}":{}}}"#, items.replace("KEY", key))
}

#[tokio::test]
async fn one_name_is_replaced_once_however_often_it_is_shown() {
    for (method, array, key) in [
        ("prompts/list", "prompts", "name"),
        (
            "resources/templates/list",
            "resourceTemplates",
            "uriTemplate",
        ),
    ] {
        let long = "x".repeat(64 << 10);
        let pinned = format!(r#"{{"KEY":"a","title":"{long}"}}"#);
        let says = Says::new(&page(array, key, &format!("[{pinned}]")));
        let (_tools, gate) = before(says.answering(method), "").await;
        for agent in Agent::both("s", &gate).await {
            says.set(&page(array, key, &format!("[{pinned}]")));
            let listed = async || {
                let reply = gate.send(agent.request("1", method, "")).await;
                assert_eq!(reply.status, 200, "{}", reply.body);
                reply.json()["result"][array].as_array().unwrap().clone()
            };
            let first = json!({key: "a", "title": long});
            assert_eq!(listed().await, std::slice::from_ref(&first));
            let many = vec![r#"{"KEY":"a"}"#; 4_000].join(",");
            says.set(&page(array, key, &format!("[{many}]")));
            assert_eq!(listed().await, std::slice::from_ref(&first));
            let beside = format!(r#"[{{"KEY":"a"}},{pinned},{{"KEY":"a","title":""}}]"#);
            says.set(&page(array, key, &beside));
            assert_eq!(listed().await, [first]);
        }
    }
}

#[tokio::test]
async fn members_that_some_readers_take_for_others_are_refused() {
    for (method, result) in [
        (
            "tools/list",
            r#"{"tools":[],"Tools":[{"name":"get_weather"}]}"#,
        ),
        ("tools/list", r#"{"tools":[],"nextcursor":"2"}"#),
        (
            "tools/list",
            r#"{"tools":[{"name":"get_weather","Name":"send_mail"}]}"#,
        ),
        ("prompts/list", r#"{"prompts":[{"name":"a","NAME":"b"}]}"#),
        (
            "resources/templates/list",
            r#"{"resourceTemplates":[],"resourcetemplates":[]}"#,
        ),
    ] {
        let (_tools, gate) = before(Says::new(result).answering(method), "").await;
        for agent in Agent::both("s", &gate).await {
            let reply = gate.send(agent.request("1", method, "")).await;
            let code = &reply.json()["error"]["data"]["code"];
            assert_eq!(code, "upstream.malformed", "{result}: {}", reply.body);
        }
        assert_eq!(catalog(&gate.stop().await), Vec::<String>::new());
    }
}

#[tokio::test]
async fn greetings_that_readers_disagree_about_are_refused() {
    for more in [
        r#""instructions":"a","Instructions":"b""#,
        r#""INSTRUCTIONS":"b""#,
        r#""in\u017ftructions":"b""#,
        r#""instructions":"a","instructions":"b""#,
        r#""Capabilities":{"tasks":{}}"#,
    ] {
        let script = move |seen: &Seen| match seen.method() {
            "server/discover" => Some(say::result(
                true,
                &format!(
                    r#"{{"supportedVersions":["2026-07-28","2025-11-25"],"capabilities":{{"tools":{{}}}},{more}}}"#
                ),
            )),
            "initialize" => {
                let mut steps = say::welcome("up-1", "2025-11-25");
                if let Step::Chunk(text) = &mut steps[1] {
                    *text = text.replace(r#""serverInfo""#, &format!(r#"{more},"serverInfo""#));
                }
                Some(steps)
            }
            _ => None,
        };
        let (_tools, gate) = before(script, "").await;
        let agent = Agent::modern("s");
        for ask in [
            agent.request("1", "server/discover", ""),
            agent.initialize("2025-11-25"),
        ] {
            let reply = gate.send(ask).await;
            let code = &reply.json()["error"]["data"]["code"];
            assert_eq!(code, "upstream.malformed", "{more}: {}", reply.body);
        }
        assert_eq!(catalog(&gate.stop().await), Vec::<String>::new());
    }
}

/// The capabilities that a caller writes down are its own invention; only what the server may ask tells views apart.
#[tokio::test]
async fn no_caller_makes_up_a_view_of_its_own() {
    let (says, _tools, gate) = showing(&format!("[{WEATHER}]")).await;
    let agent = Agent::modern("s");
    let offering = |capabilities: &str| {
        let message = agent.message("1", "tools/list", "");
        let own = format!(r#"clientCapabilities":{capabilities}"#);
        agent.post(&message.replace(r#"clientCapabilities":{}"#, &own))
    };
    agent.good(&gate).await;
    for form in ["{}", r#"{"elicitation":{}}"#] {
        says.set(&list(&format!("[{WEATHER}]")));
        let reply = gate.send(offering(form)).await;
        assert!(reply.body.contains("tells the weather"), "{}", reply.body);
        says.set(&list(r#"[{"name":"get_weather","title":"evil"}]"#));
        let inventions = match form {
            "{}" => [
                r#"{"experimental":{"x":{}}}"#,
                r#"{"extensions":{"com.example/x":{}}}"#,
                r#"{"x":[1]}"#,
            ],
            _ => [
                r#"{"elicitation":{"form":{}}}"#,
                r#"{"elicitation":{"form":{"x":1}}}"#,
                r#"{"elicitation":{"x":{}},"x":1}"#,
            ],
        };
        for invention in inventions {
            let reply = gate.send(offering(invention)).await;
            assert!(
                reply.body.contains(r#""tools":[]"#),
                "{invention}: {}",
                reply.body
            );
        }
    }
    let told = catalog(&gate.stop().await);
    assert_eq!(
        told,
        ["pinned", "drifted get_weather catalog.drifted", "pinned"]
    );
}

/// What is blocked for one view does not come in as the first list of another, which is settled all the same.
#[tokio::test]
async fn what_is_blocked_for_some_is_not_taken_by_the_way_of_others() {
    let (says, _tools, gate) = showing(&format!("[{WEATHER}]")).await;
    let [modern, legacy] = Agent::both("s", &gate).await;
    modern.good(&gate).await;
    let evil = r#"{"name":"get_weather","title":"evil"}"#;
    says.set(&list(&format!("[{evil}]")));
    assert_eq!(offered(&modern, &gate).await, "[]");
    for agent in [&legacy, &modern] {
        assert_eq!(offered(agent, &gate).await, "[]");
        assert_eq!(
            refused(agent, &gate, "get_weather").await,
            "catalog.drifted"
        );
    }
    says.set(&list(&format!("[{FAULT}]")));
    assert_eq!(offered(&legacy, &gate).await, "[]");
    says.set(&list(&format!("[{WEATHER}]")));
    assert_eq!(offered(&legacy, &gate).await, format!("[{WEATHER}]"));
}

/// A server that answers the second page with an error has shown no whole list, and nothing is pinned of the first.
#[tokio::test]
async fn half_a_list_is_none() {
    const ERROR: &str = r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"down"}}"#;
    let up = Says::new("");
    let script = {
        let up = up.clone();
        move |seen: &Seen| {
            let cursor = seen.json["params"]["cursor"].as_str();
            (seen.method() == "tools/list").then(|| match (cursor, &*up.now()) {
                (None, _) => say::result(
                    seen.modern(),
                    &format!(r#"{{"tools":[{WEATHER}],"nextCursor":"2"}}"#),
                ),
                (_, "") => say::json(ERROR),
                _ => say::result(seen.modern(), &list(&format!("[{FAULT}]"))),
            })
        }
    };
    let (_tools, gate) = before(script, "").await;
    let agents = Agent::both("s", &gate).await;
    for agent in &agents {
        let reply = gate.send(agent.request("1", "tools/list", "")).await;
        let code = &reply.json()["error"]["data"]["code"];
        assert_eq!(code, "upstream.malformed", "{}", reply.body);
        let call = refused(agent, &gate, "get_weather").await;
        assert_eq!(call, "upstream.malformed");
    }
    up.set("up");
    for agent in &agents {
        agent.good(&gate).await;
        let reply = gate.send(agent.call("1", "get_fault")).await;
        assert!(reply.body.contains("ok get_fault"), "{}", reply.body);
    }
    assert_eq!(catalog(&gate.stop().await), ["pinned", "pinned"]);
}

/// Forty pages that are each as large as an answer may be.
#[tokio::test]
async fn a_list_without_measure_is_refused_before_it_is_held() {
    const PAGES: usize = 40;
    let long = "x".repeat(1 << 20);
    let script = move |seen: &Seen| {
        let at: usize = match seen.json["params"]["cursor"].as_str() {
            None => 0,
            Some(cursor) => cursor.parse().unwrap(),
        };
        let next = match at + 1 {
            PAGES => String::new(),
            next => format!(r#","nextCursor":"{next}""#),
        };
        let page = format!(r#"{{"tools":[{{"name":"t{at}","title":"{long}"}}]{next}}}"#);
        (seen.method() == "tools/list").then(|| say::result(seen.modern(), &page))
    };
    let limits = "[limits]\nresponse_bytes = 2097152\n";
    let (tools, gate) = before(script, limits).await;
    let agent = Agent::modern("s");
    assert_eq!(refused(&agent, &gate, "t0").await, "catalog.too_large");
    assert_eq!(tools.of("tools/list").len(), 32);
}

/// Pins that are read and written only when the test lets them.
#[derive(Debug)]
struct Held {
    store: Store,
    reads: Arc<AtomicUsize>,
    read: Option<Latch>,
    /// The one that says that a change has begun, and the one that lets it through.
    change: Option<(Latch, Latch)>,
    broken: bool,
}

impl Held {
    fn new(store: Store) -> Self {
        Self {
            store,
            reads: Arc::default(),
            read: None,
            change: None,
            broken: false,
        }
    }
}

impl Ledger for Held {
    fn read<'a>(
        &'a self,
        server: &'a ServerKey,
    ) -> Pin<Box<dyn Future<Output = Result<Option<Pinned>, LedgerError>> + Send + 'a>> {
        Box::pin(async {
            self.reads.fetch_add(1, Ordering::SeqCst);
            if let Some(latch) = &self.read {
                latch.wait().await;
                latch.open();
            }
            if self.broken {
                return Err(LedgerError::Forged {
                    server: server.name.clone(),
                });
            }
            self.store.read(server).await
        })
    }

    fn replace<'a>(
        &'a self,
        server: &'a ServerKey,
        expected: Option<u64>,
        pinned: &'a Pinned,
    ) -> Pin<Box<dyn Future<Output = Result<bool, LedgerError>> + Send + 'a>> {
        Box::pin(async move {
            if let Some((begun, go)) = &self.change {
                begun.open();
                go.wait().await;
            }
            self.store.replace(server, expected, pinned).await
        })
    }
}

const CALLERS: usize = 16;

/// The codes that callers get who all come while the pins are being read.
async fn callers_at_once(pipeline: &Pipeline, door: Door, latch: &Latch) -> Vec<String> {
    let agent = Agent::modern("demo");
    let mut waiting = Vec::new();
    for _ in 0..CALLERS {
        waiting.push(door.leave(agent.request("1", "tools/list", "")).await);
    }
    let connected = || pipeline.metrics.listen_connections.get() == CALLERS as i64;
    eventually("callers are in", connected).await;
    // All tasks are of this thread: each comes as far as it can.
    for _ in 0..256 {
        tokio::task::yield_now().await;
    }
    latch.open();
    let mut codes = Vec::new();
    for exchange in waiting {
        let reply = exchange.answered().await.whole().await;
        let code = reply.json()["error"]["data"]["code"].clone();
        codes.push(code.as_str().unwrap_or("listed").to_owned());
    }
    codes
}

#[tokio::test]
async fn of_many_callers_at_once_one_reads_the_pins() {
    for (broken, expected) in [(false, "listed"), (true, "catalog.pins_unusable")] {
        let tools = Tools::start(|_| None).await;
        let (latch, reads) = (Latch::new(), Arc::new(AtomicUsize::new(0)));
        let pipeline = Pipeline::with(|store| {
            Arc::new(Held {
                reads: reads.clone(),
                read: Some(latch.clone()),
                broken,
                ..Held::new(store)
            })
        });
        let door = pipeline.listen(quiet::policy(&tools));
        let codes = callers_at_once(&pipeline, door, &latch).await;
        assert_eq!(codes, vec![expected; CALLERS]);
        assert_eq!(reads.load(Ordering::SeqCst), 1);
    }
}

/// Who asks for the first list and goes away leaves nothing pinned that nobody was told of.
#[tokio::test]
async fn a_caller_who_goes_away_does_not_hide_what_was_pinned() {
    let tools = Tools::start(|_| None).await;
    let (begun, go) = (Latch::new(), Latch::new());
    let pipeline = Pipeline::with(|store| {
        Arc::new(Held {
            change: Some((begun.clone(), go.clone())),
            ..Held::new(store)
        })
    });
    let door = pipeline.listen(quiet::policy(&tools));
    let ask = Agent::modern("demo").request("1", "tools/list", "");
    let caller = door.leave(ask).await;
    begun.wait().await;
    drop(caller);
    let gone = || pipeline.metrics.listen_connections.get() == 0;
    eventually("the caller is missed", gone).await;
    assert_eq!(pipeline.metrics.catalog_pinned.get(), 0);
    go.open();
    let told = || pipeline.metrics.catalog_pinned.get() == 5;
    eventually("what was pinned is told of", told).await;
}
