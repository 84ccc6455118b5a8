//! One request, from its permit to the head of its answer.

use std::{future::poll_fn, net::IpAddr, sync::Arc, task::Poll, time::Duration};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Uri, Version,
    header::{
        ACCEPT_ENCODING, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, EXPECT, HOST, LOCATION, TE,
        TRAILER, TRANSFER_ENCODING, UPGRADE,
    },
    uri::PathAndQuery,
};
use http_body::Body as _;
use http_body_util::Full;
use hyper::body::Incoming;
use tokio::time::timeout_at;

use super::{
    Body, DialError, Egress, Error, Failed,
    body::{Bounds, Home},
    decode::Decoder,
    dial,
    exchange::{Broken, Live},
    locate,
    pool::{Key, keep_for},
};
use crate::{
    address::{Host, Judged, JudgedAddr, Scheme, Target},
    audit::{Intent, Recorded},
    deadline::Deadline,
    policy::{Permit, Server},
};

/// Header fields about one connection or one framing; they are ours to write.
const FRAMING: [HeaderName; 7] = [
    CONNECTION,
    CONTENT_LENGTH,
    EXPECT,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// A request that policy let through.
pub struct Outbound<'a> {
    /// Who may, where, within which limits.
    pub permit: &'a Permit,
    /// Method, headers and body; the URI comes from the permit's server, as do `Host` and the framing.
    pub request: Request<Bytes>,
    /// What it does there.
    pub effect: Effect,
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
    pub headers: HeaderMap,
    /// Where it came from.
    pub destination: Destination,
    /// The rest.
    pub body: Body,
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
            request,
            effect: _kept,
            deadline,
        } = out;
        let server = permit.server();
        let host = host_text(server.target.host());
        let unsent = |error, destination: Option<&Destination>| Failed {
            error,
            not_sent: true,
            destination: destination.cloned().map(Box::new),
        };
        let mut request = prepare(server, &host, request).map_err(|error| unsent(error, None))?;
        let judged = self
            .judge(permit, &host, deadline)
            .await
            .map_err(|error| unsent(error, None))?;
        let destination = Destination::new(host, server.target.port(), &judged);
        let mut call = Call {
            egress: self,
            permit,
            destination: &destination,
            deadline,
        };

        while let Some((key, live)) = call.pooled(&judged.addresses).await {
            match call.exchange(key, live, request).await {
                Ok((status, headers, body)) => {
                    return Ok(Inbound {
                        status,
                        headers,
                        destination,
                        body,
                    });
                }
                // The peer closed it while it was idle; nothing was sent.
                Err(Stopped::Unsent(back)) => request = *back,
                Err(Stopped::Failed(error)) => return Err(sent(error, destination)),
            }
        }
        // Opening is rare and its state large: boxed, it does not weigh on every call.
        let (key, live) = Box::pin(call.open(&judged.addresses))
            .await
            .map_err(|error| unsent(error, Some(&destination)))?;
        match call.exchange(key, live, request).await {
            Ok((status, headers, body)) => Ok(Inbound {
                status,
                headers,
                destination,
                body,
            }),
            Err(Stopped::Failed(error)) => Err(sent(error, destination)),
            Err(Stopped::Unsent(_)) => {
                let host = destination.host.clone();
                let source = DialError::Failed { tried: Vec::new() };
                Err(unsent(Error::Connect { host, source }, Some(&destination)))
            }
        }
    }

    async fn judge(
        &self,
        permit: &Permit,
        host: &Arc<str>,
        deadline: Deadline,
    ) -> Result<Judged, Error> {
        let resolver = self.resolver();
        let leg = permit.leg();
        let judging = locate(
            permit.addresses(),
            &leg,
            &permit.server().target,
            &*resolver,
        );
        timeout_at(deadline.instant(), judging)
            .await
            .unwrap_or_else(|_| Err(Error::CallTimeout { host: host.clone() }))
    }
}

fn sent(error: Error, destination: Destination) -> Failed {
    Failed {
        error,
        not_sent: false,
        destination: Some(Box::new(destination)),
    }
}

impl Destination {
    fn new(host: Arc<str>, port: u16, judged: &Judged) -> Self {
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

/// What the steps of one call share.
struct Call<'a> {
    egress: &'a Egress,
    permit: &'a Permit,
    destination: &'a Destination,
    deadline: Deadline,
}

enum Stopped {
    Unsent(Box<Request<Full<Bytes>>>),
    Failed(Error),
}

impl Call<'_> {
    /// An idle connection to one of the judged addresses, in their order.
    async fn pooled(&self, addresses: &[JudgedAddr]) -> Option<(Key, Box<Live>)> {
        let mut key = Key::new(self.permit, *addresses.first()?);
        for address in addresses {
            key.at(*address);
            if let Some(live) = self.egress.0.pool.take(&key).await {
                return Some((key, live));
            }
        }
        None
    }

    /// A fresh connection to one of the judged addresses.
    async fn open(&self, addresses: &[JudgedAddr]) -> Result<(Key, Box<Live>), Error> {
        let server = self.permit.server();
        let limit = server.limits.connect;
        let until = self.deadline.phase(limit);
        let connecting = async {
            let (stream, address) = dial::connect(&*self.egress.0.dialer, addresses, until)
                .await
                .map_err(|error| self.dial_error(error, limit))?;
            let stream = match server.target.scheme() {
                Scheme::Http => stream,
                Scheme::Https => {
                    let tls = &self.egress.0.tls;
                    tls.connect(&server.trust, server.target.host(), stream)
                        .await
                        .map_err(|source| Error::Tls {
                            host: self.host(),
                            source,
                        })?
                }
            };
            let live = Live::open(stream).await.map_err(|source| Error::Lost {
                host: self.host(),
                source,
            })?;
            Ok((Key::new(self.permit, address), live))
        };
        timeout_at(until, connecting)
            .await
            .unwrap_or_else(|_| Err(self.connect_timeout(limit)))
    }

    /// Sends the request over `live` and takes the head of the answer.
    async fn exchange(
        &mut self,
        key: Key,
        live: Box<Live>,
        request: Request<Full<Bytes>>,
    ) -> Result<(StatusCode, HeaderMap, Body), Stopped> {
        let limit = self.permit.server().limits.first_byte;
        let (live, response) = live
            .exchange(request, self.deadline.phase(limit))
            .await
            .map_err(|broken| match broken {
                Broken::Unsent(request) => Stopped::Unsent(request),
                Broken::Lost(source) => Stopped::Failed(self.broken(source)),
                Broken::Late if self.deadline.passed() => {
                    Stopped::Failed(Error::CallTimeout { host: self.host() })
                }
                Broken::Late => Stopped::Failed(Error::FirstByteTimeout {
                    host: self.host(),
                    limit,
                }),
            })?;
        let (status, headers, mut body) =
            self.receive(key, live, response).map_err(Stopped::Failed)?;
        poll_fn(|context| {
            body.settle(context);
            Poll::Ready(())
        })
        .await;
        Ok((status, headers, body))
    }

    /// Checks the head and wraps the body; an answer that is refused closes its connection.
    fn receive(
        &self,
        key: Key,
        live: Box<Live>,
        response: Response<Incoming>,
    ) -> Result<(StatusCode, HeaderMap, Body), Error> {
        let limits = &self.permit.server().limits;
        let (mut head, incoming) = response.into_parts();
        if head.status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(Error::Upgrade { host: self.host() });
        }
        if head.status.is_redirection() && head.status != StatusCode::NOT_MODIFIED {
            return Err(Error::Redirect {
                host: self.host(),
                status: head.status.as_u16(),
                to: origin(head.headers.get(LOCATION)),
            });
        }
        let cap = limits.response_bytes;
        if incoming.size_hint().lower() > u64::try_from(cap).unwrap_or(u64::MAX) {
            return Err(Error::TooLarge {
                host: self.host(),
                limit: cap,
            });
        }
        let decoder = Decoder::of(&head.headers, cap).map_err(|coding| Error::Coding {
            host: self.host(),
            coding,
        })?;
        if decoder.is_some() {
            head.headers.remove(CONTENT_ENCODING);
            head.headers.remove(CONTENT_LENGTH);
        }
        let home = Home {
            pool: self.egress.0.pool.clone(),
            key,
            keep: keep_for(&head.headers),
        };
        let bounds = Bounds {
            host: self.host(),
            bytes: cap,
            idle: limits.idle,
            deadline: self.deadline,
        };
        Ok((
            head.status,
            head.headers,
            Body::new(incoming, live, home, decoder, bounds),
        ))
    }

    fn broken(&self, source: hyper::Error) -> Error {
        if source.is_parse() {
            Error::ResponseHead {
                host: self.host(),
                source,
            }
        } else {
            Error::Lost {
                host: self.host(),
                source,
            }
        }
    }

    fn dial_error(&self, source: DialError, limit: Duration) -> Error {
        match source {
            DialError::TimedOut { .. } => self.connect_timeout(limit),
            DialError::Failed { .. } => Error::Connect {
                host: self.host(),
                source,
            },
        }
    }

    fn connect_timeout(&self, limit: Duration) -> Error {
        if self.deadline.passed() {
            Error::CallTimeout { host: self.host() }
        } else {
            Error::ConnectTimeout {
                host: self.host(),
                limit,
            }
        }
    }

    fn host(&self) -> Arc<str> {
        self.destination.host.clone()
    }
}

/// The request as it goes over the wire: origin-form (RFC 9112, section 3.2.1), our `Host`, our framing.
fn prepare(
    server: &Server,
    host: &Arc<str>,
    request: Request<Bytes>,
) -> Result<Request<Full<Bytes>>, Error> {
    let (mut head, body) = request.into_parts();
    let path = PathAndQuery::try_from(&*server.path).map_err(|source| Error::Path {
        host: host.clone(),
        source,
    })?;
    head.uri = Uri::from(path);
    head.version = Version::HTTP_11;
    for name in &FRAMING {
        head.headers.remove(name);
    }
    head.headers.insert(HOST, authority(&server.target, host));
    head.headers
        .insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    Ok(Request::from_parts(head, Full::new(body)))
}

fn host_text(host: &Host) -> Arc<str> {
    match host {
        Host::Name(name) => Arc::from(name.as_str()),
        Host::Ip(IpAddr::V4(address)) => Arc::from(address.to_string()),
        Host::Ip(IpAddr::V6(address)) => Arc::from(format!("[{address}]")),
    }
}

/// Host and port, without the port that the scheme implies (RFC 9110, section 7.2).
fn authority(target: &Target, host: &str) -> HeaderValue {
    let implied = match target.scheme() {
        Scheme::Http => 80,
        Scheme::Https => 443,
    };
    let text = if target.port() == implied {
        HeaderValue::from_str(host)
    } else {
        HeaderValue::try_from(format!("{host}:{}", target.port()))
    };
    text.expect("a parsed host is ASCII without control characters")
}

/// Scheme and host of a `Location`, and nothing else of it: paths and queries carry secrets.
fn origin(location: Option<&HeaderValue>) -> String {
    let Some(location) = location else {
        return "no other place".to_owned();
    };
    let Ok(text) = location.to_str() else {
        return "an unreadable place".to_owned();
    };
    if text.starts_with('/') && !text.starts_with("//") {
        return "another path on itself".to_owned();
    }
    match Target::from_wire(text) {
        Ok(target) => {
            let scheme = match target.scheme() {
                Scheme::Http => "http",
                Scheme::Https => "https",
            };
            format!("{scheme}://{}", host_text(target.host()))
        }
        Err(_) => "a place that is no valid URL".to_owned(),
    }
}
