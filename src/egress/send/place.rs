//! Where a request goes and what bounds it, whichever permit says so.

use std::{sync::Arc, time::Duration};

use crate::{
    address::{Leg, Rules},
    policy::{Endpoint, LegPermit, Permit, Trust},
    subject::Owner,
};

/// How long connecting may take for OAuth, the handshake included.
const OAUTH_CONNECT: Duration = Duration::from_secs(5);
/// How long an authorization server may be silent; the deadline may come sooner.
const OAUTH_SILENCE: Duration = Duration::from_secs(10);

/// A registered server, or a place that its OAuth needs.
pub(in crate::egress) struct Place<'a> {
    pub(in crate::egress) endpoint: &'a Endpoint,
    pub(in crate::egress) trust: &'a Trust,
    pub(in crate::egress) leg: Leg,
    pub(in crate::egress) owner: &'a Owner,
    pub(in crate::egress) generation: u64,
    pub(in crate::egress) rules: &'a Rules,
    pub(in crate::egress) limits: Limits,
}

/// Bounds of one request and its answer.
pub(in crate::egress) struct Limits {
    pub(in crate::egress) connect: Duration,
    pub(in crate::egress) first_byte: Duration,
    pub(in crate::egress) idle: Duration,
    /// Bytes of the answer, after decoding.
    pub(in crate::egress) response_bytes: usize,
}

impl<'a> Place<'a> {
    /// The registered server itself.
    pub(in crate::egress) fn of_server(permit: &'a Permit) -> Self {
        let server = permit.server();
        let limits = &server.limits;
        Self {
            endpoint: &server.endpoint,
            trust: &server.trust,
            leg: permit.leg(),
            owner: permit.owner(),
            generation: permit.generation(),
            rules: permit.addresses(),
            limits: Limits {
                connect: limits.connect,
                first_byte: limits.first_byte,
                idle: limits.idle,
                response_bytes: limits.response_bytes,
            },
        }
    }

    /// A place that its OAuth needs.
    pub(in crate::egress) fn of_leg(permit: &'a LegPermit, response_bytes: usize) -> Self {
        Self {
            endpoint: permit.endpoint(),
            trust: permit.trust(),
            leg: permit.leg(),
            owner: permit.owner(),
            generation: permit.generation(),
            rules: permit.addresses(),
            limits: Limits {
                connect: OAUTH_CONNECT,
                first_byte: OAUTH_SILENCE,
                idle: OAUTH_SILENCE,
                response_bytes,
            },
        }
    }

    /// The host's text.
    pub(in crate::egress) fn host(&self) -> &'a Arc<str> {
        self.endpoint.host()
    }
}
