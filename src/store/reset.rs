//! The end of everything sealed, where the keyring is lost or nothing of it is to be kept.

use std::{path::Path, sync::Arc};

use rusqlite::{Transaction, TransactionBehavior};

use super::{
    Error, Store,
    database::{Database, sqlite},
    failure::Failure,
    heads::Heads,
    sessions, vault,
};
use crate::{clock::SystemClock, vault::Keyring};

/// What was forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forgotten {
    /// Sealed rows.
    pub rows: u64,
    /// Whether pins were forgotten too: without the keyring that marked them they could not be believed.
    pub pins: bool,
}

impl Store {
    /// Takes every sealed row out of the database at `path`, which no process may use meanwhile, and begins anew with
    /// `keyring`; pins that this one did not mark go too.
    ///
    /// # Errors
    ///
    /// A database that cannot be used stays as it is.
    pub fn reset(path: &Path, keyring: &Keyring) -> Result<Forgotten, Error> {
        let mut database = Database::open_any(path, keyring, Arc::new(SystemClock))?;
        reset(&mut database).map_err(|source| sqlite(path, source))
    }
}

fn reset(database: &mut Database) -> rusqlite::Result<Forgotten> {
    database.migrate()?;
    let immediate = TransactionBehavior::Immediate;
    let transaction = database.connection.transaction_with_behavior(immediate)?;
    let rows = vault::reset(&transaction, &database.mac, &database.vault)?;
    let pins = matches!(
        Heads::read(&transaction, &database.mac),
        Err(Failure::Forged)
    );
    if pins {
        forget_pins(&transaction)?;
        Heads::default().write(&transaction, &database.mac)?;
    }
    sessions::forget(&transaction)?;
    transaction.commit()?;
    Ok(Forgotten { rows, pins })
}

fn forget_pins(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    transaction.execute_batch("DELETE FROM pin_items; DELETE FROM pins;")
}
