//! `tollgate secret`: what the vault keeps for servers that get one secret for everybody of a tenant.

mod read;

use std::{fmt::Write, process::ExitCode};

use clap::Subcommand;
use jiff::Timestamp;
use serde::Serialize;

use super::{
    Exit,
    socket::{Which, show},
    style::{Styles, counted},
};
use crate::{
    app::control::{Answer, Request, SecretOf},
    connect::SharedSecret,
};

/// Keep secrets in the vault that servers with mode = "shared" and no `secret` in their file get for everybody.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tollgate secret set notes < token.txt        from a file, a pipe or a password manager
  tollgate secret set notes                    asked for, and not shown
  tollgate secret set notes --tenant acme      where a server is for several tenants
  tollgate secret list                         which there are, and which are missing

A secret is never an argument: other programs of this machine can read those.")]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Keep the secret that is read from standard input, in the place of the one before. Every process on the same database
    /// sends it within a second
    Set(Of),
    /// Take the secret away. Calls are refused until another is set
    Remove(Of),
    /// List names, dates and what is wrong; no secret is ever shown
    List {
        #[command(flatten)]
        which: Which,
        /// One JSON array instead of text
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, clap::Args)]
struct Of {
    #[command(flatten)]
    which: Which,
    /// The server
    server: String,
    /// Only for this of its tenants [default: the only one]
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    /// One JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// Asks and shows; exit code 1 where it did not work.
pub(super) fn run(args: Args) -> ExitCode {
    let done = match args.command {
        Command::Set(of) => set(of),
        Command::Remove(of) => remove(of),
        Command::List { which, json } => list(&which, json),
    };
    match done {
        Ok(()) => Exit::Ok.into(),
        Err(exit) => exit.into(),
    }
}

fn set(of: Of) -> Result<(), Exit> {
    let (which, of, json) = of.parts();
    if read::is_typed() {
        // Nobody types a secret for a server that takes none.
        let Answer::SecretFits = which.ask(Request::SecretFits { of: of.clone() })? else {
            return Err(Exit::Internal);
        };
    }
    let secret = read::secret(&of.server)?;
    let changed = changed(which.ask(Request::SecretSet { of, secret })?)?;
    show(&changed, json, |Changed { server, tenant }, _| {
        format!("the secret for `{server}` is kept for tenant `{tenant}`\n")
    })
}

fn remove(of: Of) -> Result<(), Exit> {
    let (which, of, json) = of.parts();
    let changed = changed(which.ask(Request::SecretRemove { of })?)?;
    show(&changed, json, |Changed { server, tenant }, _| {
        format!(
            "the secret for `{server}` of tenant `{tenant}` is removed; it is still valid at its provider\n"
        )
    })
}

fn list(which: &Which, json: bool) -> Result<(), Exit> {
    let Answer::Secrets(secrets) = which.ask(Request::Secrets)? else {
        return Err(Exit::Internal);
    };
    show(&*secrets, json, text)
}

impl Of {
    fn parts(self) -> (Which, SecretOf, bool) {
        let of = SecretOf {
            server: self.server,
            tenant: self.tenant,
        };
        (self.which, of, self.json)
    }
}

/// Whose secret was changed: what `--json` writes of it.
#[derive(Serialize)]
struct Changed {
    server: String,
    tenant: String,
}

fn changed(answer: Answer) -> Result<Changed, Exit> {
    match answer {
        Answer::SecretChanged(SecretOf {
            server,
            tenant: Some(tenant),
        }) => Ok(Changed { server, tenant }),
        _ => Err(Exit::Internal),
    }
}

fn text(secrets: &[SharedSecret], styles: Styles) -> String {
    let set = secrets.iter().filter(|secret| secret.since.is_some());
    let mut text = format!("{}\n", counted(set.count(), "secret"));
    for secret in secrets {
        let line = match (&secret.wrong, secret.since) {
            (None, Some(since)) => format!(
                "{} ({})  set {}",
                secret.server,
                secret.tenant,
                moment(since)
            ),
            _ => styles.bad(&wrong(secret)),
        };
        writeln!(text, "{line}").expect("writing to memory does not fail");
    }
    text
}

/// What is wrong with one, and what to do.
pub(super) fn wrong(secret: &SharedSecret) -> String {
    let SharedSecret { server, tenant, .. } = secret;
    let of = of_tenant(tenant);
    let why = match secret.wrong.as_deref() {
        Some("missing") => "has none",
        Some("refused") => "is refused by the server",
        Some("origin_changed") => "was set for another address of the server",
        Some("unused") => {
            return format!(
                "{server} ({tenant}) is asked for by no file; `tollgate secret remove {server}{of}`"
            );
        }
        Some("file_refused") => {
            return format!(
                "{server} ({tenant}) is refused by the server; replace what auth.secret in its file names"
            );
        }
        _ => "cannot be read",
    };
    format!("{server} ({tenant}) {why}; `tollgate secret set {server}{of}`")
}

/// The option that names a tenant, where it is not the one that everybody begins with.
pub(super) fn of_tenant(tenant: &str) -> String {
    match tenant {
        "default" => String::new(),
        other => format!(" --tenant {other}"),
    }
}

fn moment(seconds: i64) -> String {
    Timestamp::from_second(seconds).map_or_else(
        |_| "at an unknown time".to_owned(),
        |at| at.strftime("%Y-%m-%d %H:%M UTC").to_string(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_listed_by_name_date_and_what_is_wrong() {
        let secret = |server: &str, since, wrong: Option<&str>| SharedSecret {
            server: server.to_owned(),
            tenant: "default".to_owned(),
            since,
            wrong: wrong.map(str::to_owned),
        };
        let at = Some(1_795_989_600);
        let listed = [
            secret("a", at, None),
            secret("b", None, Some("missing")),
            secret("c", at, Some("refused")),
            secret("d", at, Some("origin_changed")),
            secret("e", None, Some("unreadable")),
            secret("f", at, Some("unused")),
            secret("g", None, Some("file_refused")),
        ];
        assert_eq!(
            text(&listed, Styles::plain()),
            "4 secrets\n\
             a (default)  set 2026-11-29 22:00 UTC\n\
             b (default) has none; `tollgate secret set b`\n\
             c (default) is refused by the server; `tollgate secret set c`\n\
             d (default) was set for another address of the server; `tollgate secret set d`\n\
             e (default) cannot be read; `tollgate secret set e`\n\
             f (default) is asked for by no file; `tollgate secret remove f`\n\
             g (default) is refused by the server; replace what auth.secret in its file names\n"
        );
        let elsewhere = SharedSecret {
            tenant: "acme".to_owned(),
            ..secret("h", None, Some("missing"))
        };
        assert_eq!(
            wrong(&elsewhere),
            "h (acme) has none; `tollgate secret set h --tenant acme`"
        );
    }
}
