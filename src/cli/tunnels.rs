//! `tollgate tunnels`.

use std::{fmt::Write, process::ExitCode};

use super::{
    Exit,
    socket::{Which, show},
    style::{Styles, counted},
};
use crate::{
    app::control::{Answer, Request},
    tunnel::OpenTunnel,
};

/// List the open tunnels of the forward proxy, the oldest first.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    which: Which,
    /// One JSON array instead of text
    #[arg(long)]
    json: bool,
}

/// Asks and shows; exit code 1 where nobody answers.
pub(super) fn run(args: Args) -> ExitCode {
    let tunnels = match args.which.ask(Request::Tunnels) {
        Ok(Answer::Tunnels(tunnels)) => tunnels,
        Ok(_) => return Exit::Internal.into(),
        Err(exit) => return exit.into(),
    };
    match show(&*tunnels, args.json, text) {
        Ok(()) => Exit::Ok.into(),
        Err(exit) => exit.into(),
    }
}

fn text(tunnels: &[OpenTunnel], styles: Styles) -> String {
    let mut text = format!("{}\n", counted(tunnels.len(), "open tunnel"));
    for tunnel in tunnels {
        let address = match tunnel.address {
            Some(address) => address.to_string(),
            None => "resolved by the parent proxy".to_owned(),
        };
        let OpenTunnel {
            id,
            since,
            agent,
            user,
            target,
            bytes_in,
            bytes_out,
            rule,
            ..
        } = tunnel;
        let dim = styles.dim(&format!("{id}  since {since}  by {rule}"));
        writeln!(
            text,
            "{target} ({address})  {agent} for {user}  {bytes_in} B in, {bytes_out} B out\n  {dim}"
        )
        .expect("writing to memory does not fail");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tunnel_shows_who_where_and_how_much() {
        let tunnel = OpenTunnel {
            id: "0190".to_owned(),
            since: "2026-11-30T12:00:00Z".to_owned(),
            tenant: "default".to_owned(),
            agent: "ci".to_owned(),
            user: "ann".to_owned(),
            target: "api.example.com:443".to_owned(),
            address: Some([192, 0, 2, 7].into()),
            bytes_in: 5,
            bytes_out: 7,
            rule: "egress.toml:1: [[allow]]".to_owned(),
        };
        assert_eq!(
            text(&[tunnel], Styles::plain()),
            "1 open tunnel\n\
             api.example.com:443 (192.0.2.7)  ci for ann  5 B in, 7 B out\n  \
             0190  since 2026-11-30T12:00:00Z  by egress.toml:1: [[allow]]\n"
        );
        assert_eq!(text(&[], Styles::plain()), "0 open tunnels\n");
    }
}
