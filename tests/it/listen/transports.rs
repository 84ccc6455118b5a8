//! Unix sockets and TLS.

use std::sync::Arc;

use rcgen::CertifiedKey;
use rustls::{ClientConfig, RootCertStore, crypto::aws_lc_rs, pki_types::ServerName};
use tokio_rustls::TlsConnector;
use tollgate::{config::Endpoint, identity::Identity, listen::Tls};

use super::front::{Client, Front, HEAD, Plan, dial};

#[tokio::test]
async fn agents_may_come_by_a_unix_socket() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let front = Front::with(Plan {
        endpoint: Endpoint::Unix(folder.path().join("agents.sock")),
        identity: Identity::local("me", "default"),
        ..Plan::default()
    });
    let answer = front
        .exchange("POST /mcp/demo HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        .await;
    assert!(
        answer.ends_with(r#"{"bytes":0,"generation":1,"user":"me"}"#),
        "{answer}"
    );
    let forged = front
        .exchange("POST /mcp/demo HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n")
        .await;
    assert!(forged.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{forged}");
    assert_eq!(front.only_record().await["code"], "listen.bad_host");
}

fn certificate() -> CertifiedKey<rcgen::KeyPair> {
    rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate")
}

fn tls(made: &CertifiedKey<rcgen::KeyPair>) -> Tls {
    Tls::from_pem(
        made.cert.pem().as_bytes(),
        made.signing_key.serialize_pem().as_bytes(),
    )
    .expect("they fit")
}

async fn secure(front: &Front, trusted: &CertifiedKey<rcgen::KeyPair>) -> std::io::Result<String> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.cert.der().clone()).expect("a root");
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let Endpoint::Tcp(address) = front.address else {
        panic!("a TCP listener");
    };
    let name = ServerName::try_from("localhost").expect("a name");
    let stream = TlsConnector::from(Arc::new(config))
        .connect(name, dial(address).await)
        .await?;
    let mut client = Client(stream);
    client.send(&format!("{HEAD}\r\n")).await;
    Ok(client.answer().await)
}

fn front(tls: Tls) -> Front {
    Front::with(Plan {
        tls: Some(tls),
        ..Plan::default()
    })
}

#[tokio::test]
async fn tls_is_spoken_and_a_certificate_can_be_renewed() {
    let (old, new) = (certificate(), certificate());
    let tls = tls(&old);
    let front = front(tls.clone());
    let answer = secure(&front, &old).await.expect("a handshake");
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    let key = new.signing_key.serialize_pem();
    tls.renew(new.cert.pem().as_bytes(), key.as_bytes())
        .expect("they fit");
    secure(&front, &new)
        .await
        .expect("a handshake with the new certificate");
    assert!(
        tls.renew(old.cert.pem().as_bytes(), key.as_bytes())
            .is_err(),
        "a key of another certificate"
    );
    secure(&front, &new).await.expect("the one before stays");
    assert!(front.records().await.is_empty());
}

#[tokio::test]
async fn failed_handshakes_are_recorded() {
    let plain = front(tls(&certificate()));
    plain
        .exchange("GET /mcp/demo HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await;
    assert_eq!(plain.only_record().await["code"], "listen.tls_failed");

    let distrusted = front(tls(&certificate()));
    secure(&distrusted, &certificate())
        .await
        .expect_err("another root");
    distrusted.quiet().await;
    assert_eq!(distrusted.only_record().await["code"], "listen.tls_failed");
}
