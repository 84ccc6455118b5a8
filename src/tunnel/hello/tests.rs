mod properties;
mod real;
mod refused;

use super::*;

/// A ClientHello, part by part.
#[derive(Clone, Debug)]
struct Parts {
    version: [u8; 2],
    session: Vec<u8>,
    suites: Vec<u8>,
    compression: Vec<u8>,
    extensions: Vec<(u16, Vec<u8>)>,
}

impl Default for Parts {
    fn default() -> Self {
        Self {
            version: [3, 3],
            session: vec![7; 32],
            suites: vec![0x13, 0x01],
            compression: vec![0],
            extensions: vec![
                (43, vec![2, 3, 4]),
                (0, server_name(&[(0, b"Api.Example.NET")])),
                (10, vec![0, 2, 0, 29]),
            ],
        }
    }
}

impl Parts {
    fn with(extensions: &[(u16, &[u8])]) -> Self {
        let extensions = extensions.iter().map(|(kind, data)| (*kind, data.to_vec()));
        Self {
            extensions: extensions.collect(),
            ..Self::default()
        }
    }

    /// With this text as its one server name.
    fn named(name: &str) -> Self {
        Self::with(&[(0, &server_name(&[(0, name.as_bytes())]))])
    }

    /// The body of the message.
    fn body(&self) -> Vec<u8> {
        let extensions = self.extensions.iter();
        let extensions =
            extensions.flat_map(|(kind, data)| [&kind.to_be_bytes(), &*vector(2, data)].concat());
        [
            &self.version[..],
            &[9; 32],
            &vector(1, &self.session),
            &vector(2, &self.suites),
            &vector(1, &self.compression),
            &vector(2, &extensions.collect::<Vec<_>>()),
        ]
        .concat()
    }

    fn message(&self) -> Vec<u8> {
        message(&self.body())
    }
}

fn vector(width: usize, data: &[u8]) -> Vec<u8> {
    [&data.len().to_be_bytes()[8 - width..], data].concat()
}

fn server_name(names: &[(u8, &[u8])]) -> Vec<u8> {
    let names = names
        .iter()
        .flat_map(|(kind, name)| [&[*kind], &*vector(2, name)].concat());
    vector(2, &names.collect::<Vec<_>>())
}

fn message(body: &[u8]) -> Vec<u8> {
    [&[1], &*vector(3, body)].concat()
}

/// Handshake records with at most `length` bytes of `message` each.
fn records(message: &[u8], length: usize) -> Vec<u8> {
    let record = |piece| [&[22, 3, 1], &*vector(2, piece)].concat();
    message.chunks(length).flat_map(record).collect()
}

fn read(input: &[u8]) -> Result<Option<Hello>, HelloError> {
    HelloReader::default().read(input)
}

/// The name and whether there is ECH.
fn name(input: &[u8]) -> Option<(String, bool)> {
    let hello = read(input).unwrap();
    hello.map(|hello| (hello.name.to_string(), hello.ech))
}

fn found(name: &str) -> Option<(String, bool)> {
    Some((name.to_owned(), false))
}

#[test]
fn the_name_is_read_lower_case() {
    let message = Parts::default().message();
    assert_eq!(name(&records(&message, 16_384)), found("api.example.net"));
    for (text, expected) in [
        ("a_b.example", "a_b.example"),
        ("localhost", "localhost"),
        ("XN--bcher-kva.example", "xn--bcher-kva.example"),
    ] {
        assert_eq!(
            name(&records(&Parts::named(text).message(), 16_384)),
            found(expected)
        );
    }
    let long = [
        "a".repeat(63),
        "b".repeat(63),
        "c".repeat(63),
        "d".repeat(61),
    ]
    .join(".");
    assert_eq!(
        name(&records(&Parts::named(&long).message(), 16_384)),
        found(&long)
    );
}

#[test]
fn it_may_lie_in_several_records() {
    let message = Parts::default().message();
    for length in [1, 2, 3, 4, 5, 40, 64, message.len() - 1, message.len()] {
        assert_eq!(
            name(&records(&message, length)),
            found("api.example.net"),
            "{length}"
        );
    }
}

#[test]
fn what_follows_it_in_records_of_its_own_is_left_alone() {
    let mut input = records(&Parts::default().message(), 16_384);
    let hello = input.len();
    input.extend([20, 3, 3, 0, 1, 1, 23, 3, 3]);
    let mut reader = HelloReader::default();
    assert!(reader.read(&input).unwrap().is_some());
    assert_eq!(reader.read, hello);
}

#[test]
fn every_beginning_of_it_is_too_little() {
    let input = records(&Parts::default().message(), 50);
    for end in 0..input.len() {
        assert_eq!(read(&input[..end]), Ok(None), "{end}");
    }
}

#[test]
fn a_long_name_list_of_extensions_is_read_to_16_kib() {
    let padded = |length: usize| {
        let mut parts = Parts::default();
        let padding = length - parts.message().len() - 4;
        parts.extensions.insert(0, (21, vec![0; padding]));
        parts.message()
    };
    let longest = padded(16_384);
    assert_eq!(longest.len(), 16_384);
    assert_eq!(name(&records(&longest, 16_384)), found("api.example.net"));
    assert_eq!(name(&records(&longest, 100)), found("api.example.net"));
    let longer = padded(16_385);
    assert_eq!(read(&records(&longer, 16_384)), Err(HelloError::Long));
    assert_eq!(read(&records(&longer, 16_384)[..9]), Err(HelloError::Long));
    assert_eq!(read(&records(&longer, 16_384)[..8]), Ok(None));
    // One byte a record: 2,730 of them are 16 KiB on the wire, and more than twice that is refused.
    assert_eq!(name(&records(&padded(2730), 1)), found("api.example.net"));
    let spread = records(&padded(5500), 1);
    assert_eq!(read(&spread[..32_767]), Ok(None));
    assert_eq!(read(&spread[..32_768]), Err(HelloError::Long));
    assert_eq!(read(&spread), Err(HelloError::Long));
}

#[test]
fn a_tunnel_is_used_for_its_host() {
    let hello = read(&records(&Parts::default().message(), 99))
        .unwrap()
        .unwrap();
    let host = |text| Host::from_operator(text).unwrap();
    assert_eq!(hello.check(&host("api.example.net")), Ok(()));
    assert_eq!(hello.check(&host("API.example.NET.")), Ok(()));
    for other in ["evil.test", "example.net", "x.api.example.net", "192.0.2.1"] {
        let error = hello.check(&host(other)).unwrap_err();
        assert_eq!(
            (error.code().as_str(), error.to_string()),
            (
                "tunnel.sni_mismatch",
                format!("TLS asks for `api.example.net` in a tunnel to `{other}`")
            )
        );
    }
}
