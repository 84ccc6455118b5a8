//! The way out, end to end: real sockets, real TLS, a dialer that remembers.

mod body;
mod connect;
mod dns;
mod fetch;
mod hang;
mod head;
mod pool;
mod proxy;
mod request;
mod tls;

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Method, header::CONTENT_TYPE};
use rustls::RootCertStore;
use tollgate::{
    deadline::Deadline,
    egress::{Effect, Egress, Error, Failed, FieldLines, Inbound, Outbound, Tls},
    memory::Memory,
    policy::Permit,
    refusal::Code,
};

use crate::support::{
    dialer::{RecordingDialer, TableResolver},
    permit::Maker,
    upstream::Upstream,
};

/// An ordinary answer of two bytes.
const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// A way out that leads `api.test` (1.1.1.1) to `upstream`.
fn way_out(upstream: &Upstream) -> (Egress, Arc<RecordingDialer>) {
    let dialer = RecordingDialer::to(upstream.address);
    let resolver = TableResolver::of(&[("api.test", &["1.1.1.1"])]);
    (
        Egress::new(
            resolver,
            dialer.clone(),
            no_roots(),
            ample(),
            Arc::default(),
        ),
        dialer,
    )
}

pub(crate) fn no_roots() -> Tls {
    Tls::with_roots(RootCertStore::empty())
}

/// Memory that no test uses up.
pub(crate) fn ample() -> Memory {
    Memory::new(Egress::ANSWERS)
}

fn permit() -> Permit {
    Maker::new("http://api.test/mcp").permit()
}

pub(crate) async fn send(egress: &Egress, permit: &Permit) -> Result<Inbound, Failed> {
    post(egress, permit, Bytes::from_static(b"{}")).await
}

async fn post(egress: &Egress, permit: &Permit, body: Bytes) -> Result<Inbound, Failed> {
    let mut fields = FieldLines::new();
    fields.add(&CONTENT_TYPE, &HeaderValue::from_static("application/json"));
    let deadline = Deadline::after(permit.server().limits.call);
    egress
        .send(Outbound {
            permit,
            method: Method::POST,
            fields,
            body,
            effect: &Effect::Read,
            deadline,
        })
        .await
}

/// The whole answer as text, or the code of the first failure and whether nothing was sent.
async fn fetch(egress: &Egress, permit: &Permit) -> Result<String, (Code, bool)> {
    let inbound = send(egress, permit)
        .await
        .map_err(|failed| (failed.error.code(), failed.not_sent))?;
    let body = inbound
        .body
        .collect(usize::MAX)
        .await
        .map_err(|error: Error| (error.code(), false))?;
    Ok(String::from_utf8(body.to_vec()).unwrap())
}
