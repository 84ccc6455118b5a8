//! Metrics: `tollgate_<room>_<what>_<unit>`, one handle each.
//!
//! What a successful call touches is resolved once, here; only refusals and failures look a label up.

use std::{
    sync::atomic::{AtomicI64, AtomicU64},
    time::Duration,
};

use prometheus_client::{
    encoding::text,
    metrics::{
        counter,
        family::Family,
        gauge,
        histogram::{Histogram, exponential_buckets},
        info::Info,
    },
    registry::{Metric, Registry},
};

/// A count that only rises.
pub type Counter = counter::Counter<u64, AtomicU64>;
/// A value that rises and falls.
pub type Gauge = gauge::Gauge<i64, AtomicI64>;

type Labels<const N: usize> = [(&'static str, &'static str); N];

/// Classes of HTTP statuses.
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// Every metric of the process.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    /// By status class, 1xx first.
    requests: [Counter; 5],
    refusals: Family<Labels<1>, Counter>,
    /// Open connections of all listeners.
    pub listen_connections: Gauge,
    /// Connections beyond the bound.
    pub listen_turned_away: Counter,
    /// Connections that could not be accepted.
    pub listen_accept_failures: Counter,
    calls: Family<Labels<2>, Counter>,
    calls_allowed: Counter,
    call_seconds: Histogram,
    /// Calls that run.
    pub calls_running: Gauge,
    /// Calls that wait for others of their conversation.
    pub calls_waiting: Gauge,
    /// Requests that have a seat at a server.
    pub server_running: Gauge,
    /// Requests that wait for a seat at a server.
    pub server_waiting: Gauge,
    server_open: Family<[(&'static str, String); 1], Gauge>,
    connections_new: Counter,
    connections_reused: Counter,
    blocked: Family<Labels<1>, Counter>,
    audit_records: Family<Labels<1>, Counter>,
    /// Reads that were answered although their record could not be kept.
    pub audit_records_lost: Counter,
    /// Groups of records that reached the disk.
    pub audit_syncs: Counter,
    /// Records that wait for the disk.
    pub audit_queue_depth: Gauge,
    /// 1 while records can be kept, else 0.
    pub audit_healthy: Gauge,
    /// Definitions that were pinned at first use.
    pub catalog_pinned: Counter,
    catalog_blocked: Family<Labels<1>, Counter>,
    connect_refreshes: Family<Labels<1>, Counter>,
    store_operations: Family<Labels<1>, Counter>,
    store_failures: Family<Labels<1>, Counter>,
    store_seconds: Histogram,
    /// Open tunnels of the forward proxy.
    pub tunnel_open: Gauge,
    /// Tunnels that were opened.
    pub tunnel_opened: Counter,
    tunnel_refused: Family<Labels<1>, Counter>,
    tunnel_closed: Family<Labels<1>, Counter>,
    tunnel_in: Counter,
    tunnel_out: Counter,
    vault_records: Family<[(&'static str, String); 1], Gauge>,
    policy_generation: Gauge,
    policy_reload_ok: Gauge,
    policy_reload_failures: Counter,
    /// Open sessions of the older protocol.
    pub mcp_sessions: Gauge,
    /// By status class, 1xx first.
    web_requests: [Counter; 5],
    web_refusals: Family<Labels<1>, Counter>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Registers every metric.
    pub fn new() -> Self {
        let mut register = Register(Registry::with_prefix("tollgate"));
        let requests: Family<Labels<1>, Counter> =
            register.empty("listen_requests", "Requests answered, by class of status");
        let calls: Family<Labels<2>, Counter> = register.empty(
            "gateway_calls",
            "Calls that ended, by outcome and code of the refusal",
        );
        let connections: Family<Labels<1>, Counter> = register.empty(
            "egress_connections",
            "Requests sent, by whether their connection was reused",
        );
        // 1 ms to 131 s, each twice the one before.
        let call_seconds = Histogram::new(exponential_buckets(0.001, 2.0, 18));
        register.add(
            "gateway_call_seconds",
            "Time from a call's arrival to its end",
            call_seconds.clone(),
        );
        // 0.1 ms to 13 s, each twice the one before.
        let store_seconds = Histogram::new(exponential_buckets(0.0001, 2.0, 18));
        register.add(
            "store_seconds",
            "Time that a use of the database took, waiting included",
            store_seconds.clone(),
        );
        let tunnel_bytes: Family<Labels<1>, Counter> = register.empty(
            "tunnel_bytes",
            "Bytes of tunnels that were closed, by direction: in from their targets, out to them",
        );
        let web_requests: Family<Labels<1>, Counter> = register.empty(
            "web_requests",
            "Requests for pages answered, by class of status",
        );
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        register.add("build", "This build", build);
        Self {
            requests: CLASSES.map(|class| requests.get_or_create_owned(&[("status_class", class)])),
            refusals: register.empty(
                "listen_refusals",
                "Requests and connections refused at the door, by code",
            ),
            listen_connections: register.empty("listen_connections", "Open connections"),
            listen_turned_away: register
                .empty("listen_turned_away", "Connections beyond the bound"),
            listen_accept_failures: register.empty(
                "listen_accept_failures",
                "Connections that could not be accepted",
            ),
            calls_allowed: calls.get_or_create_owned(&[("outcome", "allowed"), ("code", "")]),
            calls,
            call_seconds,
            calls_running: register.empty("gateway_calls_running", "Calls that run"),
            calls_waiting: register.empty(
                "gateway_calls_waiting",
                "Calls that wait for others of their conversation",
            ),
            server_running: register.empty(
                "gateway_server_running",
                "Requests that have a seat at a server",
            ),
            server_waiting: register.empty(
                "gateway_server_waiting",
                "Requests that wait for a seat at a server",
            ),
            server_open: register.empty(
                "gateway_server_open",
                "1 while no request goes to a server that cannot be reached, else 0",
            ),
            connections_new: connections.get_or_create_owned(&[("reused", "false")]),
            connections_reused: connections.get_or_create_owned(&[("reused", "true")]),
            blocked: register.empty("egress_blocked", "Destinations refused, by code"),
            audit_records: register.empty("audit_records", "Records taken, by kind"),
            audit_records_lost: register
                .empty("audit_records_lost", "Reads answered without a record"),
            audit_syncs: register.empty("audit_syncs", "Groups of records that reached the disk"),
            audit_queue_depth: register
                .empty("audit_queue_depth", "Records that wait for the disk"),
            audit_healthy: register.empty("audit_healthy", "1 while records can be kept, else 0"),
            catalog_pinned: register.empty(
                "catalog_pinned",
                "Definitions that were pinned at the first use of a view",
            ),
            catalog_blocked: register.empty(
                "catalog_blocked",
                "Definitions that are not offered, each counted once, by reason",
            ),
            connect_refreshes: register.empty(
                "connect_refreshes",
                "Refreshes of connections' tokens that ended, by result",
            ),
            store_operations: register
                .empty("store_operations", "Uses of the database, by what was done"),
            store_failures: register.empty(
                "store_failures",
                "Uses of the database that failed, by code",
            ),
            store_seconds,
            tunnel_open: register.empty("tunnel_open", "Open tunnels of the forward proxy"),
            tunnel_opened: register.empty("tunnel_opened", "Tunnels that were opened"),
            tunnel_refused: register.empty(
                "tunnel_refused",
                "Requests to the forward proxy that were refused or failed, by code",
            ),
            tunnel_closed: register.empty(
                "tunnel_closed",
                "Tunnels that were closed, by who or what closed them",
            ),
            tunnel_in: tunnel_bytes.get_or_create_owned(&[("direction", "in")]),
            tunnel_out: tunnel_bytes.get_or_create_owned(&[("direction", "out")]),
            vault_records: register.empty(
                "vault_records",
                "Rows of the database that are sealed under a key, by its name",
            ),
            policy_generation: register
                .empty("policy_generation", "Generation of the policy in force"),
            policy_reload_ok: register.empty(
                "policy_reload_ok",
                "1 if the last policy read is in force, else 0",
            ),
            policy_reload_failures: register
                .empty("policy_reload_failures", "Policies that were not taken"),
            mcp_sessions: register.empty("mcp_sessions", "Open sessions of the older protocol"),
            web_requests: CLASSES
                .map(|class| web_requests.get_or_create_owned(&[("status_class", class)])),
            web_refusals: register.empty(
                "web_refusals",
                "Requests for pages that were refused, by code",
            ),
            registry: register.0,
        }
    }

    /// A request was answered with this HTTP status; what is no status is counted as 5xx.
    pub fn request(&self, status: u16) {
        self.requests[class(status)].inc();
    }

    /// A request for a page was answered with this HTTP status; what is no status is counted as 5xx.
    pub fn web_request(&self, status: u16) {
        self.web_requests[class(status)].inc();
    }

    /// A request for a page was refused with this code.
    pub fn web_refused(&self, code: &'static str) {
        self.web_refusals.get_or_create(&[("code", code)]).inc();
    }

    /// The door refused a request or a connection with this code.
    pub fn listen_refused(&self, code: &'static str) {
        self.refusals.get_or_create(&[("code", code)]).inc();
    }

    /// A call ended after `took`: `outcome` as records name it, and the code of a refusal or failure.
    pub fn call(&self, outcome: &'static str, code: Option<&'static str>, took: Duration) {
        self.call_seconds.observe(took.as_secs_f64());
        match (outcome, code) {
            ("allowed", None) => self.calls_allowed.inc(),
            _ => self
                .calls
                .get_or_create(&[("outcome", outcome), ("code", code.unwrap_or_default())])
                .inc(),
        };
    }

    /// Whether the circuit to a server is open: no request goes there, but now and then one that tries.
    pub fn server_open(&self, server: &str, open: bool) {
        let gauge = self
            .server_open
            .get_or_create_owned(&[("server", server.to_owned())]);
        gauge.set(open.into());
    }

    /// Nothing is said any more of a server that is no longer registered.
    pub fn server_gone(&self, server: &str) {
        self.server_open.remove(&[("server", server.to_owned())]);
    }

    /// A request went out on a new connection, or on one that was kept.
    pub fn connection(&self, reused: bool) {
        if reused {
            self.connections_reused.inc();
        } else {
            self.connections_new.inc();
        }
    }

    /// A destination was refused with this code.
    pub fn blocked(&self, code: &'static str) {
        self.blocked.get_or_create(&[("code", code)]).inc();
    }

    /// A definition is not offered for this reason.
    pub fn catalog_blocked(&self, reason: &'static str) {
        let labels = [("reason", reason)];
        self.catalog_blocked.get_or_create(&labels).inc();
    }

    /// The count of records of this kind; the journal asks once for each.
    pub fn audit_records(&self, kind: &'static str) -> Counter {
        self.audit_records.get_or_create_owned(&[("kind", kind)])
    }

    /// A refresh of a connection's token ended like this: `refreshed`, `refused`, `put_off`, `spooled`, `overtaken`.
    pub fn connect_refreshed(&self, result: &'static str) {
        let labels = [("result", result)];
        self.connect_refreshes.get_or_create(&labels).inc();
    }

    /// The database was used for `operation`, and failed with a code if there is one.
    pub fn stored(&self, operation: &'static str, code: Option<&'static str>, took: Duration) {
        self.store_operations
            .get_or_create(&[("operation", operation)])
            .inc();
        if let Some(code) = code {
            self.store_failures.get_or_create(&[("code", code)]).inc();
        }
        self.store_seconds.observe(took.as_secs_f64());
    }

    /// A request to the forward proxy was refused, or failed, with this code.
    pub fn tunnel_refused(&self, code: &'static str) {
        self.tunnel_refused.get_or_create(&[("code", code)]).inc();
    }

    /// A tunnel was closed by this, after so many bytes from its target and to it.
    pub fn tunnel_closed(&self, by: &'static str, bytes_in: u64, bytes_out: u64) {
        self.tunnel_closed.get_or_create(&[("by", by)]).inc();
        self.tunnel_in.inc_by(bytes_in);
        self.tunnel_out.inc_by(bytes_out);
    }

    /// So many rows are sealed under the keys of these names, and none under others.
    pub fn vault_records<'k>(&self, rows: impl IntoIterator<Item = (&'k str, u64)>) {
        self.vault_records.clear();
        for (kid, rows) in rows {
            let gauge = self
                .vault_records
                .get_or_create_owned(&[("kid", kid.to_owned())]);
            gauge.set(i64::try_from(rows).unwrap_or(i64::MAX));
        }
    }

    /// A policy of this generation came into force.
    pub fn policy_loaded(&self, generation: u64) {
        self.policy_generation
            .set(i64::try_from(generation).unwrap_or(i64::MAX));
        self.policy_reload_ok.set(1);
    }

    /// A policy was read and not taken; the one before stays in force.
    pub fn policy_refused(&self) {
        self.policy_reload_ok.set(0);
        self.policy_reload_failures.inc();
    }

    /// The OpenMetrics text.
    pub fn render(&self) -> String {
        let mut text = String::with_capacity(8 << 10);
        text::encode(&mut text, &self.registry).expect("writing to memory does not fail");
        text
    }
}

/// The place of a status in [`CLASSES`].
fn class(status: u16) -> usize {
    usize::from(status / 100).wrapping_sub(1).min(4)
}

/// Registers metrics as they are made.
struct Register(Registry);

impl Register {
    fn empty<M: Metric + Clone + Default>(&mut self, name: &str, help: &str) -> M {
        let metric = M::default();
        self.add(name, help, metric.clone());
        metric
    }

    fn add(&mut self, name: &str, help: &str, metric: impl Metric) {
        self.0.register(name, help, metric);
    }
}

#[cfg(test)]
mod tests;
