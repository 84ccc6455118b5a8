//! Every way to a socket, or to a program that could have one, in the sources: each is the dialer's, or listed here.
//!
//! A way counts whatever it is called: in full, imported, renamed, by a glob, through a re-export or a type alias of another
//! file, through `Self`, as a value, inside a macro.

mod names;
mod spellings;
mod walk;
mod way;

use std::collections::BTreeSet;

use self::walk::{Found, ways};
use super::sources;

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
    "ahash",
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
    "maud",
    "memchr",
    "mimalloc",
    "moka",
    "oauth2",
    "prometheus-client",
    "rusqlite",
    "rustls",
    "rustls-native-certs",
    "ruzstd",
    "serde",
    "serde_json",
    "sha2",
    "subtle",
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

/// Dependencies that do: `way` knows what of theirs.
const KNOWN: &[&str] = &[
    "hickory-proto",
    "hickory-resolver",
    "hyper-util",
    "nix",
    "socket2",
    "tokio",
];

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
