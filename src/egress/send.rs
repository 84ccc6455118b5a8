//! One request, from its permit to the head of its answer.

mod call;
mod lines;
mod place;
mod request;

use std::{net::IpAddr, sync::Arc};

use bytes::Bytes;
use http::{Method, StatusCode};

use self::call::Call;
pub use self::lines::FieldLines;
pub(super) use self::{place::Place, request::wire};
use super::{Body, Egress, Failed, Fields, exchange::Wire};
use crate::{
    address::Judged,
    audit::{Intent, Recorded},
    deadline::Deadline,
    policy::Permit,
};

/// A request that policy let through.
pub struct Outbound<'a> {
    /// Who may, where, within which limits.
    pub permit: &'a Permit,
    /// Its method.
    pub method: Method,
    /// Its header fields; path and `Host` come from the permit's server, and the framing from the body.
    pub fields: FieldLines,
    /// Its body.
    pub body: Bytes,
    /// What it does there.
    pub effect: &'a Effect,
    /// The end of the call.
    pub deadline: Deadline,
}

/// What a request does at the server.
#[derive(Debug)]
pub enum Effect {
    /// It changes nothing.
    Read,
    /// It may change something: the intent stands on disk.
    Write(Recorded<Intent>),
}

/// Where a request went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The host, as registered.
    pub host: Arc<str>,
    /// The port.
    pub port: u16,
    /// The judged answer.
    pub addresses: Vec<IpAddr>,
    /// Whether these addresses could be judged.
    pub pinned: bool,
    /// The grant that opened them, where one was needed.
    pub grant: Option<Arc<str>>,
}

/// An answer whose head has come.
#[derive(Debug)]
pub struct Inbound {
    /// The status; never 1xx, and of 3xx only 304.
    pub status: StatusCode,
    /// The header fields; those about a coding that was undone are gone.
    pub headers: Fields,
    /// Where it came from.
    pub destination: Destination,
    /// The rest.
    pub body: Box<Body>,
}

impl Egress {
    /// Sends a request to its judged destination and waits for the head of the answer. It is never repeated once a
    /// byte may have left.
    ///
    /// # Errors
    ///
    /// [`Failed`] says why, and whether anything can have been sent.
    pub async fn send(&self, out: Outbound<'_>) -> Result<Inbound, Failed> {
        let Outbound {
            permit,
            method,
            fields,
            body,
            effect: _kept,
            deadline,
        } = out;
        let place = Place::of_server(permit);
        let wire = wire(place.endpoint, method, &fields, body);
        self.deliver(&place, wire, deadline).await
    }

    /// The steps of every request to a place: judge it, find a connection, send once, take the head.
    pub(super) async fn deliver(
        &self,
        place: &Place<'_>,
        wire: Wire,
        deadline: Deadline,
    ) -> Result<Inbound, Failed> {
        let (target, host) = (place.endpoint.target(), place.host());
        let judged = self.locate(place.rules, &place.leg, target, host, deadline);
        let judged = judged.await.map_err(|error| Failed::unsent(error, None))?;
        let destination = Destination::new(host.clone(), target.port(), &judged);
        let call = Call {
            egress: self,
            place,
            deadline,
        };
        match call.deliver(&judged.addresses, wire).await {
            Ok((status, headers, body)) => Ok(Inbound {
                status,
                headers,
                destination,
                body,
            }),
            Err((error, not_sent)) => Err(Failed {
                error,
                not_sent,
                destination: Some(Box::new(destination)),
            }),
        }
    }
}

impl Destination {
    pub(super) fn new(host: Arc<str>, port: u16, judged: &Judged) -> Self {
        Self {
            host,
            port,
            addresses: judged
                .addresses
                .iter()
                .map(|address| address.socket().ip())
                .collect(),
            pinned: judged.pinned,
            grant: judged.grant.clone(),
        }
    }
}
