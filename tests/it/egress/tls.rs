//! Whom a TLS connection trusts, and for which name.

use rustls::RootCertStore;
use tollgate::{
    egress::{Egress, Tls},
    policy::Trust,
};

use super::{OK, ample, fetch, no_roots, send, way_out};
use crate::support::{
    certs::Authority,
    dialer::{RecordingDialer, TableResolver},
    permit::Maker,
    upstream::Upstream,
};

async fn server(authority: &Authority, names: &[&str]) -> Upstream {
    Upstream::tls(authority.acceptor(names), |mut connection| async move {
        while connection.request().await.is_some() {
            connection.write(OK.as_bytes()).await;
        }
    })
    .await
}

fn trusting(url: &str, roots: &[String]) -> Maker {
    let roots: Vec<_> = roots.iter().map(|root| root.as_str().into()).collect();
    Maker {
        trust: Trust {
            roots,
            digest: [7; 32],
        },
        ..Maker::new(url)
    }
}

#[tokio::test]
async fn an_extra_root_is_trusted_and_the_name_is_sent_and_verified() {
    let authority = Authority::new();
    let upstream = server(&authority, &["api.test"]).await;
    let (egress, dialer) = way_out(&upstream);
    let permit = trusting("https://api.test/mcp", &[authority.pem()]).permit();
    assert_eq!(fetch(&egress, &permit).await.unwrap(), "ok");
    assert_eq!(fetch(&egress, &permit).await.unwrap(), "ok");
    assert_eq!(upstream.names(), [Some("api.test".to_owned())]);
    assert_eq!(dialer.dialled(), ["1.1.1.1:443"]);
}

#[tokio::test]
async fn the_machines_roots_are_trusted_without_extra_ones() {
    let authority = Authority::new();
    let upstream = server(&authority, &["api.test"]).await;
    let mut roots = RootCertStore::empty();
    roots.add(authority.der()).unwrap();
    let egress = Egress::new(
        TableResolver::of(&[("api.test", &["1.1.1.1"])]),
        RecordingDialer::to(upstream.address),
        Tls::with_roots(roots),
        ample(),
        std::sync::Arc::default(),
    );
    let permit = Maker::new("https://api.test/mcp").permit();
    assert_eq!(fetch(&egress, &permit).await.unwrap(), "ok");
}

#[tokio::test]
async fn an_unknown_root_and_another_name_are_refused() {
    let authority = Authority::new();
    for (names, roots, words) in [
        (
            ["api.test"],
            vec![Authority::new().pem()],
            "its certificate is signed by an unknown authority",
        ),
        (
            ["other.test"],
            vec![authority.pem()],
            "its certificate is for another name",
        ),
        (
            ["1.1.1.1"],
            vec![authority.pem()],
            "its certificate is for another name",
        ),
    ] {
        let upstream = server(&authority, &names).await;
        let (egress, _) = way_out(&upstream);
        let permit = trusting("https://api.test/mcp", &roots).permit();
        let failed = send(&egress, &permit).await.unwrap_err();
        assert!(failed.not_sent);
        assert_eq!(failed.error.code().as_str(), "egress.tls_failed");
        assert_eq!(
            failed.error.to_string(),
            format!("no trusted connection to `api.test`: {words}")
        );
        assert!(upstream.requests().is_empty());
    }
}

#[tokio::test]
async fn an_expired_certificate_is_refused() {
    let authority = Authority::new();
    let acceptor = authority.expired(&["api.test"]);
    let upstream = Upstream::tls(acceptor, |connection| connection.hang()).await;
    let (egress, _) = way_out(&upstream);
    let permit = trusting("https://api.test/mcp", &[authority.pem()]).permit();
    let failed = send(&egress, &permit).await.unwrap_err();
    assert_eq!(
        failed.error.to_string(),
        "no trusted connection to `api.test`: its certificate has expired"
    );
}

#[tokio::test]
async fn a_literal_address_is_verified_as_an_address() {
    let authority = Authority::new();
    let upstream = server(&authority, &["1.1.1.1"]).await;
    let (egress, _) = way_out(&upstream);
    let permit = trusting("https://1.1.1.1/mcp", &[authority.pem()]).permit();
    assert_eq!(fetch(&egress, &permit).await.unwrap(), "ok");
    assert_eq!(
        upstream.names(),
        [None],
        "an address is never sent as a name (RFC 6066)"
    );
}

#[tokio::test]
async fn a_server_that_speaks_no_tls_is_refused() {
    let upstream = Upstream::plain(|mut connection| async move {
        connection.write(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        connection.closed().await;
    })
    .await;
    let (egress, _) = way_out(&upstream);
    let failed = send(&egress, &Maker::new("https://api.test/mcp").permit())
        .await
        .unwrap_err();
    assert_eq!(failed.error.code().as_str(), "egress.tls_failed");
    assert!(failed.not_sent);
}

#[test]
fn ca_files_that_cannot_be_roots_are_explained() {
    let authority = Authority::new();
    let check = |roots: &[String]| no_roots().check(&trusting("https://api.test/", roots).trust);
    check(&[authority.pem(), Authority::new().pem()]).unwrap();
    let leaf = authority.leaf_pem(&["api.test"]);
    for (roots, words) in [
        (
            vec![authority.pem(), leaf],
            "the ca file number 2 holds a certificate that is not an authority; name the root that signed it",
        ),
        (
            vec!["hello".to_owned()],
            "the ca file number 1 holds no certificate; name a PEM file with the root",
        ),
        (
            vec!["-----BEGIN CERTIFICATE-----\n%%%\n-----END CERTIFICATE-----\n".to_owned()],
            "the ca file number 1 is not valid PEM",
        ),
    ] {
        assert_eq!(check(&roots).unwrap_err().to_string(), words);
    }
}
