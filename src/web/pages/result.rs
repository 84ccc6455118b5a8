//! What came of it, and what went wrong.

use maud::{Markup, html};

use super::{Who, coded, page, sentence, sign_in::signed_out};
use crate::{
    refusal::{Code, Refusal},
    web::{
        flash::{Failed, Flash},
        route,
    },
};

/// The page that tells what was done; `title` gives what people call a server.
pub(in crate::web) fn result(
    who: Option<&Who>,
    flash: &Flash,
    title: impl Fn(&str) -> Option<String>,
) -> Markup {
    let name = |server: &str| title(server).unwrap_or_else(|| server.to_owned());
    match flash {
        Flash::Connected { server } => {
            let title = format!("You are connected to {}", name(server));
            done(
                who,
                &title,
                "Agents acting for you can use it now. You can close this page.",
            )
        }
        Flash::Kept { server } => {
            let title = format!("The secret for {} is kept", name(server));
            done(
                who,
                &title,
                "Agents acting for you can use the server now. You can close this page.",
            )
        }
        Flash::Disconnected { server, revoked } => {
            let title = format!("{} is disconnected", name(server));
            done(who, &title, withdrawn(revoked))
        }
        Flash::SignedOut => done(
            who,
            "You are signed out",
            "Agents go on with what you are connected to.",
        ),
        Flash::Failed(failed) => went_wrong(who, failed),
    }
}

/// What the provider did about the tokens.
fn withdrawn(revoked: &str) -> &'static str {
    match revoked {
        "yes" => "The provider has withdrawn what it issued, and Tollgate has deleted it.",
        "no" => {
            "Tollgate has deleted what the provider issued. The provider did not confirm that it has withdrawn it: look \
             there for the list of connected applications."
        }
        _ => {
            "Tollgate has deleted it. The provider was not asked to withdraw anything: it offers no way to, or the operator \
             turned that off."
        }
    }
}

fn done(who: Option<&Who>, title: &str, text: &str) -> Markup {
    let main = html! {
        section role="status" {
            h1 { (title) }
            p.lead { (text) }
        }
        @if who.is_some() {
            p { a.button.quiet href="/" { "All connections" } }
        }
    };
    page(title, who, &main)
}

fn went_wrong(who: Option<&Who>, failed: &Failed) -> Markup {
    let again = failed.server.as_deref().map(route::connect);
    let title = "That did not work";
    let main = html! {
        section role="alert" {
            h1 { (title) }
            p.lead { (sentence(&failed.text)) }
            @if let Some(said) = &failed.said {
                figure {
                    figcaption { "The provider's own words:" }
                    blockquote { (said) }
                }
            }
            p { (sentence(&failed.remedy)) }
            p.code { code { (failed.code) } }
        }
        p { a.button href=(again.as_deref().unwrap_or("/")) { "Try again" } }
    };
    page(title, who, &main)
}

/// The page of a refusal.
pub(in crate::web) fn refused(refusal: &Refusal) -> Markup {
    let (title, action) = match refusal.code {
        Code::SignedOut => return signed_out(),
        Code::WebNotFound | Code::ServerUnknown => ("Nothing is here", "Go to the first page"),
        Code::LoginLink => ("This link does not sign you in", "Go to the first page"),
        _ => ("That did not work", "Go to the first page"),
    };
    let main = html! {
        section role="alert" {
            h1 { (title) }
            p.lead { (sentence(&refusal.public)) }
            p { (coded(refusal.code.remedy())) }
            p.code { code { (refusal.code.as_str()) } }
        }
        p { a.button.quiet href="/" { (action) } }
    };
    page(title, None, &main)
}
