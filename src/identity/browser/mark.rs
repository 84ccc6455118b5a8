//! The marks of rows: over everything that a row says.

use super::{LinkRow, SessionRow};
use crate::vault::Mac;

impl LinkRow {
    /// The same row under its mark.
    pub(super) fn marked(self, mac: &Mac) -> Self {
        let mac = mac.sign(&self.parts(&self.ends.to_be_bytes()));
        Self { mac, ..self }
    }

    /// Whether it is as it was marked.
    pub(super) fn holds(&self, mac: &Mac) -> bool {
        mac.verify(&self.parts(&self.ends.to_be_bytes()), &self.mac)
    }

    fn parts<'a>(&'a self, ends: &'a [u8; 8]) -> [&'a [u8]; 5] {
        let (tenant, user) = (&self.owner.tenant, &self.owner.user);
        [
            b"link 1",
            &self.digest,
            tenant.as_bytes(),
            user.as_bytes(),
            ends,
        ]
    }
}

impl SessionRow {
    /// The same row under its mark.
    pub(super) fn marked(self, mac: &Mac) -> Self {
        let mac = mac.sign(&self.parts(&self.times()));
        Self { mac, ..self }
    }

    /// Whether it is as it was marked.
    pub(super) fn holds(&self, mac: &Mac) -> bool {
        mac.verify(&self.parts(&self.times()), &self.mac)
    }

    fn parts<'a>(&'a self, times: &'a [u8; 24]) -> [&'a [u8]; 5] {
        let (tenant, user) = (&self.owner.tenant, &self.owner.user);
        [
            b"session 1",
            &self.digest,
            tenant.as_bytes(),
            user.as_bytes(),
            times,
        ]
    }

    fn times(&self) -> [u8; 24] {
        let mut times = [0; 24];
        times[..8].copy_from_slice(&self.made.to_be_bytes());
        times[8..16].copy_from_slice(&self.seen.to_be_bytes());
        times[16..].copy_from_slice(&self.ends.to_be_bytes());
        times
    }
}
