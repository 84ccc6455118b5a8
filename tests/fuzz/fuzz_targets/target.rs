//! What is accepted as a destination is the same to whoever reads it next: this parser again, or that of the WHATWG.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate::address::{Host, Leg, Rules, Target};
use url::Url;

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    if let Ok((target, path)) = Target::from_wire_with_path(text) {
        assert!(text.is_ascii());
        check_path(&path);
        check_authority(text);
        check(&target);
        check_whatwg(text, &target);
        let by_operator = Target::from_operator_with_path(text).expect("it is stricter");
        assert_eq!(by_operator, (target, path));
    }
    if let Ok((target, path)) = Target::from_operator_with_path(text) {
        check_path(&path);
        check_authority(text);
        check(&target);
    }
    if let Ok(target) = Target::from_authority(text) {
        assert!(!text.contains(['@', '/', '?', '#', '\\', '%']));
        check(&target);
        check_whatwg(&format!("https://{text}/"), &target);
    }
});

/// Ports, spelling, and that the print is judged like what was read.
fn check(target: &Target) {
    assert_ne!(target.port(), 0);
    if let Host::Name(name) = target.host() {
        let name = name.as_str();
        let legal =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte);
        assert!(name.bytes().all(legal));
        assert!((1..=253).contains(&name.len()) && !name.ends_with('.'));
        assert!(name.parse::<std::net::Ipv4Addr>().is_err());
    }
    let print = target.to_string();
    let again = Target::from_wire(&print).expect("the print of a target");
    assert_eq!(&again, target);
    assert!(target.is_named_by(&target.authority()));
    let judge = |target| Rules::default().before_resolving(&Leg::Proxy, target);
    let verdict = judge(target);
    assert_eq!(verdict, judge(&again));
    if let (Host::Ip(address), Ok(Some(judged))) = (target.host(), verdict) {
        assert!(!address.is_loopback() && !address.is_unspecified() && !address.is_multicast());
        assert_eq!(judged.addresses.len(), 1);
        assert_eq!(
            judged.addresses[0].socket(),
            (*address, target.port()).into()
        );
    }
}

fn check_path(path: &str) {
    assert!(path.starts_with('/'));
    assert!(
        path.bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'\\' && byte != b'#')
    );
}

/// No user name or password.
fn check_authority(text: &str) {
    let (_, rest) = text.split_once("://").expect("a URL");
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    assert!(!authority.contains('@'));
}

/// Another reader of URLs, if it accepts this one, goes to the same place.
fn check_whatwg(text: &str, target: &Target) {
    let Ok(url) = Url::parse(text) else {
        return;
    };
    assert_eq!(url.scheme(), target.scheme().as_str());
    assert_eq!(url.port_or_known_default(), Some(target.port()));
    let host = match url.host().expect("a host") {
        url::Host::Domain(name) => name.strip_suffix('.').unwrap_or(name).to_owned(),
        url::Host::Ipv4(address) => address.to_string(),
        url::Host::Ipv6(address) => format!("[{address}]"),
    };
    assert_eq!(host, target.host().to_string());
}
