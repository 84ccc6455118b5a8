use std::{collections::HashMap, future::Future, pin::Pin, sync::Mutex};

use proptest::prelude::*;

use super::*;
use crate::{
    mcp::{
        Question, Revision,
        capabilities::Offer,
        items::{Fate, List, Page},
    },
    policy::{CallLimits, Inputs, ServerLimits, compile, decide},
    refusal::Code,
    subject::{Admins, Scopes, Subject},
};

mod accept;
mod drift;
mod first_use;
mod forms;

/// Keeps pins in memory; it can be told to fail, and to let somebody else be first.
#[derive(Debug, Default)]
struct Memory {
    rows: Mutex<HashMap<ServerKey, Pinned>>,
    fails: Mutex<Option<fn() -> LedgerError>>,
    rival: Mutex<Option<Pinned>>,
}

type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, LedgerError>> + Send + 'a>>;

impl Memory {
    fn check(&self) -> Result<(), LedgerError> {
        let fails = *self.fails.lock().expect("no panic");
        fails.map_or(Ok(()), |error| Err(error()))
    }

    fn only(&self) -> Pinned {
        let rows = self.rows.lock().expect("no panic");
        rows.values().next().cloned().unwrap_or_default()
    }
}

impl Ledger for Memory {
    fn read<'a>(&'a self, server: &'a ServerKey) -> Answer<'a, Option<Pinned>> {
        Box::pin(async move {
            self.check()?;
            Ok(self.rows.lock().expect("no panic").get(server).cloned())
        })
    }

    fn replace<'a>(
        &'a self,
        server: &'a ServerKey,
        expected: Option<u64>,
        pinned: &'a Pinned,
    ) -> Answer<'a, bool> {
        Box::pin(async move {
            self.check()?;
            let mut rows = self.rows.lock().expect("no panic");
            if let Some(rival) = self.rival.lock().expect("no panic").take() {
                rows.insert(server.clone(), rival);
            }
            let is_next = rows.get(server).map(|row| row.version) == expected;
            if is_next {
                rows.insert(server.clone(), pinned.clone());
            }
            Ok(is_next)
        })
    }
}

/// A permit for server `demo`, whose file has these keys more.
fn permit_with(keys: &str, pins: Option<&str>) -> Permit {
    let mut files = vec![crate::policy::File {
        path: "servers/demo.toml".to_owned(),
        text: format!("url = \"https://demo.example.com/\"\naccess = \"everyone\"\n{keys}\n"),
    }];
    files.extend(pins.map(|text| crate::policy::File {
        path: "pins/demo.json".to_owned(),
        text: text.to_owned(),
    }));
    let snapshot = compile(&Inputs {
        files: &files,
        read: &|_| Err(String::new()),
        secret: &|source| Err(format!("no secret at {source:?}")),
        web: true,
        client_metadata: true,
        private_allowlist: None,
        access_mode: None,
        kubernetes: None,
        admins: Admins::default(),
        local: None,
        limits: ServerLimits::default(),
        calls: CallLimits::default(),
        connected_only: false,
        own_addresses: Vec::new(),
        own_listeners: Vec::new(),
        parent: None,
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

/// A catalogue, what keeps its pins, and a permit for the server that it is used with.
struct World {
    ledger: Arc<Memory>,
    catalog: Catalog,
    permit: Permit,
}

impl World {
    fn new() -> Self {
        Self::over(Arc::default())
    }

    /// A process that starts with what another one kept.
    fn over(ledger: Arc<Memory>) -> Self {
        Self {
            catalog: Catalog::new(ledger.clone()),
            ledger,
            permit: permit_with("", None),
        }
    }

    async fn book(&self) -> Book {
        let book = self.catalog.open(self.permit.server()).await;
        book.expect("the ledger works")
    }

    /// Reads the whole list, as for a call: these tools, a JSON array.
    async fn whole(&self, view: View, tools: &str) -> Report {
        let turn = self.book().await.turn(view, List::Tools).await;
        let turn = turn.expect("it is time to read");
        turn.finish(&shown(List::Tools, tools)).await.expect("room")
    }

    /// The items of a page that stay as they are, by name.
    async fn page(&self, view: View, tools: &str) -> Vec<String> {
        let shown = shown(List::Tools, tools);
        let judged = self
            .book()
            .await
            .judge(view, Era::Modern, List::Tools, &shown);
        let kept = shown.iter().zip(judged.fates);
        kept.filter(|(_, fate)| *fate == Fate::Keep)
            .map(|(shown, _)| shown.name.to_string())
            .collect()
    }

    fn find(&self, view: View, name: &str) -> Found<PinnedTool> {
        self.catalog.find(&self.permit, view, Era::Modern, name)
    }

    fn tool(&self, view: View, name: &str) -> PinnedTool {
        match self.find(view, name) {
            Found::Offered(tool) => tool,
            other => panic!("{name}: {other:?}"),
        }
    }
}

/// The items of a page that holds this JSON array.
fn shown(list: List, items: &str) -> Vec<Shown> {
    let array = match list {
        List::Tools => "tools",
        List::Prompts => "prompts",
        List::Templates => "resourceTemplates",
    };
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"{array}":{items}}}}}"#);
    let envelope = crate::mcp::Envelope::upstream(text.as_bytes()).expect("a response");
    let result = envelope.result.expect("a result").whole;
    let page = Page::read(result, list, MAX_TOOLS).expect("a page");
    page.items
        .iter()
        .map(|item| Shown::of(list, item))
        .collect()
}

/// What another client is shown.
fn other_view() -> View {
    View::of(
        Revision::LEGACY,
        &Offer::all(|question| question == Question::Sample),
    )
}

fn reasons(report: &Report) -> Vec<(&str, &str)> {
    let blocks = report.blocks.iter();
    blocks
        .map(|block| (&*block.name, block.reason.as_str()))
        .collect()
}
