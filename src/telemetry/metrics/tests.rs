use super::*;

#[test]
fn every_metric_is_shown_under_its_name() {
    let metrics = Metrics::new();
    metrics.request(204);
    metrics.request(0);
    metrics.call("allowed", None, Duration::from_millis(3));
    metrics.call("refused", Some("catalog.tool_unknown"), Duration::ZERO);
    metrics.connection(true);
    metrics.blocked("egress.address_blocked");
    metrics.audit_records("call").inc();
    metrics.stored("read", None, Duration::from_micros(50));
    metrics.stored("replace", Some("store.unavailable"), Duration::ZERO);
    metrics.policy_loaded(7);
    metrics.policy_refused();
    metrics.mcp_sessions.inc();
    metrics.tunnel_opened.inc();
    metrics.tunnel_refused("tunnel.limit");
    metrics.tunnel_closed("client", 5, 7);
    metrics.catalog_pinned.inc_by(3);
    metrics.catalog_blocked("drifted");
    metrics.server_open("docs", true);
    metrics.server_open("gone", true);
    metrics.server_gone("gone");
    metrics.calls_running.inc();
    metrics.audit_queue_depth.set(4);
    let text = metrics.render();
    for line in [
        r#"tollgate_listen_requests_total{status_class="2xx"} 1"#,
        r#"tollgate_listen_requests_total{status_class="5xx"} 1"#,
        r#"tollgate_gateway_calls_total{outcome="allowed",code=""} 1"#,
        r#"tollgate_gateway_calls_total{outcome="refused",code="catalog.tool_unknown"} 1"#,
        r#"tollgate_gateway_call_seconds_bucket{le="0.004"} 2"#,
        r#"tollgate_egress_connections_total{reused="true"} 1"#,
        r#"tollgate_egress_blocked_total{code="egress.address_blocked"} 1"#,
        r#"tollgate_audit_records_total{kind="call"} 1"#,
        r#"tollgate_store_operations_total{operation="replace"} 1"#,
        r#"tollgate_store_failures_total{code="store.unavailable"} 1"#,
        r#"tollgate_store_seconds_bucket{le="0.0001"} 2"#,
        "tollgate_audit_records_lost_total 0",
        "tollgate_audit_syncs_total 0",
        "tollgate_audit_queue_depth 4",
        "tollgate_audit_healthy 0",
        "tollgate_policy_generation 7",
        "tollgate_policy_reload_ok 0",
        "tollgate_policy_reload_failures_total 1",
        "tollgate_mcp_sessions 1",
        "tollgate_tunnel_open 0",
        "tollgate_tunnel_opened_total 1",
        r#"tollgate_tunnel_refused_total{code="tunnel.limit"} 1"#,
        r#"tollgate_tunnel_closed_total{by="client"} 1"#,
        r#"tollgate_tunnel_bytes_total{direction="in"} 5"#,
        r#"tollgate_tunnel_bytes_total{direction="out"} 7"#,
        "tollgate_catalog_pinned_total 3",
        r#"tollgate_catalog_blocked_total{reason="drifted"} 1"#,
        "tollgate_gateway_calls_running 1",
        "tollgate_gateway_calls_waiting 0",
        "tollgate_gateway_server_running 0",
        "tollgate_gateway_server_waiting 0",
        r#"tollgate_gateway_server_open{server="docs"} 1"#,
        r#"tollgate_build_info{version="0.1.0"} 1"#,
        "# EOF",
    ] {
        assert!(
            text.lines().any(|found| found == line),
            "`{line}` is not in\n{text}"
        );
    }
}
