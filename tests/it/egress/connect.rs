//! From a judged answer to a connection.

use std::{sync::Arc, time::Duration};

use tollgate::egress::{Egress, TcpDialer};

use super::{OK, ample, fetch, no_roots, send};
use crate::support::{
    dialer::{Behaviour, RecordingDialer, TableResolver},
    permit::Maker,
    upstream::Upstream,
};

fn with(behaviour: &[(&str, Behaviour)], otherwise: Behaviour) -> (Egress, Arc<RecordingDialer>) {
    let resolver = TableResolver::of(&[("api.test", &["1.1.1.1", "9.9.9.9", "8.8.8.8"])]);
    let dialer = RecordingDialer::with(otherwise, behaviour);
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

#[tokio::test]
async fn the_real_dialer_reaches_a_granted_loopback_address() {
    let upstream = Upstream::always(OK).await;
    let egress = Egress::new(
        TableResolver::of(&[]),
        Arc::new(TcpDialer),
        no_roots(),
        ample(),
        Arc::default(),
    );
    let url = format!("http://{}/mcp?x=1", upstream.address);
    let permit = Maker::new(&url).granting("127.0.0.1").permit();
    let inbound = send(&egress, &permit).await.unwrap();
    assert_eq!(
        inbound.destination.grant.as_deref(),
        Some("egress.toml:1: [[private]]")
    );
    assert_eq!(inbound.destination.port, upstream.address.port());
    assert_eq!(inbound.body.collect(10).await.unwrap(), "ok");
    let request = &upstream.requests()[0];
    assert!(
        request.starts_with("POST /mcp?x=1 HTTP/1.1\r\n"),
        "{request}"
    );
    assert!(
        request.contains(&format!("\r\nhost: {}\r\n", upstream.address)),
        "{request}"
    );
}

#[tokio::test]
async fn without_a_grant_loopback_is_never_dialled() {
    let upstream = Upstream::always(OK).await;
    let egress = Egress::new(
        TableResolver::of(&[]),
        Arc::new(TcpDialer),
        no_roots(),
        ample(),
        Arc::default(),
    );
    let permit = Maker::new(&format!("http://{}/mcp", upstream.address)).permit();
    let failed = send(&egress, &permit).await.unwrap_err();
    assert_eq!(failed.error.code().as_str(), "egress.address_blocked");
    assert!(failed.not_sent);
    assert_eq!(upstream.connections(), 0);
}

#[tokio::test]
async fn a_refusal_leads_to_the_next_judged_address() {
    let upstream = Upstream::always(OK).await;
    let (egress, dialer) = with(
        &[("1.1.1.1", Behaviour::Refuses)],
        Behaviour::Leads(upstream.address),
    );
    let permit = Maker::new("http://api.test/").permit();
    assert_eq!(fetch(&egress, &permit).await.unwrap(), "ok");
    assert_eq!(dialer.dialled(), ["1.1.1.1:80", "9.9.9.9:80"]);
    // The connection is found again although it is not to the first address.
    assert_eq!(fetch(&egress, &permit).await.unwrap(), "ok");
    assert_eq!(dialer.dialled().len(), 2);
}

#[tokio::test]
async fn silence_leads_to_the_next_address_after_the_head_start() {
    let upstream = Upstream::always(OK).await;
    let (egress, dialer) = with(
        &[("1.1.1.1", Behaviour::Hangs)],
        Behaviour::Leads(upstream.address),
    );
    let permit = Maker::new("http://api.test/").permit();
    assert_eq!(fetch(&egress, &permit).await.unwrap(), "ok");
    assert_eq!(dialer.dialled(), ["1.1.1.1:80", "9.9.9.9:80"]);
}

#[tokio::test]
async fn when_every_address_refuses_the_refusal_names_none_of_them() {
    let (egress, dialer) = with(&[], Behaviour::Refuses);
    let failed = send(&egress, &Maker::new("http://api.test/").permit())
        .await
        .unwrap_err();
    assert!(failed.not_sent);
    assert_eq!(dialer.dialled(), ["1.1.1.1:80", "9.9.9.9:80", "8.8.8.8:80"]);
    let refusal = failed.error.refusal();
    assert_eq!(refusal.public, "`api.test` could not be connected to");
    let detail = refusal.detail.unwrap();
    assert!(
        detail.contains("9.9.9.9:80: connection refused"),
        "{detail}"
    );
    assert_eq!(failed.destination.unwrap().addresses.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn when_no_address_answers_the_connect_limit_ends_it() {
    let (egress, dialer) = with(&[], Behaviour::Hangs);
    let mut maker = Maker::new("http://api.test/");
    maker.limits.connect = Duration::from_secs(5);
    let failed = send(&egress, &maker.permit()).await.unwrap_err();
    assert_eq!(failed.error.code().as_str(), "egress.connect_timeout");
    assert!(failed.not_sent);
    assert_eq!(dialer.dialled().len(), 3);
    assert_eq!(
        failed.error.to_string(),
        "`api.test` did not accept a connection within 5s"
    );
}

#[tokio::test]
async fn a_server_that_accepts_and_closes_is_told_by_what_is_known() {
    let upstream = Upstream::plain(|connection| async move { drop(connection) }).await;
    let (egress, _) = super::way_out(&upstream);
    let failure = fetch(&egress, &super::permit()).await.unwrap_err();
    // Whether the close is seen before the request is written is the kernel's business.
    let known = [
        ("egress.connect_failed", true),
        ("egress.connection_lost", false),
    ];
    assert!(
        known.contains(&(failure.0.as_str(), failure.1)),
        "{failure:?}"
    );
    assert_eq!(upstream.connections(), 1);
}
