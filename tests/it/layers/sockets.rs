//! Every way to a socket, or to a program that could have one, in the sources: each is the dialer's, or listed here.
//!
//! A way counts whatever it is called: in full, imported, renamed, by a glob, through a re-export or a type alias of another
//! file, through `Self`, as a value, inside a macro.

mod names;
mod walk;

use std::collections::BTreeSet;

use self::walk::{Found, ways};
use super::{paths::Source, sources};

/// Where a way may stand: a file, the way, and why.
const LISTED: &[(&str, &str, &str)] = &[
    (
        "egress/dial.rs",
        "tokio::net::TcpStream::connect",
        "the one dialer: it takes judged addresses only",
    ),
    (
        "egress/resolve/dns.rs",
        "hickory_resolver",
        "asks the configured name servers, and nobody else",
    ),
    (
        "egress/resolve/dns/settings.rs",
        "hickory_resolver",
        "reads which name servers the system has; opens nothing",
    ),
    (
        "listen/socket.rs",
        "socket2",
        "listening sockets of which each worker has its own",
    ),
    (
        "listen/socket.rs",
        "std::os::unix::net::UnixListener::bind",
        "listening sockets at a path",
    ),
    (
        "listen/socket.rs",
        "std::os::unix::net::UnixStream::connect",
        "finds out whether a socket's path is in use",
    ),
    (
        "app/control.rs",
        "std::os::unix::net::UnixStream::connect",
        "the command line, towards the Tollgate that runs",
    ),
    (
        "demo/client.rs",
        "tokio::net::TcpStream::connect",
        "the demonstration's agent, towards its own gateway",
    ),
    (
        "demo/server.rs",
        "tokio::net::TcpListener::bind",
        "the demonstration's tool server",
    ),
    (
        "demo/names.rs",
        "tokio::net::UdpSocket",
        "the demonstration's name server",
    ),
];

/// Dependencies that open no socket of their own accord, and start no program.
const QUIET: &[&str] = &[
    "aes-gcm",
    "arc-swap",
    "base64",
    "brotli-decompressor",
    "bytes",
    "clap",
    "dashmap",
    "flate2",
    "futures-util",
    "getrandom",
    "governor",
    "hkdf",
    "hmac",
    "http",
    "http-body",
    "http-body-util",
    "httparse",
    "hyper",
    "idna",
    "ipnet",
    "itoa",
    "jiff",
    "jsonschema",
    "memchr",
    "mimalloc",
    "moka",
    "prometheus-client",
    "rusqlite",
    "rustls",
    "rustls-native-certs",
    "ruzstd",
    "serde",
    "serde_json",
    "sha2",
    "thiserror",
    "tokio-rustls",
    "tokio-util",
    "toml",
    "tracing",
    "tracing-subscriber",
    "url",
    "uuid",
    "webpki-roots",
    "zeroize",
];

/// Dependencies that do: `walk::is_way` knows what of theirs.
const KNOWN: &[&str] = &[
    "hickory-proto",
    "hickory-resolver",
    "hyper-util",
    "nix",
    "socket2",
    "tokio",
];

/// Files of the sources, as text, and the ways in them.
fn found(files: &[(&str, &str)]) -> Vec<Found> {
    let files: Vec<_> = files
        .iter()
        .map(|(file, text)| Source::parse(file, text))
        .collect();
    ways(&files)
}

#[test]
fn only_the_dialer_and_what_is_listed_opens_sockets() {
    let mut faults = Vec::new();
    let mut used = BTreeSet::new();
    for Found { file, line, way } in ways(&sources()) {
        match LISTED
            .iter()
            .position(|row| (row.0, row.1) == (&file, &way))
        {
            Some(row) => drop(used.insert(row)),
            None => faults.push(format!("src/{file}:{line}: `{way}` is a way around egress")),
        }
    }
    for (row, (file, way, _)) in LISTED.iter().enumerate() {
        if !used.contains(&row) {
            faults.push(format!("src/{file}: `{way}` is listed and not there"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_dependency_is_known_to_open_sockets_or_not_to() {
    let manifest = include_str!("../../../Cargo.toml");
    let (mut named, mut table) = (Vec::new(), "");
    for line in manifest.lines() {
        if line.starts_with('[') {
            table = line.trim_matches(['[', ']']);
        } else if table.ends_with("dependencies") && table != "dev-dependencies" {
            // A package renamed here would pass under its new name.
            assert!(!line.contains("package"), "{line}");
            named.extend(line.split_once(" = ").map(|(name, _)| name));
        }
    }
    let is_unknown = |name: &&&str| !QUIET.contains(name) && !KNOWN.contains(name);
    let unknown: Vec<_> = named.iter().filter(is_unknown).collect();
    assert!(
        !named.is_empty() && unknown.is_empty(),
        "look these through: {unknown:?}"
    );
}

/// The test tests itself: each of these is found, as this.
#[test]
fn every_spelling_of_a_way_is_found() {
    const CONNECT: &str = "tokio::net::TcpStream::connect";
    for (text, way) in [
        ("fn f() { tokio::net::TcpStream::connect(x); }", CONNECT),
        ("fn f() { ::tokio::net::TcpStream::connect(x); }", CONNECT),
        (
            "use tokio::net::TcpStream; fn f() { TcpStream::connect(x); }",
            CONNECT,
        ),
        (
            "use tokio::net::TcpStream as X; fn f() { X::connect(x); }",
            CONNECT,
        ),
        (
            "use tokio::{net::{self, TcpStream as X}}; fn f() { X::connect(x); }",
            CONNECT,
        ),
        (
            "use tokio::net; fn f() { net::TcpStream::connect(x); }",
            CONNECT,
        ),
        (
            "use tokio::net as n; use n::TcpStream as X; fn f() { X::connect(x); }",
            CONNECT,
        ),
        (
            "use tokio as t; fn f() { t::net::TcpStream::connect(x); }",
            CONNECT,
        ),
        (
            "extern crate tokio as t; fn f() { t::net::TcpStream::connect(x); }",
            CONNECT,
        ),
        (
            "use tokio::net::*; fn f() { TcpStream::connect(x); }",
            CONNECT,
        ),
        (
            "use tokio::*; fn f() { net::TcpStream::connect(x); }",
            CONNECT,
        ),
        (
            "use tokio::net::TcpStream; mod a { use super::*; fn f() { TcpStream::connect(x); } }",
            CONNECT,
        ),
        (
            "use tokio::net::TcpStream; mod a { fn f() { super::TcpStream::connect(x); } }",
            CONNECT,
        ),
        (
            "fn f() { use tokio::net::TcpStream as X; X::connect(x); }",
            CONNECT,
        ),
        (
            "use tokio::net::TcpStream; fn f() { let open = TcpStream::connect; }",
            CONNECT,
        ),
        (
            "use tokio::net::TcpStream; fn f() { list.map(TcpStream::connect); }",
            CONNECT,
        ),
        (
            "use tokio::net::TcpStream; fn f() { <TcpStream>::connect(x); }",
            CONNECT,
        ),
        (
            "type X = tokio::net::TcpStream; fn f() { X::connect(x); }",
            CONNECT,
        ),
        (
            "type X = tokio::net::TcpStream; fn f() { <X>::connect(x); }",
            CONNECT,
        ),
        (
            "use tokio::net::TcpStream; impl Open for TcpStream { fn f() { Self::connect(x); } }",
            CONNECT,
        ),
        (
            "impl Open for () { type S = tokio::net::TcpStream; fn f() { <<() as Open>::S>::connect(x); } }",
            CONNECT,
        ),
        (
            "fn f() { tokio::select! { x = tokio::net::TcpStream::connect(x) => {} } }",
            CONNECT,
        ),
        (
            "use tokio::net::TcpStream as X; fn f() { vec![X::connect(x)]; }",
            CONNECT,
        ),
        (
            "use tokio::net::TcpStream; fn f() { open!(TcpStream, x); }",
            "tokio::net::TcpStream",
        ),
        (
            "use tokio::net::TcpStream as X; macro_rules! m { () => { <X>::connect(x) } }",
            "tokio::net::TcpStream",
        ),
        ("#[open(tokio::net::TcpStream::connect)] struct S;", CONNECT),
        (
            "#[cfg(not(test))] fn f() { tokio::net::TcpStream::connect(x); }",
            CONNECT,
        ),
        (
            "#[cfg(any(test, unix))] mod tests { fn f() { tokio::net::TcpStream::connect(x); } }",
            CONNECT,
        ),
        (
            "fn f() { std::net::TcpStream::connect_timeout(x, y); }",
            "std::net::TcpStream::connect_timeout",
        ),
        (
            "use std::os::unix::net::UnixStream; fn f() { UnixStream::connect(x); }",
            "std::os::unix::net::UnixStream::connect",
        ),
        (
            "use tokio::net::UnixStream; fn f() { UnixStream::connect(x); }",
            "tokio::net::UnixStream::connect",
        ),
        (
            "use tokio::net::TcpListener; fn f() { TcpListener::bind(x); }",
            "tokio::net::TcpListener::bind",
        ),
        ("use tokio::net::TcpSocket;", "tokio::net::TcpSocket"),
        ("fn f(_: tokio::net::UdpSocket) {}", "tokio::net::UdpSocket"),
        ("use std::net::{IpAddr, UdpSocket};", "std::net::UdpSocket"),
        (
            "use std::net::*; fn f() { UdpSocket::bind(x); }",
            "std::net::UdpSocket",
        ),
        (
            "use std::net::ToSocketAddrs as _;",
            "std::net::ToSocketAddrs",
        ),
        ("fn f() { x.to_socket_addrs(); }", "std::net::ToSocketAddrs"),
        (
            "fn f() { vec![x.to_socket_addrs()]; }",
            "std::net::ToSocketAddrs",
        ),
        (
            "fn f() { tokio::net::lookup_host(x); }",
            "tokio::net::lookup_host",
        ),
        ("use socket2::SockRef;", "socket2"),
        ("fn f() { socket2::Socket::new(x); }", "socket2"),
        (
            "use nix::sys::socket::{connect, socket};",
            "nix::sys::socket",
        ),
        (
            "use nix::sys; fn f() { sys::socket::connect(x); }",
            "nix::sys::socket",
        ),
        (
            "use nix::sys::*; fn f() { socket::connect(x); }",
            "nix::sys::socket",
        ),
        ("fn f() { nix::unistd::execv(x); }", "nix::unistd::execv"),
        ("fn f() { libc::connect(x); }", "libc"),
        ("extern crate libc;", "libc"),
        (
            "use hyper_util::client::legacy::connect::HttpConnector;",
            "hyper_util::client",
        ),
        ("use hickory_resolver::Resolver;", "hickory_resolver"),
        (
            "use hickory_proto::runtime::TokioRuntimeProvider;",
            "hickory_proto",
        ),
        ("use hickory_proto::*;", "hickory_proto"),
        ("use std::process::Command;", "std::process::Command"),
        (
            "use std::process; fn f() { process::Command::new(x); }",
            "std::process::Command",
        ),
        (
            "use std::os::unix::process::CommandExt;",
            "std::os::unix::process",
        ),
        (
            "fn f() { tokio::process::Command::new(x); }",
            "tokio::process",
        ),
        (
            "unsafe extern \"C\" { fn connect(x: i32) -> i32; }",
            "extern {}",
        ),
        ("include!(\"elsewhere.rs\");", "include!"),
        ("fn f() { vec![include!(\"elsewhere.rs\")]; }", "include!"),
        ("#[path = \"../elsewhere.rs\"] mod elsewhere;", "#[path]"),
    ] {
        let ways: Vec<_> = found(&[("gateway/call.rs", text)])
            .into_iter()
            .map(|found| found.way)
            .collect();
        assert!(ways.iter().any(|found| found == way), "`{text}`: {ways:?}");
    }
}

/// A listed file may not pass its way on under another name.
#[test]
fn ways_through_other_files_are_found() {
    for (there, here) in [
        (
            "pub use tokio::net::TcpStream as Wire;",
            "use crate::egress::dial::Wire; fn f() { Wire::connect(x); }",
        ),
        (
            "pub use tokio::net::TcpStream as Wire;",
            "use crate::egress::dial::*; fn f() { Wire::connect(x); }",
        ),
        (
            "pub type Wire = tokio::net::TcpStream;",
            "use crate::egress::dial as d; fn f() { d::Wire::connect(x); }",
        ),
        (
            "pub mod wires { pub use tokio::net::*; }",
            "use crate::egress::dial::wires; fn f() { wires::TcpStream::connect(x); }",
        ),
        (
            "pub use tokio as runtime;",
            "fn f() { crate::egress::dial::runtime::net::TcpStream::connect(x); }",
        ),
    ] {
        let files = [("egress/dial.rs", there), ("gateway/call.rs", here)];
        let ways = found(&files);
        let expected = ("gateway/call.rs", "tokio::net::TcpStream::connect");
        let is_found = ways
            .iter()
            .any(|found| (&*found.file, &*found.way) == expected);
        assert!(is_found, "`{there}`, `{here}`: {ways:?}");
    }
}

#[test]
fn what_opens_nothing_is_no_way() {
    for text in [
        "use tokio::net::{TcpListener, TcpStream, UnixStream}; fn f(_: &TcpStream) {}",
        "use std::net::{IpAddr, Ipv4Addr, SocketAddr};",
        "fn f(stream: std::net::TcpStream) { tokio::net::TcpStream::from_std(stream); }",
        "use tokio::net::TcpListener; impl Source for TcpListener { fn f() { self.accept(); } }",
        "use hickory_proto::rr::{Name, RecordType};",
        "use nix::sys::resource::Resource;",
        "use std::process::ExitCode;",
        "fn f() { tls.connect(name, stream); connect(x); }",
        "use super::dial; fn f() { dial::connect(x); }",
        "#[cfg(test)] mod tests { fn f() { tokio::net::TcpStream::connect(x); } }",
        "#[cfg(test)] fn f() { tokio::net::TcpStream::connect(x); }",
        "// tokio::net::TcpStream::connect\nfn f() { g(\"TcpStream::connect\"); }",
    ] {
        let ways = found(&[("gateway/call.rs", text)]);
        assert!(ways.is_empty(), "`{text}`: {ways:?}");
    }
    let test = "use tokio::net::UdpSocket;";
    assert!(found(&[("gateway/call/tests.rs", test)]).is_empty());
}
