//! Connections for the forward proxy, direct and through a parent.

use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tollgate::{
    address::Target,
    deadline::{CEILING, Deadline},
    egress::{Connected, Egress, Failed},
};

use super::{ample, no_roots};
use crate::support::{
    dialer::{Behaviour, RecordingDialer, TableResolver},
    forwarder::Passes,
    upstream::Upstream,
};

fn egress(dialer: &Arc<RecordingDialer>) -> Egress {
    let resolver = TableResolver::of(&[
        ("api.test", &["1.1.1.1", "9.9.9.9"]),
        ("inside.test", &["1.1.1.1", "10.0.0.1"]),
        ("parent.test", &["10.0.0.9"]),
        ("meta.test", &["169.254.169.254"]),
    ]);
    Egress::new(
        resolver,
        dialer.clone(),
        no_roots(),
        ample(),
        Arc::default(),
    )
}

async fn connect(egress: &Egress, passes: &Passes, authority: &str) -> Result<Connected, Failed> {
    let target = Target::from_authority(authority).unwrap();
    egress
        .connect(&passes.permit(&target), Deadline::after(CEILING))
        .await
}

/// The code, the words and the cause of a failure.
fn told(failed: &Failed) -> (&'static str, String) {
    assert!(failed.not_sent);
    (failed.error.code().as_str(), failed.error.to_string())
}

#[tokio::test]
async fn a_tunnel_leads_to_the_first_judged_address_that_accepts() {
    let upstream = Upstream::plain(|mut connection| async move {
        connection.write(b"hello").await;
    })
    .await;
    let dialer = RecordingDialer::with(
        Behaviour::Leads(upstream.address),
        &[("1.1.1.1", Behaviour::Refuses)],
    );
    let egress = egress(&dialer);
    let mut connected = connect(&egress, &Passes::default(), "api.test:8443")
        .await
        .unwrap();
    assert_eq!(connected.address.socket().to_string(), "9.9.9.9:8443");
    let destination = &connected.destination;
    assert_eq!((&*destination.host, destination.port), ("api.test", 8443));
    assert_eq!((destination.addresses.len(), destination.pinned), (2, true));
    let mut said = String::new();
    connected.io.read_to_string(&mut said).await.unwrap();
    assert_eq!(said, "hello");
    assert_eq!(dialer.dialled(), ["1.1.1.1:8443", "9.9.9.9:8443"]);
}

#[tokio::test]
async fn a_tunnel_to_a_forbidden_answer_is_never_dialled() {
    let dialer = RecordingDialer::with(Behaviour::Hangs, &[]);
    let egress = egress(&dialer);
    for (authority, code) in [
        ("inside.test:443", "egress.address_blocked"),
        ("127.0.0.1:443", "egress.address_blocked"),
        ("none.test:443", "egress.name_unresolved"),
    ] {
        let failed = connect(&egress, &Passes::default(), authority)
            .await
            .unwrap_err();
        assert_eq!(told(&failed).0, code, "{authority}");
    }
    assert_eq!(dialer.dialled().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn connecting_ends_after_five_seconds() {
    let dialer = RecordingDialer::with(Behaviour::Hangs, &[]);
    let failed = connect(&egress(&dialer), &Passes::default(), "api.test:443")
        .await
        .unwrap_err();
    let words = "`api.test` did not accept a connection within 5s".to_owned();
    assert_eq!(told(&failed), ("egress.connect_timeout", words));
}

#[tokio::test]
async fn a_machine_without_room_is_no_fault_of_the_target() {
    let dialer = RecordingDialer::with(Behaviour::Lacks, &[]);
    let direct = Passes::default();
    let failed = connect(&egress(&dialer), &direct, "api.test:443")
        .await
        .unwrap_err();
    let words = "no connection to `api.test` could be begun".to_owned();
    assert_eq!(told(&failed), ("egress.exhausted", words));
    let parent = Passes::default().through("http://parent.test:3128", false);
    let failed = connect(&egress(&dialer), &parent, "api.test:443")
        .await
        .unwrap_err();
    assert_eq!(told(&failed).0, "egress.exhausted");
}

/// A parent proxy that gives each request the next of `answers`.
async fn parent(answers: &'static [&'static str]) -> Upstream {
    let turn = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    Upstream::plain(move |mut connection| {
        let answer = answers[turn.fetch_add(1, std::sync::atomic::Ordering::SeqCst)];
        async move {
            connection.request().await;
            connection.write(answer.as_bytes()).await;
            connection.request().await;
        }
    })
    .await
}

#[tokio::test]
async fn a_parent_is_asked_for_the_judged_address() {
    let upstream = parent(&["HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\nearly"]).await;
    let dialer = RecordingDialer::to(upstream.address);
    let passes = Passes::default().through("http://parent.test:3128", false);
    let mut connected = connect(&egress(&dialer), &passes, "api.test:443")
        .await
        .unwrap();
    assert_eq!(dialer.dialled(), ["10.0.0.9:3128"]);
    assert_eq!(connected.address.socket().to_string(), "1.1.1.1:443");
    assert!(connected.destination.pinned);
    // What stands behind the head is the tunnel's, whatever the head says of a length.
    assert_eq!(connected.early, "early");
    connected
        .io
        .write_all(b"GET / HTTP/1.1\r\n\r\n")
        .await
        .unwrap();
    connected.io.read_to_end(&mut Vec::new()).await.unwrap();
    assert_eq!(
        upstream.requests(),
        [
            "CONNECT 1.1.1.1:443 HTTP/1.1\r\nhost: 1.1.1.1:443\r\n\r\n",
            "GET / HTTP/1.1\r\n\r\n"
        ]
    );
}

#[tokio::test]
async fn a_parent_that_resolves_is_asked_for_the_name_of_what_is_not_forbidden() {
    let upstream = parent(&["HTTP/1.1 200 OK\r\n\r\n"]).await;
    let dialer = RecordingDialer::to(upstream.address);
    let passes = Passes::default().through("http://localhost:3128", true);
    let egress = egress(&dialer);
    for (forbidden, code) in [
        ("metadata.google.internal:443", "egress.name_blocked"),
        ("10.0.0.1:443", "egress.address_blocked"),
    ] {
        let failed = connect(&egress, &passes, forbidden).await.unwrap_err();
        assert_eq!(told(&failed).0, code, "{forbidden}");
    }
    assert_eq!(dialer.dialled().len(), 0);
    let connected = connect(&egress, &passes, "unknown.test:443").await.unwrap();
    let destination = &connected.destination;
    assert_eq!(
        (destination.addresses.len(), destination.pinned),
        (0, false)
    );
    assert_eq!(connected.address.socket().to_string(), "127.0.0.1:3128");
    let asked = "CONNECT unknown.test:443 HTTP/1.1\r\nhost: unknown.test:443\r\n\r\n";
    assert_eq!(upstream.requests(), [asked]);
}

#[tokio::test]
async fn a_parent_without_a_way_to_one_address_is_asked_for_the_next() {
    let upstream = parent(&[
        "HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\n",
    ])
    .await;
    let dialer = RecordingDialer::to(upstream.address);
    let passes = Passes::default().through("http://parent.test:3128", false);
    let connected = connect(&egress(&dialer), &passes, "api.test:443")
        .await
        .unwrap();
    assert_eq!(connected.address.socket().to_string(), "9.9.9.9:443");
    assert_eq!(upstream.requests().len(), 2);
}

#[tokio::test]
async fn what_a_parent_says_in_place_of_200_is_told() {
    let words = |what: &str| format!("the parent proxy `parent.test:3128` {what}");
    for (answer, expected) in [
        (
            "HTTP/1.1 407 Auth\r\n\r\n",
            words("answered 407 when it was asked for `api.test`"),
        ),
        (
            "HTTP/1.1 302 Found\r\n\r\n",
            words("answered 302 when it was asked for `api.test`"),
        ),
        ("HTTP/1.1 200 OK\n\n", words("could not be used")),
        ("SSH-2.0-x\r\n\r\n", words("could not be used")),
    ] {
        let answers: &'static [&'static str] = Box::leak(Box::new([answer]));
        let upstream = parent(answers).await;
        let dialer = RecordingDialer::to(upstream.address);
        let passes = Passes::default().through("http://parent.test:3128", false);
        let failed = connect(&egress(&dialer), &passes, "api.test:443")
            .await
            .unwrap_err();
        assert_eq!(
            told(&failed),
            ("egress.parent_failed", expected),
            "{answer}"
        );
        assert_eq!(upstream.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_parent_at_a_metadata_address_is_never_dialled() {
    let dialer = RecordingDialer::with(Behaviour::Hangs, &[]);
    let passes = Passes::default().through("http://meta.test:3128", false);
    let failed = connect(&egress(&dialer), &passes, "api.test:443")
        .await
        .unwrap_err();
    assert_eq!(told(&failed).0, "egress.parent_failed");
    assert_eq!(dialer.dialled().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_parent_that_says_nothing_is_left_after_five_seconds() {
    let dialer = RecordingDialer::with(Behaviour::Hangs, &[]);
    let passes = Passes::default().through("http://parent.test:3128", false);
    let failed = connect(&egress(&dialer), &passes, "api.test:443")
        .await
        .unwrap_err();
    assert_eq!(told(&failed).0, "egress.connect_timeout");
}
