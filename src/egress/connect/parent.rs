//! The way through the operator's parent proxy (RFC 9110, section 9.3.6).

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::Arc,
};

use bytes::Bytes;
use http::Method;

use super::{LIMIT, Opened};
use crate::{
    address::{Blocked, Host, JudgedAddr},
    deadline::Deadline,
    egress::{
        Egress, Error, Fault, dial,
        exchange::{Broken, Live, Wire},
        locate::resolve,
    },
    policy::{Parent, ProxyPermit},
};

/// What `localhost` stands for.
const LOCALHOST: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::LOCALHOST),
    IpAddr::V6(Ipv6Addr::LOCALHOST),
];

/// One way through a parent proxy.
pub(super) struct Hop<'a> {
    egress: &'a Egress,
    permit: &'a ProxyPermit,
    parent: &'a Parent,
    /// Where it leads in the end, for the words of errors.
    host: &'a Arc<str>,
    deadline: Deadline,
    name: Arc<str>,
}

impl<'a> Hop<'a> {
    pub(super) fn new(
        egress: &'a Egress,
        permit: &'a ProxyPermit,
        parent: &'a Parent,
        host: &'a Arc<str>,
        deadline: Deadline,
    ) -> Self {
        let name = parent.target.authority().into();
        Self {
            egress,
            permit,
            parent,
            host,
            deadline,
            name,
        }
    }

    /// A tunnel to the first of the judged addresses that the parent reaches; to the name where there are none.
    pub(super) async fn open(&self, addresses: &[JudgedAddr]) -> Result<Opened, Error> {
        let own = self.locate().await.map_err(|error| self.because(error))?;
        let target = self.permit.target();
        if addresses.is_empty() {
            let place = format!("{}:{}", target.host(), target.port());
            return self.tunnel(&own, &place).await;
        }
        let mut result = None;
        for address in addresses {
            let opened = self.tunnel(&own, &address.socket().to_string()).await;
            let opened = opened.map(|opened| Opened {
                address: *address,
                ..opened
            });
            // It may have no route to one family and one to the other.
            let goes_on = matches!(
                opened,
                Err(Error::ParentStatus {
                    status: 502..=504,
                    ..
                })
            );
            result = Some(opened);
            if !goes_on {
                break;
            }
        }
        result.expect("there is an address")
    }

    /// The addresses of the parent itself.
    async fn locate(&self) -> Result<Vec<JudgedAddr>, Error> {
        let target = &self.parent.target;
        let answer: Arc<[IpAddr]> = match target.host() {
            Host::Ip(address) => [*address].into(),
            Host::Name(name) if name.is_localhost() => LOCALHOST.into(),
            Host::Name(name) => resolve(&*self.egress.resolver(), name).await?,
        };
        let rules = self.permit.addresses();
        let judged = rules.judge_infrastructure(&self.permit.leg(), target, &answer);
        Ok(judged
            .map_err(|blocked: Blocked| Error::from(blocked))?
            .addresses)
    }

    /// Asks the parent for a tunnel to `place`.
    async fn tunnel(&self, own: &[JudgedAddr], place: &str) -> Result<Opened, Error> {
        let until = self.deadline.phase(LIMIT);
        let (io, address) = dial::connect(&*self.egress.0.dialer, own, until)
            .await
            .map_err(|error| {
                self.because(Error::unconnected(&self.name, error, LIMIT, self.deadline))
            })?;
        let wire = Wire {
            method: Method::CONNECT,
            head: format!("CONNECT {place} HTTP/1.1\r\nhost: {place}\r\n\r\n").into(),
            body: Bytes::new(),
        };
        let until = self.deadline.phase(LIMIT);
        let answer = Live::new(io).exchange(wire, until).await;
        let (live, status, _) = answer.map_err(|broken| self.because(self.broken(broken)))?;
        if !status.is_success() {
            return Err(Error::ParentStatus {
                parent: self.name.clone(),
                host: self.host.clone(),
                status: status.as_u16(),
            });
        }
        // What frames a body has no meaning here: what follows is the tunnel's.
        let (io, early) = live.into_stream();
        Ok(Opened { io, early, address })
    }

    fn broken(&self, broken: Broken) -> Error {
        let fault: Fault = match broken {
            Broken::NotSent(back) => back.into_source(),
            Broken::Lost(fault) => fault,
            Broken::Late => return Error::connect_late(self.host, LIMIT, self.deadline),
        };
        Error::broken(&self.name, fault)
    }

    fn because(&self, source: Error) -> Error {
        Error::Parent {
            parent: self.name.clone(),
            source: Box::new(source),
        }
    }
}
