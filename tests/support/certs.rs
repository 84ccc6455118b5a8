//! Certificates made for one test.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
};
use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// How many authorities were made; each has a name of its own.
static MADE: AtomicUsize = AtomicUsize::new(0);

/// A TLS client that trusts `root`.
pub(crate) fn trusting(root: CertificateDer<'static>) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(root).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

/// An authority of its own.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        params
            .distinguished_name
            .push(DnType::CommonName, format!("test authority {number}"));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// The root as PEM.
    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// The root as DER.
    pub(crate) fn der(&self) -> CertificateDer<'static> {
        self.0.der().clone()
    }

    /// A certificate for `names`, DNS names and addresses alike, as PEM.
    pub(crate) fn leaf_pem(&self, names: &[&str]) -> String {
        self.issue(names, 4096).0.pem()
    }

    /// A certificate for `names` and its key, as PEM.
    pub(crate) fn leaf_and_key(&self, names: &[&str]) -> (String, String) {
        let (certificate, key) = self.issue(names, 4096);
        (certificate.pem(), key.serialize_pem())
    }

    /// A TLS server with a certificate for `names`.
    pub(crate) fn acceptor(&self, names: &[&str]) -> TlsAcceptor {
        Self::serving(self.issue(names, 4096))
    }

    /// The same with a certificate that has expired.
    pub(crate) fn expired(&self, names: &[&str]) -> TlsAcceptor {
        Self::serving(self.issue(names, 2001))
    }

    fn serving((certificate, key): (rcgen::Certificate, KeyPair)) -> TlsAcceptor {
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config =
            ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_no_client_auth()
                .with_single_cert(vec![certificate.der().clone()], key)
                .unwrap();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        TlsAcceptor::from(Arc::new(config))
    }

    fn issue(&self, names: &[&str], until: i32) -> (rcgen::Certificate, KeyPair) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(names).unwrap();
        params.not_after = rcgen::date_time_ymd(until, 1, 1);
        (params.signed_by(&key, &self.0).unwrap(), key)
    }
}
