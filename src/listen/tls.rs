//! TLS of a listener: 1.2 or newer, HTTP/1.1 by ALPN.

use std::{io, sync::Arc};

use arc_swap::ArcSwap;
use rustls::{
    ServerConfig,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::Error;

/// A listener's certificate and key, ready to use.
#[derive(Clone)]
pub struct Tls(Arc<ArcSwap<ServerConfig>>);

impl Tls {
    /// Takes a certificate chain, leaf first, and its key, both PEM.
    ///
    /// # Errors
    ///
    /// PEM without certificate or key, and a key that does not belong to the certificate.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, Error> {
        read(chain, key).map(|config| Self(Arc::new(ArcSwap::new(config))))
    }

    /// Uses another certificate from the next connection on.
    ///
    /// # Errors
    ///
    /// As [`Tls::from_pem`]; the certificate before stays.
    pub fn renew(&self, chain: &[u8], key: &[u8]) -> Result<(), Error> {
        read(chain, key).map(|config| self.0.store(config))
    }

    pub(super) async fn accept<S>(&self, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        TlsAcceptor::from(self.0.load_full()).accept(stream).await
    }
}

fn read(chain: &[u8], key: &[u8]) -> Result<Arc<ServerConfig>, Error> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(chain)
        .collect::<Result<_, _>>()
        .map_err(|error| Error::Tls(format!("cert is not PEM: {error}")))?;
    if chain.is_empty() {
        return Err(Error::Tls("cert holds no certificate".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_slice(key)
        .map_err(|error| Error::Tls(format!("key holds no private key: {error}")))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider has suites for the default versions")
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| Error::Tls(format!("cert and key do not fit: {error}")))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
