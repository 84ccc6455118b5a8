//! The vault of a process: where its keyring is, how old its database is, and rows that follow the keys.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Interval, MissedTickBehavior, interval},
};

use super::{Error, core::Core, load::guard, status::VaultStatus};
use crate::{
    audit::{Kind, OutcomeKind, Phase, Record},
    config::Settings,
    connect,
    refusal::Code,
    store::Store,
    telemetry::Metrics,
    vault::{self, Kek, Keyring, KeyringView, Mark, Marked, Vault},
};

/// How often keyring and database are looked at.
const LOOK: Duration = Duration::from_secs(5);
/// How many looks pass between two rounds over all rows.
const LOOKS: u32 = 12;

/// Where a keyring is, and what opens it.
pub(super) struct Place {
    pub(super) keyring: PathBuf,
    /// The database that it belongs to.
    database: PathBuf,
    pub(super) kek: Option<Kek>,
    /// The policy folder, beside whose files a relative path stands.
    pub(super) folder: PathBuf,
}

impl Place {
    pub(super) fn new(settings: &Settings, folder: &Path) -> Result<Self, vault::Error> {
        let kek = settings.vault.key.as_ref();
        let kek = kek.map(|source| Kek::read(source, folder)).transpose()?;
        Ok(Self {
            keyring: settings.keyring(),
            database: settings.store.clone(),
            kek,
            folder: folder.to_owned(),
        })
    }

    /// Opens the keyring, and makes one where there is none.
    pub(super) fn open(&self) -> Result<Keyring, Error> {
        self.may_be_made()?;
        Ok(Keyring::open_with(&self.keyring, self.kek.as_ref())?)
    }

    /// Refuses to have a keyring made beside a database that is in use, which no new one could open.
    pub(super) fn may_be_made(&self) -> Result<(), Error> {
        let used = self.database.metadata().is_ok_and(|found| found.len() > 0);
        if used && self.keyring.symlink_metadata().is_err() {
            return Err(Error::NoKeyring {
                keyring: self.keyring.clone(),
                database: self.database.clone(),
            });
        }
        Ok(())
    }
}

/// What watches over the vault of a running process.
pub(super) struct Guard {
    pub(super) place: Place,
    pub(super) vault: Vault,
    /// The keyring was changed by this process.
    changed: Notify,
    mark: Mark,
    seen: Mutex<Seen>,
}

/// What was seen of the database.
struct Seen {
    mark: Marked,
    older: bool,
}

impl Guard {
    pub(super) fn new(settings: &Settings, place: Place, keyring: &Keyring) -> Result<Self, Error> {
        let path = settings.mark();
        let folder = path.parent().unwrap_or(&path);
        // Whoever can write there can take the mark away, and nothing would be missed. A folder that is missing is told of
        // with the mark.
        if folder.is_dir() {
            guard::check(folder, folder).map_err(Error::LooseState)?;
        }
        let mark = Mark::new(path, keyring.mac("mark"));
        let seen = Seen {
            mark: mark.read()?,
            older: false,
        };
        warn(&place, &keyring.view());
        Ok(Self {
            vault: keyring.vault(),
            place,
            changed: Notify::new(),
            mark,
            seen: Mutex::new(seen),
        })
    }

    /// Takes a change of the keyring up, and lets the rows follow.
    pub(super) fn keys_changed(&self) {
        // Where it cannot be read now, that is told with what is asked next.
        self.vault.follow();
        self.changed.notify_one();
    }

    /// Whether the database is older than one that was in use here, as far as is known.
    pub(super) fn older(&self) -> bool {
        self.seen().older
    }

    /// Whether a database with this number of changes is older than one that was in use here.
    pub(super) fn is_older(&self, number: u64) -> bool {
        match self.seen().mark {
            Marked::Never => false,
            Marked::At(at) => number < at,
            Marked::Unknown => true,
        }
    }

    /// Takes the number of changes for what it says of the database's age; tells where that is something new.
    fn judge(&self, number: u64) -> Option<bool> {
        let older = self.is_older(number);
        let mut seen = self.seen();
        if !older {
            self.raise(&mut seen, number);
        }
        let news = seen.older != older;
        seen.older = older;
        news.then_some(older)
    }

    fn raise(&self, seen: &mut Seen, number: u64) {
        if seen.mark == Marked::At(number) {
            return;
        }
        match self.mark.write(number) {
            Ok(()) => seen.mark = Marked::At(number),
            Err(error) => tracing::warn!(%error, "an older database would not be noticed"),
        }
    }

    /// The highest number that was seen, where that is known.
    fn highest(&self) -> u64 {
        match self.seen().mark {
            Marked::At(number) => number,
            Marked::Never | Marked::Unknown => 0,
        }
    }

    /// The operator's word: from this number on, the database is the one to go on with.
    fn accept(&self, number: u64) -> Result<(), vault::Error> {
        self.mark.write(number)?;
        *self.seen() = Seen {
            mark: Marked::At(number),
            older: false,
        };
        Ok(())
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn status(&self) -> VaultStatus {
        VaultStatus {
            keyring: self.place.keyring.display().to_string(),
            sealed: self.place.kek.is_some(),
            primary: self.vault.primary().to_string(),
            older: self.older(),
        }
    }
}

fn warn(place: &Place, view: &KeyringView) {
    if place.kek.is_some() && view.sealed_for.is_empty() {
        let keyring = place.keyring.display().to_string();
        tracing::warn!(
            keyring,
            "the keyring is not sealed yet; run `tollgate keys init`"
        );
    }
}

impl Core {
    /// Judges the database's age by its number of changes, before anything is answered and from time to time.
    pub(super) fn judge_age(&self, number: u64) {
        let Some(older) = self.guard.judge(number) else {
            return;
        };
        self.store.refuse_older(older);
        if !older {
            tracing::info!("the database is no longer older than one that was in use here");
            return;
        }
        let code = Code::VaultOlder;
        tracing::error!(
            code = code.as_str(),
            number,
            highest = self.guard.highest(),
            "the database is older than one that was in use here; connections are refused until \
             `tollgate vault accept-restore`"
        );
        let mut record = Record::new(self.clock.now(), Kind::Credential, Phase::Decision)
            .ended(OutcomeKind::Refused, Some(code));
        record.method = Some("older_database".into());
        self.record(record);
    }

    /// Looks at the number of changes now.
    pub(super) async fn look_at_age(&self) {
        match self.store.changes().await {
            Ok(number) => self.judge_age(number),
            // Every other use of the database says so as well.
            Err(error) => tracing::debug!(%error, "the age of the database is not known"),
        }
    }

    /// Takes the operator's word that an older database is the one to go on with; gives the number that it has then.
    pub(super) async fn accept_restore(&self) -> Result<u64, String> {
        self.look_at_age().await;
        if !self.guard.older() {
            return Err("the database is not older than one that was in use here; there is nothing to accept".into());
        }
        let accepted = self.store.count_beyond(self.guard.highest()).await;
        let number = accepted.map_err(|error| error.to_string())?;
        self.guard
            .accept(number)
            .map_err(|error| error.to_string())?;
        self.store.refuse_older(false);
        Ok(number)
    }
}

/// Watches the database's age until the task is dropped.
pub(super) async fn watch_age(core: Arc<Core>) {
    let mut ticks = ticks();
    loop {
        ticks.tick().await;
        core.look_at_age().await;
    }
}

/// Follows the keyring until the task is dropped. Now and then all rows are gone through without a change of it: another
/// process may have sealed some under the key before.
pub(super) async fn watch_keys(core: Arc<Core>) {
    let mut ticks = ticks();
    let (mut sealed_under, mut looks) = (None, 0);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = core.guard.changed.notified() => {}
        }
        core.guard.vault.follow();
        let primary = core.guard.vault.primary();
        if sealed_under != Some(primary) || looks == LOOKS {
            sealed_under = follow(&core).await.then_some(primary);
            looks = 0;
        }
        looks += 1;
    }
}

fn ticks() -> Interval {
    let mut ticks = interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Seals again what is sealed under another key than the primary one, and counts the rows of each; whether nothing is left.
async fn follow(core: &Core) -> bool {
    if core.guard.older() {
        return false;
    }
    let followed = seal_all(core).await.unwrap_or_else(|error| {
        tracing::warn!(error, "rows could not be sealed under the primary key");
        false
    });
    count(&core.store, &core.metrics).await;
    followed
}

async fn seal_all(core: &Core) -> Result<bool, String> {
    let vault = &core.guard.vault;
    let sealed = core.store.seal_check().await;
    sealed.map_err(|error| error.to_string())?;
    let round = connect::reseal(&*core.store, vault).await;
    let round = round.map_err(|error| error.to_string())?;
    if round.done > 0 {
        let (primary, done) = (vault.primary(), round.done);
        tracing::info!(%primary, done, "rows were sealed under the primary key");
    }
    Ok(round.busy == 0)
}

async fn count(store: &Store, metrics: &Metrics) {
    if let Ok(rows) = store.sealed_rows().await {
        let rows: Vec<(String, u64)> = rows
            .into_iter()
            .map(|(kid, rows)| (kid.to_string(), rows))
            .collect();
        metrics.vault_records(rows.iter().map(|(kid, rows)| (&**kid, *rows)));
    }
}
