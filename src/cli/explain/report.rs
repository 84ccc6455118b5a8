//! What `explain` found, for programs and for people.

use std::{
    io::{self, Write},
    net::IpAddr,
};

use serde::Serialize;

use crate::{
    address::Judged,
    cli::style::Styles,
    egress::Error,
    refusal::{Code, Fault},
    subject::Subject,
};

/// The verdict on what passes only because a rule does no more than report.
pub(super) const WOULD_REFUSE: &str = "would_refuse";

/// The verdict on what only the running process knows.
const DEPENDS: &str = "depends";

/// One decision on the way of a call.
#[derive(Debug, Serialize)]
pub(super) struct Decision {
    /// `access`, `tool`, a host name, or an address.
    pub(super) about: String,
    /// `allow`, `would_refuse`, `depends`, `deny`, or `error`.
    pub(super) verdict: &'static str,
    /// The code of a refusal.
    pub(super) code: Option<&'static str>,
    /// The rule that decided.
    pub(super) rule: String,
    /// What was found, and what would change it.
    pub(super) reason: String,
}

impl Decision {
    pub(super) fn allow(about: &str, rule: &str, reason: String) -> Self {
        Self {
            about: about.to_owned(),
            verdict: "allow",
            code: None,
            rule: rule.to_owned(),
            reason,
        }
    }

    pub(super) fn depends(about: &str, rule: &str, reason: String) -> Self {
        Self {
            verdict: DEPENDS,
            ..Self::allow(about, rule, reason)
        }
    }

    pub(super) fn refuse(about: &str, code: Code, rule: &str, reason: String) -> Self {
        Self {
            about: about.to_owned(),
            verdict: verdict(code),
            code: Some(code.as_str()),
            rule: rule.to_owned(),
            reason,
        }
    }
}

/// Only what policy refuses is denied; what is malformed or unavailable is an error.
fn verdict(code: Code) -> &'static str {
    match code.fault() {
        Fault::Caller | Fault::Policy if code != Code::BadTarget => "deny",
        _ => "error",
    }
}

/// What let an answer pass.
pub(super) fn passed(about: &str, judged: &Judged) -> Decision {
    match (&judged.grant, judged.pinned) {
        (Some(grant), _) => Decision::allow(about, grant, format!("`{grant}` opens it")),
        (None, true) => Decision::allow(about, "public", "public; no range refuses it".to_owned()),
        (None, false) => {
            let reason =
                "in a range of fake_ip_ranges, which cannot be judged; records say pinned = false";
            Decision::allow(about, "fake-ip", reason.to_owned())
        }
    }
}

/// What stopped a request before the dial.
pub(super) fn failed(about: &str, error: &Error) -> Decision {
    let rule = match error {
        Error::Blocked(blocked) => blocked.rule,
        _ => "dns",
    };
    Decision::refuse(about, error.code(), rule, error.to_string())
}

/// The addresses that may be dialled.
pub(super) fn addresses(judged: &Judged) -> Vec<IpAddr> {
    judged
        .addresses
        .iter()
        .map(|address| address.socket().ip())
        .collect()
}

/// The address that decided, if one did.
pub(super) fn blocked(error: &Error) -> Option<IpAddr> {
    match error {
        Error::Blocked(blocked) => blocked.address,
        _ => None,
    }
}

/// The whole explanation.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// What was asked about, as it was understood.
    target: String,
    /// The registered server, if there is one.
    server: Option<String>,
    tenant: String,
    agent: String,
    user: String,
    groups: Vec<String>,
    /// Why nobody calls like this; `None` where somebody does.
    note: Option<String>,
    /// The verdict of all decisions together.
    verdict: &'static str,
    /// In the order of a call.
    decisions: Vec<Decision>,
}

impl Report {
    pub(super) fn new(
        target: String,
        server: Option<String>,
        subject: &Subject,
        note: Option<String>,
        decisions: Vec<Decision>,
    ) -> Self {
        let verdicts = decisions.iter().map(|decision| decision.verdict);
        let found = |wanted| verdicts.clone().find(|&verdict| verdict == wanted);
        let refused = verdicts
            .clone()
            .find(|verdict| !["allow", WOULD_REFUSE, DEPENDS].contains(verdict));
        Self {
            target,
            server,
            tenant: subject.tenant.to_string(),
            agent: subject.agent.to_string(),
            user: subject.user.to_string(),
            groups: subject.groups.iter().map(ToString::to_string).collect(),
            note,
            verdict: refused
                .or_else(|| found(DEPENDS))
                .or_else(|| found(WOULD_REFUSE))
                .unwrap_or("allow"),
            decisions,
        }
    }

    pub(super) fn allowed(&self) -> bool {
        ["allow", WOULD_REFUSE].contains(&self.verdict)
    }

    /// Writes it for a person.
    pub(super) fn print(&self, out: &mut impl Write, styles: Styles) -> io::Result<()> {
        let server = self
            .server
            .as_ref()
            .map(|name| format!(" (server `{name}`)"))
            .unwrap_or_default();
        writeln!(out, "{}{server}", self.target)?;
        let groups = match self.groups.as_slice() {
            [] => String::new(),
            groups => format!(", groups {}", groups.join(", ")),
        };
        let who = format!(
            "tenant {}, agent {}, user {}{groups}",
            self.tenant, self.agent, self.user
        );
        writeln!(out, "{}", styles.dim(&who))?;
        if let Some(note) = &self.note {
            writeln!(out, "{}", styles.bad(note))?;
        }
        writeln!(out)?;
        let width = self
            .decisions
            .iter()
            .map(|decision| decision.about.len())
            .max()
            .unwrap_or(0);
        for decision in &self.decisions {
            let verdict = coloured(styles, decision.verdict, 5);
            writeln!(
                out,
                "  {:width$}  {verdict}  {}",
                decision.about, decision.rule
            )?;
            writeln!(out, "  {:width$}         {}", "", decision.reason)?;
        }
        writeln!(out, "\n{}", coloured(styles, self.verdict, 0))
    }
}

fn coloured(styles: Styles, verdict: &str, width: usize) -> String {
    let padded = format!("{verdict:width$}");
    if verdict == "allow" {
        styles.good(&padded)
    } else {
        styles.bad(&padded)
    }
}
