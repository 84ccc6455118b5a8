//! Addresses and the sockets bound to them: one per worker, so that the kernel spreads connections.

use std::{
    fmt, fs, io,
    net::{SocketAddr, TcpListener},
    os::unix::{
        fs::{FileTypeExt, PermissionsExt},
        net::{UnixListener, UnixStream},
    },
    path::Path,
};

use socket2::{Domain, Protocol, Type};

use super::Error;
use crate::config::Endpoint;

/// Connections that the kernel holds until a worker takes them.
const BACKLOG: i32 = 1024;
/// `sun_path` of Linux, less the final zero byte.
const MAX_PATH: usize = 107;

/// A bound socket of one worker, not yet part of a runtime.
#[derive(Debug)]
pub enum Socket {
    /// TCP.
    Tcp(TcpListener),
    /// Unix.
    Unix(UnixListener),
}

/// Sockets bound to one address.
#[derive(Debug)]
pub struct Bound {
    /// The address, with the port that was given where 0 was asked for.
    pub address: Endpoint,
    /// One socket per worker.
    pub sockets: Vec<Socket>,
}

impl Bound {
    /// Binds `workers` sockets to `address`.
    ///
    /// # Errors
    ///
    /// An address in use by another process, a path too long, and whatever the operating system refuses.
    pub fn new(address: &Endpoint, workers: usize) -> Result<Self, Error> {
        match address {
            Endpoint::Tcp(address) => tcp(*address, workers),
            Endpoint::Unix(path) => {
                let first = unix(path, 0o666)?;
                let share = || first.try_clone().map(Socket::Unix);
                let sockets = (0..workers).map(|_| share()).collect::<io::Result<_>>();
                Ok(Self {
                    address: Endpoint::Unix(path.clone()),
                    sockets: sockets.map_err(|source| failed(path.display(), source))?,
                })
            }
        }
    }
}

fn tcp(address: SocketAddr, workers: usize) -> Result<Bound, Error> {
    // With SO_REUSEPORT a second process of this user would silently take half of the connections.
    if address.port() != 0 {
        listen(address, false).map_err(|source| failed(address, source))?;
    }
    let mut at = address;
    let mut sockets = Vec::with_capacity(workers);
    for _ in 0..workers {
        let socket = listen(at, true).map_err(|source| failed(at, source))?;
        at = socket.local_addr().map_err(|source| failed(at, source))?;
        sockets.push(Socket::Tcp(socket));
    }
    Ok(Bound {
        address: Endpoint::Tcp(at),
        sockets,
    })
}

fn listen(address: SocketAddr, shared: bool) -> io::Result<TcpListener> {
    let socket = socket2::Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    if shared {
        socket.set_reuse_port(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Binds a unix socket with `mode`, in place of one that nobody answers any more.
pub(crate) fn unix(path: &Path, mode: u32) -> Result<UnixListener, Error> {
    if path.as_os_str().len() > MAX_PATH {
        return Err(Error::PathTooLong {
            path: path.to_owned(),
            max: MAX_PATH,
        });
    }
    remove_stale(path)?;
    let bind = || {
        let listener = UnixListener::bind(path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    bind().map_err(|source| failed(path.display(), source))
}

fn remove_stale(path: &Path) -> Result<(), Error> {
    let Ok(found) = fs::symlink_metadata(path) else {
        return Ok(());
    };
    if !found.file_type().is_socket() {
        return Err(Error::NotASocket(path.to_owned()));
    }
    if UnixStream::connect(path).is_ok() {
        return Err(Error::InUse(format!("unix:{}", path.display())));
    }
    fs::remove_file(path).map_err(|source| failed(path.display(), source))
}

fn failed(address: impl fmt::Display, source: io::Error) -> Error {
    let address = address.to_string();
    match source.kind() {
        io::ErrorKind::AddrInUse => Error::InUse(address),
        _ => Error::Bind { address, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_share_the_port_that_the_first_was_given() {
        let any = Endpoint::Tcp("127.0.0.1:0".parse().unwrap());
        let bound = Bound::new(&any, 2).unwrap();
        assert_eq!(bound.sockets.len(), 2);
        assert_ne!(bound.address, any);
        assert!(matches!(
            Bound::new(&bound.address, 1),
            Err(Error::InUse(_))
        ));
    }

    #[test]
    fn a_stale_socket_is_replaced_and_a_live_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let live = unix(&path, 0o600).unwrap();
        assert!(matches!(unix(&path, 0o600), Err(Error::InUse(_))));
        drop(live);
        unix(&path, 0o600).unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }

    #[test]
    fn other_files_and_long_paths_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "mine").unwrap();
        assert!(matches!(unix(&path, 0o600), Err(Error::NotASocket(_))));
        let long = folder.path().join("x".repeat(120));
        assert!(matches!(
            unix(&long, 0o600),
            Err(Error::PathTooLong { max: 107, .. })
        ));
    }
}
