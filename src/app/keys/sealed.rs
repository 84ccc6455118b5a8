//! What is sealed under each key: rows of the database, and files of the spool.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
};

use super::{KeyRow, KeysError, told};
use crate::{
    app::{self, Error, start::open_store, vault::Place, worker},
    config::Settings,
    connect,
    telemetry::Metrics,
    vault::{Keyring, Kid, Vault},
};

/// What is sealed under each key.
#[derive(Default)]
pub(super) struct Sealed {
    rows: BTreeMap<Kid, u64>,
    /// Files of the spool.
    spooled: BTreeMap<Kid, u64>,
    spool: PathBuf,
}

impl Sealed {
    pub(super) fn with(
        rows: Vec<(Kid, u64)>,
        settings: &Settings,
        vault: &Vault,
    ) -> Result<Self, KeysError> {
        let spool = app::connect::spool(settings);
        let spooled = connect::spooled(&spool, vault).map_err(|source| KeysError::Spool {
            folder: spool.clone(),
            source,
        })?;
        Ok(Self {
            rows: rows.into_iter().collect(),
            spooled,
            spool,
        })
    }

    pub(super) fn row(&self, kid: Kid, state: &str) -> KeyRow {
        KeyRow {
            kid: kid.to_string(),
            state: state.to_owned(),
            rows: self.rows.get(&kid).copied().unwrap_or_default(),
            spooled: self.spooled.get(&kid).copied().unwrap_or_default(),
        }
    }

    /// The keys that something is sealed under.
    pub(super) fn keys(&self) -> BTreeSet<Kid> {
        self.rows
            .keys()
            .chain(self.spooled.keys())
            .copied()
            .collect()
    }

    /// What is in the way of a key that is to open nothing any more.
    pub(super) fn free(
        &self,
        kid: Kid,
        in_use: impl FnOnce(Kid, u64) -> KeysError,
    ) -> Result<(), KeysError> {
        let row = self.row(kid, "");
        match (row.rows, row.spooled) {
            (0, 0) => Ok(()),
            (0, files) => Err(KeysError::Spooled {
                kid,
                files,
                folder: self.spool.clone(),
            }),
            (rows, _) => Err(in_use(kid, rows)),
        }
    }
}

/// What is sealed under each key, where no process runs.
pub(super) fn sealed(settings: &Settings, place: &Place) -> Result<Sealed, Error> {
    if place.keyring.symlink_metadata().is_err() {
        return Ok(Sealed::default());
    }
    let keyring = place.open()?;
    let rows = rows(settings, &keyring)?;
    Sealed::with(rows, settings, &keyring.vault()).map_err(told)
}

/// The rows under each key, where there is a database.
fn rows(settings: &Settings, keyring: &Keyring) -> Result<Vec<(Kid, u64)>, Error> {
    if settings.store.symlink_metadata().is_err() {
        return Ok(Vec::new());
    }
    let store = open_store(&settings.store, keyring, &Arc::new(Metrics::new()))?;
    let runtime = worker::runtime().map_err(Error::Thread)?;
    let rows = runtime.block_on(async {
        let rows = store.sealed_rows().await;
        store.close().await;
        rows
    });
    rows.map_err(|error| told(KeysError::Rows(error.to_string())))
}
