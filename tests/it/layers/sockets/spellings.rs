//! The walk tests itself: what it finds, and what it lets pass.

use super::{
    super::paths::Source,
    walk::{Found, ways},
};

/// Files of the sources, as text, and the ways in them.
fn found(files: &[(&str, &str)]) -> Vec<Found> {
    let files: Vec<_> = files
        .iter()
        .map(|(file, text)| Source::parse(file, text))
        .collect();
    ways(&files)
}

/// Each of these is found, as this.
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
