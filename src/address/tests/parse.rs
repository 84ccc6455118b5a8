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
