//! `explain --batch`: JSON Lines in, one verdict a line out, no connection opened.

use std::io::{self, BufRead, Write};

use futures_util::FutureExt;
use serde::Serialize;

use super::{
    allow::Entry,
    line::{self, Input, Line, Setup},
};
use crate::{
    address::{Grant, Judged, Leg, Nat64Prefix, Rules, Target},
    egress::{self, Error},
    refusal::Code,
};

/// What a line says of one case.
#[derive(Debug, Serialize)]
struct Verdict {
    id: String,
    verdict: &'static str,
    code: Option<&'static str>,
    rule: Option<String>,
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
    let mut every = true;
    for (index, text) in cases.split(b'\n').enumerate() {
        let text = text?;
        if text.trim_ascii().is_empty() {
            continue;
        }
        match line::read(&text).and_then(judge) {
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

fn judge(line: Line) -> Result<Verdict, String> {
    let Line {
        id,
        input,
        setup,
        allowlist,
        ..
    } = line;
    let allowlist =
        allowlist.ok_or("no `allowlist`; say what may be reached, for example [\"*\"]")?;
    let entries = allowlist
        .iter()
        .map(|text| Entry::read(text).map_err(|fault| format!("allowlist: {fault}")))
        .collect::<Result<Vec<_>, _>>()?;
    let rules = rules(&setup, &entries)?;
    let target = match &input {
        Input::Url(url) => Target::from_operator(url),
        Input::Connect(authority) => Target::from_authority(authority),
    };
    let target = match target {
        Ok(target) => target,
        Err(malformed) => {
            return Ok(refused(
                id,
                malformed.code(),
                "malformed",
                malformed.to_string(),
            ));
        }
    };
    if !entries.iter().any(|entry| entry.covers(&target)) {
        let reason = format!(
            "no entry of the allowlist covers {target} at port {}",
            target.port()
        );
        return Ok(refused(id, Code::HostNotAllowed, "allowlist", reason));
    }
    let located = egress::locate(&rules, &Leg::Proxy, &target, &setup)
        .now_or_never()
        .expect("a case's answers are at hand");
    Ok(match located {
        Ok(judged) => allowed(id, &judged),
        Err(error) => failed(id, &error),
    })
}

fn rules(setup: &Setup, entries: &[Entry]) -> Result<Rules, String> {
    let prefixes = setup
        .nat64_prefixes
        .iter()
        .map(|net| Nat64Prefix::new(*net));
    Ok(Rules {
        grants: entries.iter().filter_map(private).collect(),
        nat64: prefixes.collect::<Result<_, _>>()?,
        fake_ip: setup.fake_ip_ranges.clone(),
        own_addresses: setup.local_ips.clone(),
        own_listeners: setup.self_listen.clone(),
        kubernetes: None,
    })
}

fn private(entry: &Entry) -> Option<Grant> {
    match entry {
        Entry::Private(grant) => Some(grant.clone()),
        _ => None,
    }
}

fn allowed(id: String, judged: &Judged) -> Verdict {
    let addresses = judged
        .addresses
        .iter()
        .map(|address| address.socket().ip().to_string());
    let (rule, reason) = match (&judged.grant, judged.pinned) {
        (Some(grant), _) => (grant.to_string(), format!("`{grant}` opens it")),
        (None, true) => ("public".to_owned(), "every address is public".to_owned()),
        (None, false) => (
            "fake-ip".to_owned(),
            "fake_ip_ranges lets an address pass that cannot be judged".to_owned(),
        ),
    };
    Verdict {
        id,
        verdict: "allow",
        code: None,
        rule: Some(rule),
        addresses: addresses.collect(),
        reason,
    }
}

fn failed(id: String, error: &Error) -> Verdict {
    let (rule, address) = match error {
        Error::Blocked(blocked) => (blocked.rule, blocked.address),
        _ => ("dns", None),
    };
    let mut verdict = refused(id, error.code(), rule, error.to_string());
    verdict
        .addresses
        .extend(address.map(|address| address.to_string()));
    verdict
}

/// A refusal; only policy's own count as denied, the rest is malformed or unavailable.
fn refused(id: String, code: Code, rule: &str, reason: String) -> Verdict {
    let denied = matches!(
        code,
        Code::NameBlocked | Code::AddressBlocked | Code::HostNotAllowed
    );
    Verdict {
        id,
        verdict: if denied { "deny" } else { "error" },
        code: Some(code.as_str()),
        rule: Some(rule.to_owned()),
        addresses: Vec::new(),
        reason,
    }
}
