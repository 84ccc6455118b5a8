//! Which servers something is pinned of, and the mark over all of them: without it, who takes all rows of a server away
//! would have it pinned anew at its next list, or could put back what was pinned of it once.

use rusqlite::{OptionalExtension, Transaction};

use super::{failure::Failure, pins::bytes32};
use crate::{catalog::ServerKey, vault::Mac};

/// Every server's name, endpoint and mark, in the order of the first two.
#[derive(Default)]
pub(super) struct Heads(Vec<Head>);

struct Head {
    server: String,
    endpoint: String,
    mac: [u8; 32],
}

impl Heads {
    /// Reads all, if they are as they were written.
    pub(super) fn read(transaction: &Transaction<'_>, mac: &Mac) -> Result<Self, Failure> {
        let all = "SELECT servers, list, mac FROM pins_of_all WHERE id = 1";
        let row = transaction.query_row(all, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
        let (servers, list, mark): (i64, Vec<u8>, Vec<u8>) =
            row.optional()?.ok_or(Failure::Forged)?;
        if !mac.verify(&[b"all 1", &servers.to_be_bytes(), &list], &bytes32(&mark)?) {
            return Err(Failure::Forged);
        }
        let mut statement = transaction
            .prepare("SELECT server, endpoint, mac FROM pins ORDER BY server, endpoint LIMIT ?1")?;
        // One more than there were, to see whether there are more.
        let mut rows = statement.query([servers + 1])?;
        let mut heads = Self::default();
        while let Some(row) = rows.next()? {
            heads.0.push(Head {
                server: row.get(0)?,
                endpoint: row.get(1)?,
                mac: bytes32(&row.get::<_, Vec<u8>>(2)?)?,
            });
        }
        if !mac.verify(&heads.list(), &bytes32(&list)?) {
            return Err(Failure::Forged);
        }
        Ok(heads)
    }

    /// The mark of a server's row; `None` where nothing is pinned of it.
    pub(super) fn mark(&self, server: &ServerKey) -> Option<&[u8; 32]> {
        let place = self.place(server).ok()?;
        Some(&self.0[place].mac)
    }

    /// Takes over the mark of a server's row.
    pub(super) fn put(&mut self, server: &ServerKey, mac: [u8; 32]) {
        match self.place(server) {
            Ok(place) => self.0[place].mac = mac,
            Err(place) => {
                let head = Head {
                    server: server.name.to_string(),
                    endpoint: server.endpoint.to_string(),
                    mac,
                };
                self.0.insert(place, head);
            }
        }
    }

    /// Writes the mark over all.
    pub(super) fn write(&self, transaction: &Transaction<'_>, mac: &Mac) -> rusqlite::Result<()> {
        let servers = self.0.len() as i64;
        let list = mac.sign(&self.list());
        let mark = mac.sign(&[b"all 1", &servers.to_be_bytes(), &list]);
        transaction.execute(
            "INSERT OR REPLACE INTO pins_of_all (id, servers, list, mac) VALUES (1, ?1, ?2, ?3)",
            (servers, list, mark),
        )?;
        Ok(())
    }

    fn place(&self, server: &ServerKey) -> Result<usize, usize> {
        let key = (&*server.name, &*server.endpoint);
        self.0
            .binary_search_by(|head| (&*head.server, &*head.endpoint).cmp(&key))
    }

    fn list(&self) -> Vec<&[u8]> {
        let mut parts: Vec<&[u8]> = vec![b"servers 1"];
        for head in &self.0 {
            parts.extend([head.server.as_bytes(), head.endpoint.as_bytes(), &head.mac]);
        }
        parts
    }
}
