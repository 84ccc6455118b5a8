//! `explain --batch`: JSON Lines in, one verdict a line out, no connection opened.

use std::io::{self, BufRead, Write};

use futures_util::FutureExt;
use serde::Serialize;

use super::{
    allow::Entry,
    line::{self, Input, Line, Setup},
    policy::Policy,
    report::{self, Decision},
};
use crate::{
    address::{Leg, Nat64Prefix, Rules, Target},
    egress,
    policy::Head,
    refusal::Code,
    subject::Subject,
};

/// What a line says of one case.
#[derive(Debug, Serialize)]
struct Verdict {
    id: String,
    verdict: &'static str,
    code: Option<&'static str>,
    rule: String,
    addresses: Vec<String>,
    reason: String,
}

/// Judges every line of `cases`, and says on `faults` which could not be read.
///
/// Returns whether every line was judged.
///
/// # Errors
///
/// The error of the stream that broke.
pub fn batch(
    cases: impl BufRead,
    out: &mut impl Write,
    faults: &mut impl Write,
) -> io::Result<bool> {
    batch_under(None, cases, out, faults)
}

/// The same; cases without an allowlist are judged as calls of a caller under a policy.
pub(super) fn batch_under(
    policy: Option<(&Policy, &Subject)>,
    cases: impl BufRead,
    out: &mut impl Write,
    faults: &mut impl Write,
) -> io::Result<bool> {
    let mut every = true;
    for (index, text) in cases.split(b'\n').enumerate() {
        let text = text?;
        if text.trim_ascii().is_empty() {
            continue;
        }
        match line::read(&text).and_then(|line| judge(line, policy)) {
            Ok(verdict) => {
                serde_json::to_writer(&mut *out, &verdict)?;
                out.write_all(b"\n")?;
            }
            Err(fault) => {
                every = false;
                writeln!(faults, "line {}: {fault}", index + 1)?;
            }
        }
    }
    out.flush()?;
    Ok(every)
}

fn judge(line: Line, policy: Option<(&Policy, &Subject)>) -> Result<Verdict, String> {
    let Line {
        id,
        input,
        setup,
        allowlist,
        ..
    } = line;
    let gate = match (allowlist, policy) {
        (Some(entries), _) => Gate::Entries(read_entries(&entries)?),
        (None, Some((policy, subject))) => Gate::Policy(policy, subject),
        (None, None) => {
            return Err(
                "no `allowlist`; say what may be reached, or name a folder with --policy"
                    .to_owned(),
            );
        }
    };
    let rules = rules(&setup, &gate)?;
    let target = match &input {
        Input::Url(url) => Target::from_operator_with_path(url),
        Input::Connect(authority) => {
            Target::from_authority(authority).map(|target| (target, "/".into()))
        }
    };
    let (target, path) = match target {
        Ok(read) => read,
        Err(malformed) => {
            let reason = malformed.to_string();
            let refused = Decision::refuse("url", malformed.code(), "malformed", reason);
            return Ok(Verdict::new(id, refused, Vec::new()));
        }
    };
    let head = Head {
        method: "GET",
        path: &path,
    };
    let (access, leg) = match gate.leg(&target, head) {
        Ok(let_through) => let_through,
        Err(refused) => return Ok(Verdict::new(id, refused, Vec::new())),
    };
    if let Some(left) = gate.left_to_parent(&leg, &target) {
        return Ok(Verdict::new(id, left, Vec::new()));
    }
    let located = egress::locate(&rules, &leg, &target, &setup)
        .now_or_never()
        .expect("a case's answers are at hand");
    let (decision, addresses) = match &located {
        Ok(judged) => (
            report::passed("addresses", judged),
            report::addresses(judged),
        ),
        Err(error) => (
            report::failed("addresses", error),
            report::blocked(error).into_iter().collect(),
        ),
    };
    let addresses = addresses.iter().map(ToString::to_string).collect();
    let reported = access
        .filter(|access| access.verdict == report::WOULD_REFUSE && decision.verdict == "allow");
    Ok(Verdict::new(id, reported.unwrap_or(decision), addresses))
}

/// What decides whether a destination may be asked for at all.
enum Gate<'a> {
    /// The case's own allowlist.
    Entries(Vec<Entry>),
    /// A policy folder and a caller.
    Policy(&'a Policy, &'a Subject),
}

impl Gate<'_> {
    /// The leg, and what a policy says of the way there.
    fn leg(&self, target: &Target, head: Head<'_>) -> Result<(Option<Decision>, Leg), Decision> {
        match self {
            Self::Entries(entries) if entries.iter().any(|entry| entry.covers(target)) => {
                Ok((None, Leg::Proxy))
            }
            Self::Entries(_) => {
                let reason = format!("no entry of the allowlist covers {target}");
                Err(Decision::refuse(
                    "access",
                    Code::HostNotAllowed,
                    "allowlist",
                    reason,
                ))
            }
            Self::Policy(policy, subject) => {
                let (access, leg) = policy.reach(subject, target, head);
                access.map(|access| (Some(access), leg))
            }
        }
    }

    fn left_to_parent(&self, leg: &Leg, target: &Target) -> Option<Decision> {
        match self {
            Self::Entries(_) => None,
            Self::Policy(policy, _) => policy.left_to_parent(leg, target),
        }
    }
}

fn read_entries(entries: &[String]) -> Result<Vec<Entry>, String> {
    let read = |text: &String| Entry::read(text).map_err(|fault| format!("allowlist: {fault}"));
    entries.iter().map(read).collect()
}

fn rules(setup: &Setup, gate: &Gate<'_>) -> Result<Rules, String> {
    let mut rules = match gate {
        Gate::Entries(entries) => Rules {
            grants: entries.iter().filter_map(Entry::grant).cloned().collect(),
            ..Rules::default()
        },
        Gate::Policy(policy, _) => policy.rules().clone(),
    };
    for net in &setup.nat64_prefixes {
        rules.nat64.push(Nat64Prefix::new(*net)?);
    }
    rules.fake_ip.extend(&setup.fake_ip_ranges);
    rules.own_addresses.extend(&setup.local_ips);
    rules.own_listeners.extend(&setup.self_listen);
    Ok(rules)
}

impl Verdict {
    fn new(id: String, decision: Decision, addresses: Vec<String>) -> Self {
        Self {
            id,
            verdict: decision.verdict,
            code: decision.code,
            rule: decision.rule,
            addresses,
            reason: decision.reason,
        }
    }
}
