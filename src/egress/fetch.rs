//! One request of Tollgate's own for a server's OAuth, and its whole answer: judged like any other, never redirected.

use bytes::Bytes;
use http::{Method, StatusCode};

use super::{
    Destination, Egress, Failed, FieldLines, Fields, Inbound,
    send::{Place, wire},
};
use crate::{deadline::Deadline, policy::LegPermit};

/// A request that policy let through.
pub struct Fetch<'a> {
    /// Where, and by which rules.
    pub permit: &'a LegPermit,
    /// Its method.
    pub method: Method,
    /// Its header fields; path and `Host` come from the permit.
    pub fields: FieldLines,
    /// Its body.
    pub body: Bytes,
    /// Bytes of the answer at most, after decoding.
    pub response_bytes: usize,
    /// The end of it all.
    pub deadline: Deadline,
}

/// A whole answer, whatever its status; never a redirect.
#[derive(Debug)]
pub struct Fetched {
    /// The status.
    pub status: StatusCode,
    /// The header fields.
    pub headers: Fields,
    /// The body.
    pub body: Bytes,
    /// Where it came from.
    pub destination: Destination,
}

impl Egress {
    /// Sends the request to its judged destination and takes the whole answer. It is never repeated once a byte may
    /// have left.
    ///
    /// # Errors
    ///
    /// [`Failed`] says why, and whether anything can have been sent.
    pub async fn fetch(&self, fetch: Fetch<'_>) -> Result<Fetched, Failed> {
        let place = Place::of_leg(fetch.permit, fetch.response_bytes);
        let wire = wire(place.endpoint, fetch.method, &fetch.fields, fetch.body);
        let Inbound {
            status,
            headers,
            destination,
            body,
        } = self.deliver(&place, wire, fetch.deadline).await?;
        match body.collect(fetch.response_bytes).await {
            Ok(body) => Ok(Fetched {
                status,
                headers,
                body,
                destination,
            }),
            Err(error) => Err(Failed {
                error,
                not_sent: false,
                destination: Some(Box::new(destination)),
            }),
        }
    }
}
