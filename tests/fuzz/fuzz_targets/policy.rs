//! Policy files become a policy, or faults that can be read; the same files always the same, and what a policy decides
//! follows from its rules.
#![no_main]

use std::time::{Duration, SystemTime};

use libfuzzer_sys::fuzz_target;
use tollgate::{
    address::{Leg, Target},
    catalog::pins_file,
    config::{self, Environment},
    policy::{
        CallLimits, File, Head, Inputs, Local, ServerLimits, Snapshot, compile, decide,
        decide_egress, keys, lints,
    },
    secret::Secret,
    subject::{Admins, Scopes, Subject},
    table::Fault,
};

// Each file follows a line `=== PATH`.
fuzz_target!(|text: &str| {
    let files = files(text);
    for file in &files {
        check_alone(file);
    }
    let local = files
        .iter()
        .any(|file| file.path != "keys.toml")
        .then(local);
    let inputs = inputs(&files, local.clone());
    let snapshot = match (compile(&inputs), compile(&inputs)) {
        (Ok(snapshot), Ok(again)) => {
            assert_eq!(snapshot, again);
            snapshot
        }
        (Err(faults), Err(again)) => {
            assert_eq!(faults, again);
            return check_faults(&faults);
        }
        _ => panic!("the same files are accepted, and not"),
    };
    for target in targets() {
        for subject in [subject("ann", "eng"), subject("bob", "")] {
            check_decision(&snapshot, &subject, &target);
        }
    }
    for name in snapshot.servers.keys() {
        let permit = decide(&snapshot, &subject("ann", "eng"), name);
        let _unasked = permit.map(|permit| permit.unasked("search", true));
    }
    for lint in lints(&snapshot, local.as_ref(), now()) {
        assert!(lint.starts_with("egress.toml"), "{lint}");
    }
});

fn files(text: &str) -> Vec<File> {
    let files = text.split("=== ").skip(1).take(8).filter_map(|file| {
        let (path, text) = file.split_once('\n')?;
        Some(File {
            path: path.to_owned(),
            text: text.to_owned(),
        })
    });
    files.collect()
}

/// What reads one file by itself.
fn check_alone(file: &File) {
    match file.path.as_str() {
        "keys.toml" => {
            if let Err(faults) = keys(file) {
                check_faults(&faults);
            }
        }
        "tollgate.toml" => {
            let environment = Environment {
                home: Some("/home/ann".to_owned()),
                ..Environment::default()
            };
            let read = || config::read(Some(&file.text), &environment);
            assert_eq!(read(), read());
            if let Err(faults) = read() {
                check_faults(&faults);
            }
        }
        path if path.starts_with("pins/") => match pins_file::read(path, "demo", &file.text) {
            Ok(pinned) => {
                let written = pins_file::write("demo", &pinned);
                assert_eq!(
                    pins_file::read(path, "demo", &written).as_ref(),
                    Ok(&pinned)
                );
            }
            Err(faults) => check_faults(&faults),
        },
        _ => {}
    }
}

/// Each is one line, however odd what it quotes.
fn check_faults(faults: &[Fault]) {
    assert!(!faults.is_empty());
    for fault in faults {
        let shown = fault.to_string();
        assert!(shown.starts_with(&fault.file) && shown.ends_with(&fault.message));
        assert!(!fault.message.is_empty());
        assert!(!fault.message.contains('\n'), "{shown}");
    }
}

/// A `[[deny]]` wins, and what no rule names is refused.
fn check_decision(snapshot: &Snapshot, subject: &Subject, target: &Target) {
    let proxy = &snapshot.proxy;
    let head = Head {
        method: "GET",
        path: "/debian/x?y",
    };
    for head in [None, Some(head)] {
        let permit = match decide_egress(snapshot, subject, target, head, now()) {
            Ok(permit) => permit,
            Err(denied) => {
                assert!(!denied.rule.is_empty() && !denied.refusal.public.is_empty());
                continue;
            }
        };
        assert_eq!(permit.target(), target);
        let named = proxy.allow.iter().any(|rule| rule.covers(target));
        assert!(named || permit.would_refuse().is_some());
        let shut = proxy.deny.iter().any(|rule| {
            let who = &rule.who;
            let everyone = who.tenants.is_empty()
                && who.users.is_empty()
                && who.groups.is_empty()
                && who.agents.is_empty();
            let here = rule.host.covers_host(target.host())
                && rule.host.port().is_none_or(|port| port == target.port());
            everyone && here && rule.report_until.is_none()
        });
        assert!(!shut, "a [[deny]] lets {target} pass");
        let _judged = permit.addresses().before_resolving(&Leg::Proxy, target);
    }
}

fn targets() -> Vec<Target> {
    let urls = [
        "https://docs.python.org",
        "https://index.crates.io",
        "https://uploads.crates.io",
        "http://deb.debian.org",
        "http://127.0.0.1:9000",
        "https://[2606:4700::1]:8443",
    ];
    urls.iter()
        .map(|url| Target::from_operator(url).expect("a target"))
        .collect()
}

/// In 2026, so that dates of rules lie on both sides.
fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000)
}

fn local() -> Local {
    Local {
        tenant: "default".into(),
        user: "ann".into(),
    }
}

fn subject(user: &str, group: &str) -> Subject {
    Subject {
        tenant: "default".into(),
        agent: "local".into(),
        user: user.into(),
        groups: [group.into()].into(),
        scopes: Scopes::CALL,
        conversation: None,
        turn: None,
        acting: None,
        evidence: "local".into(),
    }
}

fn inputs(files: &[File], local: Option<Local>) -> Inputs<'_> {
    Inputs {
        files,
        read: &|path| Err(format!("no file `{path}`")),
        secret: &|_| Ok(Secret::new(b"s3cret".to_vec())),
        web: true,
        client_metadata: true,
        private_allowlist: None,
        access_mode: None,
        kubernetes: None,
        admins: Admins::default(),
        local,
        parent: None,
        limits: ServerLimits::default(),
        calls: CallLimits::default(),
        connected_only: false,
        own_addresses: Vec::new(),
        own_listeners: Vec::new(),
    }
}
