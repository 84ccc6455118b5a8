//! What `tollgate keys` and `tollgate vault` do: in the running process where there is one, which has what opens the
//! keyring, and else alone, with the state held against a process that starts meanwhile.

use std::{fs, os::unix::fs::MetadataExt, path::Path, sync::Arc};

use nix::unistd::geteuid;
use serde::{Deserialize, Serialize};

use super::{
    Error,
    core::Core,
    start::{make_state_dir, open_store, records},
    vault::{Place, mark_path},
    worker,
};
use crate::{
    audit::{Journal, Kind, OutcomeKind, Phase, Record},
    clock::{Clock, SystemClock},
    config::Settings,
    listen,
    secret::Source,
    store::{Forgotten, Store},
    telemetry::Metrics,
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
        "{rows} rows are sealed under the key {kid} still; wait until `tollgate keys status` tells 0"
    )]
    InUse { kid: Kid, rows: u64 },
    // Another process may have sealed them before it saw that the key was disabled.
    #[error(
        "{rows} rows are sealed under the key {kid}, and would never open again; run `tollgate keys rotate --enable {kid}` \
         and wait until `tollgate keys status` tells 0"
    )]
    Sealed { kid: Kid, rows: u64 },
    #[error("`{0}` is no place for a key: expected `credential:NAME`, `file:PATH` or `env:NAME`")]
    Source(String),
    #[error("[vault] key names no key, so that the keyring is plain; set it and restart first")]
    Plain,
}

/// Changes the keyring of a running process, if that is asked for, and tells how it stands.
pub(super) async fn in_process(
    core: &Core,
    change: Option<KeyChange>,
) -> Result<KeysReport, String> {
    let rows = core.store.sealed_rows().await;
    let rows = rows.map_err(|error| KeysError::Rows(error.to_string()).to_string())?;
    let place = &core.guard.place;
    let report = report(place, change.as_ref(), &rows);
    if let Some(change) = change {
        core.record_admin(change.as_str(), report.is_ok());
        core.guard.keys_changed();
    }
    report.map_err(|error| error.to_string())
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
        let rows = rows(settings, &place)?;
        return report(&place, None, &rows).map_err(told);
    };
    hold(settings, change.as_str(), || {
        place.may_be_made(settings)?;
        let rows = rows(settings, &place)?;
        report(&place, Some(&change), &rows).map_err(told)
    })
}

/// Takes everything sealed out of the database, and the mark that knows of it.
///
/// # Errors
///
/// A process runs, or the keyring or the database cannot be used.
pub fn forget_all(settings: &Settings, folder: &Path) -> Result<Forgotten, Error> {
    let place = Place::new(settings, folder)?;
    hold(settings, "vault_reset", || {
        let keyring = Keyring::open_with(&place.keyring, place.kek.as_ref())?;
        let forgotten = Store::reset(&settings.store, &keyring)?;
        // Where there is none, the database was in use elsewhere.
        drop(fs::remove_file(mark_path(settings)));
        Ok(forgotten)
    })
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

/// The rows under each key, where there is a database.
fn rows(settings: &Settings, place: &Place) -> Result<Vec<(Kid, u64)>, Error> {
    if settings.store.symlink_metadata().is_err() || place.keyring.symlink_metadata().is_err() {
        return Ok(Vec::new());
    }
    let keyring = place.open(settings)?;
    let store = open_store(&settings.store, &keyring, &Arc::new(Metrics::new()))?;
    let runtime = worker::runtime().map_err(Error::Thread)?;
    let rows = runtime.block_on(async {
        let rows = store.sealed_rows().await;
        store.close().await;
        rows
    });
    rows.map_err(|error| told(KeysError::Rows(error.to_string())))
}

fn report(
    place: &Place,
    change: Option<&KeyChange>,
    rows: &[(Kid, u64)],
) -> Result<KeysReport, KeysError> {
    let done = change
        .map(|change| apply(place, change, rows))
        .transpose()?;
    if change.is_none() && place.keyring.symlink_metadata().is_err() {
        let source = std::io::ErrorKind::NotFound.into();
        let path = place.keyring.clone();
        return Err(vault::Error::Unusable { path, source }.into());
    }
    let view = Keyring::open_with(&place.keyring, place.kek.as_ref())?.view();
    Ok(KeysReport {
        done,
        keyring: place.keyring.display().to_string(),
        current: view.current,
        sealed_for: view.sealed_for.iter().map(ToString::to_string).collect(),
        keys: key_rows(&view, rows),
    })
}

fn key_rows(view: &KeyringView, rows: &[(Kid, u64)]) -> Vec<KeyRow> {
    let row = |kid: Kid, state: &str| KeyRow {
        kid: kid.to_string(),
        state: state.to_owned(),
        rows: under(kid, rows),
    };
    let known = |kid| view.keys.iter().any(|(key, _)| *key == kid);
    let keys = view
        .keys
        .iter()
        .map(|(kid, state)| row(*kid, state.as_str()));
    let others = rows.iter().filter(|(kid, _)| !known(*kid));
    keys.chain(others.map(|(kid, _)| row(*kid, "unknown")))
        .collect()
}

fn under(kid: Kid, rows: &[(Kid, u64)]) -> u64 {
    let found = rows.iter().find(|(key, _)| *key == kid);
    found.map_or(0, |(_, rows)| *rows)
}

/// Changes the file; gives what was done, in words.
fn apply(place: &Place, change: &KeyChange, rows: &[(Kid, u64)]) -> Result<String, KeysError> {
    let (path, kek) = (&*place.keyring, place.kek.as_ref());
    Ok(match change {
        KeyChange::Init => initialized(Keyring::init(path, kek)?).to_owned(),
        KeyChange::Rotate => {
            let kid = Keyring::rotate(path, kek)?;
            format!("the primary key is {kid} now; rows follow in the background")
        }
        KeyChange::Disable(text) => {
            let kid = kid(text)?;
            let rows = under(kid, rows);
            if rows > 0 {
                return Err(KeysError::InUse { kid, rows });
            }
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
            let rows = under(kid, rows);
            if rows > 0 {
                return Err(KeysError::Sealed { kid, rows });
            }
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
