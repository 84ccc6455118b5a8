//! `tollgate status`.

use std::{fmt::Write, process::ExitCode};

use super::{
    Exit, secret,
    socket::{Which, show},
    style::{Styles, counted},
};
use crate::app::{
    control::{Answer, Request},
    status::{FailingStatus, Status},
};

/// Tell how the running process is.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    which: Which,
    /// One JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// Asks and shows; exit code 1 where nobody answers or the process is not ready.
pub(super) fn run(args: Args) -> ExitCode {
    let status = match args.which.ask(Request::Status) {
        Ok(Answer::Status(status)) => status,
        Ok(_) => return Exit::Internal.into(),
        Err(exit) => return exit.into(),
    };
    if let Err(exit) = show(&*status, args.json, text) {
        return exit.into();
    }
    let ready = status.obstacle.is_none();
    if ready { Exit::Ok } else { Exit::Failed }.into()
}

fn text(status: &Status, styles: Styles) -> String {
    let mut lines = Lines {
        text: String::new(),
        styles,
    };
    let state = match &status.obstacle {
        None => styles.good("ready"),
        Some(why) => styles.bad(&format!("not ready: {why}")),
    };
    lines.row("tollgate", &format!("{} · {state}", status.version));
    let process = format!(
        "pid {}, uid {}, {} workers, up {}",
        status.pid,
        status.uid,
        status.workers,
        span(status.uptime_s)
    );
    lines.row("process", &process);
    for listener in &status.listeners {
        let tls = if listener.tls { " (TLS)" } else { "" };
        lines.row(&listener.name, &format!("{}{tls}", listener.address));
    }
    lines.row("identity", &status.identity);
    let policy = &status.policy;
    let loaded = format!(
        "{}, generation {}, {}, {}",
        policy.folder,
        policy.generation,
        counted(policy.servers, "server"),
        counted(policy.keys, "key")
    );
    lines.row("policy", &loaded);
    if policy.connected_only {
        let only = "offer = \"connected\": a server is offered to those who are connected to it";
        lines.row("", only);
    }
    for fault in &policy.rejected {
        lines.row("", &styles.bad(&format!("not taken: {fault}")));
    }
    for setting in &policy.restart {
        lines.row(
            "",
            &format!("`{setting}` has changed and waits for a restart"),
        );
    }
    let records = &status.records;
    lines.row(
        "records",
        &format!(
            "{}, {} written, {} waiting",
            records.folder, records.seq, records.waiting
        ),
    );
    if let Some(failure) = &records.failure {
        lines.row("", &styles.bad(failure));
    }
    let vault = &status.vault;
    let guarded = if vault.sealed {
        "sealed"
    } else {
        "guarded by its mode alone"
    };
    lines.row("vault", &format!("{}, {guarded}", vault.keyring));
    if vault.older {
        let older = "the database is older than one that was in use here; see to it, then `tollgate vault accept-restore`";
        lines.row("", &styles.bad(older));
    }
    if status.waiting > 0 {
        let waiting = counted(status.waiting, "connection");
        let waiting = format!("for their users: {waiting}; `tollgate connections` tells which");
        lines.row("waiting", &styles.bad(&waiting));
    }
    for secret in &status.secrets {
        lines.row("secret", &styles.bad(&secret::wrong(secret)));
    }
    for failing in &status.failing {
        lines.row("failing", &styles.bad(&out_of_reach(failing)));
    }
    lines.row("", &styles.dim(&status.caution));
    lines.text
}

fn out_of_reach(failing: &FailingStatus) -> String {
    let whose = match &failing.user {
        Some(user) => format!(" does not answer {user}"),
        None => " cannot be reached".to_owned(),
    };
    let retry = match failing.retry_s {
        0 => "tried again now".to_owned(),
        seconds => format!("tried again in {}", span(seconds)),
    };
    let since = span(failing.since_s);
    format!("{}{whose}, for {since}; {retry}", failing.server)
}

struct Lines {
    text: String,
    styles: Styles,
}

impl Lines {
    fn row(&mut self, label: &str, value: &str) {
        let label = self.styles.dim(&format!("{label:<9}"));
        writeln!(self.text, "{label} {value}").expect("writing to memory does not fail");
    }
}

/// A span in its two largest units.
fn span(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, ..) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::status::{ListenerStatus, PolicyStatus, RecordsStatus, VaultStatus};
    use crate::connect::SharedSecret;

    #[test]
    fn spans_show_two_units() {
        assert_eq!(span(59), "59 s");
        assert_eq!(span(61), "1 min 1 s");
        assert_eq!(span(7_260), "2 h 1 min");
        assert_eq!(span(90_000), "1 d 1 h");
    }

    #[test]
    fn the_page_says_what_is_wrong_and_where() {
        let status = Status {
            version: "0.1.0".to_owned(),
            pid: 7,
            uid: 1000,
            uptime_s: 61,
            workers: 2,
            draining: false,
            obstacle: Some("records cannot be kept".to_owned()),
            listeners: vec![ListenerStatus {
                name: "agents".to_owned(),
                address: "127.0.0.1:8700".to_owned(),
                tls: true,
            }],
            policy: PolicyStatus {
                folder: "/etc/tollgate".to_owned(),
                generation: 3,
                servers: 2,
                keys: 1,
                connected_only: true,
                rejected: vec!["tollgate.toml:1:1: x: unknown key".to_owned()],
                restart: vec!["listen.agents".to_owned()],
            },
            identity: "keys".to_owned(),
            records: RecordsStatus {
                folder: "/var/lib/tollgate/audit".to_owned(),
                failure: Some("disk full".to_owned()),
                waiting: 1,
                seq: 42,
            },
            vault: VaultStatus {
                keyring: "/var/lib/tollgate/keyring".to_owned(),
                sealed: false,
                primary: "f5526df39562884a".to_owned(),
                older: true,
            },
            waiting: 2,
            secrets: vec![SharedSecret {
                server: "notes".to_owned(),
                tenant: "default".to_owned(),
                since: None,
                wrong: Some("missing".to_owned()),
            }],
            failing: vec![
                FailingStatus {
                    server: "docs".to_owned(),
                    user: None,
                    since_s: 75,
                    retry_s: 8,
                },
                FailingStatus {
                    server: "slow".to_owned(),
                    user: Some("ann".to_owned()),
                    since_s: 40,
                    retry_s: 0,
                },
            ],
            caution: "cooperative mode".to_owned(),
        };
        assert_eq!(
            text(&status, Styles::plain()),
            "tollgate  0.1.0 · not ready: records cannot be kept\n\
             process   pid 7, uid 1000, 2 workers, up 1 min 1 s\n\
             agents    127.0.0.1:8700 (TLS)\n\
             identity  keys\n\
             policy    /etc/tollgate, generation 3, 2 servers, 1 key\n          \
             offer = \"connected\": a server is offered to those who are connected to it\n          \
             not taken: tollgate.toml:1:1: x: unknown key\n          \
             `listen.agents` has changed and waits for a restart\n\
             records   /var/lib/tollgate/audit, 42 written, 1 waiting\n          \
             disk full\n\
             vault     /var/lib/tollgate/keyring, guarded by its mode alone\n          \
             the database is older than one that was in use here; see to it, then `tollgate vault accept-restore`\n\
             waiting   for their users: 2 connections; `tollgate connections` tells which\n\
             secret    notes (default) has none; `tollgate secret set notes`\n\
             failing   docs cannot be reached, for 1 min 15 s; tried again in 8 s\n\
             failing   slow does not answer ann, for 40 s; tried again now\n          \
             cooperative mode\n"
        );
    }
}
