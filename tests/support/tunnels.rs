//! A client of the forward proxy, byte for byte, and what it is let to.

use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use super::{
    client::patiently,
    gate::{Gate, Policy},
};

/// A rule for `host:port`, and the private grant that it needs here; `more` stands in the rule.
pub(crate) fn rule(host: &str, port: u16, more: &str) -> String {
    format!(
        "[[allow]]\nhost = \"{host}:{port}\"\n{more}\n[[private]]\nhost = \"{host}\"\nport = {port}\nfor = [\"proxy\"]\n"
    )
}

/// A local user who may go to `host:port`.
pub(crate) fn policy(host: &str, port: u16, more: &str) -> Policy {
    Policy::local("").file("egress.toml", rule(host, port, more))
}

/// A target that accepts and then does what the test does.
pub(crate) async fn target() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// A connection to the forward proxy, or through it.
pub(crate) struct Client(pub(crate) TcpStream);

impl Client {
    /// Connects to the egress listener.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is an agent's side: it connects to Tollgate, on loopback"
    )]
    pub(crate) async fn new(gate: &Gate) -> Self {
        let stream = TcpStream::connect(gate.egress).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self(stream)
    }

    /// Asks for a tunnel; `fields` are whole header lines.
    pub(crate) async fn connect(gate: &Gate, authority: &str, fields: &str) -> (Self, String) {
        let mut client = Self::new(gate).await;
        let head = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{fields}\r\n");
        client.send(head).await;
        let answer = client.head().await;
        (client, answer)
    }

    /// A tunnel that is open.
    pub(crate) async fn tunnel(gate: &Gate, authority: &str) -> Self {
        let (client, answer) = Self::connect(gate, authority, "").await;
        assert_eq!(answer, "HTTP/1.1 200 Connection Established\r\n\r\n");
        client
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).await.unwrap();
    }

    /// The same for a peer that may have closed.
    pub(crate) async fn offer(&mut self, bytes: impl AsRef<[u8]>) {
        drop(self.0.write_all(bytes.as_ref()).await);
    }

    /// A head, up to its empty line.
    pub(crate) async fn head(&mut self) -> String {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let byte = patiently(self.0.read_u8()).await;
            head.push(char::from(
                byte.unwrap_or_else(|error| panic!("{error} after {head:?}")),
            ));
        }
        head
    }

    /// Exactly so many bytes.
    pub(crate) async fn exactly(&mut self, bytes: usize) -> Vec<u8> {
        let mut read = vec![0; bytes];
        patiently(self.0.read_exact(&mut read)).await.unwrap();
        read
    }

    /// Everything until the end; a reset is one, too.
    pub(crate) async fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        drop(patiently(self.0.read_to_end(&mut rest)).await);
        rest
    }
}
