//! What the parsers accept and refuse.

use super::target;
use crate::address::Target;

#[test]
fn urls_are_read_strictly() {
    for malformed in [
        "",
        "example.com",
        "ftp://example.com/",
        "http:/example.com/",
        "http:example.com",
        "http:///x",
        "http://",
        "http://user@example.com/",
        "http://example.com/#f",
        "http://example.com:0/",
        "http://example.com:65536/",
        "http://example.com:/",
        "http://example.com:080/",
        "http://example.com:+80/",
        "http://example.com:80:80/",
        "http://[::1/",
        "http://::1/",
        "http://[fe80::1%25eth0]/",
        "http://[example.com]/",
        "http://[::1]x/",
        "http://exa mple.com/",
        "http://example.com\\@x/",
        "http://%31.example.com/",
        "http://a..b/",
        "http://.a.com/",
        "http://-a.com/",
        "http://a-.com/",
        "http://127.0.0.1./",
        "http://0x7f.1/",
        "http://1.2.3.4.5/",
        "http://example.com/\u{e9}",
        "http://example.com/\n",
        "http://a\u{0}.com/",
        "https://ex\u{430}mple.net/",
    ] {
        assert!(Target::from_wire(malformed).is_err(), "{malformed}");
        let idn = malformed.contains('\u{430}');
        assert_eq!(Target::from_operator(malformed).is_ok(), idn, "{malformed}");
    }
    for authority in [
        "example.com",
        "http://example.com:443",
        "example.com:443,b:1",
        "a:b@example.com:443",
        "[::1]",
        ":443",
    ] {
        assert!(Target::from_authority(authority).is_err(), "{authority}");
    }
    assert_eq!(
        Target::from_authority("EXAMPLE.com.:8443")
            .unwrap()
            .to_string(),
        "https://example.com:8443"
    );
    assert_eq!(
        target("HTTP://[2606:4700::1]:8080/").to_string(),
        "http://[2606:4700::1]:8080"
    );
    assert_eq!(target("http://example.com:80").authority(), "example.com");
}

#[test]
fn the_wire_gives_a_path_as_it_is_written() {
    for (url, path) in [
        ("http://example.com/a/../b%2F?x=1&y", "/a/../b%2F?x=1&y"),
        ("http://example.com?x", "/?x"),
        ("http://example.com", "/"),
    ] {
        let (found, written) = Target::from_wire_with_path(url).unwrap();
        assert_eq!((found, &*written), (target("http://example.com"), path));
    }
    assert!(Target::from_wire_with_path("http://example.com/\u{e9}").is_err());
}

#[test]
fn a_host_header_names_a_target_with_its_port_or_without() {
    let named = |url: &str, host: &str| target(url).is_named_by(host);
    assert!(named("http://example.com:8080", "EXAMPLE.com.:8080"));
    assert!(named("http://example.com:8080", "example.com"));
    assert!(named("https://[2606:4700::1]", "[2606:4700:0::1]:443"));
    for other in [
        "",
        ":8080",
        "example.com:80",
        "example.com:",
        "example.com/x",
        "u@example.com",
        "example.net",
        "example.com ",
        "ex\u{e4}mple.com",
    ] {
        assert!(!named("http://example.com:8080", other), "{other}");
    }
}

#[test]
fn operators_write_international_names_in_normal_form() {
    let read = |url| Target::from_operator(url).map(|target| target.to_string());
    assert_eq!(
        read("https://Bücher.example.net:8443/x"),
        Ok("https://xn--bcher-kva.example.net:8443".into())
    );
    assert_eq!(
        read("https://straße.example/"),
        Ok("https://xn--strae-oqa.example".into())
    );
    for rewritten in [
        "http://127．0．0．1/",
        "http://local\u{ad}host/",
        "http://localhost\u{200b}/",
        "http://ⓔxample.com/",
        "http://①.1.1.1/",
    ] {
        assert!(read(rewritten).is_err(), "{rewritten}");
    }
    let (_, path) = Target::from_operator_with_path("https://example.com/a/../b%2F?x=1&y").unwrap();
    assert_eq!(path, "/a/../b%2F?x=1&y");
    assert_eq!(
        Target::from_operator_with_path("https://example.com?x")
            .unwrap()
            .1,
        "/?x"
    );
    assert_eq!(
        Target::from_operator_with_path("https://example.com")
            .unwrap()
            .1,
        "/"
    );
}
