mod decide;
mod file;
mod lint;
mod report;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::{
    address::Target,
    policy::{
        CallLimits, Denied, File, Head, Inputs, Local, ProxyPermit, ServerLimits, Snapshot,
        compile, decide_egress,
    },
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
        secret: &|source| Err(format!("no secret at {source:?}")),
        web: true,
        client_metadata: true,
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
        connected_only: false,
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

/// A case: who asks (`ann`, in group `eng`, unless told otherwise), for what, and when.
struct Ask<'a> {
    snapshot: &'a Snapshot,
    subject: Subject,
    now: SystemTime,
}

impl<'a> Ask<'a> {
    fn new(snapshot: &'a Snapshot) -> Self {
        Self {
            snapshot,
            subject: subject("ann", &["eng"]),
            now: end_of_january(),
        }
    }

    fn by(snapshot: &'a Snapshot, user: &str) -> Self {
        Self {
            subject: subject(user, &[]),
            ..Self::new(snapshot)
        }
    }

    fn before(self) -> Self {
        Self {
            now: before(),
            ..self
        }
    }

    fn tunnel(&self, authority: &str) -> Result<ProxyPermit, Denied> {
        let target = Target::from_authority(authority).expect("an authority");
        decide_egress(self.snapshot, &self.subject, &target, None, self.now)
    }

    fn plain(&self, method: &str, origin: &str, path: &str) -> Result<ProxyPermit, Denied> {
        let target = Target::from_wire(origin).expect("a url");
        let head = Head { method, path };
        decide_egress(self.snapshot, &self.subject, &target, Some(head), self.now)
    }
}

/// The rule that decides, with the code of a refusal, or of what only is not one yet.
fn told(decided: Result<ProxyPermit, Denied>) -> String {
    match decided {
        Ok(permit) => match permit.would_refuse() {
            None => format!("allow {}", permit.rule()),
            Some(denied) => format!(
                "would_refuse {} {}",
                denied.refusal.code.as_str(),
                denied.rule
            ),
        },
        Err(denied) => format!("{} {}", denied.refusal.code.as_str(), denied.rule),
    }
}

const FIRST: &str = "allow egress.toml:1: [[allow]]";
const UNNAMED: &str = "egress.host_not_allowed default";
