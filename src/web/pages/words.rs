//! Plain words for how connections stand.

use jiff::Timestamp;

use crate::connect::{Connection, State, reason};

/// How a connection stands, in a word or two.
pub(super) fn label(connection: &Connection, entered: bool) -> &'static str {
    match (&connection.state, entered) {
        (State::NotConnected, false) => "Not connected",
        (State::NotConnected, true) => "No secret yet",
        (State::Connecting(_), _) => "Connecting",
        (State::Connected, false) => "Connected",
        (State::Connected, true) => "Secret kept",
        (State::NeedsReconnect(_), _) => "Needs you",
        (State::MorePermissions(_), _) => "Wants more permissions",
    }
}

/// What that means.
pub(super) fn meaning(connection: &Connection, entered: bool) -> String {
    match &connection.state {
        State::NotConnected if entered => {
            "Agents acting for you cannot use it until you enter a secret.".to_owned()
        }
        State::NotConnected => "Agents acting for you cannot use it until you connect.".to_owned(),
        State::Connecting(until) => format!(
            "You have begun to sign in at the provider. That can be finished until {}.",
            moment(*until)
        ),
        State::Connected => connected(connection),
        State::NeedsReconnect(why) if entered => {
            format!("{}: enter another.", secret_reason(why))
        }
        State::NeedsReconnect(why) => format!("The connection has ended: {}.", reason(why)),
        State::MorePermissions(_) => {
            "It works, and the server asks for permissions that you have not given yet.".to_owned()
        }
    }
}

fn connected(connection: &Connection) -> String {
    match (connection.expires_at, connection.refreshable) {
        (_, true) => "Agents acting for you can use it. It is renewed by itself.".to_owned(),
        (Some(end), false) => format!(
            "Agents acting for you can use it until {}. Then you have to connect again.",
            moment(end)
        ),
        (None, false) => "Agents acting for you can use it.".to_owned(),
    }
}

/// Why a secret cannot be used.
fn secret_reason(word: &str) -> &'static str {
    match word {
        "refused" => "The server does not accept the secret that you entered",
        "origin_changed" => "The server has moved to another address, which the secret is not for",
        _ => "The secret that you entered cannot be read",
    }
}

/// A moment, for people.
pub(super) fn moment(seconds: i64) -> String {
    match Timestamp::from_second(seconds) {
        Ok(moment) => moment.strftime("%-d %B %Y, %H:%M UTC").to_string(),
        Err(_) => "an unknown time".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(state: State) -> Connection {
        Connection {
            tenant: "default".to_owned(),
            user: "ann".to_owned(),
            server: "notes".to_owned(),
            title: None,
            mode: "oauth".to_owned(),
            state,
            issuer: None,
            scopes: Vec::new(),
            expires_at: Some(1_795_989_600),
            refreshable: false,
            since: None,
        }
    }

    #[test]
    fn every_state_has_words() {
        for (state, words) in [
            (
                State::NotConnected,
                "Not connected: Agents acting for you cannot use it until you connect.",
            ),
            (
                State::Connecting(1_795_989_600),
                "Connecting: You have begun to sign in at the provider. That can be finished until 29 November 2026, 22:00 UTC.",
            ),
            (
                State::Connected,
                "Connected: Agents acting for you can use it until 29 November 2026, 22:00 UTC. Then you have to connect again.",
            ),
            (
                State::NeedsReconnect("rotation_lost".to_owned()),
                "Needs you: The connection has ended: a renewal broke off, and its answer was lost.",
            ),
            (
                State::NeedsReconnect("refused".to_owned()),
                "Needs you: The connection has ended: the server no longer accepts it.",
            ),
            (
                State::MorePermissions(Vec::new()),
                "Wants more permissions: It works, and the server asks for permissions that you have not given yet.",
            ),
        ] {
            let connection = connection(state);
            let text = format!(
                "{}: {}",
                label(&connection, false),
                meaning(&connection, false)
            );
            assert_eq!(text, words);
        }
    }

    #[test]
    fn a_secret_that_cannot_be_used_is_to_be_entered_again() {
        for (reason, words) in [
            (
                "refused",
                "The server does not accept the secret that you entered: enter another.",
            ),
            (
                "origin_changed",
                "The server has moved to another address, which the secret is not for: enter another.",
            ),
            (
                "unreadable",
                "The secret that you entered cannot be read: enter another.",
            ),
        ] {
            let connection = connection(State::NeedsReconnect(reason.to_owned()));
            assert_eq!(meaning(&connection, true), words);
        }
    }
}
