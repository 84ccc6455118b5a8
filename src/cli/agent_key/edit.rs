//! Changing the text of `keys.toml` and nothing else in it.

use crate::id;

/// What a new key is for.
#[derive(Debug, clap::Args)]
pub(super) struct New {
    /// The agent that will hold it
    #[arg(long)]
    pub(super) agent: String,
    /// The user on whose behalf the agent acts
    #[arg(long)]
    pub(super) user: String,
    /// The user's tenant [default: default]
    #[arg(long)]
    tenant: Option<String>,
    /// A group of the user; may be given more than once
    #[arg(long = "group", value_name = "GROUP")]
    groups: Vec<String>,
    /// A user that the key may act for, or `*`; may be given more than once
    #[arg(long = "act-for", value_name = "USER")]
    act_for: Vec<String>,
    /// Let the key name groups of the users it acts for
    #[arg(long, requires = "act_for")]
    assert_groups: bool,
    /// When it stops working: a date (its first moment in UTC), or a time such as 2027-01-31T12:00:00Z
    #[arg(long, value_name = "TIME")]
    expires: Option<String>,
}

/// The text with a `[[key]]` at its end.
pub(super) fn appended(text: &str, digest: &[u8; 32], new: &New) -> Result<String, String> {
    let mut text = text.to_owned();
    if !text.is_empty() {
        text += if text.ends_with('\n') { "\n" } else { "\n\n" };
    }
    text += "[[key]]\n";
    text += &format!("sha256 = \"{}\"\n", id::hex(digest));
    text += &format!("agent = {}\n", quoted(&new.agent));
    if let Some(tenant) = &new.tenant {
        text += &format!("tenant = {}\n", quoted(tenant));
    }
    text += &format!("user = {}\n", quoted(&new.user));
    if !new.groups.is_empty() {
        text += &format!("groups = {}\n", list(&new.groups));
    }
    if !new.act_for.is_empty() {
        text += "scopes = [\"call\", \"act-for\"]\n";
        text += &format!("may_act_for = {}\n", list(&new.act_for));
    }
    if new.assert_groups {
        text += "may_assert_groups = true\n";
    }
    if let Some(expires) = &new.expires {
        text += &format!("expires = {}\n", time(expires)?);
    }
    Ok(text)
}

/// The text without the key whose `[[key]]` stands in `line`; remarks stay.
pub(super) fn removed(text: &str, line: usize) -> Result<String, String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let start = line.saturating_sub(1);
    let header = lines.get(start).map_or("", |line| line.trim());
    if !header.starts_with("[[") {
        return Err(
            "the key is not written as a `[[key]]` table; remove it from keys.toml by hand"
                .to_owned(),
        );
    }
    let rest = &lines[start + 1..];
    let next = rest
        .iter()
        .position(|line| line.trim_start().starts_with("[["));
    let block = &rest[..next.unwrap_or(rest.len())];
    let is_content = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let content = block
        .iter()
        .rposition(is_content)
        .map_or(0, |last| last + 1);
    let kept = lines[..start].iter().chain(&rest[content..]);
    Ok(kept.copied().collect())
}

/// A TOML basic string.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            character if character.is_control() => {
                quoted += &format!("\\u{:04X}", u32::from(character));
            }
            character => quoted.push(character),
        }
    }
    quoted + "\""
}

fn list(texts: &[String]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
    format!("[{}]", quoted.join(", "))
}

/// The TOML form of a date or a time with an offset.
fn time(text: &str) -> Result<String, String> {
    let date = text
        .parse::<jiff::civil::Date>()
        .ok()
        .filter(|_| text.len() == "2027-01-31".len());
    let date = date.map(|date| date.to_string());
    let time = || {
        text.parse::<jiff::Timestamp>()
            .ok()
            .map(|time| time.to_string())
    };
    date.or_else(time).ok_or_else(|| {
        format!("found `{text}` for --expires, expected a date such as 2027-01-31, or a time such as 2027-01-31T12:00:00Z")
    })
}
