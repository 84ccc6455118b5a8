//! `tollgate keys`: the keyring, and the keys that follow one another in it.

use std::{fmt::Write, process::ExitCode};

use clap::Subcommand;

use super::{
    Exit,
    socket::{Policy, show},
    style::{Styles, counted},
};
use crate::app::{
    control::{Answer, Request},
    keys::{KeyChange, KeysReport, alone},
};

/// Make and rotate the keys that seal tokens and secrets.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The running process does what is asked, if there is one: it has the key that opens the keyring.
Without one the command does it alone, from the settings. Processes that share the keyring take
changes up within seconds.

A rotation:
  tollgate keys rotate                    a new primary key; rows follow, a hundred a second
  tollgate keys status                    until the old key has 0 rows
  tollgate keys rotate --disable KID      --enable KID takes it back
  tollgate keys rotate --destroy KID      for ever: restored backups of its rows stay closed

Another key for the keyring itself:
  (umask 077; head -c 32 /dev/urandom > /etc/tollgate-new.key), as the user of tollgate or root
  tollgate keys rotate --kek file:/etc/tollgate-new.key   both keys open it
  (set [vault] key = \"file:/etc/tollgate-new.key\", restart every process that shares it)
  tollgate keys rotate --kek-done                         only the new one does
A relative path stands beside the files of the policy folder, wherever the command runs.")]
pub(super) struct Args {
    #[command(flatten)]
    policy: Policy,
    /// One JSON object instead of text
    #[arg(long, global = true, display_order = 901)]
    json: bool,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make the keyring where there is none, bring an older form up to date, and seal a plain one where vault.key names
    /// a key; no key in it changes
    Init,
    /// Make a new key primary; or one of the options
    Rotate(Rotate),
    /// Tell the keys, their states, and how many rows of the database each has sealed
    Status,
}

#[derive(Debug, clap::Args)]
#[group(multiple = false)]
struct Rotate {
    /// Disable a key that has sealed nothing that is still there
    #[arg(long, value_name = "KID")]
    disable: Option<String>,
    /// Take a disabled key back
    #[arg(long, value_name = "KID")]
    enable: Option<String>,
    /// Destroy a disabled key
    #[arg(long, value_name = "KID")]
    destroy: Option<String>,
    /// Seal the keyring for this key too: credential:NAME, file:PATH or env:NAME
    #[arg(long, value_name = "SOURCE")]
    kek: Option<String>,
    /// Seal the keyring for vault.key only
    #[arg(long)]
    kek_done: bool,
}

impl Rotate {
    fn change(self) -> KeyChange {
        let one = [
            self.disable.map(KeyChange::Disable),
            self.enable.map(KeyChange::Enable),
            self.destroy.map(KeyChange::Destroy),
            self.kek.map(KeyChange::Kek),
            self.kek_done.then_some(KeyChange::KekDone),
        ];
        one.into_iter()
            .flatten()
            .next()
            .unwrap_or(KeyChange::Rotate)
    }
}

/// Asks the process, or does it alone; exit code 1 where it is refused.
pub(super) fn run(args: Args) -> ExitCode {
    let change = match args.action {
        Action::Init => Some(KeyChange::Init),
        Action::Rotate(rotate) => Some(rotate.change()),
        Action::Status => None,
    };
    let request = Request::Keys {
        change: change.clone(),
    };
    let without = |settings: &_, folder: &_| alone(settings, folder, change).map(Answer::Keys);
    let exit = match args.policy.ask_or(request, without) {
        Ok(Answer::Keys(report)) => show(&report, args.json, text).err().unwrap_or(Exit::Ok),
        Ok(_) => Exit::Internal,
        Err(exit) => exit,
    };
    exit.into()
}

fn text(report: &KeysReport, styles: Styles) -> String {
    let mut text = String::new();
    if let Some(done) = &report.done {
        line(&mut text, &styles.good(done));
    }
    let sealed = match report.sealed_for.as_slice() {
        [] => "guarded by its mode alone".to_owned(),
        keks => format!("sealed for {}", keks.join(" and ")),
    };
    line(&mut text, &format!("{}, {sealed}", report.keyring));
    if !report.current {
        let older = "written by an earlier version; `tollgate keys init` brings it up to date";
        line(&mut text, older);
    }
    for key in &report.keys {
        let rows = counted(usize::try_from(key.rows).unwrap_or(usize::MAX), "row");
        let state = format!("{:<12}", key.state);
        let state = match key.state.as_str() {
            "unknown" => styles.bad(&state),
            _ => state,
        };
        let spooled = match key.spooled {
            0 => String::new(),
            files => format!(", {files} in the spool"),
        };
        line(
            &mut text,
            &format!("  {}  {state}  {rows}{spooled}", key.kid),
        );
    }
    text
}

fn line(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("writing to memory does not fail");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::keys::KeyRow;

    #[test]
    fn the_keys_are_told_in_lines() {
        let key = |kid: &str, state: &str, rows| KeyRow {
            kid: kid.to_owned(),
            state: state.to_owned(),
            rows,
            spooled: u64::from(state == "decrypt_only"),
        };
        let report = KeysReport {
            done: Some("the primary key is 0102030405060708 now".to_owned()),
            keyring: "/state/keyring".to_owned(),
            current: false,
            sealed_for: vec!["d72c90f81cbc1d23".to_owned()],
            keys: vec![
                key("f5526df39562884a", "decrypt_only", 12),
                key("0102030405060708", "primary", 1),
                key("ffffffffffffffff", "unknown", 0),
            ],
        };
        assert_eq!(
            text(&report, Styles::plain()),
            "the primary key is 0102030405060708 now\n\
             /state/keyring, sealed for d72c90f81cbc1d23\n\
             written by an earlier version; `tollgate keys init` brings it up to date\n  \
             f5526df39562884a  decrypt_only  12 rows, 1 in the spool\n  \
             0102030405060708  primary       1 row\n  \
             ffffffffffffffff  unknown       0 rows\n"
        );
    }
}
