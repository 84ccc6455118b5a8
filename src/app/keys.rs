//! What `tollgate keys` and `tollgate vault` do: in the running process where there is one, which has what opens the
//! keyring, and else alone, with the state held against a process that starts meanwhile.

mod look;
mod sealed;

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use nix::unistd::geteuid;
use serde::{Deserialize, Serialize};

pub use self::look::look;
use self::sealed::{Sealed, sealed};
use super::{
    Error,
    core::Core,
    start::{make_state_dir, records},
    vault::Place,
    worker,
};
use crate::{
    audit::{Journal, Kind, OutcomeKind, Phase, Record},
    clock::{Clock, SystemClock},
    config::Settings,
    listen,
    secret::Source,
    store::{Forgotten, Store},
    vault::{self, Init, Kek, Keyring, KeyringView, Kid},
};

/// A change of the keyring.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum KeyChange {
    /// Make it, bring it up to date, seal it.
    Init,
    /// A new primary key.
    Rotate,
    /// Disable a key, if nothing is sealed under it any more.
    Disable(String),
    /// Take that back.
    Enable(String),
    /// Destroy a disabled key.
    Destroy(String),
    /// Seal it for the key at this source too.
    Kek(String),
    /// Seal it for the key of the settings only.
    KekDone,
}

impl KeyChange {
    /// What a record calls it.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Init => "keys_init",
            Self::Rotate => "keys_rotate",
            Self::Disable(_) => "keys_disable",
            Self::Enable(_) => "keys_enable",
            Self::Destroy(_) => "keys_destroy",
            Self::Kek(_) => "keys_kek",
            Self::KekDone => "keys_kek_done",
        }
    }
}

/// How a keyring stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeysReport {
    /// What was done, in words; absent where nothing was asked for.
    pub done: Option<String>,
    /// The file.
    pub keyring: String,
    /// Whether it has the form that this version writes.
    pub current: bool,
    /// The keys that open it; none where it is plain.
    pub sealed_for: Vec<String>,
    /// Its data keys, the oldest first; then those that it does not have and rows are sealed under.
    pub keys: Vec<KeyRow>,
}

/// A data key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRow {
    /// Its name.
    pub kid: String,
    /// `primary`, `decrypt_only`, `disabled` or `unknown`.
    pub state: String,
    /// How many rows of the database are sealed under it.
    pub rows: u64,
    /// How many refreshed connections in the spool of this state folder are, which the database has not taken yet.
    #[serde(default)]
    pub spooled: u64,
}

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
enum KeysError {
    #[error(transparent)]
    Vault(#[from] vault::Error),
    #[error("the rows of the database cannot be counted: {0}")]
    Rows(String),
    #[error("`{0}` is no name of a key; `tollgate keys status` lists them")]
    Kid(String),
    #[error(
        "{} sealed under the key {kid} still; if it is the primary one, run `tollgate keys rotate` first; wait \
         until `tollgate keys status` tells 0",
        are(*rows)
    )]
    InUse { kid: Kid, rows: u64 },
    // Another process may have sealed them before it saw that the key was disabled.
    #[error(
        "{} sealed under the key {kid}, and would never open again; run `tollgate keys rotate --enable {kid}` \
         and wait until `tollgate keys status` tells 0",
        are(*rows)
    )]
    Sealed { kid: Kid, rows: u64 },
    #[error(
        "{files} refreshed connections in `{}` are sealed under the key {kid} still, since the database has not taken \
         them; wait until `tollgate keys status` tells 0, or move them away, which gives them up", folder.display()
    )]
    Spooled {
        kid: Kid,
        files: u64,
        folder: PathBuf,
    },
    #[error("the spool `{}` cannot be read: {source}", folder.display())]
    Spool { folder: PathBuf, source: io::Error },
    #[error("`{0}` is no place for a key: expected `credential:NAME`, `file:PATH` or `env:NAME`")]
    Source(String),
    #[error("[vault] key names no key, so that the keyring is plain; set it and restart first")]
    Plain,
}

/// So many rows, with their verb.
fn are(rows: u64) -> String {
    match rows {
        1 => "1 row is".to_owned(),
        _ => format!("{rows} rows are"),
    }
}

/// Changes the keyring of a running process, if that is asked for, and tells how it stands.
pub(super) async fn in_process(
    core: &Core,
    change: Option<KeyChange>,
) -> Result<KeysReport, String> {
    let rows = core.store.sealed_rows().await;
    let rows = rows.map_err(|error| KeysError::Rows(error.to_string()).to_string())?;
    let place = &core.guard.place;
    let settings = &core.reloader.current_full().settings;
    let sealed = Sealed::with(rows, settings, &core.guard.vault);
    let sealed = sealed.map_err(|error| error.to_string())?;
    // It may have gone while the process runs, which has its keys still.
    let there = place.may_be_made().map_err(|error| error.to_string());
    let report = there
        .and_then(|()| report(place, change.as_ref(), &sealed).map_err(|error| error.to_string()));
    if let Some(change) = change {
        core.record_admin(change.as_str(), report.is_ok());
        core.guard.keys_changed();
    }
    report
}

/// The same where no process runs with this state.
///
/// # Errors
///
/// One runs, or the keyring or the database cannot be used.
pub fn alone(
    settings: &Settings,
    folder: &Path,
    change: Option<KeyChange>,
) -> Result<KeysReport, Error> {
    let place = Place::new(settings, folder)?;
    let Some(change) = change else {
        place.may_be_made()?;
        let sealed = sealed(settings, &place)?;
        return report(&place, None, &sealed).map_err(told);
    };
    hold(settings, change.as_str(), || {
        place.may_be_made()?;
        let sealed = sealed(settings, &place)?;
        report(&place, Some(&change), &sealed).map_err(told)
    })
}

/// Takes everything sealed out of the database, and the mark that knows of it. A keyring that cannot be used is moved aside
/// for that, and a new one made; it tells where the old one is then.
///
/// # Errors
///
/// A process runs, or the key of the settings, the state folder or the database cannot be used.
pub fn forget_all(
    settings: &Settings,
    folder: &Path,
) -> Result<(Forgotten, Option<PathBuf>), Error> {
    let place = Place::new(settings, folder)?;
    hold(settings, "vault_reset", || {
        let (keyring, aside) = usable(&place)?;
        let forgotten = Store::reset(&settings.store, &keyring)?;
        // Where there is none, the database was in use elsewhere.
        drop(fs::remove_file(settings.mark()));
        Ok((forgotten, aside))
    })
}

/// The keyring, or a new one where it cannot be used, and where that one was moved to.
fn usable(place: &Place) -> Result<(Keyring, Option<PathBuf>), vault::Error> {
    let open = || Keyring::open_with(&place.keyring, place.kek.as_ref());
    let path = &place.keyring;
    let unusable = match open() {
        Ok(keyring) => return Ok((keyring, None)),
        Err(unusable) => unusable,
    };
    // Whether it could be opened elsewhere is not known: it is kept.
    let aside = path.with_extension(format!("unusable-{}", SystemClock.unix()));
    fs::rename(path, &aside).map_err(|_| unusable)?;
    Ok((open()?, Some(aside)))
}

/// Works with the state while no process can start with it, and records what came of that.
fn hold<T>(
    settings: &Settings,
    what: &'static str,
    work: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    make_state_dir(&settings.state_dir)?;
    own(&settings.state_dir)?;
    let socket = settings.control_socket();
    let _held = listen::unix(&socket, 0o600).map_err(|source| match source {
        listen::Error::InUse(_) => Error::Running(settings.state_dir.clone()),
        source => Error::Listen {
            name: "control",
            source,
        },
    })?;
    let worked = recorded(settings, what, work);
    // The next start replaces it as well.
    drop(fs::remove_file(&socket));
    worked
}

/// Root would leave files behind that the user of the state folder cannot use.
fn own(state_dir: &Path) -> Result<(), Error> {
    let found = fs::metadata(state_dir).map_err(|source| Error::State {
        path: state_dir.to_owned(),
        source,
    })?;
    if found.uid() == geteuid().as_raw() {
        return Ok(());
    }
    let why = format!(
        "`{}` belongs to uid {}; run this as that user, or while tollgate runs",
        state_dir.display(),
        found.uid()
    );
    Err(Error::Keys(why))
}

fn recorded<T>(
    settings: &Settings,
    what: &'static str,
    work: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let journal = Journal::open(records(settings), clock.clone(), &Arc::default())?;
    let worked = work();
    let outcome = match worked {
        Ok(_) => OutcomeKind::Allowed,
        Err(_) => OutcomeKind::Failed,
    };
    let mut record = Record::new(clock.now(), Kind::Admin, Phase::Decision).ended(outcome, None);
    record.method = Some(what.into());
    let queued = journal.queue(record).map(drop);
    let runtime = worker::runtime().map_err(Error::Thread)?;
    let closed = runtime.block_on(journal.close());
    let worked = worked?;
    queued.and(closed).map_err(Error::Unrecorded)?;
    Ok(worked)
}

fn told(error: KeysError) -> Error {
    match error {
        KeysError::Vault(error) => Error::Keyring(error),
        error => Error::Keys(error.to_string()),
    }
}

fn report(
    place: &Place,
    change: Option<&KeyChange>,
    sealed: &Sealed,
) -> Result<KeysReport, KeysError> {
    let done = change
        .map(|change| apply(place, change, sealed))
        .transpose()?;
    if change.is_none() && place.keyring.symlink_metadata().is_err() {
        let source = io::ErrorKind::NotFound.into();
        let path = place.keyring.clone();
        return Err(vault::Error::Unusable { path, source }.into());
    }
    let view = Keyring::open_with(&place.keyring, place.kek.as_ref())?.view();
    Ok(KeysReport {
        done,
        keyring: place.keyring.display().to_string(),
        current: view.current,
        sealed_for: view.sealed_for.iter().map(ToString::to_string).collect(),
        keys: key_rows(&view, sealed),
    })
}

fn key_rows(view: &KeyringView, sealed: &Sealed) -> Vec<KeyRow> {
    let known = |kid| view.keys.iter().any(|(key, _)| *key == kid);
    let keys = view
        .keys
        .iter()
        .map(|(kid, state)| sealed.row(*kid, state.as_str()));
    let others = sealed.keys().into_iter().filter(|kid| !known(*kid));
    keys.chain(others.map(|kid| sealed.row(kid, "unknown")))
        .collect()
}

/// Changes the file; gives what was done, in words.
fn apply(place: &Place, change: &KeyChange, sealed: &Sealed) -> Result<String, KeysError> {
    let (path, kek) = (&*place.keyring, place.kek.as_ref());
    Ok(match change {
        KeyChange::Init => initialized(Keyring::init(path, kek)?).to_owned(),
        KeyChange::Rotate => {
            let kid = Keyring::rotate(path, kek)?;
            format!("the primary key is {kid} now; rows follow in the background")
        }
        KeyChange::Disable(text) => {
            let kid = kid(text)?;
            sealed.free(kid, |kid, rows| KeysError::InUse { kid, rows })?;
            Keyring::disable(path, kek, kid, true)?;
            format!("the key {kid} is disabled")
        }
        KeyChange::Enable(text) => {
            let kid = kid(text)?;
            Keyring::disable(path, kek, kid, false)?;
            format!("the key {kid} opens again what it sealed")
        }
        KeyChange::Destroy(text) => {
            let kid = kid(text)?;
            sealed.free(kid, |kid, rows| KeysError::Sealed { kid, rows })?;
            Keyring::destroy(path, kek, kid)?;
            format!(
                "the key {kid} is destroyed; a backup that has both keyring and database still opens"
            )
        }
        KeyChange::Kek(source) => {
            let next = self::next(place, source)?;
            Keyring::share(path, kek.ok_or(KeysError::Plain)?, &next)?;
            format!(
                "the key {} opens the keyring too; set [vault] key to it and restart",
                next.id()
            )
        }
        KeyChange::KekDone => {
            let kek = kek.ok_or(KeysError::Plain)?;
            Keyring::keep_only(path, kek)?;
            format!("only the key {} opens the keyring now", kek.id())
        }
    })
}

fn initialized(init: Init) -> &'static str {
    match init {
        Init::Made => "made",
        Init::Upgraded => "brought up to date; all its keys are the same",
        Init::Sealed => "sealed; all its keys are the same",
        Init::Unchanged => "already as it should be",
    }
}

fn kid(text: &str) -> Result<Kid, KeysError> {
    Kid::parse(text).ok_or_else(|| KeysError::Kid(text.to_owned()))
}

fn next(place: &Place, source: &str) -> Result<Kek, KeysError> {
    let parsed = Source::parse(source).map_err(|_| KeysError::Source(source.to_owned()))?;
    Ok(Kek::read(&parsed, &place.folder)?)
}
