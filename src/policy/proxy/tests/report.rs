//! What passes because a rule does no more than report.

use super::*;

#[test]
fn reports_let_pass_until_their_time_and_never_past_a_tenant() {
    let allow = policy(
        "[[allow]]\nhost = \"a.example.com\"\nscheme = \"http\"\nmethods = [\"GET\"]\nwho.users = [\"ann\"]\n\
         report_until = 2027-01-31\n",
    );
    let post = |ask: &Ask<'_>| told(ask.plain("POST", "http://a.example.com/", "/"));
    let method = "egress.request_not_allowed egress.toml:1: [[allow]]";
    let who = "egress.host_not_allowed egress.toml:1: [[allow]]";
    assert_eq!(
        post(&Ask::new(&allow).before()),
        format!("would_refuse {method}")
    );
    assert_eq!(
        post(&Ask::new(&allow)),
        method,
        "the date's first moment ends it"
    );
    assert_eq!(
        post(&Ask::by(&allow, "bob").before()),
        format!("would_refuse {who}")
    );
    assert_eq!(post(&Ask::by(&allow, "bob")), who);
    assert_eq!(
        told(
            Ask::new(&allow)
                .before()
                .plain("GET", "http://a.example.com/", "/")
        ),
        FIRST
    );
    let mut other = Ask::new(&allow).before();
    other.subject.tenant = "acme".into();
    assert_eq!(post(&other), UNNAMED);

    let deny = policy(
        "[[allow]]\nhost = \"a.example.com\"\n[[deny]]\nhost = \"*.example.com\"\nreport_until = 2027-01-31\n",
    );
    let refused = "egress.host_not_allowed egress.toml:3: [[deny]]";
    let tunnel = |ask: Ask<'_>, authority| told(ask.tunnel(authority));
    assert_eq!(
        tunnel(Ask::new(&deny).before(), "a.example.com:443"),
        format!("would_refuse {refused}")
    );
    assert_eq!(tunnel(Ask::new(&deny), "a.example.com:443"), refused);
    assert_eq!(
        tunnel(Ask::new(&deny).before(), "b.example.com:443"),
        UNNAMED,
        "a denial that only reports allows nothing"
    );
}

#[test]
fn a_rule_that_holds_wins_over_one_that_reports() {
    let policy = policy(
        "[[allow]]\nhost = \"a.example.com\"\nwho.users = [\"bob\"]\nreport_until = 2027-01-31\n\
         [[allow]]\nhost = \"a.example.com\"\nwho.groups = [\"eng\"]\n",
    );
    assert_eq!(
        told(Ask::new(&policy).before().tunnel("a.example.com:443")),
        "allow egress.toml:5: [[allow]]"
    );
}

#[test]
fn hosts_that_no_rule_names_are_reported_at_the_ports_of_the_web_only() {
    let files = [
        (
            "egress.toml",
            "report_until = 2027-01-31\n[[allow]]\nhost = \"a.example.com\"\nwho.users = [\"bob\"]\n\
             [[deny]]\nhost = \"bad.example.com\"\n",
        ),
        (
            "servers/github.toml",
            "url = \"https://api.github.com/mcp\"\naccess = \"everyone\"\n",
        ),
        (
            "servers/wiki.toml",
            "url = \"https://wiki.example.com/mcp\"\n",
        ),
    ];
    let snapshot = compiled(&files, |inputs| {
        inputs.own_listeners = vec!["127.0.0.1:80".parse().expect("an address")];
    })
    .expect("no faults");
    let ask = Ask::new(&snapshot).before();
    let reported = format!("would_refuse {UNNAMED}");
    assert_eq!(told(ask.tunnel("new.example.com:443")), reported);
    assert_eq!(
        told(ask.plain("POST", "http://new.example.com/", "/")),
        reported
    );
    assert_eq!(told(ask.tunnel("new.example.com:22")), UNNAMED);
    assert_eq!(
        told(ask.tunnel("a.example.com:443")),
        "egress.host_not_allowed egress.toml:2: [[allow]]"
    );
    assert_eq!(
        told(ask.tunnel("bad.example.com:443")),
        "egress.host_not_allowed egress.toml:5: [[deny]]"
    );
    assert_eq!(told(ask.tunnel("api.github.com:443")), UNNAMED);
    assert_eq!(
        told(ask.plain("GET", "http://localhost/", "/")),
        "egress.own_address default"
    );
    assert_eq!(
        told(Ask::new(&snapshot).tunnel("new.example.com:443")),
        UNNAMED
    );

    let server = ask.tunnel("api.github.com:443").expect_err("refused");
    assert_eq!(
        server.refusal.public,
        "`https://api.github.com` is server `github`, whose tools are called at /mcp/github and not through the proxy"
    );
    let hidden = ask.tunnel("wiki.example.com:443").expect_err("refused");
    assert_eq!(
        hidden.refusal.public,
        "`https://wiki.example.com` is not allowed through the proxy for this caller",
        "who may not use a server is not told of it"
    );
}
