//! `tollgate connections`.

use std::{fmt::Write, process::ExitCode};

use super::{
    Exit, secret,
    socket::{Which, complain, show},
    style::{Styles, counted},
};
use crate::{
    app::control::{Answer, Request},
    connect::{Connection, State, reason},
};

/// List the connections of users to servers, and how they stand.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    which: Which,
    /// Only those of this user
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// Only those of this tenant
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    /// Only those to this server
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
    /// One JSON array instead of text
    #[arg(long)]
    json: bool,
}

/// Asks and shows; exit code 1 where nobody answers.
pub(super) fn run(args: Args) -> ExitCode {
    let mut connections = match args.which.ask(Request::Connections) {
        Ok(Answer::Connections(connections)) => connections,
        Ok(_) => return Exit::Internal.into(),
        Err(exit) => return exit.into(),
    };
    let wanted = |found: &Connection| {
        let fields = [
            (&args.user, &found.user),
            (&args.tenant, &found.tenant),
            (&args.server, &found.server),
        ];
        let fits = |(wanted, found): (&Option<String>, &String)| {
            wanted.as_ref().is_none_or(|wanted| wanted == found)
        };
        fields.into_iter().all(fits)
    };
    let all = connections.len();
    connections.retain(wanted);
    if connections.is_empty() && all > 0 {
        complain(&[
            "nothing is kept for these; leave --user, --tenant and --server out to see all",
        ]);
    }
    match show(&*connections, args.json, text) {
        Ok(()) => Exit::Ok.into(),
        Err(exit) => exit.into(),
    }
}

fn text(connections: &[Connection], styles: Styles) -> String {
    let made = connections
        .iter()
        .filter(|found| found.state != State::NotConnected);
    let mut text = format!("{}\n", counted(made.count(), "connection"));
    for connection in connections {
        let Connection {
            tenant,
            user,
            server,
            mode,
            issuer,
            scopes,
            ..
        } = connection;
        let mut more = vec![mode.clone()];
        more.extend(issuer.clone());
        if !scopes.is_empty() {
            more.push(scopes.join(" "));
        }
        let more = styles.dim(&more.join(", ").escape_debug().to_string());
        let (user, stands) = match mode.as_str() {
            "shared" => ("everybody", shared(&connection.state, server, tenant)),
            // It is sent to nobody until a file asks for it again.
            "secret" => (
                user.as_str(),
                "secret kept, which no file asks for".to_owned(),
            ),
            mode => (user.as_str(), stands(&connection.state, mode)),
        };
        writeln!(text, "{server}  {user} ({tenant})  {stands}\n  {more}")
            .expect("writing to memory does not fail");
    }
    text
}

/// How a secret of the operator's stands.
fn shared(state: &State, server: &str, tenant: &str) -> String {
    let of = secret::of_tenant(tenant);
    match state {
        State::NeedsReconnect(reason) if reason == "file_refused" => {
            "secret refused by the server: replace what auth.secret in its file names".to_owned()
        }
        State::NeedsReconnect(reason) if reason == "unused" => {
            format!("secret that no file asks for: `tollgate secret remove {server}{of}`")
        }
        State::NeedsReconnect(reason) => {
            format!("secret to be set again ({reason}): `tollgate secret set {server}{of}`")
        }
        State::Connected | State::MorePermissions(_) => "secret set".to_owned(),
        State::NotConnected | State::Connecting(_) => {
            format!("no secret yet: `tollgate secret set {server}{of}`")
        }
    }
}

fn stands(state: &State, mode: &str) -> String {
    match state {
        State::NotConnected => "not connected".to_owned(),
        State::Connecting(_) => "being connected".to_owned(),
        State::Connected => "connected".to_owned(),
        State::NeedsReconnect(word) => {
            let what = match mode {
                "oauth" => "to be connected again by its user",
                _ => "another secret to be entered by its user",
            };
            format!("{what}: {}", reason(word).escape_debug())
        }
        State::MorePermissions(scopes) => {
            let scopes = scopes.join(" ");
            format!("connected, wants more: {}", scopes.escape_debug())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_shows_whose_it_is_and_how_it_stands() {
        let connection = Connection {
            tenant: "default".to_owned(),
            user: "ann".to_owned(),
            server: "notes".to_owned(),
            title: None,
            mode: "oauth".to_owned(),
            state: State::NeedsReconnect("expired".to_owned()),
            issuer: Some("login.example".to_owned()),
            scopes: vec!["read".to_owned(), "write".to_owned()],
            expires_at: None,
            refreshable: false,
            since: Some(0),
        };
        assert_eq!(
            text(std::slice::from_ref(&connection), Styles::plain()),
            "1 connection\nnotes  ann (default)  to be connected again by its user: its time is over, and the provider gave no way to renew it\n  oauth, login.example, read write\n"
        );
        let shared = |state| Connection {
            user: String::new(),
            mode: "shared".to_owned(),
            state,
            issuer: None,
            scopes: Vec::new(),
            ..connection.clone()
        };
        assert_eq!(
            text(
                &[
                    shared(State::NotConnected),
                    shared(State::NeedsReconnect("refused".to_owned())),
                    shared(State::NeedsReconnect("unused".to_owned())),
                    shared(State::Connected)
                ],
                Styles::plain()
            ),
            "3 connections\n\
             notes  everybody (default)  no secret yet: `tollgate secret set notes`\n  shared\n\
             notes  everybody (default)  secret to be set again (refused): `tollgate secret set notes`\n  shared\n\
             notes  everybody (default)  secret that no file asks for: `tollgate secret remove notes`\n  shared\n\
             notes  everybody (default)  secret set\n  shared\n"
        );
        assert_eq!(text(&[], Styles::plain()), "0 connections\n");
        let entered = |mode: &str| Connection {
            mode: mode.to_owned(),
            state: State::NeedsReconnect("refused".to_owned()),
            issuer: None,
            scopes: Vec::new(),
            ..connection.clone()
        };
        assert_eq!(
            text(&["bearer", "secret"].map(entered), Styles::plain()),
            "2 connections\n\
             notes  ann (default)  another secret to be entered by its user: the server no longer accepts it\n  bearer\n\
             notes  ann (default)  secret kept, which no file asks for\n  secret\n"
        );
    }
}
