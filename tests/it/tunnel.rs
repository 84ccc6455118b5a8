//! Cases of the corpus about bytes that a client of the forward proxy sends: what they come to before a policy is asked.

use std::{collections::HashMap, sync::Arc};

use bytes::BytesMut;
use rustls::{
    ClientConfig, ClientConnection, RootCertStore,
    client::{EchGreaseConfig, EchMode},
    crypto::{
        aws_lc_rs::{self, hpke::DH_KEM_X25519_HKDF_SHA256_AES_128, kx_group},
        hpke::Hpke as _,
    },
    pki_types::ServerName,
};
use serde_json::Value;
use tollgate::{
    address::Target,
    refusal::Refusal,
    tunnel::{Heads, Hello, HelloReader},
};

const SHIPPED: &str = include_str!("../corpus/egress.jsonl");

/// The `http` cases by their id.
pub(crate) fn cases() -> HashMap<String, Value> {
    let cases = SHIPPED
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    cases
        .filter(|case: &Value| case["kind"] == "http")
        .map(|case| (case["id"].as_str().unwrap().to_owned(), case))
        .collect()
}

/// A head, as its method, target and path; or the code of its refusal. And what follows it.
fn read(text: &str) -> (String, String) {
    let mut input = BytesMut::from(text);
    let result = match Heads::default().next(&mut input) {
        Ok(Some(head)) => {
            let path = head.path.as_deref().unwrap_or_default();
            let differs = if head.check_host().is_err() {
                " but Host"
            } else {
                ""
            };
            format!("{} {} {path}{differs}", head.method, head.target)
                .trim_end()
                .to_owned()
        }
        Ok(None) => "not whole".to_owned(),
        Err(error) => Refusal::from(error).code.as_str().to_owned(),
    };
    (result, String::from_utf8_lossy(&input).into_owned())
}

/// The head of a plain GET with something in it that is too large.
pub(crate) fn large(input: &Value) -> Option<String> {
    let size = |key: &str| {
        input[key]
            .as_u64()
            .map(|size| usize::try_from(size).unwrap())
    };
    let get = |path: &str, fields: &str| {
        format!(
            "GET http://api.example.net/{path} HTTP/1.1\r\nHost: api.example.net\r\n{fields}\r\n"
        )
    };
    let bytes = size("headers_bytes").map(|size| get("", &format!("X: {}\r\n", "x".repeat(size))));
    let count = size("headers_count").map(|count| get("", &"X: y\r\n".repeat(count)));
    let url = size("url_bytes").map(|size| get(&"x".repeat(size), ""));
    bytes.or(count).or(url)
}

#[test]
fn heads_of_the_corpus() {
    const PLAIN: &str = "GET http://api.example.net /";
    const POST: &str = "POST http://api.example.net /";
    let cases = cases();
    let expected = [
        ("HTTP-001", PLAIN),
        ("HTTP-002", "GET http://api.example.net / but Host"),
        ("HTTP-003", "GET http://169.254.169.254 / but Host"),
        ("HTTP-004", "tunnel.bad_target"),
        ("HTTP-005", "listen.bad_head"),
        ("HTTP-006", "tunnel.host_mismatch"),
        ("HTTP-007", PLAIN),
        ("HTTP-009", "listen.bad_head"),
        ("HTTP-010", "listen.bad_head"),
        ("HTTP-011", "listen.bad_head"),
        ("HTTP-012", "listen.bad_head"),
        ("HTTP-013", "listen.bad_head"),
        ("HTTP-014", POST),
        ("HTTP-015", POST),
        ("HTTP-016", POST),
        ("HTTP-017", PLAIN),
        ("HTTP-018", "CONNECT https://api.example.net"),
        ("HTTP-029", PLAIN),
        ("HTTP-030", "listen.bad_head"),
        ("HTTP-031", PLAIN),
        ("HTTP-034", "listen.bad_head"),
        ("HTTP-035", "listen.bad_head"),
        ("HTTP-039", "listen.head_too_large"),
        ("HTTP-040", "listen.head_too_large"),
        ("HTTP-041", "tunnel.target_too_long"),
        ("HTTP-042", "tunnel.method_refused"),
        ("HTTP-044", PLAIN),
    ];
    for (id, expected) in expected {
        let input = &cases[id]["input"];
        let raw = input["raw"].as_str().map(str::to_owned);
        let text = raw.or_else(|| large(input)).expect(id);
        let (found, rest) = read(&text);
        assert_eq!(found, expected, "{id}");
        if found.contains(' ') {
            assert_eq!(text.split_once("\r\n\r\n").unwrap().1, rest, "{id}");
        }
    }
    let ours =
        |case: &&Value| case["input"].get("raw").is_some() || large(&case["input"]).is_some();
    assert_eq!(cases.values().filter(ours).count(), expected.len());
}

/// The first flight of a client that asks for `name`.
pub(crate) fn flight(name: &str, ech: bool, padding: usize) -> Vec<u8> {
    let mut provider = aws_lc_rs::default_provider();
    provider.kx_groups = vec![kx_group::X25519MLKEM768, kx_group::X25519];
    let builder = ClientConfig::builder_with_provider(Arc::new(provider));
    let builder = if ech {
        let suite = DH_KEM_X25519_HKDF_SHA256_AES_128;
        let (key, _) = suite.generate_key_pair().unwrap();
        builder.with_ech(EchMode::Grease(EchGreaseConfig::new(suite, key)))
    } else {
        builder.with_safe_default_protocol_versions()
    };
    let roots = RootCertStore::empty();
    let mut config = builder
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![vec![b'x'; 100]; padding / 100];
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut flight = Vec::new();
    client.write_tls(&mut flight).unwrap();
    flight
}

/// What the first bytes in a tunnel to `authority` come to, when they arrive in two segments.
fn judged(authority: &str, bytes: &[u8]) -> &'static str {
    let target = Target::from_authority(authority).unwrap();
    let mut reader = HelloReader::default();
    let hello = match reader.read(&bytes[..bytes.len() / 2]) {
        Ok(None) => reader.read(bytes),
        early => early,
    };
    let check = |hello: Option<Hello>| hello.expect("it is whole").check(target.host());
    match hello.and_then(check) {
        Ok(()) => "allow",
        Err(error) => error.code().as_str(),
    }
}

#[test]
fn tunnels_of_the_corpus() {
    let cases = cases();
    let expected = [
        ("HTTP-020", "tunnel.sni_mismatch"),
        ("HTTP-021", "allow"),
        ("HTTP-022", "allow"),
        ("HTTP-024", "tunnel.not_tls"),
        ("HTTP-025", "allow"),
        ("HTTP-026", "tunnel.sni_mismatch"),
    ];
    for (id, expected) in expected {
        let input = &cases[id]["input"];
        let authority = input["connect"].as_str().unwrap();
        let name = input["tls_sni"].as_str().unwrap_or("api.example.net");
        let padding = input["client_hello_bytes"]
            .as_u64()
            .map_or(0, |bytes| bytes - 1200);
        let bytes = match input["first_bytes"].as_str() {
            Some(bytes) => bytes.as_bytes().to_vec(),
            None => flight(
                name,
                input["ech"] == true,
                usize::try_from(padding).unwrap(),
            ),
        };
        assert!(bytes.len() > 1024 || padding == 0, "{id}");
        assert_eq!(judged(authority, &bytes), expected, "{id}");
    }
    let ours = |case: &&Value| case["input"].get("connect").is_some();
    assert_eq!(cases.values().filter(ours).count(), expected.len());
}
