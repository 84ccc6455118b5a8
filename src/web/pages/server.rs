//! The pages of one server: what connecting means, entering a secret, disconnecting.

use maud::{Markup, html};

use super::{
    Entry, Who,
    home::{badge, ending, facts, scopes},
    notice, page, sentence,
};
use crate::{
    connect::{Preview, State},
    web::{
        connect::{CONFIRMATION, RETURN_TO, SECRET},
        flash::Failed,
        form::PROOF,
        route,
    },
};

/// What the page offers.
pub(in crate::web) enum Offer {
    /// Nothing is to be done.
    Nothing,
    /// A field for a secret, which is sent in this header.
    Secret(String),
    /// The way to the provider.
    Connect(Box<Preview>),
}

/// The form of a server's page.
pub(in crate::web) struct ServerForm {
    pub(in crate::web) offer: Offer,
    pub(in crate::web) proof: String,
    pub(in crate::web) return_to: Option<String>,
}

pub(in crate::web) fn server(who: &Who, entry: &Entry, form: &ServerForm) -> Markup {
    let title = match &form.offer {
        Offer::Nothing => entry.title().to_owned(),
        Offer::Secret(_) => format!("Enter a secret for {}", entry.title()),
        Offer::Connect(_) => format!("Connect to {}", entry.title()),
    };
    let main = html! {
        h1 { (title) }
        (standing(entry))
        @match &form.offer {
            Offer::Nothing => {}
            Offer::Secret(header) => (secret(entry, form, header)),
            Offer::Connect(preview) => (confirm(entry, form, preview)),
        }
        (back(entry))
    };
    page(&title, Some(who), &main)
}

/// How the server stands now.
fn standing(entry: &Entry) -> Markup {
    html! {
        section.standing aria-label="How it stands" {
            p { (badge(entry)) " " (entry.meaning()) }
            @if let Some(connection) = entry.own() {
                (facts(connection))
            }
        }
    }
}

fn back(entry: &Entry) -> Markup {
    html! {
        p.after {
            a href="/" { "All connections" }
            @if entry.can_end() {
                " · "
                a href=(route::disconnect(&entry.name)) { (ending(entry)) }
            }
        }
    }
}

/// Who asks for what, and the button.
fn confirm(entry: &Entry, form: &ServerForm, preview: &Preview) -> Markup {
    let state = entry.own().map(|connection| &connection.state);
    let elsewhere = preview.sign_in_host != preview.issuer_host;
    html! {
        @if let Some(before) = &preview.issuer_changed_from {
            (changed(before, &preview.confirmation))
        }
        @if let Some(State::Connecting(_)) = state {
            (under_way())
        }
        section aria-labelledby="what" {
            h2 id="what" { "What you agree to" }
            dl.terms {
                dt { "Server" }
                dd {
                    @if entry.title() == &*entry.name { code { (entry.name) } }
                    @else { (entry.title()) " " code { (entry.name) } }
                }
                dt { "You sign in at" }
                dd { code.host { (preview.sign_in_host) } }
                @if elsewhere {
                    dt { "Which speaks for" }
                    dd { code.host { (preview.issuer_host) } }
                }
                @if !preview.endpoint_hosts.is_empty() {
                    dt { "What it issues also goes to" }
                    dd { ul.scopes { @for host in &preview.endpoint_hosts { li { code { (host) } } } } }
                }
                dt { "Permissions asked for" }
                dd {
                    @if preview.scopes.is_empty() {
                        "Those that the provider gives to everybody who asks for none"
                    } @else {
                        (scopes(&preview.scopes))
                    }
                }
                dt { "You come back to" }
                dd { code { (preview.redirect_host) } }
                @if let Some(url) = &form.return_to {
                    dt { "And then go on to" }
                    dd { code { (url) } }
                }
            }
            p {
                "Go on only if you know " code { (preview.sign_in_host) }
                @if elsewhere { " and " code { (preview.issuer_host) } }
                ". Your password is asked for there, never here."
            }
        }
        form method="post" action=(route::connect(&entry.name)) {
            input type="hidden" name=(PROOF) value=(form.proof);
            input type="hidden" name=(CONFIRMATION) value=(preview.confirmation);
            @if let Some(url) = &form.return_to {
                input type="hidden" name=(RETURN_TO) value=(url);
            }
            button class=[(state == Some(&State::Connected)).then_some("quiet")] type="submit" { (button(state, preview)) }
        }
    }
}

fn button(state: Option<&State>, preview: &Preview) -> String {
    match state {
        _ if preview.issuer_changed_from.is_some() => {
            format!("Connect to {} from now on", preview.issuer_host)
        }
        Some(State::Connecting(_)) => "Try again with a new registration".to_owned(),
        Some(State::Connected) => "Connect anew".to_owned(),
        Some(State::NeedsReconnect(_)) => "Connect again".to_owned(),
        Some(State::MorePermissions(_)) => "Agree and connect".to_owned(),
        Some(State::NotConnected) | None => "Connect".to_owned(),
    }
}

fn changed(before: &str, now: &str) -> Markup {
    let text = html! {
        p {
            "This server was connected through " code { (before) } " until now, and names "
            code { (now) } " today. If nobody has told you of that, ask the operator first. What you confirm here counts for your own \
             connection."
        }
    };
    notice("The provider has changed", &text)
}

fn under_way() -> Markup {
    let text = html! {
        p {
            "If the provider still shows its page, go on there. If it showed an error instead of sending you back, it may \
             have forgotten this Tollgate: try again, and the registration is made anew where it is gone."
        }
    };
    notice("You have begun to connect", &text)
}

fn secret(entry: &Entry, form: &ServerForm, header: &str) -> Markup {
    html! {
        form method="post" action=(route::connect(&entry.name)) {
            input type="hidden" name=(PROOF) value=(form.proof);
            label for="secret" { "Secret" }
            p.hint id="secret-hint" {
                "A token or key of your own, as the provider of " (entry.title()) " shows it. It is sent to this server only, as "
                code { (header) } ", and shown to nobody."
            }
            input id="secret" type="password" name=(SECRET) required autocomplete="off" spellcheck="false"
                maxlength="8192" aria-describedby="secret-hint";
            button type="submit" { "Keep it" }
        }
    }
}

/// The page of a server that cannot be connected to now.
pub(in crate::web) fn cannot(who: &Who, entry: &Entry, failed: &Failed) -> Markup {
    let title = format!("Connect to {}", entry.title());
    let main = html! {
        h1 { (title) }
        (standing(entry))
        section.notice role="alert" {
            h2 { "This cannot be done now" }
            p { (sentence(&failed.text)) }
            p { (sentence(&failed.remedy)) }
            p.code { code { (failed.code) } }
        }
        p { a.button href=(route::connect(&entry.name)) { "Try again" } }
        (back(entry))
    };
    page(&title, Some(who), &main)
}

/// On the way to the provider.
pub(in crate::web) fn going(who: &Who, host: &str, url: &str) -> Markup {
    let main = html! {
        h1 { "On to " (host) }
        p.lead { "Your browser goes to the provider now. This can be finished within ten minutes." }
        p { a.button href=(url) rel="noreferrer" { "Continue to " (host) } }
        p.after { a href="/" { "All connections" } }
    };
    page(&format!("On to {host}"), Some(who), &main)
}

pub(in crate::web) fn disconnect(who: &Who, entry: &Entry, proof: &str) -> Markup {
    let what = ending(entry);
    let title = format!("{what} {}", entry.title());
    let main = html! {
        h1 { (title) }
        (standing(entry))
        @if entry.can_end() {
            @if entry.entered {
                p { "The secret is deleted. Agents acting for you cannot use the server until you enter another." }
            } @else {
                p {
                    "The provider is asked to withdraw what it issued, and Tollgate deletes it. Agents acting for you cannot \
                     use the server until you connect again."
                }
            }
            form method="post" action=(route::disconnect(&entry.name)) {
                input type="hidden" name=(PROOF) value=(proof);
                button type="submit" { (what) }
            }
        } @else {
            p { "There is nothing to end." }
        }
        p.after { a href="/" { "All connections" } }
    };
    page(&title, Some(who), &main)
}

/// The end of a connection to a server that is not offered any more.
pub(in crate::web) fn leave(who: &Who, name: &str, proof: &str) -> Markup {
    let title = format!("Disconnect {name}");
    let main = html! {
        h1 { (title) }
        p {
            "This server is no longer offered to you. What is kept of your connection is deleted, and its provider is asked to \
             withdraw what it issued, as far as the operator still names the server."
        }
        form method="post" action=(route::disconnect(name)) {
            input type="hidden" name=(PROOF) value=(proof);
            button type="submit" { "Disconnect" }
        }
        p.after { a href="/" { "All connections" } }
    };
    page(&title, Some(who), &main)
}
