//! How a load gets to the upstream: through a proxy, or straight.

use std::fs;
use std::io::{Error, Result};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use crate::wire::{Head, Wire};

/// The addresses 127.0.0.2 to 127.0.0.9: one has too few ports for thousands of connections, or for hundreds of
/// thousands that are closed one after the other.
const SOURCES: usize = 8;

/// The host that hellos and requests within tunnels name.
const HOST: &str = "bench.test";

/// Where the load goes.
#[derive(Args)]
pub(crate) struct Endpoint {
    /// Port on 127.0.0.1: the proxy's; without `--host`, the upstream's.
    #[arg(long)]
    port: u16,
    /// The host that the proxy is asked for.
    #[arg(long, requires = "upstream")]
    host: Option<String>,
    /// The port that the proxy is asked for.
    #[arg(long)]
    upstream: Option<u16>,
    /// A file of agent keys, a line each; client N uses the Nth, round and round.
    #[arg(long)]
    keys: Option<PathBuf>,
}

impl Endpoint {
    /// Ways to the upstream for so many clients.
    pub(crate) fn routes(&self, clients: usize) -> Result<Vec<Route>> {
        let keys = match &self.keys {
            Some(file) => fs::read_to_string(file)?,
            None => String::new(),
        };
        let mut keys = keys.lines().cycle();
        let hello = hello()?;
        let asked = self.host.as_ref().zip(self.upstream);
        let authority = asked.map(|(host, port)| format!("{host}:{port}"));
        Ok((0..clients)
            .map(|number| Route {
                port: self.port,
                source: Ipv4Addr::from([127, 0, 0, (2 + number % SOURCES) as u8]),
                authority: authority.clone(),
                credential: keys
                    .next()
                    .map(|key| format!("proxy-authorization: Bearer {key}\r\n"))
                    .unwrap_or_default(),
                hello: hello.clone(),
            })
            .collect())
    }
}

/// One client's way to the upstream.
pub(crate) struct Route {
    port: u16,
    source: Ipv4Addr,
    /// What the proxy is asked for; `None` where there is none.
    authority: Option<String>,
    /// A field, or nothing.
    credential: String,
    hello: Vec<u8>,
}

impl Route {
    pub(crate) async fn connect(&self) -> Result<Wire> {
        Wire::connect_from(self.source, self.port).await
    }

    /// A plain request for `path`.
    pub(crate) fn request(&self, path: &str) -> Vec<u8> {
        let credential = &self.credential;
        match &self.authority {
            Some(host) => {
                format!("GET http://{host}{path} HTTP/1.1\r\nhost: {host}\r\n{credential}\r\n")
            }
            None => get(path),
        }
        .into()
    }

    /// What opens a tunnel and asks for `path` in it: to be written in two pieces, the second when the proxy has agreed.
    pub(crate) fn opening(&self, path: &str) -> Opening {
        let credential = &self.credential;
        let connect = self.authority.as_ref().map(|host| {
            format!("CONNECT {host} HTTP/1.1\r\nhost: {host}\r\n{credential}\r\n").into_bytes()
        });
        let within = [&self.hello[..], get(path).as_bytes()].concat();
        Opening { connect, within }
    }

    /// A connection to the upstream, in which `opening` has been said.
    pub(crate) async fn tunnel(&self, opening: &Opening) -> Result<Wire> {
        let mut wire = self.connect().await?;
        if let Some(connect) = &opening.connect {
            wire.write(connect).await?;
            agreed(wire.head().await?)?;
        }
        wire.write(&opening.within).await?;
        Ok(wire)
    }
}

/// The first bytes of a tunnel.
pub(crate) struct Opening {
    connect: Option<Vec<u8>>,
    within: Vec<u8>,
}

/// The head of a response, which must be 200.
pub(crate) fn agreed(head: Option<Head>) -> Result<Head> {
    let head = head.ok_or_else(|| Error::other("the connection ended before the answer"))?;
    // Some proxies speak HTTP/1.0.
    match head.starts_with("HTTP/1.1 200 ") || head.starts_with("HTTP/1.0 200 ") {
        true => Ok(head),
        false => {
            let line = head.start_line();
            Err(Error::other(format!("not what was asked for: {line}")))
        }
    }
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: {HOST}\r\n\r\n")
}

/// The ClientHello of a present-day client, with a post-quantum key share.
fn hello() -> Result<Vec<u8>> {
    let provider = CryptoProvider {
        kx_groups: vec![
            aws_lc_rs::kx_group::X25519MLKEM768,
            aws_lc_rs::kx_group::X25519,
        ],
        ..aws_lc_rs::default_provider()
    };
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .map_err(Error::other)?
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let name = HOST.try_into().map_err(Error::other)?;
    let mut client = ClientConnection::new(Arc::new(config), name).map_err(Error::other)?;
    let mut hello = Vec::new();
    client.write_tls(&mut hello)?;
    Ok(hello)
}
