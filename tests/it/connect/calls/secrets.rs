//! Secrets that the operator keeps, and secrets that users enter.

use super::{PAGE, text, tools as names};
use crate::support::{
    agent::Agent,
    client::Ask,
    gate::{Gate, Policy, ends, write},
    protected::{Doorkeeper, House, Treat},
    tools::{Seen, Tools},
};

const SHARED: &str = "Bearer s-SENTINEL-shared";

/// A server that knows whoever shows one of these in `header`.
async fn server(keeper: &Doorkeeper, header: &'static str) -> Tools {
    let keeper = keeper.clone();
    Tools::start(move |seen| keeper.says(header, seen)).await
}

/// Values of the header in all requests, once each.
fn shown(seen: &[Seen], header: &str) -> Vec<Option<String>> {
    let mut shown: Vec<_> = seen
        .iter()
        .map(|seen| seen.header(header).map(str::to_owned))
        .collect();
    shown.sort();
    shown.dedup();
    shown
}

/// Every kind of request that there is.
async fn everything(gate: &Gate, agent: &Agent) {
    let asks = [
        agent.request("1", "tools/list", ""),
        agent.call("2", "get_weather"),
        agent.call("3", "send_mail"),
        agent.request("4", "prompts/list", ""),
        agent.request("5", "prompts/get", r#""name":"p""#),
        agent.request("6", "resources/list", ""),
        agent.request("7", "resources/templates/list", ""),
        agent.request(
            "8",
            "completion/complete",
            r#""ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"b"}"#,
        ),
    ];
    for ask in asks {
        // The caller's own credential is for the gateway.
        gate.send(ask.with("Cookie", "a=b")).await;
    }
}

#[tokio::test]
async fn every_request_shows_the_operators_secret_and_nothing_of_the_callers() {
    let keeper = Doorkeeper::letting(&[SHARED]);
    let (kept, open) = (
        server(&keeper, "authorization").await,
        Tools::start(|_| None).await,
    );
    let dir = tempfile::tempdir().unwrap();
    let secret = dir.path().join("secret");
    write(&secret, "s-SENTINEL-shared\n");
    let auth = format!(
        "[auth]\nmode = \"shared\"\nsecret = \"file:{}\"\n",
        secret.display()
    );
    let key = "tg_caller_0123456789abcdef";
    let policy = Policy::keys(&[(key, "agent = \"a\"\nuser = \"ann\"")], "")
        .server("s", kept.address, "", &auth)
        .server("open", open.address, "", "");
    let gate = Gate::start(&policy);
    for name in ["s", "open"] {
        let modern = Agent::modern(name).with_key(key);
        let legacy = modern.clone().legacy(&gate).await;
        for agent in [&modern, &legacy] {
            everything(&gate, agent).await;
            agent.good(&gate).await;
        }
        gate.send(legacy.bare("GET")).await;
        gate.send(legacy.bare("DELETE")).await;
    }
    assert_eq!(
        shown(&kept.seen(), "authorization"),
        [Some(SHARED.to_owned())]
    );
    for method in [
        "initialize",
        "notifications/initialized",
        "GET",
        "DELETE",
        "server/discover",
    ] {
        assert!(!kept.of(method).is_empty(), "{method}");
    }
    assert_eq!(shown(&open.seen(), "authorization"), [None]);
    for seen in kept.seen().iter().chain(&open.seen()) {
        assert_eq!(seen.header("cookie"), None);
        assert!(!seen.head.contains("tg_caller"), "{}", seen.head);
    }
    for record in gate.stop().await {
        assert!(!record.to_string().contains("SENTINEL"), "{record}");
    }
}

#[tokio::test]
async fn each_user_shows_what_that_user_entered() {
    let keeper = Doorkeeper::letting(&["Bearer of-ann", "Bearer of-bob"]);
    let named = Doorkeeper::letting(&["key of ann"]);
    let (bearer, header) = (
        server(&keeper, "authorization").await,
        server(&named, "x-api-key").await,
    );
    let open = "access = \"everyone\"\ntenants = [\"default\", \"other\"]\n";
    let keys = [
        (
            "tg_ann_0123456789abcdef00",
            "agent = \"a\"\nuser = \"ann\"\ntenant = \"default\"",
        ),
        (
            "tg_bob_0123456789abcdef00",
            "agent = \"a\"\nuser = \"bob\"\ntenant = \"default\"",
        ),
        (
            "tg_eve_0123456789abcdef00",
            "agent = \"a\"\nuser = \"ann\"\ntenant = \"other\"",
        ),
    ];
    let policy = Policy::keys(&keys, "")
        .server("s", bearer.address, open, "[auth]\nmode = \"bearer\"\n")
        .server(
            "h",
            header.address,
            open,
            "[auth]\nmode = \"header\"\nheader = \"X-Api-Key\"\n",
        );
    let house = House::of_keys(&policy);
    house.enter("ann", "s", "of-ann").await;
    house.enter("bob", "s", "of-bob").await;
    house.enter("ann", "h", "key of ann").await;
    let [ann, bob, other] = keys.map(|(key, _)| Agent::modern("s").with_key(key));
    let call = |agent: &Agent| agent.call("1", "get_weather");
    for agent in [&ann, &bob] {
        let reply = house.send(call(agent)).await;
        assert_eq!(
            reply.json()["result"]["content"][0]["text"],
            "ok get_weather"
        );
    }
    // The same name in another tenant is another person.
    let seen = bearer.seen().len();
    let refused = text(&house.send(call(&other)).await);
    assert_eq!(
        refused,
        format!(
            "connect.required: you are not connected to server `s`: {PAGE}; open the link and connect there, then call again"
        )
    );
    assert_eq!(
        bearer.seen().len(),
        seen,
        "nothing is sent for whom nothing can be shown"
    );
    let calls = bearer.of("tools/call");
    let whose: Vec<_> = calls
        .iter()
        .map(|seen| seen.header("authorization"))
        .collect();
    assert_eq!(whose, [Some("Bearer of-ann"), Some("Bearer of-bob")]);
    let mut agent = ann.clone();
    agent.server = "h".to_owned();
    house.send(call(&agent)).await;
    assert_eq!(
        shown(&header.seen(), "x-api-key"),
        [Some("key of ann".to_owned())]
    );
    assert_eq!(shown(&header.seen(), "authorization"), [None]);
}

#[tokio::test]
async fn a_secret_that_is_refused_is_to_be_entered_again() {
    let keeper = Doorkeeper::letting(&["Bearer good"]);
    let tools = server(&keeper, "authorization").await;
    let policy = Policy::local("").server("s", tools.address, "", "[auth]\nmode = \"bearer\"\n");
    let house = House::of_ann(&policy);
    house.enter("ann", "s", "good").await;
    let agent = Agent::modern("s");
    house.send(agent.call("1", "get_weather")).await;
    keeper.forget("Bearer good");
    let seen = tools.of("tools/call").len();
    let refused = text(&house.send(agent.call("1", "get_weather")).await);
    assert!(
        refused
            .starts_with("connect.reconnect: your connection to server `s` has ended (refused): ")
            && refused.contains(PAGE),
        "{refused}"
    );
    assert_eq!(
        tools.of("tools/call").len(),
        seen + 1,
        "it is not sent again"
    );
    keeper.treat("Bearer new", Treat::In);
    house.enter("ann", "s", "new").await;
    let reply = house.send(agent.call("1", "get_weather")).await;
    assert_eq!(
        reply.json()["result"]["content"][0]["text"],
        "ok get_weather"
    );
}

/// Not to let somebody in is an answer: the server is in reach.
#[tokio::test]
async fn refused_credentials_open_no_circuit() {
    let keeper = Doorkeeper::default();
    let tools = server(&keeper, "authorization").await;
    let policy = Policy::local("").server("s", tools.address, "", "");
    let gate = Gate::start(&policy);
    let agent = Agent::modern("s");
    let call = || -> Ask { agent.call("1", "get_weather") };
    for _ in 0..12 {
        assert_eq!(
            agent.refusal(&gate.send(call()).await),
            "upstream.unauthorized"
        );
    }
    assert_eq!(gate.handle.status().failing, []);
    let seen = tools.seen().len();
    gate.send(call()).await;
    assert_eq!(tools.seen().len(), seen + 1, "it is asked as before");
    let ended = ends(&gate.stop().await);
    assert!(
        ended
            .iter()
            .all(|end| end == "call failed upstream.unauthorized"),
        "{ended:?}"
    );
}

#[tokio::test]
async fn the_connections_tool_stands_while_a_server_awaits_one() {
    let keeper = Doorkeeper::letting(&["Bearer good"]);
    let tools = server(&keeper, "authorization").await;
    let other = Tools::start(|_| None).await;
    let policy = Policy::local("")
        .server(
            "s",
            tools.address,
            "builtin = true\ntitle = \"Notes\"\n",
            "[auth]\nmode = \"bearer\"\n",
        )
        .server("open", other.address, "builtin = true\n", "");
    let house = House::of_ann(&policy);
    let own = Agent::modern("tollgate");
    let (s, open) = (Agent::modern("s"), Agent::modern("open"));
    let list = |agent: &Agent| agent.request("1", "tools/list", "");
    assert_eq!(
        names(&house.send(list(&own)).await),
        ["read_result", "connections"]
    );
    let beside = ["tollgate__read_result", "tollgate__connections"];
    assert_eq!(names(&house.send(list(&s)).await), beside);
    let reply = house.send(list(&open)).await;
    assert!(
        names(&reply).ends_with(&beside.map(str::to_owned)),
        "{}",
        reply.body
    );
    assert_eq!(reply.json()["result"]["cacheScope"], "private");
    for (agent, tool) in [(&own, "connections"), (&open, "tollgate__connections")] {
        let reply = house.send(agent.call("1", tool)).await;
        assert_eq!(
            reply.json()["result"]["content"][0]["text"],
            format!("`s` (Notes): not connected; open {PAGE} and connect there")
        );
    }
    house.enter("ann", "s", "good").await;
    assert_eq!(names(&house.send(list(&own)).await), ["read_result"]);
    assert!(!names(&house.send(list(&s)).await).contains(&beside[1].to_owned()));
    let reply = house.send(own.call("1", "connections")).await;
    assert_eq!(
        reply.json()["result"]["content"][0]["text"],
        "`s` (Notes): connected"
    );
}
