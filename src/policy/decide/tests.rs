use super::*;
use crate::{
    policy::{CallLimits, File, Inputs, Local, ServerLimits, compile},
    subject::{Admins, Scopes},
};

fn snapshot(access_mode: Option<&str>) -> Snapshot {
    let server = |name: &str, rest: &str| File {
        path: format!("servers/{name}.toml"),
        text: format!("url = \"https://{name}.example.com/\"\n{rest}"),
    };
    let tools = "read_only = [\"get_*\"]\ntenants = [\"default\"]\n[tools.get_secret]\napproval = \"ask\"\nhidden = true\n\
                 [tools.get_loud]\napproval = \"never\"\n[tools.send]\napproval = \"never\"\n[tools.wipe]\n\
                 approval = \"always-ask\"\n[tools.get_plain]\n";
    let files = [
        server("open", "access = \"everyone\"\ntenants = [\"default\"]\n"),
        server("closed", tools),
        server("acme", "access = \"everyone\"\ntenants = [\"acme\"]\n"),
    ];
    let mut snapshot = compile(&Inputs {
        files: &files,
        read: &|_| Err(String::new()),
        secret: &|source| Err(format!("no secret at {source:?}")),
        web: true,
        client_metadata: true,
        private_allowlist: None,
        access_mode,
        kubernetes: None,
        admins: Admins {
            users: vec!["root".into()],
            groups: vec!["ops".into()],
        },
        local: None::<Local>,
        limits: ServerLimits::default(),
        calls: CallLimits::default(),
        connected_only: false,
        own_addresses: Vec::new(),
        own_listeners: Vec::new(),
        parent: None,
    })
    .expect("no faults");
    snapshot.generation = 7;
    snapshot
}

fn subject(tenant: &str, user: &str, groups: &[&str]) -> Subject {
    Subject {
        tenant: tenant.into(),
        agent: "agent".into(),
        user: user.into(),
        groups: groups.iter().map(|group| Arc::from(*group)).collect(),
        scopes: Scopes::CALL,
        conversation: None,
        turn: None,
        acting: None,
        evidence: "key:1".into(),
    }
}

/// The servers that `subject` may use, of all there are.
fn names(snapshot: &Snapshot, subject: &Subject) -> Vec<&'static str> {
    let all = ["acme", "closed", "open"];
    all.into_iter()
        .filter(|name| decide(snapshot, subject, name).is_ok())
        .collect()
}

#[test]
fn access_and_tenants_decide() {
    let files = snapshot(None);
    assert_eq!(names(&files, &subject("default", "ann", &[])), ["open"]);
    assert_eq!(
        names(&files, &subject("default", "root", &[])),
        ["closed", "open"]
    );
    assert_eq!(
        names(&files, &subject("default", "ann", &["ops"])),
        ["closed", "open"]
    );
    assert_eq!(
        names(&files, &subject("acme", "root", &[])),
        ["acme"],
        "tenants are walls, for admins too"
    );
    assert_eq!(names(&files, &subject("other", "ann", &[])), [""; 0]);
}

#[test]
fn the_environment_pins_who_may_use_tools() {
    let admins = snapshot(Some("admins"));
    assert_eq!(names(&admins, &subject("default", "ann", &[])), [""; 0]);
    assert_eq!(
        names(&admins, &subject("default", "root", &[])),
        ["closed", "open"]
    );
    let all = snapshot(Some("all-users"));
    assert_eq!(
        names(&all, &subject("default", "ann", &[])),
        ["closed", "open"]
    );
    assert_eq!(names(&all, &subject("acme", "ann", &[])), ["acme"]);
}

#[test]
fn asserted_groups_never_confer_admin() {
    let mut app = subject("default", "ann", &["ops"]);
    app.acting = Some("key:1".into());
    assert_eq!(names(&snapshot(None), &app), ["open"]);
}

#[test]
fn a_scope_is_needed() {
    let mut caller = subject("default", "ann", &[]);
    caller.scopes = Scopes {
        act_for: true,
        ..Scopes::default()
    };
    assert_eq!(names(&snapshot(None), &caller), [""; 0]);
    caller.acting = Some("key:1".into());
    assert_eq!(names(&snapshot(None), &caller), ["open"]);
}

#[test]
fn not_allowed_and_not_there_are_answered_alike() {
    let snapshot = snapshot(None);
    let ann = subject("default", "ann", &[]);
    for name in ["closed", "acme", "none"] {
        let refusal = decide(&snapshot, &ann, name).expect_err("refused");
        assert_eq!(
            refusal,
            Refusal::new(Code::ServerUnknown, format!("no server `{name}`"))
        );
    }
}

#[test]
fn a_permit_carries_what_decided() {
    let snapshot = snapshot(None);
    let permit = decide(&snapshot, &subject("default", "root", &[]), "closed").expect("allowed");
    assert_eq!(permit.generation(), 7);
    assert_eq!(permit.leg(), Leg::Server("closed".into()));
    assert_eq!(&*permit.owner().user, "root");
    for (tool, expected) in [
        ("get_issue", Some(Unasked::ReadOnly)),
        ("get_plain", Some(Unasked::ReadOnly)),
        ("get_secret", None),
        ("get_loud", Some(Unasked::Never)),
        ("send", Some(Unasked::Never)),
        ("wipe", None),
        ("delete", None),
    ] {
        assert_eq!(permit.unasked(tool, false), expected, "{tool}");
    }
    assert!(permit.hidden("get_secret") && !permit.hidden("send") && !permit.hidden("unknown"));
}

#[test]
fn without_a_caller_catalogues_are_read_and_nothing_is_called() {
    let snapshot = snapshot(Some("admins"));
    let permit = decide_leg(&snapshot, Purpose::Catalogue, "closed").expect("registered");
    assert_eq!(permit.generation(), 7);
    assert_eq!(permit.leg(), Leg::Server("closed".into()));
    assert_eq!((&*permit.owner().tenant, &*permit.owner().user), ("", ""));
    for tool in ["get_issue", "get_loud", "send"] {
        assert_eq!(permit.unasked(tool, true), None, "{tool}");
    }
    let refusal = decide_leg(&snapshot, Purpose::Catalogue, "none").expect_err("refused");
    assert_eq!(refusal.code, Code::ServerUnknown);
}
