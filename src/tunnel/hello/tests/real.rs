//! The ClientHellos of a real client.

use std::sync::Arc;

use rustls::{
    ClientConfig, ClientConnection, RootCertStore,
    client::{EchGreaseConfig, EchMode},
    crypto::hpke::Hpke as _,
    crypto::{
        CryptoProvider,
        aws_lc_rs::{self, hpke::DH_KEM_X25519_HKDF_SHA256_AES_128, kx_group},
    },
    pki_types::ServerName,
    version::{TLS12, TLS13},
};

use super::*;

/// What a client with this configuration sends first.
fn flight(config: ClientConfig, name: &'static str) -> Vec<u8> {
    let name = ServerName::try_from(name).unwrap();
    let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut flight = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut flight).unwrap();
    }
    flight
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider {
        kx_groups: vec![kx_group::X25519MLKEM768, kx_group::X25519],
        ..aws_lc_rs::default_provider()
    })
}

fn config(versions: &[&'static rustls::SupportedProtocolVersion]) -> ClientConfig {
    ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth()
}

/// A client that hides a ClientHello, or looks as if it did.
fn encrypting() -> ClientConfig {
    let suite = DH_KEM_X25519_HKDF_SHA256_AES_128;
    let (key, _) = suite.generate_key_pair().unwrap();
    ClientConfig::builder_with_provider(provider())
        .with_ech(EchMode::Grease(EchGreaseConfig::new(suite, key)))
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth()
}

/// Reads it whole, and byte by byte.
fn both_ways(input: &[u8]) -> Result<Option<Hello>, HelloError> {
    let mut reader = HelloReader::default();
    for end in 0..input.len() {
        assert_eq!(reader.read(&input[..end]), Ok(None), "{end}");
    }
    let last = reader.read(input);
    assert_eq!(read(input), last);
    last
}

/// Whether the name and the use of ECH are found.
#[track_caller]
fn assert_found(input: &[u8], name: &str, ech: bool) {
    let hello = both_ways(input).unwrap().expect("it is whole");
    assert_eq!((hello.name.as_str(), hello.ech), (name, ech));
}

#[test]
fn of_both_versions() {
    assert_found(
        &flight(config(&[&TLS12]), "Api.Example.NET"),
        "api.example.net",
        false,
    );
    let modern = flight(config(&[&TLS13, &TLS12]), "api.example.net");
    assert!(modern.len() > 1216, "a post-quantum share is in it");
    assert_found(&modern, "api.example.net", false);
}

#[test]
fn padded_to_several_records() {
    let mut padded = config(&[&TLS13]);
    padded.alpn_protocols = vec![vec![b'x'; 255]; 50];
    padded.max_fragment_size = Some(600);
    let padded = flight(padded, "api.example.net");
    let heads = padded
        .windows(5)
        .filter(|head| head[..2] == [22, 3] && head[3..] == [2, 83]);
    assert!(
        padded.len() > 12_800 && heads.count() > 20,
        "{} bytes",
        padded.len()
    );
    assert_found(&padded, "api.example.net", false);

    let mut long = config(&[&TLS13]);
    long.alpn_protocols = vec![vec![b'x'; 255]; 64];
    assert_eq!(
        read(&flight(long, "api.example.net")),
        Err(HelloError::Long)
    );
}

#[test]
fn with_an_encrypted_one_within() {
    assert_found(
        &flight(encrypting(), "api.example.net"),
        "api.example.net",
        true,
    );
    let mut nameless = encrypting();
    nameless.enable_sni = false;
    assert_eq!(
        read(&flight(nameless, "api.example.net")),
        Err(HelloError::OnlyEncrypted)
    );
}

#[test]
fn without_a_name() {
    let mut nameless = config(&[&TLS13]);
    nameless.enable_sni = false;
    assert_eq!(
        both_ways(&flight(nameless, "api.example.net")),
        Err(HelloError::NoName)
    );
    assert_eq!(
        both_ways(&flight(config(&[&TLS13]), "192.0.2.1")),
        Err(HelloError::NoName)
    );
}
