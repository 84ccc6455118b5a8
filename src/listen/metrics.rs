//! What is counted at the door.

use std::sync::atomic::AtomicU64;

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

use crate::refusal::Code;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ListenerLabel {
    listener: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RefusalLabels {
    listener: &'static str,
    code: &'static str,
}

/// The metrics of all listeners.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    requests: Family<ListenerLabel, Counter>,
    refusals: Family<RefusalLabels, Counter>,
    connections: Family<ListenerLabel, Gauge>,
    turned_away: Family<ListenerLabel, Counter>,
    accept_failures: Family<ListenerLabel, Counter>,
}

impl Metrics {
    /// Registers them.
    pub fn new(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "tollgate_listen_requests",
            "Requests read",
            metrics.requests.clone(),
        );
        registry.register(
            "tollgate_listen_refusals",
            "Requests and connections refused",
            metrics.refusals.clone(),
        );
        registry.register(
            "tollgate_listen_connections",
            "Open connections",
            metrics.connections.clone(),
        );
        registry.register(
            "tollgate_listen_turned_away",
            "Connections beyond the bound",
            metrics.turned_away.clone(),
        );
        registry.register(
            "tollgate_listen_accept_failures",
            "Connections that could not be accepted",
            metrics.accept_failures.clone(),
        );
        metrics
    }

    /// The metrics of one listener, looked up once.
    pub fn listener(&self, listener: &'static str) -> Listener {
        let label = ListenerLabel { listener };
        Listener {
            name: listener,
            requests: self.requests.get_or_create(&label).clone(),
            refusals: self.refusals.clone(),
            connections: self.connections.get_or_create(&label).clone(),
            turned_away: self.turned_away.get_or_create(&label).clone(),
            accept_failures: self.accept_failures.get_or_create(&label).clone(),
        }
    }
}

/// The metrics of one listener.
#[derive(Clone, Debug)]
pub struct Listener {
    name: &'static str,
    requests: Counter<u64, AtomicU64>,
    refusals: Family<RefusalLabels, Counter>,
    connections: Gauge,
    turned_away: Counter,
    accept_failures: Counter,
}

impl Listener {
    pub(super) fn request(&self) {
        self.requests.inc();
    }

    pub(super) fn refused(&self, code: Code) {
        let labels = RefusalLabels {
            listener: self.name,
            code: code.as_str(),
        };
        self.refusals.get_or_create(&labels).inc();
    }

    /// Counts a connection until the guard is dropped.
    pub(super) fn opened(&self) -> Open {
        self.connections.inc();
        Open(self.connections.clone())
    }

    pub(super) fn turned_away(&self) {
        self.turned_away.inc();
    }

    pub(super) fn accept_failed(&self) {
        self.accept_failures.inc();
    }

    /// Connections open now.
    pub fn connections(&self) -> i64 {
        self.connections.get()
    }
}

/// An open connection.
#[derive(Debug)]
pub(super) struct Open(Gauge);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.dec();
    }
}
