//! The control socket: `state_dir/control.sock`, mode 0600, for the process's own user and root. One request line, one
//! answer line, then the end.

pub mod pins;

use std::{
    fmt,
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::net::UnixStream as Client,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use nix::unistd::Uid;
use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt},
    net::{UnixListener, UnixStream},
    sync::Semaphore,
    time::timeout,
};
use zeroize::Zeroizing;

use self::pins::{Accepted, Pins, Selection};
use super::{
    keys::{KeyChange, KeysReport},
    status::Status,
};
use crate::{
    connect::{Connection, SharedSecret},
    deadline::CEILING,
    tunnel::OpenTunnel,
};

/// The longest request line: it may name thousands of tools.
const MAX_REQUEST: u64 = 1 << 20;
/// Most request lines are shorter: a buffer that grew would leave copies of a secret behind.
const ROOM: usize = 16 << 10;
/// The longest answer line: twice a whole catalogue, as pinned and as seen, and what is said of it.
const MAX_ANSWER: u64 = 96 << 20;
/// How long a peer may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a peer may take to read its answer.
const READING: Duration = Duration::from_secs(30);
/// How long the command line waits: a reload reads and judges every file, and reading a server's lists may take a call.
const CLIENT_PATIENCE: Duration = Duration::from_secs(30).saturating_add(CEILING);
/// Peers at once.
const PEERS: usize = 8;

/// What the command line may ask.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// How the process is.
    Status,
    /// Read the policy again, now.
    Reload,
    /// The open tunnels of the forward proxy.
    Tunnels,
    /// The connections of all users.
    Connections,
    /// End every connection to a server, and forget what was discovered of it.
    ServerRemove {
        /// The server.
        server: String,
    },
    /// The secrets that the operator keeps for everybody of a tenant.
    Secrets,
    /// Whether one would be kept, before anybody types it.
    SecretFits {
        /// Whose.
        of: SecretOf,
    },
    /// Keep one.
    SecretSet {
        /// Whose.
        of: SecretOf,
        /// The secret.
        secret: Typed,
    },
    /// Take one away.
    SecretRemove {
        /// Whose.
        of: SecretOf,
    },
    /// How the keyring stands, after a change if there is one.
    Keys {
        /// The change.
        change: Option<KeyChange>,
    },
    /// Go on with a database that is older than one that was in use here.
    VaultAcceptRestore,
    /// Finish what runs, then stop.
    Drain,
    /// A link that signs a browser in.
    Login {
        /// The tenant; absent is the only one.
        tenant: Option<String>,
        /// The user; absent is the local one.
        user: Option<String>,
    },
    /// What is pinned of a server, and what callers were shown that differs.
    Pins {
        /// The server.
        server: String,
    },
    /// Read all lists of a server now; then the same.
    PinRead {
        /// The server.
        server: String,
    },
    /// Accept what was seen.
    PinAccept {
        /// The server.
        server: String,
        /// Which of it.
        accept: Selection,
    },
}

/// What it is answered.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// To `status`.
    Status(Box<Status>),
    /// The policy is in force; its generation.
    Reloaded {
        /// The generation in force now.
        generation: u64,
        /// Settings that wait for a restart.
        restart: Vec<String>,
    },
    /// To `tunnels`: what is open, the oldest first.
    Tunnels(Vec<OpenTunnel>),
    /// To `connections`, at most 10,000.
    Connections(Vec<Connection>),
    /// To `server_remove`.
    Removed(Removed),
    /// To `secrets`.
    Secrets(Vec<SharedSecret>),
    /// To `secret_fits`: it would be kept.
    SecretFits,
    /// To `secret_set` and `secret_remove`: which it was.
    SecretChanged(SecretOf),
    /// To `keys`.
    Keys(KeysReport),
    /// To `vault_accept_restore`: the number of changes from which the database goes on.
    RestoreAccepted(u64),
    /// The process drains.
    Draining,
    /// To `login`.
    Login(Login),
    /// To `pins` and `pin_read`.
    Pins(Pins),
    /// To `pin_accept`.
    Accepted(Accepted),
    /// It did not work, one line each.
    Failed(Vec<String>),
}

/// For which server the operator keeps a secret, and for which of its tenants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretOf {
    /// The server.
    pub server: String,
    /// The tenant; absent in a request is the only one.
    pub tenant: Option<String>,
}

/// A secret on its way; wiped when dropped, and not shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Typed(pub Zeroizing<String>);

impl fmt::Debug for Typed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Typed(..)")
    }
}

/// A link that signs a browser in, once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Login {
    /// The link.
    pub url: String,
    /// Whose tenant.
    pub tenant: String,
    /// Whom it signs in.
    pub user: String,
    /// How long it can be used, in seconds.
    pub lasts: u64,
}

impl fmt::Debug for Login {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Login")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// What became of a server's connections.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removed {
    /// The server.
    pub server: String,
    /// Connections that there were.
    pub connections: u64,
    /// Of those, how many the provider revoked.
    pub revoked: u64,
    /// Secrets that the operator kept in the vault for everybody of a tenant.
    pub shared: u64,
}

/// What the control socket can do.
pub(super) trait Control: Send + Sync + 'static {
    /// Carries a request out.
    fn carry_out(self: Arc<Self>, request: Request) -> impl Future<Output = Answer> + Send;
}

/// Answers until the task is dropped.
pub(super) async fn serve(listener: UnixListener, control: Arc<impl Control>) {
    let seats = Arc::new(Semaphore::new(PEERS));
    loop {
        let Ok(seat) = seats.clone().acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let control = control.clone();
                tokio::spawn(async move {
                    let _seat = seat;
                    if let Err(error) = attend(stream, control).await {
                        tracing::debug!(%error, "a control connection ended early");
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "the control socket cannot accept; resting");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn attend(mut stream: UnixStream, control: Arc<impl Control>) -> io::Result<()> {
    let uid = Uid::from_raw(stream.peer_cred()?.uid());
    // The mode of the socket says the same; this also holds where someone changed it.
    let answer = if uid != Uid::effective() && !uid.is_root() {
        tracing::warn!(%uid, "refused on the control socket");
        Answer::Failed(vec![format!(
            "uid {uid} may not control this process; run the command as its user, or as root"
        )])
    } else {
        match timeout(PATIENCE, read(&mut stream)).await {
            Ok(Ok(request)) => control.carry_out(request).await,
            Ok(Err(problem)) => Answer::Failed(vec![problem]),
            Err(_) => return Ok(()),
        }
    };
    let mut line = serde_json::to_vec(&answer).map_err(io::Error::other)?;
    line.push(b'\n');
    timeout(READING, stream.write_all(&line)).await??;
    stream.shutdown().await
}

async fn read(stream: &mut UnixStream) -> Result<Request, String> {
    // It may be a secret.
    let mut line = Zeroizing::new(Vec::with_capacity(ROOM));
    let mut reader = tokio::io::BufReader::new(stream.take(MAX_REQUEST));
    reader
        .read_until(b'\n', &mut line)
        .await
        .map_err(|error| error.to_string())?;
    if line.last() != Some(&b'\n') {
        return Err(format!(
            "a request is one line of at most {MAX_REQUEST} bytes"
        ));
    }
    serde_json::from_slice(&line).map_err(|error| format!("the request is not understood: {error}"))
}

/// The command line's side failed.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nobody listens.
    #[error("no tollgate answers at `{}`; start it, or point --policy or --socket at the one you mean", .0.display())]
    NotRunning(PathBuf),
    /// Another user's process.
    #[error("`{}` belongs to another user; run the command as that user or as root", .0.display())]
    NotAllowed(PathBuf),
    /// The connection broke.
    #[error("the control socket `{}` broke", path.display())]
    Broken {
        /// The socket.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Asks the process behind `path`.
///
/// # Errors
///
/// Nobody listens there, or not for this user.
pub fn ask(path: &Path, request: Request) -> Result<Answer, AskError> {
    exchange(path, request).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            AskError::NotRunning(path.to_owned())
        }
        io::ErrorKind::PermissionDenied => AskError::NotAllowed(path.to_owned()),
        _ => AskError::Broken {
            path: path.to_owned(),
            source,
        },
    })
}

fn exchange(path: &Path, request: Request) -> io::Result<Answer> {
    let mut stream = Client::connect(path)?;
    stream.set_read_timeout(Some(CLIENT_PATIENCE))?;
    stream.set_write_timeout(Some(CLIENT_PATIENCE))?;
    let mut line = Zeroizing::new(Vec::with_capacity(ROOM));
    serde_json::to_writer(&mut *line, &request)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut answer = String::new();
    BufReader::new(stream.take(MAX_ANSWER)).read_line(&mut answer)?;
    serde_json::from_str(&answer).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_on_its_way_is_not_printed() {
        let of = SecretOf {
            server: "notes".to_owned(),
            tenant: None,
        };
        let secret = Typed(Zeroizing::new("sekrit".to_owned()));
        let request = Request::SecretSet { of, secret };
        assert_eq!(
            format!("{request:?}"),
            "SecretSet { of: SecretOf { server: \"notes\", tenant: None }, secret: Typed(..) }"
        );
    }
}
