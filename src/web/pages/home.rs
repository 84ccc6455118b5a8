//! What am I connected to?

use std::sync::Arc;

use maud::{Markup, html};

use super::{Who, page, words};
use crate::{
    connect::{Connection, State},
    web::route,
};

/// A server, as its user sees it.
pub(in crate::web) struct Entry {
    pub(in crate::web) name: Arc<str>,
    pub(in crate::web) title: Option<Arc<str>>,
    /// Whether a secret is entered by hand.
    pub(in crate::web) entered: bool,
    pub(in crate::web) standing: Standing,
}

/// How it stands.
pub(in crate::web) enum Standing {
    /// It needs no credential.
    Open,
    /// It gets the operator's.
    Shared,
    /// It would get the operator's, who has to set it first.
    Unset,
    /// It gets the user's own.
    Own(Box<Connection>),
    /// That cannot be found out now, and why.
    Unknown(String),
}

impl Entry {
    /// What people call it.
    pub(super) fn title(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }

    pub(super) fn own(&self) -> Option<&Connection> {
        match &self.standing {
            Standing::Own(connection) => Some(connection),
            Standing::Open | Standing::Shared | Standing::Unset | Standing::Unknown(_) => None,
        }
    }

    pub(super) fn label(&self) -> &'static str {
        match &self.standing {
            Standing::Open | Standing::Shared => "Ready",
            Standing::Unset => "Needs the operator",
            Standing::Own(connection) => words::label(connection, self.entered),
            Standing::Unknown(_) => "Not known now",
        }
    }

    pub(super) fn meaning(&self) -> String {
        match &self.standing {
            Standing::Open => "It needs no connection.".to_owned(),
            Standing::Shared => "It is used with a credential that the operator keeps.".to_owned(),
            Standing::Unset => {
                "It cannot be used until the operator sets the credential that is kept for it."
                    .to_owned()
            }
            Standing::Own(connection) => words::meaning(connection, self.entered),
            Standing::Unknown(why) => super::sentence(why),
        }
    }

    /// What its button says, where it has one.
    fn action(&self) -> Option<&'static str> {
        let connection = self.own()?;
        Some(match (&connection.state, self.entered) {
            (State::NotConnected, false) => "Connect",
            (State::NotConnected | State::NeedsReconnect(_), true) => "Enter a secret",
            (State::Connecting(_), _) => "Go on",
            (State::Connected, false) => "Details",
            (State::Connected | State::MorePermissions(_), true) => "Replace",
            (State::NeedsReconnect(_), false) => "Connect again",
            (State::MorePermissions(_), false) => "Look at them",
        })
    }

    /// Whether it waits for its user.
    fn waits(&self) -> bool {
        let settled = |connection: &Connection| connection.state == State::Connected;
        self.own().is_some_and(|connection| !settled(connection))
    }

    /// Whether there is something to end.
    pub(super) fn can_end(&self) -> bool {
        self.own().is_some_and(|connection| {
            matches!(
                connection.state,
                State::Connected | State::NeedsReconnect(_) | State::MorePermissions(_)
            )
        })
    }
}

/// `left` are servers that are not offered any more, to which something is kept.
pub(in crate::web) fn home(who: &Who, entries: &[Entry], left: &[Arc<str>]) -> Markup {
    let main = html! {
        h1 { "Your connections" }
        @if entries.is_empty() {
            p { "No server is open to you. The operator decides which are." }
        } @else {
            p.lead { "These are the servers that agents acting for you may use." }
            ul.cards {
                @for entry in entries {
                    li { (card(entry)) }
                }
            }
        }
        @if !left.is_empty() {
            h2 { "No longer offered to you" }
            p { "Agents acting for you cannot use these servers any more. What is kept of your connections stays until you end them." }
            ul.cards {
                @for name in left {
                    li { (gone(name)) }
                }
            }
        }
    };
    page("Your connections", Some(who), &main)
}

/// A connection that is of no use: nothing but the name of its server is shown.
fn gone(name: &str) -> Markup {
    let id = format!("server-{name}");
    html! {
        article.card aria-labelledby=(id) {
            div.top {
                h3 id=(id) { (name) }
            }
            div.actions {
                a href=(route::disconnect(name)) { "Disconnect" span.unseen { " – " (name) } }
            }
        }
    }
}

fn card(entry: &Entry) -> Markup {
    let id = format!("server-{}", entry.name);
    html! {
        article.card aria-labelledby=(id) {
            div.top {
                h2 id=(id) { (entry.title()) }
                (badge(entry))
            }
            @if entry.title.is_some() {
                p.name { code { (entry.name) } }
            }
            p { (entry.meaning()) }
            @if let Some(connection) = entry.own() {
                (facts(connection))
            }
            @if let Some(action) = entry.action() {
                div.actions {
                    a.button.quiet[!entry.waits()] href=(route::connect(&entry.name)) {
                        (action) span.unseen { " – " (entry.title()) }
                    }
                    @if entry.can_end() {
                        a href=(route::disconnect(&entry.name)) {
                            (ending(entry)) span.unseen { " – " (entry.title()) }
                        }
                    }
                }
            }
        }
    }
}

/// How it stands, at a glance.
pub(super) fn badge(entry: &Entry) -> Markup {
    html! {
        span.badge.waits[entry.waits()] { (entry.label()) }
    }
}

/// What is known of a connection.
pub(super) fn facts(connection: &Connection) -> Markup {
    let none =
        connection.issuer.is_none() && connection.scopes.is_empty() && connection.since.is_none();
    html! {
        @if !none {
            dl.facts {
                @if let Some(issuer) = &connection.issuer {
                    dt { "Provider" }
                    dd { code { (issuer) } }
                }
                @if !connection.scopes.is_empty() {
                    dt { "Permissions" }
                    dd { (scopes(&connection.scopes)) }
                }
                @if let Some(since) = connection.since {
                    dt { "Since" }
                    dd { (words::moment(since)) }
                }
                @if let (Some(end), true) = (connection.expires_at, connection.refreshable) {
                    dt { "Renewed before" }
                    dd { (words::moment(end)) }
                }
            }
        }
    }
}

/// Permissions, as the provider names them.
pub(super) fn scopes(scopes: &[String]) -> Markup {
    html! {
        ul.scopes {
            @for scope in scopes {
                li { code { (scope) } }
            }
        }
    }
}

/// What ending the connection is called.
pub(super) fn ending(entry: &Entry) -> &'static str {
    if entry.entered {
        "Remove"
    } else {
        "Disconnect"
    }
}
