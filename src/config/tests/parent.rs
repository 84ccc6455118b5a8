//! `[egress.parent]`.

use super::*;

#[test]
fn a_parent_is_an_http_origin() {
    let parent = settings("[egress.parent]\nurl = \"http://10.0.0.8\"\n").parent;
    assert_eq!(
        parent,
        Some(Parent {
            url: "http://10.0.0.8".into(),
            resolves: false
        })
    );
    assert_eq!(settings("[egress]\n").parent, None);
    for url in [
        "https://proxy.example:3128",
        "http://me:secret@proxy.example:3128",
        "http://proxy.example/x",
        "proxy.example:3128",
    ] {
        assert_eq!(
            faults(&format!("[egress.parent]\nurl = \"{url}\"\n")),
            "tollgate.toml:2:7: egress.parent.url: expected \"http://HOST:PORT\", without a password or path; correct it"
        );
    }
    assert_eq!(
        faults("[egress.parent]\nparent_resolves = 1\n"),
        "tollgate.toml:1:1: egress.parent: `url` is missing; add it\n\
         tollgate.toml:2:19: egress.parent.parent_resolves: found the integer 1, expected `true` or `false`"
    );
}
