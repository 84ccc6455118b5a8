//! Signing in, and the sign-ins that there are.

use maud::{Markup, html};

use super::{Who, page, words::moment};
use crate::{
    identity::SignIn,
    refusal::Code,
    subject::{DEFAULT_TENANT, Owner},
    web::{
        form::PROOF,
        route,
        sign_in::{SIGN_IN, TOKEN},
    },
};

/// The page of a link: whom it signs in, and the button that does it.
pub(in crate::web) fn login(token: &str, owner: &Owner) -> Markup {
    let main = html! {
        h1 { "Sign in to Tollgate" }
        p.lead {
            "This signs this browser in as " b { (owner.user) }
            @if &*owner.tenant != DEFAULT_TENANT {
                " of " b { (owner.tenant) }
            }
            "."
        }
        p {
            "Go on only if that is you, and you asked for this link. What you connect to in this browser then belongs to that \
             user."
        }
        form method="post" action=(route::LOGIN) {
            input type="hidden" name=(TOKEN) value=(token);
            button type="submit" { "Sign in as " (owner.user) }
        }
    };
    page("Sign in", None, &main)
}

/// The page of somebody who is not signed in.
pub(super) fn signed_out() -> Markup {
    let main = html! {
        h1 { "Sign in needed" }
        p.lead { "This browser is not signed in, or has not been used for a while." }
        ol {
            li {
                "On the machine where Tollgate runs, run " code.command { "tollgate login" }
                ", or, where callers have agent keys, " code.command { "tollgate login --user NAME" } "."
            }
            li { "Open the link that it prints in this browser. It signs in once, within five minutes." }
            li { "Then come back to this page." }
        }
        p { "If you do not run this Tollgate yourself, ask its operator for the link." }
        p.code { code { (Code::SignedOut.as_str()) } }
    };
    page("Sign in needed", None, &main)
}

/// The sign-ins of a user, each with the button that ends it.
pub(in crate::web) fn sign_ins(who: &Who, sign_ins: &[SignIn], proof: &str) -> Markup {
    let main = html! {
        h1 { "Your sign-ins" }
        p.lead { "Each is one browser. One that you do not know is best ended." }
        ul.cards {
            @for sign_in in sign_ins {
                li { (card(sign_in, proof)) }
            }
        }
    };
    page("Your sign-ins", Some(who), &main)
}

fn card(sign_in: &SignIn, proof: &str) -> Markup {
    let id = format!("sign-in-{}", sign_in.name);
    html! {
        article.card aria-labelledby=(id) {
            div.top {
                h2 id=(id) { "Sign-in " code { (sign_in.name) } }
                @if sign_in.own {
                    span.badge { "This browser" }
                }
            }
            dl.facts {
                dt { "Since" } dd { (moment(sign_in.since)) }
                dt { "Last seen" } dd { (moment(sign_in.seen)) }
                dt { "Ends" } dd { (moment(sign_in.ends)) }
            }
            form method="post" action=(route::SIGN_INS) {
                input type="hidden" name=(PROOF) value=(proof);
                input type="hidden" name=(SIGN_IN) value=(sign_in.name);
                button.quiet type="submit" {
                    "End it" span.unseen { " – " (sign_in.name) }
                }
            }
        }
    }
}
