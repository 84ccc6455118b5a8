//! What connections ask of the database, each as one job of its thread.

use uuid::Uuid;

use super::{Store, Unavailable, database::Database, failure::Failure, grants, sealed};
use crate::connect::{
    Claim, Claimed, GrantKey, GrantRow, Key, Of, Older, Records, RecordsError, Row, Save, Stored,
};

impl Records for Store {
    fn grant<'a>(&'a self, key: &'a GrantKey) -> Stored<'a, Option<GrantRow>> {
        let key = key.clone();
        self.records("grant", move |database| {
            grants::one(&database.connection, &key)
        })
    }

    fn grants<'a>(&'a self, of: &'a Of, after: Option<Uuid>) -> Stored<'a, Vec<GrantRow>> {
        let of = of.clone();
        self.records("grants", move |database| {
            grants::page(&database.connection, &of, after)
        })
    }

    fn put_grant<'a>(&'a self, row: GrantRow) -> Stored<'a, Option<GrantRow>> {
        self.records("put_grant", move |database| grants::put(database, &row))
    }

    fn claim<'a>(&'a self, claim: &'a Claim) -> Stored<'a, Claimed> {
        let claim = claim.clone();
        self.records("claim", move |database| {
            let now = database.now();
            grants::claim(&mut database.connection, &claim, now)
        })
    }

    fn save<'a>(&'a self, save: &'a Save) -> Stored<'a, bool> {
        let save = save.clone();
        self.records("save", move |database| grants::save(database, &save))
    }

    fn overwrite<'a>(&'a self, version: u64, row: &'a GrantRow) -> Stored<'a, bool> {
        let row = row.clone();
        self.records("overwrite", move |database| {
            grants::overwrite(database, version, &row)
        })
    }

    fn remove_grant<'a>(
        &'a self,
        key: &'a GrantKey,
        only: Option<[u8; 16]>,
    ) -> Stored<'a, Option<GrantRow>> {
        let key = key.clone();
        self.records("remove_grant", move |database| {
            grants::remove(database, &key, only)
        })
    }

    fn read<'a>(&'a self, key: &'a Key) -> Stored<'a, Option<Row>> {
        let key = key.clone();
        self.records("read_sealed", move |database| {
            sealed::read(&database.connection, &key, database.now())
        })
    }

    fn replace<'a>(
        &'a self,
        key: &'a Key,
        expected: Option<u64>,
        row: &'a Row,
    ) -> Stored<'a, bool> {
        let (key, row) = (key.clone(), row.clone());
        self.records("replace_sealed", move |database| {
            let now = database.now();
            sealed::replace(database, &key, expected, &row, now)
        })
    }

    fn take<'a>(&'a self, key: &'a Key) -> Stored<'a, Option<Row>> {
        let key = key.clone();
        self.records("take_sealed", move |database| {
            let now = database.now();
            sealed::take(database, &key, now)
        })
    }

    fn rows<'a>(&'a self, of: &'a Of, after: Option<Uuid>) -> Stored<'a, Vec<(Key, Row)>> {
        let of = of.clone();
        self.records("sealed_rows", move |database| {
            sealed::page(&database.connection, &of, after)
        })
    }

    fn flows<'a>(&'a self, key: &'a GrantKey) -> Stored<'a, Option<(u32, i64)>> {
        let key = key.clone();
        self.records("flows", move |database| {
            sealed::flows(&database.connection, &key, database.now())
        })
    }
}

impl Store {
    fn records<T: Send + 'static>(
        &self,
        operation: &'static str,
        job: impl FnOnce(&mut Database) -> Result<T, Failure> + Send + 'static,
    ) -> Stored<'_, T> {
        Box::pin(async move {
            self.current().map_err(failed)?;
            let asked = self.worker.ask(operation, job, failed, RecordsError::code);
            asked.await
        })
    }
}

fn failed(failure: Failure) -> RecordsError {
    match failure {
        Failure::Forged => RecordsError("its tables are not those that tollgate made".into()),
        Failure::Unavailable(Unavailable::Older) => RecordsError(Box::new(Older)),
        Failure::Unavailable(why) => RecordsError(Box::new(why)),
    }
}
