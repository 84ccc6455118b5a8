//! `tollgate login`.

use std::process::ExitCode;

use super::{
    Exit,
    socket::{Which, show},
    style::Styles,
};
use crate::app::control::{Answer, Login, Request};

/// Print a link that signs a browser in to the pages, once.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The link works once, for five minutes: give it to nobody but the user.

Examples:
  tollgate login                            the local user, where nobody has an agent key
  tollgate login --user ana                 a user that a key in keys.toml names or may act for
  tollgate login --user ana --tenant acme   where several tenants have that user")]
pub(super) struct Args {
    #[command(flatten)]
    which: Which,
    /// Tenant of the user [default: the only one that has this user]
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    /// User whom the link signs in; needed where callers have agent keys [default: the local user]
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// One JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// Asks and shows; exit code 1 where nobody answers, or there is no such user.
pub(super) fn run(args: Args) -> ExitCode {
    let request = Request::Login {
        tenant: args.tenant,
        user: args.user,
    };
    let login = match args.which.ask(request) {
        Ok(Answer::Login(login)) => login,
        Ok(_) => return Exit::Internal.into(),
        Err(exit) => return exit.into(),
    };
    match show(&login, args.json, text) {
        Ok(()) => Exit::Ok.into(),
        Err(exit) => exit.into(),
    }
}

fn text(login: &Login, styles: Styles) -> String {
    let Login {
        url, user, lasts, ..
    } = login;
    let minutes = lasts / 60;
    let what = format!(
        "Open this link within {minutes} minutes. It signs one browser in as {user}, once."
    );
    format!("{}\n{url}\n", styles.dim(&what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_link_stands_on_a_line_of_its_own() {
        let login = Login {
            url: "http://127.0.0.1:8703/login?token=00".to_owned(),
            tenant: "default".to_owned(),
            user: "ann".to_owned(),
            lasts: 300,
        };
        assert_eq!(
            text(&login, Styles::plain()),
            "Open this link within 5 minutes. It signs one browser in as ann, once.\n\
             http://127.0.0.1:8703/login?token=00\n"
        );
        assert!(!format!("{login:?}").contains("token"));
    }
}
