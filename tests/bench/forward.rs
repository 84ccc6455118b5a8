//! Loads for a forward proxy, and the upstream behind it: plain requests, and tunnels that begin with a TLS ClientHello.
//!
//! No TLS is computed: the hello is made once, and what follows it is sent as it is. Only the hello concerns a proxy.

mod bulk;
mod idle;
mod requests;
mod route;
mod upstream;

pub(crate) use bulk::Plan as BulkPlan;
pub(crate) use bulk::run as bulk;
pub(crate) use idle::Plan as IdlePlan;
pub(crate) use idle::run as idle;
pub(crate) use requests::Plan as RequestsPlan;
pub(crate) use requests::run as requests;
pub(crate) use upstream::serve;

/// Bytes of the body that answers a request.
const BODY: usize = 1024;
/// Paths of the upstream: an answer of `BODY` bytes; bytes until the client goes; a place for bytes.
const SMALL: &str = "/small";
const SOURCE: &str = "/source";
const SINK: &str = "/sink";
