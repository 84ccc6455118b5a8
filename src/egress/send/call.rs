//! The steps of one call that need a connection.

use std::sync::Arc;

use http::{
    StatusCode,
    header::{CONTENT_ENCODING, CONTENT_LENGTH, LOCATION},
};
use tokio::time::{Instant, timeout_at};

use super::{
    Place,
    request::{has_moved, origin},
};
use crate::{
    address::{JudgedAddr, Scheme},
    deadline::Deadline,
    egress::{
        Body, DialError, Egress, Error, Fields,
        body::{Bounds, Home},
        decode::Decoder,
        dial,
        exchange::{Broken, Live, NotSent, Wire},
        http1::only_chunked,
        pool::{Key, keep_for},
    },
};

/// What the steps of one call share.
pub(super) struct Call<'a> {
    pub(super) egress: &'a Egress,
    pub(super) place: &'a Place<'a>,
    pub(super) deadline: Deadline,
}

/// Why there is no head of an answer.
enum Stopped {
    NotSent(NotSent),
    Failed(Error),
}

impl Call<'_> {
    /// Sends the request over an idle connection, else over a fresh one, and over another only what none has taken: an
    /// effect happens once. The error says whether nothing was sent.
    pub(super) async fn deliver(
        &self,
        addresses: &[JudgedAddr],
        mut wire: Wire,
    ) -> Result<(StatusCode, Fields, Box<Body>), (Error, bool)> {
        let now = Instant::now();
        while let Some((key, live)) = self.pooled(addresses, now) {
            let sent = match self.exchange(key, live, wire, now).await {
                Ok(head) => Ok(head),
                Err(Stopped::Failed(error)) => Err((error, false)),
                // The peer closed it while it was idle.
                Err(Stopped::NotSent(back)) => {
                    wire = back.into_wire();
                    continue;
                }
            };
            self.egress.0.metrics.connection(true);
            return sent;
        }
        // Opening is rare and its state large: boxed, it does not weigh on every call.
        let opened = Box::pin(self.open(addresses)).await;
        let (key, live) = opened.map_err(|error| (error, true))?;
        self.egress.0.metrics.connection(false);
        let sent = self.exchange(key, live, wire, Instant::now()).await;
        sent.map_err(|stopped| match stopped {
            Stopped::Failed(error) => (error, false),
            Stopped::NotSent(back) => {
                let (host, source) = (self.host(), DialError::Closed(back.into_source()));
                (Error::Connect { host, source }, true)
            }
        })
    }

    /// An idle connection to one of the judged addresses, in their order.
    fn pooled(&self, addresses: &[JudgedAddr], now: Instant) -> Option<(Key, Box<Live>)> {
        let mut key = Key::new(self.place, *addresses.first()?);
        for address in addresses {
            key.at(*address);
            if let Some(live) = self.egress.0.pool.take(&key, now) {
                return Some((key, live));
            }
        }
        None
    }

    /// A fresh connection to one of the judged addresses.
    async fn open(&self, addresses: &[JudgedAddr]) -> Result<(Key, Box<Live>), Error> {
        let (target, limit) = (self.place.endpoint.target(), self.place.limits.connect);
        let until = self.deadline.phase(limit);
        let connecting = async {
            let (stream, address) = dial::connect(&*self.egress.0.dialer, addresses, until)
                .await
                .map_err(|error| {
                    Error::unconnected(self.place.host(), error, limit, self.deadline)
                })?;
            let stream = match target.scheme() {
                Scheme::Http => stream,
                Scheme::Https => {
                    let tls = &self.egress.0.tls;
                    tls.connect(self.place.trust, target.host(), stream)
                        .await
                        .map_err(|source| Error::Tls {
                            host: self.host(),
                            source,
                        })?
                }
            };
            Ok((Key::new(self.place, address), Live::new(stream)))
        };
        timeout_at(until, connecting)
            .await
            .unwrap_or_else(|_| Err(Error::connect_late(self.place.host(), limit, self.deadline)))
    }

    /// Sends the request over `live`, `now`, and takes the head of the answer.
    async fn exchange(
        &self,
        key: Key,
        live: Box<Live>,
        wire: Wire,
        now: Instant,
    ) -> Result<(StatusCode, Fields, Box<Body>), Stopped> {
        let limit = self.place.limits.first_byte;
        let (live, status, headers) = live
            .exchange(wire, self.deadline.phase_from(now, limit))
            .await
            .map_err(|broken| match broken {
                Broken::NotSent(back) => Stopped::NotSent(back),
                Broken::Lost(source) => Stopped::Failed(Error::broken(self.place.host(), source)),
                Broken::Late if self.deadline.passed() => {
                    Stopped::Failed(Error::CallTimeout { host: self.host() })
                }
                Broken::Late => Stopped::Failed(Error::FirstByteTimeout {
                    host: self.host(),
                    limit,
                }),
            })?;
        let received = self.receive(key, live, status, headers);
        received.map_err(Stopped::Failed)
    }

    /// Checks the head and wraps the body; an answer that is refused closes its connection.
    fn receive(
        &self,
        key: Key,
        live: Box<Live>,
        status: StatusCode,
        mut headers: Fields,
    ) -> Result<(StatusCode, Fields, Box<Body>), Error> {
        let limits = &self.place.limits;
        if status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(Error::Upgrade { host: self.host() });
        }
        if status.is_redirection() && status != StatusCode::NOT_MODIFIED {
            let location = headers.get(&LOCATION);
            return Err(Error::Redirect {
                host: self.host(),
                status: status.as_u16(),
                to: origin(location),
                moved: has_moved(self.place.endpoint, location),
            });
        }
        let cap = limits.response_bytes;
        if live.announced() > cap {
            return Err(Error::TooLarge {
                host: self.host(),
                limit: cap,
            });
        }
        let coding = |coding| Error::Coding {
            host: self.host(),
            coding,
        };
        only_chunked(&headers).map_err(coding)?;
        let decoder = Decoder::of(headers.all(&CONTENT_ENCODING), cap).map_err(coding)?;
        if decoder.is_some() {
            headers.remove(&CONTENT_ENCODING);
            headers.remove(&CONTENT_LENGTH);
        }
        let home = Home {
            key,
            keep: keep_for(&headers),
        };
        let bounds = Bounds {
            host: self.host(),
            bytes: cap,
            idle: limits.idle,
            deadline: self.deadline,
        };
        Ok((
            status,
            headers,
            Body::new(self.egress.clone(), live, home, decoder, bounds),
        ))
    }

    fn host(&self) -> Arc<str> {
        self.place.host().clone()
    }
}
