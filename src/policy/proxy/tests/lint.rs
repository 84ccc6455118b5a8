//! Rules that can never decide anything.

use super::*;
use crate::policy::lints;

/// What is said of a policy, at the end of January.
fn said(egress: &str) -> Vec<String> {
    lints(&policy(egress), None, end_of_january())
}

#[test]
fn a_sound_policy_has_none() {
    let sound = r#"
[[allow]]
host = "api.example.com"
who.users = ["bob"]
[[allow]]
host = "api.example.com"
who.users = ["ann", "bob"]
[[allow]]
host = "*.example.com:8443"
[[allow]]
host = "*.corp.internal"
[[private]]
host = "jira.corp.internal"
port = 443
for = ["proxy"]
[[deny]]
host = "bad.example.com"
"#;
    assert_eq!(said(sound), [""; 0]);
}

#[test]
fn what_an_earlier_rule_allows_never_decides() {
    let shadowed = |first: &str, second: &str| {
        let said = said(&format!(
            "[[allow]]\nhost = {first}\n[[allow]]\nhost = {second}\n"
        ));
        let at = first.matches('\n').count() + 3;
        let expected = format!(
            "egress.toml:{at}: [[allow]] never decides: egress.toml:1: [[allow]] allows all of it before"
        );
        assert!(said.is_empty() || said == [expected], "{said:?}");
        !said.is_empty()
    };
    let http = "\nscheme = \"http\"";
    for (first, second, expected) in [
        ("\"a.example.com\"", "\"a.example.com\"", true),
        ("\"*.example.com\"", "\"a.example.com\"", true),
        ("\"*.example.com\"", "\"*.b.example.com\"", true),
        ("\"*.example.com\"", "\"example.com\"", false),
        ("\"a.example.com\"", "\"*.example.com\"", false),
        ("\"a.example.com\"", "\"a.example.com:443\"", false),
        (
            "\"a.example.com\"",
            "\"a.example.com:443\"\nscheme = \"https\"",
            true,
        ),
        ("\"a.example.com:443\"", "\"a.example.com\"", false),
        (
            "\"a.example.com\"\nwho.users = [\"ann\"]",
            "\"a.example.com\"",
            false,
        ),
        (
            "\"a.example.com\"",
            "\"a.example.com\"\nwho.users = [\"ann\"]",
            true,
        ),
        (
            "\"a.example.com\"\nwho.agents = [\"ci-*\"]",
            "\"a.example.com\"\nwho.agents = [\"ci-1\", \"ci-a-*\"]",
            true,
        ),
        (
            "\"a.example.com\"\nwho.users = [\"ann\"]",
            "\"a.example.com\"\nwho.users = [\"ann\"]\nreport_until = 2027-02-01",
            false,
        ),
    ] {
        assert_eq!(shadowed(first, second), expected, "{first} then {second}");
    }
    let get = format!("\"a.example.com\"{http}\nmethods = [\"GET\"]");
    let narrow = format!("{get}\npaths = [\"/a/*\"]");
    assert!(shadowed(&get, &narrow));
    assert!(!shadowed(&narrow, &get));
}

#[test]
fn what_the_judge_or_a_denial_refuses_is_never_allowed() {
    let text = r#"
[[allow]]
host = "169.254.169.254"
[[allow]]
host = "10.0.0.1:8080"
[[allow]]
host = "*.svc.cluster.local"
[[allow]]
host = "a.example.com"
who.users = ["ann"]
[[deny]]
host = "*.example.com"
who.users = ["ann", "bob"]
"#;
    assert_eq!(
        said(text),
        [
            "egress.toml:2: [[allow]] never allows anything: `https://169.254.169.254` is in 169.254.169.0/24 (cloud metadata, \
             DNS and time services); no setting opens it",
            "egress.toml:4: [[allow]] never allows anything: `https://10.0.0.1:8080` is in 10.0.0.0/8 (private use, RFC 1918); \
             a [[private]] table in egress.toml with host = \"10.0.0.1\", port = 8080 and for = [\"proxy\"] would open it",
            "egress.toml:6: [[allow]] never allows anything: `x.svc.cluster.local` names inside a Kubernetes cluster; a \
             [[private]] table in egress.toml with host = \"x.svc.cluster.local\", port = 443 and for = [\"proxy\"] would open it",
            "egress.toml:8: [[allow]] never allows anything: egress.toml:11: [[deny]] refuses all of it",
        ]
    );
}

#[test]
fn denials_without_anything_to_refuse_are_told() {
    let text = "[[allow]]\nhost = \"*.example.com:8443\"\n[[deny]]\nhost = \"bad.example.com:443\"\n\
                [[deny]]\nhost = \"bad.example.com\"\n[[deny]]\nhost = \"bad.example.com:8443\"\n";
    assert_eq!(
        said(text),
        [
            "egress.toml:3: [[deny]] refuses nothing that an [[allow]] would allow; what no rule names is refused anyway",
            "egress.toml:7: [[deny]] never decides: egress.toml:5: [[deny]] refuses all of it",
        ]
    );
    assert_eq!(
        lints(
            &policy("report_until = 2027-01-31\n[[deny]]\nhost = \"bad.example.com\"\n"),
            None,
            before()
        ),
        [""; 0]
    );
}

#[test]
fn times_that_have_passed_are_told() {
    let text = "report_until = 2027-01-31\n[[allow]]\nhost = \"a.example.com\"\nwho.users = [\"ann\"]\n\
                report_until = 2027-01-31\n[[deny]]\nhost = \"b.example.com\"\nreport_until = 2027-02-01\n";
    let over = "no longer reports, since its report_until has passed; remove the key";
    assert_eq!(
        said(text),
        [
            format!("egress.toml:2: [[allow]] {over}"),
            format!("egress.toml: report_until {over}"),
        ]
    );
}

#[test]
fn rules_for_nobody_and_for_no_server_are_told() {
    let nobody = "is for nobody: no caller can be whom its `who` names";
    let rules = |who: &str| format!("[[allow]]\nhost = \"a.example.com\"\nwho = {{ {who} }}\n");
    let local = Local {
        tenant: "default".into(),
        user: "local".into(),
    };
    for (who, named) in [
        ("users = [\"local\"]", true),
        ("agents = [\"loc*\"]", true),
        ("users = [\"ann\"]", false),
        ("groups = [\"eng\"]", false),
        ("agents = [\"ci\"]", false),
    ] {
        let said = lints(&policy(&rules(who)), Some(&local), before());
        let expected = format!("egress.toml:1: [[allow]] {nobody}");
        let expected = if named { vec![] } else { vec![expected] };
        assert_eq!(said, expected, "{who}");
    }
    let keys = format!(
        "[[key]]\nsha256 = \"{}\"\nagent = \"ci\"\nuser = \"ann\"\ngroups = [\"eng\"]\n\
         [[key]]\nsha256 = \"{}\"\nagent = \"app\"\nuser = \"app\"\nscopes = [\"act-for\"]\nmay_act_for = [\"bob\"]\n\
         may_assert_groups = true\n",
        "a".repeat(64),
        "b".repeat(64)
    );
    for (who, named) in [
        (
            "users = [\"ann\"], groups = [\"eng\"], agents = [\"ci\"]",
            true,
        ),
        ("users = [\"bob\"], groups = [\"ops\"]", true),
        ("users = [\"ann\"], groups = [\"ops\"]", false),
        ("users = [\"eve\"]", false),
        ("agents = [\"other-*\"]", false),
    ] {
        let files = [("egress.toml", &*rules(who)), ("keys.toml", &*keys)];
        let snapshot = compiled(&files, |_| {}).expect("no faults");
        assert_eq!(lints(&snapshot, None, before()).is_empty(), named, "{who}");
    }
    assert_eq!(
        said("[[allow]]\nhost = \"a.example.com\"\nalso_server = true\n"),
        [
            "egress.toml:1: [[allow]] says also_server = true, and leads to no server; remove the key"
        ]
    );
}

#[test]
fn tls_names_no_address() {
    let rule = |more: &str| format!("[[allow]]\nhost = \"1.1.1.1:4443\"\n{more}");
    let said = lints(&policy(&rule("")), None, end_of_january());
    let why = "TLS names no address, so that tls = \"pass\" finds no host; write tls = \"opaque\"";
    assert!(said.iter().any(|said| said.contains(why)), "{said:?}");
    for more in ["tls = \"opaque\"\n", "scheme = \"http\"\n"] {
        let said = lints(&policy(&rule(more)), None, end_of_january());
        assert!(!said.iter().any(|said| said.contains(why)), "{said:?}");
    }
}
