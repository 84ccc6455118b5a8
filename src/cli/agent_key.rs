//! `tollgate agent-key`: agent keys of `keys.toml`, made, listed and revoked.

mod edit;
mod file;

use std::{path::PathBuf, process::ExitCode, time::SystemTime};

use clap::Subcommand;
use serde::Serialize;
use sha2::{Digest, Sha256};

use self::{edit::New, file::KeysFile};
use super::{
    Exit,
    socket::{complain, config_fault, say},
};
use crate::{
    app::load,
    clock::{Clock, SystemClock},
    id,
    policy::KeyEntry,
    table::Fault,
};

/// Make, list and revoke agent keys.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A running process takes up changes by itself within seconds. Turning keys on ([identity.keys] in
tollgate.toml) takes effect at its next start: until then it lets everyone in as the local user.

Examples:
  tollgate agent-key new --agent ci --user ana --group eng --expires 2027-01-31
  tollgate agent-key list
  tollgate agent-key revoke 3f9a27c1")]
pub(super) struct Args {
    /// Policy folder [default: $TOLLGATE_POLICY, /etc/tollgate, ~/.config/tollgate]
    #[arg(long, value_name = "DIR", global = true)]
    policy: Option<PathBuf>,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make a key; it is printed once, and only its SHA-256 is kept.
    New(New),
    /// List the keys.
    List {
        /// One JSON object a line instead of text
        #[arg(long)]
        json: bool,
    },
    /// Remove a key.
    Revoke {
        /// The first digits (8 at least) of the key's SHA-256: what `list` begins a line with, or `key:…` of a record
        #[arg(value_name = "SHA256")]
        digest: String,
    },
}

/// Why nothing was done.
#[derive(Debug)]
enum Trouble {
    /// The configuration has faults.
    Faults(Vec<Fault>),
    /// Anything else, in words.
    Failed(String),
}

/// Does what is asked.
pub(super) fn run(args: Args) -> ExitCode {
    match act(args) {
        Ok(text) => {
            say(&text);
            Exit::Ok.into()
        }
        Err(Trouble::Faults(faults)) => config_fault(&faults).into(),
        Err(Trouble::Failed(why)) => {
            complain(&[why]);
            Exit::Failed.into()
        }
    }
}

fn act(args: Args) -> Result<String, Trouble> {
    let folder =
        load::find_folder(args.policy.as_deref()).map_err(|fault| Trouble::Faults(vec![fault]))?;
    let file = KeysFile::open(&folder)?;
    match args.action {
        Action::New(new) => make(file, &new),
        Action::List { json } => list(&file, json),
        Action::Revoke { digest } => revoke(file, &digest),
    }
}

/// The key goes to standard output alone, so that a script can take it.
fn make(file: KeysFile, new: &New) -> Result<String, Trouble> {
    if file.local() {
        let why = "every caller is the local user, so a key would be a mistake; add `[identity.keys]` to tollgate.toml, \
                   and remove `[identity.local]`, first";
        return Err(Trouble::Failed(why.to_owned()));
    }
    let key = format!("tg_{}", id::token());
    let digest: [u8; 32] = Sha256::digest(&key).into();
    let text = edit::appended(file.text(), &digest, new).map_err(Trouble::Failed)?;
    let first = file.keys()?.is_empty();
    if dead(&text)? {
        let why = "--expires has passed, so the key would open nothing; name a later time";
        return Err(Trouble::Failed(why.to_owned()));
    }
    file.replace(&text)?;
    complain(&[format!(
        "key {} for agent `{}` of user `{}`; it is shown only now",
        short(&digest),
        new.agent,
        new.user
    )]);
    if first {
        complain(&["it is the first key: a process that was started without `[identity.keys]` asks for keys once it is restarted"
            .to_owned()]);
    }
    Ok(format!("{key}\n"))
}

/// Whether the last key of the text has expired.
fn dead(text: &str) -> Result<bool, Trouble> {
    let keys = file::read(text)?;
    let end = keys.last().and_then(|entry| entry.key.expires);
    Ok(end.is_some_and(|end| end <= SystemClock.now()))
}

#[derive(Serialize)]
struct Listed<'a> {
    sha256: String,
    agent: &'a str,
    tenant: &'a str,
    user: &'a str,
    groups: Vec<&'a str>,
    scopes: Vec<&'static str>,
    expires: Option<String>,
    expired: bool,
}

impl<'a> Listed<'a> {
    fn new(entry: &'a KeyEntry, now: SystemTime) -> Self {
        let subject = &*entry.key.subject;
        let scopes = [
            ("call", subject.scopes.call),
            ("act-for", subject.scopes.act_for),
        ];
        let expires = (entry.key)
            .expires
            .and_then(|end| jiff::Timestamp::try_from(end).ok());
        Self {
            sha256: id::hex(&entry.digest),
            agent: &subject.agent,
            tenant: &subject.tenant,
            user: &subject.user,
            groups: subject.groups.iter().map(|group| &**group).collect(),
            scopes: scopes
                .into_iter()
                .filter(|(_, has)| *has)
                .map(|(name, _)| name)
                .collect(),
            expires: expires.map(|end| end.to_string()),
            expired: entry.key.expires.is_some_and(|end| end <= now),
        }
    }

    fn text(&self) -> String {
        let ends = match &self.expires {
            Some(end) if self.expired => format!("expired {end}"),
            Some(end) => format!("until {end}"),
            None => "without end".to_owned(),
        };
        let groups = match self.groups.as_slice() {
            [] => String::new(),
            groups => format!(" in {}", groups.join(", ")),
        };
        format!(
            "{}  agent {}, user {} of {}{groups}, {}, {ends}\n",
            &self.sha256[..16],
            self.agent,
            self.user,
            self.tenant,
            self.scopes.join(" and "),
        )
    }
}

fn list(file: &KeysFile, json: bool) -> Result<String, Trouble> {
    let mut text = String::new();
    for entry in file.keys()? {
        let listed = Listed::new(&entry, SystemClock.now());
        if json {
            let line = serde_json::to_string(&listed);
            text += &(line.expect("texts and lists have a JSON form") + "\n");
        } else {
            text += &listed.text();
        }
    }
    Ok(text)
}

fn revoke(file: KeysFile, digest: &str) -> Result<String, Trouble> {
    let wanted = digest
        .strip_prefix("key:")
        .unwrap_or(digest)
        .to_ascii_lowercase();
    if wanted.len() < 8 || !wanted.bytes().all(|b| b.is_ascii_hexdigit()) {
        let why = "expected at least 8 hexadecimal digits of the key's SHA-256; `tollgate agent-key list` shows them";
        return Err(Trouble::Failed(why.to_owned()));
    }
    let keys = file.keys()?;
    let mut fitting = keys
        .iter()
        .filter(|entry| id::hex(&entry.digest).starts_with(&wanted));
    let (Some(entry), None) = (fitting.next(), fitting.next()) else {
        let why = format!(
            "`{wanted}` begins no key's SHA-256, or more than one's; `tollgate agent-key list` shows them"
        );
        return Err(Trouble::Failed(why));
    };
    let text = edit::removed(file.text(), entry.place.line()).map_err(Trouble::Failed)?;
    file.replace(&text)?;
    let (agent, user) = (&entry.key.subject.agent, &entry.key.subject.user);
    Ok(format!(
        "revoked {}: agent `{agent}`, user `{user}`\n",
        short(&entry.digest)
    ))
}

fn short(digest: &[u8; 32]) -> String {
    id::hex(&digest[..8])
}

#[cfg(test)]
mod tests;
