//! TLS towards tool servers: roots, names, handshakes.

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex, PoisonError},
};

use rustls::{
    CertificateError, ClientConfig, RootCertStore,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use tokio_rustls::TlsConnector;

use super::Io;
use crate::{address::Host, policy::Trust};

/// The most configurations kept; there is one for each set of extra roots.
const MAX_CONFIGS: usize = 256;

/// Who is trusted; cheap to clone, shared by all worker threads.
#[derive(Clone)]
pub struct Tls(Arc<Inner>);

struct Inner {
    roots: RootCertStore,
    configs: Mutex<HashMap<[u8; 32], Arc<ClientConfig>>>,
}

/// A connection that cannot be trusted, or roots that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A `ca` file cannot be read as PEM.
    #[error("the ca file number {number} is not valid PEM")]
    NotPem {
        /// Which of the server's files, from 1.
        number: usize,
        /// What is wrong.
        source: rustls::pki_types::pem::Error,
    },
    /// A `ca` file holds no certificate.
    #[error("the ca file number {number} holds no certificate; name a PEM file with the root")]
    NoCertificate {
        /// Which of the server's files, from 1.
        number: usize,
    },
    /// A `ca` file holds a certificate that signs nothing.
    #[error(
        "the ca file number {number} holds a certificate that is not an authority; name the root that signed it"
    )]
    NotAuthority {
        /// Which of the server's files, from 1.
        number: usize,
    },
    /// A `ca` file holds a certificate that cannot be a root.
    #[error("the ca file number {number} holds a certificate that cannot be used as a root")]
    BadRoot {
        /// Which of the server's files, from 1.
        number: usize,
        /// Why.
        source: rustls::Error,
    },
    /// The host cannot stand in a certificate.
    #[error("the host is not a name that a certificate can hold")]
    Name(#[source] rustls::pki_types::InvalidDnsNameError),
    /// The handshake failed.
    #[error("the handshake failed")]
    Handshake(#[source] io::Error),
    /// The configuration cannot be made.
    #[error("no TLS version is usable")]
    Setup(#[source] rustls::Error),
}

impl TlsError {
    /// What is wrong, in words that a caller may see.
    pub fn summary(&self) -> String {
        match self {
            Self::Handshake(error) => certificate_fault(error).to_owned(),
            other => other.to_string(),
        }
    }
}

impl Tls {
    /// Trusts the roots of Mozilla's programme and those of this machine.
    pub fn new() -> Self {
        let mut roots = RootCertStore {
            roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
        };
        let native = rustls_native_certs::load_native_certs();
        for error in &native.errors {
            tracing::warn!(target: "tollgate::egress", %error, "a root certificate of this machine cannot be used");
        }
        roots.add_parsable_certificates(native.certs);
        Self::with_roots(roots)
    }

    /// Trusts `roots` and nothing of this machine.
    pub fn with_roots(roots: RootCertStore) -> Self {
        Self(Arc::new(Inner {
            roots,
            configs: Mutex::default(),
        }))
    }

    /// Whether the extra roots of a server can be used.
    pub fn check(&self, trust: &Trust) -> Result<(), TlsError> {
        self.config(trust).map(drop)
    }

    /// Performs the handshake; `host` is the name sent and the name verified.
    pub(super) async fn connect(
        &self,
        trust: &Trust,
        host: &Host,
        stream: Box<dyn Io>,
    ) -> Result<Box<dyn Io>, TlsError> {
        let name = match host {
            Host::Ip(address) => ServerName::IpAddress((*address).into()),
            Host::Name(name) => {
                ServerName::try_from(name.as_str().to_owned()).map_err(TlsError::Name)?
            }
        };
        let stream = TlsConnector::from(self.config(trust)?)
            .connect(name, stream)
            .await
            .map_err(TlsError::Handshake)?;
        Ok(Box::new(stream))
    }

    fn config(&self, trust: &Trust) -> Result<Arc<ClientConfig>, TlsError> {
        let mut configs = self
            .0
            .configs
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = configs.get(&trust.digest) {
            return Ok(config.clone());
        }
        let config = Arc::new(self.build(trust)?);
        if configs.len() >= MAX_CONFIGS {
            configs.clear();
        }
        configs.insert(trust.digest, config.clone());
        Ok(config)
    }

    fn build(&self, trust: &Trust) -> Result<ClientConfig, TlsError> {
        let mut roots = self.0.roots.clone();
        for (index, pem) in trust.roots.iter().enumerate() {
            add(&mut roots, pem, index + 1)?;
        }
        let mut config =
            ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
                .with_safe_default_protocol_versions()
                .map_err(TlsError::Setup)?
                .with_root_certificates(roots)
                .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}

impl Default for Tls {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Tls")
            .field("roots", &self.0.roots.len())
            .finish_non_exhaustive()
    }
}

fn add(roots: &mut RootCertStore, pem: &str, number: usize) -> Result<(), TlsError> {
    let mut found = false;
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        let certificate = certificate.map_err(|source| TlsError::NotPem { number, source })?;
        if !is_authority(&certificate) {
            return Err(TlsError::NotAuthority { number });
        }
        roots
            .add(certificate)
            .map_err(|source| TlsError::BadRoot { number, source })?;
        found = true;
    }
    if found {
        Ok(())
    } else {
        Err(TlsError::NoCertificate { number })
    }
}

/// Whether basicConstraints (RFC 5280, section 4.2.1.9) says `cA TRUE`. rustls takes any certificate as an anchor, and
/// one that is no authority would only be found out at the first handshake.
fn is_authority(certificate: &[u8]) -> bool {
    const OID: &[u8] = &[0x06, 0x03, 0x55, 0x1d, 0x13];
    const CRITICAL: &[u8] = &[0x01, 0x01, 0xff];
    let Some(at) = memchr::memmem::find(certificate, OID) else {
        return false;
    };
    let rest = &certificate[at + OID.len()..];
    let rest = rest.strip_prefix(CRITICAL).unwrap_or(rest);
    // OCTET STRING holding SEQUENCE { BOOLEAN TRUE, … }
    matches!(rest, [0x04, _, 0x30, _, 0x01, 0x01, 0xff, ..])
}

fn certificate_fault(error: &io::Error) -> &'static str {
    let rustls = error
        .get_ref()
        .and_then(|error| error.downcast_ref::<rustls::Error>());
    match rustls {
        Some(rustls::Error::InvalidCertificate(fault)) => match fault {
            CertificateError::UnknownIssuer => "its certificate is signed by an unknown authority",
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "its certificate is for another name"
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "its certificate has expired"
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "its certificate is not valid yet"
            }
            _ => "its certificate is not valid",
        },
        Some(_) => "it does not speak TLS as expected",
        None => "the connection broke during the handshake",
    }
}
