//! Tokens that a server refuses: one more from the provider, and the request once more, where that is safe.

use super::{PAGE, text};
use crate::support::{
    agent::Agent,
    client::Reply,
    gate::ends,
    protected::{Authority, Doorkeeper, House, Treat},
    tools::Tools,
};

const FIRST: &str = "Bearer t1-SENTINEL";
const SECOND: &str = "Bearer t2-SENTINEL";
const TOKENS: [(&str, Option<&str>); 3] = [
    ("t1-SENTINEL", Some("r1-SENTINEL")),
    ("t2-SENTINEL", Some("r2-SENTINEL")),
    ("t3-SENTINEL", Some("r3-SENTINEL")),
];

struct Rig {
    keeper: Doorkeeper,
    tools: Tools,
    provider: Authority,
    house: House,
}

impl Rig {
    /// `ann` is connected to `s` with the first token, has used it, and `keeper` knows only what it is told to.
    async fn new() -> Self {
        let keeper = Doorkeeper::letting(&[FIRST]);
        let own = keeper.clone();
        let tools = Tools::start(move |seen| own.says("authorization", seen)).await;
        let provider = Authority::giving(&TOKENS).await;
        let house = House::of_ann(&provider.policy(tools.address, ""));
        house.connect(&provider).await;
        let rig = Self {
            keeper,
            tools,
            provider,
            house,
        };
        assert_eq!(said(&rig.call("get_weather").await), "ok get_weather");
        rig
    }

    async fn call(&self, tool: &str) -> Reply {
        self.house.send(Agent::modern("s").call("1", tool)).await
    }

    /// What the calls of a tool showed.
    fn shown(&self, tool: &str) -> Vec<String> {
        let calls = self.tools.of("tools/call").into_iter();
        let calls = calls.filter(|seen| seen.tool() == tool);
        calls
            .map(|seen| seen.header("authorization").unwrap().to_owned())
            .collect()
    }
}

fn said(reply: &Reply) -> String {
    let body = reply.json();
    let text = body["result"]["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("{}", reply.body)).to_owned()
}

#[tokio::test]
async fn a_refused_token_is_replaced_and_the_request_sent_once_more() {
    let rig = Rig::new().await;
    rig.keeper.forget(FIRST);
    rig.keeper.treat(SECOND, Treat::In);
    // An effect too: what is answered with 401 has not been applied.
    assert_eq!(said(&rig.call("send_mail").await), "ok send_mail");
    assert_eq!(rig.shown("send_mail"), [FIRST, SECOND]);
    assert_eq!(rig.provider.refreshes(), 1);
    assert_eq!(said(&rig.call("get_weather").await), "ok get_weather");
    assert_eq!(rig.provider.refreshes(), 1);
    let records = rig.house.pipeline.records().await;
    let calls: Vec<_> = ends(&records)
        .into_iter()
        .filter(|end| end.starts_with("call"))
        .collect();
    assert_eq!(
        calls,
        [
            "call allowed",
            "call intent",
            "call allowed",
            "call allowed"
        ]
    );
    for record in records {
        assert!(!record.to_string().contains("SENTINEL"), "{record}");
    }
}

#[tokio::test]
async fn a_token_that_is_refused_when_it_is_new_is_for_the_person_to_replace() {
    let rig = Rig::new().await;
    rig.keeper.forget(FIRST);
    let refused = text(&rig.call("get_weather").await);
    assert!(
        refused
            .starts_with("connect.reconnect: your connection to server `s` has ended (refused): ")
            && refused.contains(PAGE),
        "{refused}"
    );
    assert_eq!(rig.shown("get_weather"), [FIRST, FIRST, SECOND]);
    assert_eq!(rig.provider.refreshes(), 1);
}

/// It is not for want of a token, then.
#[tokio::test]
async fn a_server_that_points_elsewhere_with_a_new_token_too_is_told_as_such() {
    let rig = Rig::new().await;
    rig.keeper.treat(FIRST, Treat::Away(307));
    rig.keeper.treat(SECOND, Treat::Away(307));
    for _ in 0..2 {
        let refused = text(&rig.call("get_fault").await);
        let told = "egress.redirect_refused: ";
        assert!(refused.starts_with(told), "{refused}");
    }
    assert_eq!(rig.shown("get_fault"), [FIRST, SECOND, SECOND]);
    assert_eq!(rig.provider.refreshes(), 1);
}

#[tokio::test]
async fn a_way_to_a_login_page_is_a_refusal_too() {
    let rig = Rig::new().await;
    rig.keeper.treat(FIRST, Treat::Away(307));
    rig.keeper.treat(SECOND, Treat::In);
    assert_eq!(said(&rig.call("get_fault").await), "ok get_fault");
    assert_eq!(rig.shown("get_fault"), [FIRST, SECOND]);
}

/// It may also stand for something that was done.
#[tokio::test]
async fn what_has_an_effect_is_not_sent_again_after_a_redirect() {
    let rig = Rig::new().await;
    rig.keeper.treat(FIRST, Treat::Away(302));
    rig.keeper.treat(SECOND, Treat::In);
    let refused = text(&rig.call("send_mail").await);
    assert!(
        refused.starts_with("egress.redirect_refused: "),
        "{refused}"
    );
    assert!(!refused.contains("SENTINEL"), "{refused}");
    assert_eq!(rig.shown("send_mail"), [FIRST]);
    assert_eq!(said(&rig.call("send_mail").await), "ok send_mail");
    assert_eq!(rig.shown("send_mail"), [FIRST, SECOND]);
    assert_eq!(rig.provider.refreshes(), 1);
}

#[tokio::test]
async fn a_server_that_wants_more_is_told_apart_from_one_that_is_shut() {
    let rig = Rig::new().await;
    rig.keeper.treat(FIRST, Treat::Narrow);
    let refused = text(&rig.call("get_weather").await);
    assert_eq!(
        refused,
        format!(
            "connect.more_permissions: server `s` wants more permissions: notes.write: {PAGE}; open the link and agree to the permissions, then repeat the call"
        )
    );
    rig.keeper.treat(FIRST, Treat::Shut);
    let refused = text(&rig.call("get_weather").await);
    assert!(refused.starts_with("upstream.unauthorized: "), "{refused}");
    assert_eq!(rig.provider.refreshes(), 0);
}
