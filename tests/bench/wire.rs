//! HTTP/1.1 as far as both ends of the benchmark need it, and as cheap as it gets: the two share a
//! core, and must not be what limits the proxy on the other.

use std::io::{Error, Result};
use std::net::{Ipv4Addr, SocketAddrV4};

use bytes::{Buf as _, Bytes, BytesMut};
use memchr::memmem;
use nix::sys::socket::{setsockopt, sockopt::IpBindAddressNoPort};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// Bytes that a read has room for at least.
const ROOM: usize = 16 * 1024;

/// Has every connection to this port of 127.0.0.1 talked to by `converse`, until the process is ended.
pub(crate) async fn serve<F>(port: u16, converse: fn(Wire) -> F) -> Result<()>
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    loop {
        let (socket, _) = listener.accept().await?;
        let wire = Wire::new(socket)?;
        tokio::spawn(async move {
            // A connection that its client closed is no fault.
            let _ = converse(wire).await;
        });
    }
}

/// One end of a connection.
pub(crate) struct Wire {
    socket: TcpStream,
    buffer: BytesMut,
}

impl Wire {
    pub(crate) fn new(socket: TcpStream) -> Result<Self> {
        socket.set_nodelay(true)?;
        Ok(Self {
            socket,
            buffer: BytesMut::new(),
        })
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the load comes from outside the product"
    )]
    pub(crate) async fn connect(port: u16) -> Result<Self> {
        Self::new(TcpStream::connect(("127.0.0.1", port)).await?)
    }

    /// As `connect`, from another address of this machine.
    #[expect(
        clippy::disallowed_methods,
        reason = "the load comes from outside the product"
    )]
    pub(crate) async fn connect_from(source: Ipv4Addr, port: u16) -> Result<Self> {
        let socket = TcpSocket::new_v4()?;
        // The port is found when the destination is known: one that still lingers for another will do.
        setsockopt(&socket, IpBindAddressNoPort, &true)?;
        socket.bind(SocketAddrV4::new(source, 0).into())?;
        Self::new(
            socket
                .connect(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port).into())
                .await?,
        )
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.socket.write_all(bytes).await
    }

    /// Skips a TLS record, if one comes first.
    pub(crate) async fn skip_hello(&mut self) -> Result<()> {
        const HANDSHAKE: u8 = 22;
        const HEADER: usize = 5;
        if self.buffer.is_empty() && self.fill().await? == 0 {
            return Ok(());
        }
        if self.buffer[0] == HANDSHAKE {
            self.need(HEADER).await?;
            let size = usize::from(u16::from_be_bytes([self.buffer[3], self.buffer[4]]));
            self.need(HEADER + size).await?;
            self.buffer.advance(HEADER + size);
        }
        Ok(())
    }

    /// Reads what comes next, as it comes; 0 at the end.
    pub(crate) async fn read(&mut self, piece: &mut [u8]) -> Result<usize> {
        if self.buffer.is_empty() {
            return self.socket.read(piece).await;
        }
        let count = self.buffer.len().min(piece.len());
        self.buffer.copy_to_slice(&mut piece[..count]);
        Ok(count)
    }

    /// The next head; `None` where the peer closed instead.
    pub(crate) async fn head(&mut self) -> Result<Option<Head>> {
        loop {
            if let Some(end) = memmem::find(&self.buffer, b"\r\n\r\n") {
                let bytes = self.buffer.split_to(end + 4).freeze();
                return Ok(Some(Head(bytes)));
            }
            if self.fill().await? == 0 {
                return Ok(None);
            }
        }
    }

    /// Appends the next piece of `body` to `out`; false at the body's end.
    pub(crate) async fn piece(&mut self, body: &mut Body, out: &mut Vec<u8>) -> Result<bool> {
        match body {
            Body::Sized(0) => return Ok(false),
            Body::Sized(left) => {
                if self.buffer.is_empty() {
                    self.need(1).await?;
                }
                let now = self.buffer.len().min(*left);
                self.take(now, out);
                *left -= now;
            }
            Body::Chunked => {
                let line = loop {
                    match memmem::find(&self.buffer, b"\r\n") {
                        Some(line) => break line,
                        None => self.need(self.buffer.len() + 1).await?,
                    }
                };
                let size = chunk_size(&self.buffer[..line])?;
                self.need(line + 2 + size + 2).await?;
                self.buffer.advance(line + 2);
                self.take(size, out);
                self.buffer.advance(2);
                if size == 0 {
                    *body = Body::Sized(0);
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Returns when the peer has closed; what it says until then is not looked at.
    pub(crate) async fn closed(&mut self) -> Result<()> {
        while self.fill().await? > 0 {
            self.buffer.clear();
        }
        Ok(())
    }

    fn take(&mut self, size: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.buffer[..size]);
        self.buffer.advance(size);
    }

    async fn need(&mut self, size: usize) -> Result<()> {
        while self.buffer.len() < size {
            self.buffer.reserve(size - self.buffer.len());
            if self.fill().await? == 0 {
                return Err(Error::other("the connection ended within a body"));
            }
        }
        Ok(())
    }

    async fn fill(&mut self) -> Result<usize> {
        self.buffer.reserve(ROOM);
        self.socket.read_buf(&mut self.buffer).await
    }
}

fn chunk_size(line: &[u8]) -> Result<usize> {
    let size = std::str::from_utf8(line).ok();
    size.and_then(|size| usize::from_str_radix(size, 16).ok())
        .ok_or_else(|| Error::other("a chunk begins without its size"))
}

/// How the rest of a body is framed.
pub(crate) enum Body {
    /// So many bytes are left.
    Sized(usize),
    Chunked,
}

/// The start line and the fields of a message.
pub(crate) struct Head(Bytes);

impl Head {
    pub(crate) fn starts_with(&self, start: &str) -> bool {
        self.0.starts_with(start.as_bytes())
    }

    /// The status line or request line.
    pub(crate) fn start_line(&self) -> String {
        let line = self.0.split(|byte| *byte == b'\r').next();
        String::from_utf8_lossy(line.unwrap_or_default()).into_owned()
    }

    /// The value of the field of this name.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut rest = &self.0[..];
        while let Some(line) = memchr::memchr(b'\n', rest) {
            rest = &rest[line + 1..];
            if let Some((found, after)) = rest.split_at_checked(name.len())
                && found.eq_ignore_ascii_case(name.as_bytes())
                && after.first() == Some(&b':')
            {
                let value = after[1..].split(|byte| *byte == b'\r').next()?;
                return std::str::from_utf8(value).ok().map(str::trim);
            }
        }
        None
    }

    /// Whether this request is for `path`.
    pub(crate) fn asks_for(&self, path: &str) -> bool {
        self.0.split(|byte| *byte == b' ').nth(1) == Some(path.as_bytes())
    }

    pub(crate) fn body(&self) -> Body {
        if let Some(size) = self.field("content-length") {
            return Body::Sized(size.parse().unwrap_or_default());
        }
        match self.field("transfer-encoding") {
            Some(_) => Body::Chunked,
            None => Body::Sized(0),
        }
    }
}
