//! The pages themselves. Every text in them is escaped by the macro that makes them; none is put in raw.

mod home;
mod result;
mod server;
mod sign_in;
mod words;

use std::sync::Arc;

use maud::{DOCTYPE, Markup, html};

pub(super) use home::{Entry, Standing, home};
pub(super) use result::{refused, result};
pub(super) use server::{Offer, ServerForm, cannot, disconnect, going, leave, server};
pub(super) use sign_in::{login, sign_ins};

use super::{form::PROOF, route, style};

/// Who is signed in.
pub(super) struct Who {
    pub(super) user: Arc<str>,
    /// The proof of the form that signs out.
    pub(super) proof: String,
}

/// A whole page.
fn page(title: &str, who: Option<&Who>, main: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="robots" content="noindex";
                title { (title) " · Tollgate" }
                link rel="stylesheet" href=(style::path());
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                header {
                    div.bar {
                        a.brand href="/" { "Tollgate" }
                        @if let Some(who) = who {
                            (navigation(who))
                        }
                    }
                }
                main id="main" { (main) }
                footer {
                    p { "Tollgate keeps your sign-ins sealed. Agents never see them." }
                }
            }
        }
    }
}

fn navigation(who: &Who) -> Markup {
    html! {
        nav aria-label="Pages" {
            a href="/" { "Connections" }
            a href=(route::SIGN_INS) { "Sign-ins" }
        }
        form.out method="post" action=(route::SIGN_OUT) {
            input type="hidden" name=(PROOF) value=(who.proof);
            span.who { "Signed in as " b { (who.user) } }
            button.quiet type="submit" { "Sign out" }
        }
    }
}

/// Something to know before going on.
fn notice(title: &str, text: &Markup) -> Markup {
    html! {
        section.notice role="note" {
            h2 { (title) }
            (text)
        }
    }
}

/// A clause as a sentence, in which what stands in backticks is code.
fn coded(clause: &str) -> Markup {
    let sentence = sentence(clause);
    html! {
        @for (at, part) in sentence.split('`').enumerate() {
            @if at % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

/// A sentence made of a clause: its first letter is large, and it ends in a full stop.
fn sentence(clause: &str) -> String {
    let mut letters = clause.chars();
    match letters.next() {
        Some(first) => format!("{}{}.", first.to_uppercase(), letters.as_str()),
        None => String::new(),
    }
}
