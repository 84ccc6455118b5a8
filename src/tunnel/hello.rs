//! The first flight of a TLS client, read for the name that it asks for (RFC 8446, sections 4.1.2, 4.2 and 5.1; RFC 6066,
//! section 3; RFC 9849 for Encrypted Client Hello).

mod error;
mod message;

pub use error::HelloError;

use crate::address::{Host, Name};

/// The most bytes of a ClientHello, its own head included.
const MAX_HELLO: usize = 16 * 1024;
/// The most bytes of the records that carry it.
const MAX_RECORDS: usize = 2 * MAX_HELLO;
/// The most bytes of one record (RFC 8446, section 5.1).
const MAX_RECORD: usize = 16 * 1024;
/// The head of a record: type, version, length.
const RECORD_HEAD: usize = 5;
/// The head of a handshake message: type, length.
const MESSAGE_HEAD: usize = 4;
/// The type of the message.
const CLIENT_HELLO: u8 = 1;

/// What a ClientHello says in the clear.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The server name, lower-case.
    pub name: Name,
    /// Whether an encrypted ClientHello lies within, or noise in the place of one: which of both cannot be told.
    pub ech: bool,
}

impl Hello {
    /// Checks that a tunnel to `host` is used for `host`. An encrypted ClientHello asks for another name than the one in
    /// the clear, so that one has to be the host's, too.
    ///
    /// # Errors
    ///
    /// [`HelloError::Mismatch`].
    pub fn check(&self, host: &Host) -> Result<(), HelloError> {
        match host {
            Host::Name(name) if *name == self.name => Ok(()),
            _ => Err(HelloError::Mismatch {
                name: self.name.clone(),
                host: host.clone(),
            }),
        }
    }
}

/// Reads a ClientHello from a buffer that grows; the result does not depend on how it grows.
#[derive(Debug, Default)]
pub struct HelloReader {
    /// How much of the buffer was read.
    read: usize,
    /// How much of the record is still to come.
    record: usize,
    /// The message, without the heads of its records.
    message: Vec<u8>,
}

impl HelloReader {
    /// Reads on in `input`, everything that has come from the client; `None` where more has to come. At most 32 KiB are
    /// looked at.
    ///
    /// # Errors
    ///
    /// [`HelloError`], as soon as it is certain.
    pub fn read(&mut self, input: &[u8]) -> Result<Option<Hello>, HelloError> {
        let input = &input[..input.len().min(MAX_RECORDS)];
        while let rest @ [_, ..] = &input[self.read..] {
            if self.record == 0 {
                let Some(length) = self.record(rest)? else {
                    break;
                };
                self.read += RECORD_HEAD;
                self.record = length;
                continue;
            }
            let wanted = self.wanted()?;
            let piece = &rest[..rest.len().min(self.record).min(wanted)];
            self.message.extend_from_slice(piece);
            self.read += piece.len();
            self.record -= piece.len();
            if self.wanted()? == 0 {
                return self.whole().map(Some);
            }
        }
        if input.len() == MAX_RECORDS {
            return Err(HelloError::Long);
        }
        Ok(None)
    }

    /// The length of the record that begins here, once it is known.
    fn record(&self, rest: &[u8]) -> Result<Option<usize>, HelloError> {
        // The minor version means nothing (RFC 8446, section 5.1).
        let is_handshake = matches!(rest, [22] | [22, 3, ..]);
        if !is_handshake && self.message.is_empty() {
            return Err(HelloError::NotTls);
        }
        if !is_handshake {
            return Err(HelloError::Malformed("another record lies within it"));
        }
        let [_, _, _, high, low, ..] = *rest else {
            return Ok(None);
        };
        match usize::from(u16::from_be_bytes([high, low])) {
            0 => Err(HelloError::Malformed("a record is empty")),
            length @ 1..=MAX_RECORD => Ok(Some(length)),
            _ => Err(HelloError::Malformed("a record is longer than 16 KiB")),
        }
    }

    /// How many bytes the message lacks: those of its head while that is not whole, 0 once it is there.
    fn wanted(&self) -> Result<usize, HelloError> {
        if self
            .message
            .first()
            .is_some_and(|kind| *kind != CLIENT_HELLO)
        {
            return Err(HelloError::Malformed("it is another handshake message"));
        }
        let [_, high, middle, low, body @ ..] = &*self.message else {
            return Ok(MESSAGE_HEAD - self.message.len());
        };
        let length = u32::from_be_bytes([0, *high, *middle, *low]) as usize;
        if length > MAX_HELLO - MESSAGE_HEAD {
            return Err(HelloError::Long);
        }
        Ok(length - body.len())
    }

    fn whole(&self) -> Result<Hello, HelloError> {
        if self.record > 0 {
            return Err(HelloError::Malformed("more follows in its record"));
        }
        message::read(&self.message[MESSAGE_HEAD..])
    }
}

#[cfg(test)]
mod tests;
