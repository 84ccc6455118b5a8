//! What is a way to a socket.

/// What opens nothing as a type, and a socket by these functions.
const OPENING: &[(&str, &[&str])] = &[
    ("tokio::net::TcpStream", &["connect"]),
    ("tokio::net::UnixStream", &["connect"]),
    ("tokio::net::TcpListener", &["bind"]),
    ("tokio::net::UnixListener", &["bind"]),
    ("std::net::TcpStream", &["connect", "connect_timeout"]),
    ("std::net::TcpListener", &["bind"]),
    (
        "std::os::unix::net::UnixStream",
        &["connect", "connect_addr"],
    ),
    ("std::os::unix::net::UnixListener", &["bind", "bind_addr"]),
];

/// What nobody names without meaning to open something, and everything below it.
const WHOLE: &[&str] = &[
    "tokio::net::TcpSocket",
    "tokio::net::UdpSocket",
    "tokio::net::UnixDatagram",
    "tokio::net::UnixSocket",
    "tokio::net::ToSocketAddrs",
    "tokio::net::lookup_host",
    "tokio::process",
    "std::net::UdpSocket",
    "std::net::ToSocketAddrs",
    "std::os::unix::net::UnixDatagram",
    "std::os::unix::process",
    "std::process::Command",
    "nix::sys::socket",
    "nix::spawn",
    "nix::unistd::fork",
    "nix::unistd::execv",
    "nix::unistd::execve",
    "nix::unistd::execveat",
    "nix::unistd::execvp",
    "nix::unistd::execvpe",
    "nix::unistd::fexecve",
    "hyper_util::client",
    "hickory_resolver",
    "socket2",
    "libc",
    "rustix",
    "mio",
    "extern {}",
    "include!",
    "#[path]",
];

/// The way that a full path is, if it is one.
pub(super) fn way(path: &[String], is_token: bool) -> Option<String> {
    let full = path.join("::");
    let below = |root: &str| {
        full.strip_prefix(root).and_then(|rest| {
            if rest.is_empty() {
                Some(rest)
            } else {
                rest.strip_prefix("::")
            }
        })
    };
    if let Some(whole) = WHOLE.iter().find(|root| below(root).is_some()) {
        return Some((*whole).to_owned());
    }
    // Names and messages are data; the rest of that crate talks.
    if below("hickory_proto").is_some_and(|rest| !rest.starts_with("rr") && !rest.starts_with("op"))
    {
        return Some("hickory_proto".to_owned());
    }
    OPENING.iter().find_map(|(root, functions)| {
        let rest = below(root)?;
        (functions.contains(&rest) || (is_token && rest.is_empty())).then(|| full.clone())
    })
}
