//! A process that stops for ever at one step of a refresh, where it can be killed: its store and its dialer say that it has
//! come there, and do not go on.

use std::{
    future::{Future, pending},
    io,
};

use futures_util::future::BoxFuture;
use tollgate::{
    address::JudgedAddr,
    connect::{Claim, Claimed, GrantKey, GrantRow, Key, Of, Records, Row, Save, Stored},
    egress::{Dial, Io, TcpDialer},
    store::Store,
};
use uuid::Uuid;

use super::processes::say;

/// The step: `claim`, `save` and `overwrite` are before these are done, `claimed`, `saved` and `overwritten` after them
/// and before anybody knows, and `dial` is before there is a connection to the provider.
#[derive(Clone, Debug)]
pub(super) struct Held(String);

impl Held {
    pub(super) fn new(step: &str) -> Self {
        Self(step.to_owned())
    }

    async fn at(&self, step: &str) {
        if self.0 == step {
            say("held");
            pending().await
        }
    }

    async fn around<T>(&self, [before, after]: [&str; 2], done: impl Future<Output = T>) -> T {
        self.at(before).await;
        let done = done.await;
        self.at(after).await;
        done
    }
}

/// What TCP reaches.
pub(super) struct HeldDialer(pub(super) Held);

impl Dial for HeldDialer {
    fn dial(&self, address: JudgedAddr) -> BoxFuture<'_, io::Result<Box<dyn Io>>> {
        Box::pin(async move {
            self.0.at("dial").await;
            TcpDialer.dial(address).await
        })
    }
}

/// A real store.
#[derive(Debug)]
pub(super) struct HeldStore(pub(super) Held, pub(super) Store);

impl Records for HeldStore {
    fn claim<'a>(&'a self, claim: &'a Claim) -> Stored<'a, Claimed> {
        Box::pin(self.0.around(["claim", "claimed"], self.1.claim(claim)))
    }

    fn save<'a>(&'a self, save: &'a Save) -> Stored<'a, bool> {
        Box::pin(self.0.around(["save", "saved"], self.1.save(save)))
    }

    fn overwrite<'a>(&'a self, version: u64, row: &'a GrantRow) -> Stored<'a, bool> {
        let steps = ["overwrite", "overwritten"];
        Box::pin(self.0.around(steps, self.1.overwrite(version, row)))
    }

    fn grant<'a>(&'a self, key: &'a GrantKey) -> Stored<'a, Option<GrantRow>> {
        self.1.grant(key)
    }

    fn grants<'a>(&'a self, of: &'a Of, after: Option<Uuid>) -> Stored<'a, Vec<GrantRow>> {
        self.1.grants(of, after)
    }

    fn put_grant<'a>(&'a self, row: GrantRow) -> Stored<'a, Option<GrantRow>> {
        self.1.put_grant(row)
    }

    fn remove_grant<'a>(
        &'a self,
        key: &'a GrantKey,
        only: Option<[u8; 16]>,
    ) -> Stored<'a, Option<GrantRow>> {
        self.1.remove_grant(key, only)
    }

    fn read<'a>(&'a self, key: &'a Key) -> Stored<'a, Option<Row>> {
        self.1.read(key)
    }

    fn replace<'a>(
        &'a self,
        key: &'a Key,
        expected: Option<u64>,
        row: &'a Row,
    ) -> Stored<'a, bool> {
        self.1.replace(key, expected, row)
    }

    fn take<'a>(&'a self, key: &'a Key) -> Stored<'a, Option<Row>> {
        self.1.take(key)
    }

    fn rows<'a>(&'a self, of: &'a Of, after: Option<Uuid>) -> Stored<'a, Vec<(Key, Row)>> {
        self.1.rows(of, after)
    }

    fn flows<'a>(&'a self, key: &'a GrantKey) -> Stored<'a, Option<(u32, i64)>> {
        self.1.flows(key)
    }
}
