use super::*;
use crate::{
    policy::{CallLimits, Inputs, ServerLimits, compile, decide},
    subject::{Admins, Scopes, Subject},
};

fn permit() -> Permit {
    let snapshot = compile(&Inputs {
        files: &[crate::policy::File {
            path: "servers/demo.toml".to_owned(),
            text: "url = \"https://demo.example.com/\"\naccess = \"everyone\"\n".to_owned(),
        }],
        read: &|_| Err(String::new()),
        private_allowlist: None,
        access_mode: None,
        kubernetes: None,
        admins: Admins::default(),
        local: None,
        limits: ServerLimits {
            call: Duration::from_secs(1),
            connect: Duration::from_secs(1),
            first_byte: Duration::from_secs(1),
            idle: Duration::from_secs(1),
            response_bytes: 1 << 20,
            ..ServerLimits::default()
        },
        calls: CallLimits::default(),
        own_addresses: Vec::new(),
        own_listeners: Vec::new(),
    });
    let subject = Subject {
        tenant: "default".into(),
        agent: "agent".into(),
        user: "ann".into(),
        groups: Arc::new([]),
        scopes: Scopes::CALL,
        conversation: None,
        turn: None,
        acting: None,
        evidence: "key:1".into(),
    };
    decide(&snapshot.expect("no faults"), &subject, "demo").expect("a permit")
}

/// Has `with` see a page of these tools, a JSON array.
fn listed<T>(tools: &str, with: impl FnOnce(&[tools::Tool<'_>]) -> T) -> T {
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":{tools}}}}}"#);
    let envelope = crate::mcp::Envelope::upstream(text.as_bytes()).expect("a response");
    let result = envelope.result.expect("a result").whole;
    with(&tools::Page::read(result, MAX_TOOLS).expect("a page").tools)
}

fn finish(turn: Turn, tools: &str) {
    let tools: Vec<_> = listed(tools, |page| page.iter().filter_map(Tool::of).collect());
    turn.finish(tools).expect("few");
}

#[tokio::test]
async fn names_that_change_from_page_to_page_fill_it_and_stop_nothing() {
    let (catalog, permit) = (Catalog::default(), permit());
    for page in 0..3 {
        let tools: Vec<String> = (0..MAX_TOOLS)
            .map(|n| format!(r#"{{"name":"{page}-{n}"}}"#))
            .collect();
        listed(&format!("[{}]", tools.join(",")), |page| {
            catalog.learn(&permit, page);
        });
    }
    assert!(catalog.pin(&permit, Era::Modern, "0-0").is_some());
    assert!(catalog.pin(&permit, Era::Modern, "2-0").is_none());
    let changed = r#"[{"name":"0-0","execution":{"taskSupport":"required"}},{"name":"2-0"}]"#;
    listed(changed, |page| catalog.learn(&permit, page));
    assert!(catalog.pin(&permit, Era::Modern, "0-0").is_none());
    assert!(catalog.pin(&permit, Era::Modern, "2-0").is_some());
    let turn = catalog.turn(&permit).await.expect("it was never read");
    finish(turn, r#"[{"name":"2-1"}]"#);
    assert!(catalog.pin(&permit, Era::Modern, "2-0").is_none());
    assert!(catalog.pin(&permit, Era::Modern, "2-1").is_some());
}

#[tokio::test]
async fn the_last_list_says_what_is_mirrored() {
    let schema = |header: &str| {
        let property = format!(r#"{{"type":"string","x-mcp-header":"{header}"}}"#);
        format!(r#"[{{"name":"a","inputSchema":{{"properties":{{"b":{property}}}}}}}]"#)
    };
    let (catalog, permit) = (Catalog::default(), permit());
    let pin = |era| catalog.pin(&permit, era, "a");
    listed(r#"[{"name":"a"}]"#, |page| catalog.learn(&permit, page));
    let plain = pin(Era::Modern).expect("known");
    assert!(plain.mirrors().is_empty());
    listed(&schema("B"), |page| catalog.learn(&permit, page));
    let mirrored = pin(Era::Modern).expect("known");
    assert!(!mirrored.mirrors().is_empty());
    assert!(plain.mirrors().is_empty());
    listed(&schema("no header"), |page| catalog.learn(&permit, page));
    assert_eq!(pin(Era::Modern), None);
    assert!(pin(Era::Legacy).expect("known").mirrors().is_empty());
    let turn = catalog.turn(&permit).await.expect("it was never read");
    finish(turn, &schema("B"));
    assert_eq!(pin(Era::Modern), Some(mirrored));
}
