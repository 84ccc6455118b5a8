//! Who goes where, and what refuses it.

use super::*;
use crate::{
    address::{Leg, Target},
    policy::{TunnelTls, decide_egress},
    refusal::Code,
};

#[test]
fn hosts_and_ports_decide() {
    let exact = policy("[[allow]]\nhost = \"api.example.com\"\n");
    let below = policy("[[allow]]\nhost = \"*.example.com:8443\"\n");
    for (policy, authority, expected) in [
        (&exact, "api.example.com:443", FIRST),
        (&exact, "API.Example.com.:443", FIRST),
        (&exact, "api.example.com:80", UNNAMED),
        (&exact, "api.example.com:8443", UNNAMED),
        (&exact, "example.com:443", UNNAMED),
        (&exact, "x.api.example.com:443", UNNAMED),
        (&exact, "api.example.com.evil.test:443", UNNAMED),
        (&below, "api.example.com:8443", FIRST),
        (&below, "a.b.example.com:8443", FIRST),
        (&below, "example.com:8443", UNNAMED),
        (&below, "evilexample.com:8443", UNNAMED),
        (&below, "api.example.com:443", UNNAMED),
        (&below, "1.1.1.1:8443", UNNAMED),
    ] {
        assert_eq!(
            told(Ask::new(policy).tunnel(authority)),
            expected,
            "{authority}"
        );
    }
    let plain = |origin| told(Ask::new(&exact).plain("GET", origin, "/"));
    assert_eq!(plain("http://api.example.com/"), FIRST);
    assert_eq!(plain("http://api.example.com:443/"), UNNAMED);
}

#[test]
fn a_scheme_allows_tunnels_or_plain_requests_only() {
    let policy = policy(
        "[[allow]]\nhost = \"a.example.com:8080\"\nscheme = \"http\"\n\
         [[allow]]\nhost = \"b.example.com:8080\"\nscheme = \"https\"\n",
    );
    let ask = Ask::new(&policy);
    assert_eq!(told(ask.tunnel("a.example.com:8080")), UNNAMED);
    assert_eq!(
        told(ask.plain("GET", "http://a.example.com:8080/", "/")),
        FIRST
    );
    assert_eq!(
        told(ask.tunnel("b.example.com:8080")),
        "allow egress.toml:4: [[allow]]"
    );
    assert_eq!(
        told(ask.plain("GET", "http://b.example.com:8080/", "/")),
        UNNAMED
    );
}

#[test]
fn every_list_of_who_has_to_name_the_caller() {
    let who = |who: &str| {
        policy(&format!(
            "[[allow]]\nhost = \"a.example.com\"\nwho = {who}\n"
        ))
    };
    let refused = "egress.host_not_allowed egress.toml:1: [[allow]]";
    for (text, expected) in [
        ("{ users = [\"bob\", \"ann\"] }", FIRST),
        ("{ users = [\"bob\"] }", refused),
        ("{ groups = [\"ops\", \"eng\"] }", FIRST),
        ("{ groups = [\"ops\"] }", refused),
        ("{ agents = [\"ci-*\"] }", FIRST),
        ("{ agents = [\"ci\"] }", refused),
        (
            "{ users = [\"ann\"], groups = [\"eng\"], agents = [\"*\"] }",
            FIRST,
        ),
        ("{ users = [\"ann\"], groups = [\"ops\"] }", refused),
        ("{ tenants = [\"default\"] }", FIRST),
        ("{ tenants = [\"acme\"] }", UNNAMED),
    ] {
        assert_eq!(
            told(Ask::new(&who(text)).tunnel("a.example.com:443")),
            expected,
            "{text}"
        );
    }
    let mut other = Ask::new(&who("{ users = [\"ann\"] }")).subject;
    other.tenant = "acme".into();
    let policy = who("{ users = [\"ann\"] }");
    let ask = Ask {
        subject: other,
        ..Ask::new(&policy)
    };
    assert_eq!(
        told(ask.tunnel("a.example.com:443")),
        UNNAMED,
        "a rule without tenants is the default tenant's"
    );
}

#[test]
fn a_credential_needs_its_scope_and_the_environment_may_ask_for_admins() {
    let text = "[[allow]]\nhost = \"a.example.com\"\n";
    let snapshot = policy(text);
    let mut ask = Ask::new(&snapshot);
    ask.subject.scopes = Scopes::default();
    assert_eq!(
        told(ask.tunnel("a.example.com:443")),
        "identity.scope scopes"
    );

    let mode = |mode| {
        compiled(&[("egress.toml", text)], |inputs| {
            inputs.access_mode = Some(mode);
        })
        .expect("no faults")
    };
    let admins = mode("admins");
    assert_eq!(
        told(Ask::new(&admins).tunnel("a.example.com:443")),
        "egress.host_not_allowed TOOLS_ACCESS_MODE = admins"
    );
    assert_eq!(
        told(Ask::by(&admins, "root").tunnel("a.example.com:443")),
        FIRST
    );
    let all = mode("all-users");
    assert_eq!(told(Ask::new(&all).tunnel("b.example.com:443")), UNNAMED);
}

#[test]
fn methods_and_paths_hold_for_plain_requests() {
    let policy = policy(
        "[[allow]]\nhost = \"a.example.com\"\nscheme = \"http\"\nmethods = [\"GET\", \"HEAD\"]\npaths = [\"/repos/*\", \"/\"]\n",
    );
    let refused = "egress.request_not_allowed egress.toml:1: [[allow]]";
    for (method, path, expected) in [
        ("GET", "/repos/a/b", FIRST),
        ("HEAD", "/repos/", FIRST),
        ("GET", "/?q=/../x", FIRST),
        ("GET", "/repos/a%20b?x=%2f", FIRST),
        ("POST", "/repos/a", refused),
        ("get", "/repos/a", refused),
        ("GET", "/repos", refused),
        ("GET", "/admin", refused),
        ("GET", "/repos/../admin", refused),
        ("GET", "/repos/.", refused),
        ("GET", "/repos/%2e%2E/admin", refused),
        ("GET", "/repos/.%2e/admin", refused),
        ("GET", "/repos/..;x/admin", refused),
        ("GET", "/repos/..%3bx/admin", refused),
        ("GET", "/repos/..%2fadmin", refused),
        ("GET", "/repos/..%5Cadmin", refused),
        ("GET", "/repos/..\\admin", refused),
        ("GET", "/repos/%252e%252e/admin", refused),
        ("GET", "/repos//admin", refused),
        ("GET", "/repos/%00", refused),
        ("GET", "*", refused),
        ("GET", "", refused),
    ] {
        let got = Ask::new(&policy).plain(method, "http://a.example.com/", path);
        assert_eq!(told(got), expected, "{method} {path}");
    }
}

#[test]
fn a_rule_about_requests_never_lets_a_request_pass_that_is_not_seen() {
    let policy =
        policy("[[allow]]\nhost = \"a.example.com\"\nscheme = \"http\"\nmethods = [\"GET\"]\n");
    let target = Target::from_wire("http://a.example.com/").expect("a url");
    let got = decide_egress(&policy, &subject("ann", &[]), &target, None, before());
    let denied = got.expect_err("refused");
    assert_eq!(denied.refusal.code, Code::RequestNotAllowed);
    assert_eq!(
        denied.refusal.public,
        "`http://a.example.com` is allowed, but not for a tunnel, in which requests cannot be seen"
    );
}

#[test]
fn the_first_rule_that_lets_a_request_pass_decides_how() {
    let policy = policy(
        "[[allow]]\nhost = \"git.example.com:22\"\nwho.users = [\"bob\"]\n\
         [[allow]]\nhost = \"git.example.com:22\"\ntls = \"opaque\"\nwho.users = [\"ann\"]\n\
         [[allow]]\nhost = \"*.example.com:22\"\n",
    );
    let permit = Ask::new(&policy)
        .tunnel("git.example.com:22")
        .expect("allowed");
    assert_eq!(permit.rule(), "egress.toml:4: [[allow]]");
    assert_eq!(permit.tls(), TunnelTls::Opaque);
    let permit = Ask::by(&policy, "eve")
        .tunnel("git.example.com:22")
        .expect("allowed");
    assert_eq!(permit.rule(), "egress.toml:8: [[allow]]");
    assert_eq!(permit.tls(), TunnelTls::Pass);
}

#[test]
fn a_denial_wins_wherever_it_stands_and_on_every_port() {
    let policy = policy(
        "[[allow]]\nhost = \"*.example.com\"\n[[allow]]\nhost = \"bad.example.com:8443\"\n\
         [[deny]]\nhost = \"bad.example.com\"\n[[deny]]\nhost = \"*.test.example.com:443\"\nwho.users = [\"ann\"]\n",
    );
    let ask = Ask::new(&policy);
    let bad = "egress.host_not_allowed egress.toml:5: [[deny]]";
    assert_eq!(told(ask.tunnel("bad.example.com:443")), bad);
    assert_eq!(told(ask.tunnel("bad.example.com:8443")), bad);
    assert_eq!(told(ask.plain("GET", "http://bad.example.com/", "/")), bad);
    assert_eq!(
        told(ask.tunnel("a.test.example.com:443")),
        "egress.host_not_allowed egress.toml:7: [[deny]]"
    );
    assert_eq!(
        told(ask.plain("GET", "http://a.test.example.com/", "/")),
        FIRST
    );
    assert_eq!(
        told(Ask::by(&policy, "bob").tunnel("a.test.example.com:443")),
        FIRST
    );
}

#[test]
fn tollgates_own_listeners_are_named_as_such() {
    let snapshot = compiled(&[], |inputs| {
        inputs.own_listeners = vec!["0.0.0.0:8700".parse().expect("an address")];
        inputs.own_addresses = vec!["10.0.0.9".parse().expect("an address")];
    })
    .expect("no faults");
    let ask = Ask::new(&snapshot);
    for host in [
        "127.0.0.1",
        "127.9.9.9",
        "localhost",
        "10.0.0.9",
        "[::ffff:10.0.0.9]",
    ] {
        let own = ask
            .plain("POST", &format!("http://{host}:8700/"), "/mcp/a")
            .expect_err("refused");
        assert_eq!(
            own.refusal.text(),
            format!(
                "egress.own_address: `http://{host}:8700` is Tollgate itself; name the host in NO_PROXY, so that it is \
                 asked directly"
            )
        );
    }
    for url in [
        "http://127.0.0.1:8699/",
        "http://10.0.0.8:8700/",
        "http://a.example.com:8700/",
    ] {
        assert_eq!(told(ask.plain("GET", url, "/")), UNNAMED, "{url}");
    }
}

#[test]
fn a_permit_carries_what_decided() {
    let mut snapshot = compiled(
        &[("egress.toml", "[[allow]]\nhost = \"a.example.com\"\n")],
        |inputs| inputs.parent = Some(("http://proxy.example.org:3128", false)),
    )
    .expect("no faults");
    snapshot.generation = 7;
    let permit = Ask::new(&snapshot)
        .tunnel("a.example.com:443")
        .expect("allowed");
    assert_eq!(permit.target().to_string(), "https://a.example.com");
    assert_eq!(permit.generation(), 7);
    assert_eq!(permit.leg(), Leg::Proxy);
    assert_eq!(
        (&*permit.owner().tenant, &*permit.owner().user),
        ("default", "ann")
    );
    assert_eq!(permit.would_refuse(), None);
    let parent = permit.parent().expect("a parent");
    assert_eq!(
        (parent.target.to_string().as_str(), parent.resolves),
        ("http://proxy.example.org:3128", false)
    );
}
