mod decide;
mod file;
mod lint;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::{
    policy::{CallLimits, File, Inputs, Local, ServerLimits, Snapshot, compile},
    subject::{Admins, Scopes, Subject},
    table::Fault,
};

/// A policy of these files, with `change` made to inputs that hold nothing else.
fn compiled(
    texts: &[(&str, &str)],
    change: impl FnOnce(&mut Inputs<'_>),
) -> Result<Snapshot, Vec<String>> {
    let file = |(path, text): &(&str, &str)| File {
        path: (*path).to_owned(),
        text: (*text).to_owned(),
    };
    let files: Vec<File> = texts.iter().map(file).collect();
    let mut inputs = Inputs {
        files: &files,
        read: &|path| Err(format!("no file `{path}`")),
        private_allowlist: None,
        access_mode: None,
        kubernetes: None,
        admins: Admins {
            users: vec!["root".into()],
            groups: Vec::new(),
        },
        local: None::<Local>,
        parent: None,
        limits: ServerLimits::default(),
        calls: CallLimits::default(),
        own_addresses: Vec::new(),
        own_listeners: Vec::new(),
    };
    change(&mut inputs);
    compile(&inputs).map_err(|faults| faults.iter().map(Fault::to_string).collect())
}

fn policy(egress: &str) -> Snapshot {
    compiled(&[("egress.toml", egress)], |_| {}).expect("a policy without faults")
}

fn faults(texts: &[(&str, &str)]) -> String {
    compiled(texts, |_| {}).expect_err("faults").join("\n")
}

fn subject(user: &str, groups: &[&str]) -> Subject {
    Subject {
        tenant: "default".into(),
        agent: "ci-1".into(),
        user: user.into(),
        groups: groups.iter().map(|group| (*group).into()).collect(),
        scopes: Scopes::CALL,
        conversation: None,
        turn: None,
        acting: None,
        evidence: "key:1".into(),
    }
}

/// 2027-01-31, at its first moment.
fn end_of_january() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_801_353_600)
}

fn before() -> SystemTime {
    end_of_january() - Duration::from_secs(1)
}
