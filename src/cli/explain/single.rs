//! One destination or tool, explained by the policy folder.

use std::{
    net::IpAddr,
    sync::{Mutex, PoisonError},
};

use futures_util::future::BoxFuture;

use super::{
    Exit, Failed,
    policy::{self, Policy},
    question::Question,
    report::{self, Decision, Report},
};
use crate::{
    address::{Host, Leg, Name, Rules, Target},
    app, config,
    egress::{self, Answer, Dns, Error, Resolve, ResolveError},
    policy::{Head, Server},
    subject::Subject,
};

/// Explains `target`: a URL, or `server/tool`.
pub(super) fn explain(
    target: &str,
    question: &Question,
    policy: &Policy,
) -> Result<Report, Failed> {
    let subject = policy.subject(question);
    let case = Case {
        question,
        policy,
        subject: &subject,
    };
    if target.contains("://") {
        case.url(target)
    } else {
        let (server, tool) = target.split_once('/').unzip();
        case.call(
            server.unwrap_or(target),
            tool.filter(|tool| !tool.is_empty()),
        )
    }
}

struct Case<'a> {
    question: &'a Question,
    policy: &'a Policy,
    subject: &'a Subject,
}

impl Case<'_> {
    fn url(&self, url: &str) -> Result<Report, Failed> {
        let (target, path) = match Target::from_operator_with_path(url) {
            Ok(read) => read,
            Err(malformed) => {
                let refused =
                    Decision::refuse("url", malformed.code(), "malformed", malformed.to_string());
                return Ok(self.report(url.to_owned(), None, vec![refused]));
            }
        };
        let head = Head {
            method: &self.question.method,
            path: &path,
        };
        let server = self.policy.server_at(&target);
        let (access, leg) = self.policy.reach(self.subject, &target, head);
        let mut decisions = vec![access.unwrap_or_else(|refused| refused)];
        match self.policy.left_to_parent(&leg, &target) {
            Some(left) => decisions.push(left),
            None => decisions.extend(self.addresses(&leg, &target)?),
        }
        Ok(self.report(target.to_string(), server, decisions))
    }

    fn call(&self, name: &str, tool: Option<&str>) -> Result<Report, Failed> {
        let shown = tool.map_or_else(|| name.to_owned(), |tool| format!("{name}/{tool}"));
        let Some(server) = self.policy.server(name) else {
            return Ok(self.report(shown, None, vec![self.policy.unknown(name)]));
        };
        let (access, permit) = self.policy.access(self.subject, server);
        let mut decisions = vec![access];
        if let (Some(permit), Some(tool)) = (permit, tool) {
            decisions.push(policy::tool(&permit, tool));
        }
        decisions.extend(self.policy.auth(server));
        let leg = Leg::Server(server.name.clone());
        decisions.extend(self.addresses(&leg, server.endpoint.target())?);
        decisions.extend(self.issuer(server)?);
        Ok(self.report(shown, Some(server), decisions))
    }

    /// Where the authorization server is that the file names: it is reached by grants of its own.
    fn issuer(&self, server: &Server) -> Result<Vec<Decision>, Failed> {
        let knobs = server.auth.oauth();
        let issuer = knobs.and_then(|knobs| knobs.issuer.as_deref());
        match issuer.map(Target::from_wire) {
            Some(Ok(target)) => self.addresses(&Leg::OAuth(server.name.clone()), &target),
            _ => Ok(Vec::new()),
        }
    }

    fn report(&self, target: String, server: Option<&Server>, decisions: Vec<Decision>) -> Report {
        Report::new(
            target,
            server.map(|server| server.name.to_string()),
            self.subject,
            self.policy.stranger(self.question, self.subject),
            decisions,
        )
    }

    /// Takes the path of a call up to the dial, then says of each address what decided.
    fn addresses(&self, leg: &Leg, target: &Target) -> Result<Vec<Decision>, Failed> {
        let rules = self.policy.rules();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failed::new(Exit::Internal, error))?;
        runtime.block_on(async {
            let asked = Asked::new(self.question, rules, leg, target, self.policy.dns())?;
            let located = egress::locate(rules, leg, target, &asked).await;
            let seen = asked
                .seen
                .into_inner()
                .unwrap_or_else(PoisonError::into_inner);
            Ok(match located {
                Ok(judged) => each(rules, leg, target, &report::addresses(&judged)),
                Err(Error::Blocked(_)) if !seen.is_empty() => each(rules, leg, target, &seen),
                Err(error) => vec![report::failed(&target.host().to_string(), &error)],
            })
        })
    }
}

fn each(rules: &Rules, leg: &Leg, target: &Target, answer: &[IpAddr]) -> Vec<Decision> {
    let decide = |address: &IpAddr| {
        let about = address.to_string();
        match rules.judge(leg, target, &[*address]) {
            Ok(judged) => report::passed(&about, &judged),
            Err(blocked) => report::failed(&about, &blocked.into()),
        }
    };
    answer.iter().map(decide).collect()
}

/// Names that the question supposes, else real name servers; remembers what was answered.
struct Asked {
    supposed: Vec<(Name, IpAddr)>,
    servers: Option<Dns>,
    seen: Mutex<Vec<IpAddr>>,
}

impl Asked {
    fn new(
        question: &Question,
        rules: &Rules,
        leg: &Leg,
        target: &Target,
        settings: &config::Dns,
    ) -> Result<Self, Failed> {
        let supposed = question.resolve.clone();
        let known = |name: &Name| supposed.iter().any(|(supposed, _)| supposed == name);
        let ask = matches!(rules.before_resolving(leg, target), Ok(None))
            && matches!(target.host(), Host::Name(name) if !known(name));
        let servers = if ask {
            Some(name_servers(settings)?)
        } else {
            None
        };
        Ok(Self {
            supposed,
            servers,
            seen: Mutex::default(),
        })
    }
}

impl Resolve for Asked {
    fn resolve<'a>(&'a self, name: &'a Name) -> BoxFuture<'a, Result<Answer, ResolveError>> {
        Box::pin(async move {
            let supposed = self
                .supposed
                .iter()
                .filter(|(supposed, _)| supposed == name);
            let supposed: Vec<IpAddr> = supposed.map(|(_, address)| *address).collect();
            let answer = match &self.servers {
                Some(servers) if supposed.is_empty() => servers.resolve(name).await?,
                _ if supposed.is_empty() => return Err(ResolveError::NoName(name.clone())),
                _ => Answer {
                    addresses: supposed.into(),
                    left_out: None,
                },
            };
            *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = answer.addresses.to_vec();
            Ok(answer)
        })
    }
}

/// The name servers that a running process would ask.
fn name_servers(settings: &config::Dns) -> Result<Dns, Failed> {
    let dns = app::dns(settings).and_then(|settings| Dns::new(&settings));
    dns.map_err(|error| Failed::new(Exit::Config, error))
}
