//! How pins look.

use std::fmt::Write;

use super::{diff, differs, visible};
use crate::{
    app::control::pins::{Accepted, AcceptedItem, Pins, Row, State},
    catalog::DIGITS,
    cli::style::{Styles, counted},
};

/// All items, how they stand, and what to do next.
pub(super) fn table(pins: &Pins, styles: Styles) -> String {
    let mut out = format!("{}\n", headline(pins));
    let width = |head: &str, cell: fn(&Row) -> String| {
        let cells = pins.items.iter().map(|row| cell(row).chars().count());
        cells.chain([head.len()]).max().unwrap_or_default()
    };
    let kinds = width("kind", |row| row.kind.clone());
    let names = width("name", name);
    let read_onlys = width("read-only", |row| read_only(row).to_owned());
    if !pins.items.is_empty() {
        let head = format!(
            "{:<kinds$}  {:<names$}  {:<8}  {:<read_onlys$}  version",
            "kind", "name", "state", "read-only"
        );
        line(&mut out, &styles.dim(&head));
    }
    for row in &pins.items {
        let state = state(row.state);
        let padded = format!("{state:<8}");
        let padded = if differs(row.state) {
            styles.bad(&padded)
        } else {
            padded
        };
        let version = row
            .version
            .map_or_else(|| "-".to_owned(), |at| at.to_string());
        let cells = format!(
            "{:<kinds$}  {:<names$}  {padded}  {:<read_onlys$}  {version}",
            row.kind,
            name(row),
            read_only(row)
        );
        line(&mut out, &cells);
        for suspicion in &row.suspicions {
            let text = format!("{:kinds$}  ! {}", "", visible(suspicion));
            line(&mut out, &styles.bad(&text));
        }
    }
    next_steps(&mut out, pins);
    out
}

fn headline(pins: &Pins) -> String {
    let place = match (&*pins.pin, pins.version) {
        ("file", 0) => format!("pins/{}.json is not written yet", pins.server),
        ("file", version) => format!("pins/{}.json, version {version}", pins.server),
        (_, 0) => "nothing is pinned yet".to_owned(),
        (_, version) if pins.reviewed => format!("pins in the store, version {version}, reviewed"),
        (_, version) => format!("pins in the store, version {version}, by first use"),
    };
    format!(
        "{}: {place}, {}",
        pins.server,
        counted(pins.items.len(), "item")
    )
}

fn next_steps(out: &mut String, pins: &Pins) {
    let server = &pins.server;
    let different = pins.items.iter().filter(|row| differs(row.state)).count();
    if different > 0 {
        line(
            out,
            &format!(
                "\n{different} of {} {}; look at them with `tollgate pin {server} --diff`, and accept \
                 with `tollgate pin {server} --accept NAME` or `--accept-all`",
                pins.items.len(),
                match different {
                    1 => "differs and is not offered",
                    _ => "differ and are not offered",
                }
            ),
        );
    }
    let hinted = pins.items.iter().filter(|row| is_open(row));
    let hinted: Vec<String> = hinted.filter_map(quoted).collect();
    if !hinted.is_empty() {
        line(
            out,
            &format!(
                "\n{}, write into servers/{server}.toml\n  read_only = \"hints\"\nor only for those of now\n  read_only = [{}]",
                match hinted.len() {
                    1 => "1 tool claims to read only, and still counts as a side effect; to accept what it says"
                        .to_owned(),
                    many => format!(
                        "{many} tools claim to read only, and still count as side effects; to accept what they say"
                    ),
                },
                hinted.join(", ")
            ),
        );
    }
}

/// A pinned tool whose hint nobody has accepted.
fn is_open(row: &Row) -> bool {
    row.kind == "tool"
        && row.read_only_hint
        && !row.read_only
        && matches!(row.state, State::Pinned | State::Absent)
}

/// A name as a TOML string; one with a `*` would stand for others, too.
fn quoted(row: &Row) -> Option<String> {
    if row.name.contains('*') {
        return None;
    }
    let json = serde_json::to_string(&row.name).ok()?;
    Some(visible(&json))
}

/// Each difference, definition by definition.
pub(super) fn differences(pins: &Pins, styles: Styles) -> String {
    let mut out = String::new();
    let rows = pins.items.iter().filter(|row| differs(row.state));
    for row in rows {
        if !out.is_empty() {
            out.push('\n');
        }
        difference(&mut out, row, styles);
    }
    let different = pins.items.iter().filter(|row| differs(row.state)).count();
    if different == 0 {
        return format!("{}: nothing differs from what is pinned\n", pins.server);
    }
    line(
        &mut out,
        &format!(
            "\n{}: {} from what is pinned; accept with `tollgate pin {} --accept NAME`, with `--accept NAME@DIGEST` only \
             what is seen here, or with `--accept-all`",
            pins.server,
            match different {
                1 => "1 item differs".to_owned(),
                many => format!("{many} items differ"),
            },
            pins.server
        ),
    );
    out
}

fn difference(out: &mut String, row: &Row, styles: Styles) {
    let title = match row.kind.as_str() {
        "instructions" => "instructions".to_owned(),
        kind => format!("{kind} `{}`", visible(&row.name)),
    };
    let pinned_at = match row.version {
        Some(version) if row.pinned.is_some() => format!(", pinned at version {version}"),
        _ => String::new(),
    };
    line(out, &format!("{title}: {}{pinned_at}", state(row.state)));
    for suspicion in &row.suspicions {
        line(out, &styles.bad(&format!("! {}", visible(suspicion))));
    }
    let digest = |sha256: &str| sha256.chars().take(DIGITS).collect::<String>();
    let Some(seen) = &row.seen else { return };
    match &row.pinned {
        Some(pinned) => {
            let (old, new) = (digest(&pinned.sha256), digest(&seen.sha256));
            line(out, &styles.dim(&format!("--- pinned {old}")));
            line(out, &styles.dim(&format!("+++ seen   {new}")));
            out.push_str(&diff::unified(
                pinned.definition.get(),
                seen.definition.get(),
                styles,
            ));
        }
        None => {
            line(
                out,
                &styles.dim(&format!("+++ seen   {}", digest(&seen.sha256))),
            );
            out.push_str(&diff::whole(seen.definition.get(), styles));
        }
    }
}

/// What was accepted, and where it stands now.
pub(super) fn accepted(server: &str, accepted: &Accepted, file: Option<&str>) -> String {
    let mut out = String::new();
    for AcceptedItem { kind, name, sha256 } in &accepted.items {
        let digest: String = sha256.chars().take(DIGITS).collect();
        let title = match kind.as_str() {
            "instructions" => "instructions".to_owned(),
            kind => format!("{kind} `{}`", visible(name)),
        };
        line(&mut out, &format!("accepted {title} {digest}"));
    }
    let place = match file {
        Some(path) => format!("{path} is written and in force"),
        None => "in force".to_owned(),
    };
    let what = match accepted.items.len() {
        0 => "nothing was new; ".to_owned(),
        _ => String::new(),
    };
    line(
        &mut out,
        &format!("{server}: {what}pins version {}, {place}", accepted.version),
    );
    out
}

fn state(state: State) -> &'static str {
    match state {
        State::Pinned => "pinned",
        State::Drifted => "drifted",
        State::New => "new",
        State::Absent => "absent",
    }
}

fn name(row: &Row) -> String {
    match row.kind.as_str() {
        "instructions" => "-".to_owned(),
        _ => visible(&row.name),
    }
}

fn read_only(row: &Row) -> &'static str {
    match (row.read_only, row.read_only_hint) {
        (true, _) => "accepted",
        (false, true) => "hint",
        (false, false) => "-",
    }
}

fn line(out: &mut String, text: &str) {
    writeln!(out, "{text}").expect("writing to memory does not fail");
}

#[cfg(test)]
mod tests;
