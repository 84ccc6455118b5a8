//! Tokens that a server refuses and that nothing replaces: what people are told is what calls are told.

use tollgate::connect::State;

use super::{PAGE, text};
use crate::support::{
    agent::Agent,
    client::Reply,
    protected::{Authority, Doorkeeper, House, Treat},
    tools::Tools,
};

const FIRST: &str = "Bearer t1";
const SECOND: &str = "Bearer t2";

struct Rig {
    keeper: Doorkeeper,
    tools: Tools,
    provider: Authority,
    house: House,
}

impl Rig {
    /// `ann` is connected to `s` by a token that cannot be refreshed, and has used it.
    async fn new() -> Self {
        let keeper = Doorkeeper::letting(&[FIRST, SECOND]);
        let own = keeper.clone();
        let tools = Tools::start(move |seen| own.says("authorization", seen)).await;
        let provider = Authority::giving(&[("t1", None), ("t2", None)]).await;
        let house = House::of_ann(&provider.policy(tools.address, ""));
        house.connect(&provider).await;
        let rig = Self {
            keeper,
            tools,
            provider,
            house,
        };
        assert_eq!(rig.call("get_weather").await.status, 200);
        rig
    }

    async fn call(&self, tool: &str) -> Reply {
        self.house.send(Agent::modern("s").call("1", tool)).await
    }

    async fn refused(&self, tool: &str) -> String {
        text(&self.call(tool).await)
    }

    /// What the page shows, and the operator's list.
    async fn states(&self) -> [State; 2] {
        let connections = &self.house.pipeline.connections;
        let permit = self.house.permit("default", "ann", "s");
        let own = connections.state(&permit).await.unwrap();
        let mut all = connections.all(&self.house.policy).await.unwrap();
        assert_eq!(all.len(), 1);
        [own.state, all.remove(0).state]
    }

    fn calls(&self, tool: &str) -> usize {
        let calls = self.tools.of("tools/call").into_iter();
        calls.filter(|seen| seen.tool() == tool).count()
    }
}

fn ended() -> [State; 2] {
    [(); 2].map(|()| State::NeedsReconnect("refused".to_owned()))
}

#[tokio::test]
async fn people_are_told_what_calls_are_told_until_they_connect_again() {
    let rig = Rig::new().await;
    assert_eq!(rig.states().await, [State::Connected, State::Connected]);
    rig.keeper.forget(FIRST);
    for _ in 0..3 {
        let refused = rig.refused("get_fault").await;
        let told = "connect.reconnect: your connection to server `s` has ended (refused): ";
        assert!(
            refused.starts_with(told) && refused.contains(PAGE),
            "{refused}"
        );
        assert_eq!(rig.states().await, ended());
    }
    assert_eq!(rig.calls("get_fault"), 1, "it is not sent in vain");
    rig.house.connect(&rig.provider).await;
    assert_eq!(rig.states().await, [State::Connected, State::Connected]);
    assert_eq!(rig.call("get_fault").await.status, 200);
    assert_eq!(rig.calls("get_fault"), 2);
    assert_eq!(rig.provider.refreshes(), 0);
}

/// A session begins all the same, and says so.
#[tokio::test]
async fn a_session_begins_without_the_server() {
    let rig = Rig::new().await;
    rig.keeper.forget(FIRST);
    let before = rig.tools.of("initialize").len();
    rig.refused("get_fault").await;
    let welcome = Agent::modern("s").hello("2025-11-25", "{}");
    let welcome = rig.house.send(welcome).await;
    assert_eq!(welcome.json()["result"]["serverInfo"]["name"], "s");
    assert_eq!(rig.tools.of("initialize").len(), before);
}

#[tokio::test]
async fn a_way_to_a_login_page_ends_a_connection_that_cannot_be_refreshed() {
    let rig = Rig::new().await;
    rig.keeper.treat(FIRST, Treat::Away(302));
    let refused = rig.refused("get_fault").await;
    assert!(refused.starts_with("connect.reconnect: "), "{refused}");
    assert_eq!(rig.states().await, ended());
}

/// To connect again would help nobody.
#[tokio::test]
async fn a_server_that_has_moved_is_told_as_such() {
    let rig = Rig::new().await;
    for status in [301, 302, 307, 308] {
        rig.keeper.treat(FIRST, Treat::Moved(status));
        let refused = rig.refused("get_fault").await;
        let told = "egress.redirect_refused: ";
        assert!(refused.starts_with(told), "{refused}");
    }
    assert_eq!(rig.calls("get_fault"), 4);
    assert_eq!(rig.states().await, [State::Connected, State::Connected]);
}
