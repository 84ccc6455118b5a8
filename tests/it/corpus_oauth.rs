//! Cases `oauth` of the destination corpus: what servers and their providers publish is walked through as a connection
//! does it, from the challenge to the revocation. Every name leads to one server of the test.

mod case;

use std::{sync::Arc, time::Duration};

use tollgate::{
    connect::{Challenge, Error, Terms, discovery, register, revoke, token},
    deadline::Deadline,
    egress::Egress,
    policy::{Auth, OAuth, Permit, Trust},
};

use self::case::Case;
use crate::{
    egress::{ample, no_roots},
    support::{
        certs::Authority,
        dialer::{RecordingDialer, TableResolver},
        permit::Maker,
        provider::Provider,
    },
};

/// What became of a walk, in the words of the corpus, and why.
struct Verdict(&'static str, String);

impl From<Error> for Verdict {
    fn from(error: Error) -> Self {
        let is_policy = matches!(error, Error::Refused(_));
        Self(
            word(is_policy || is_blocked(error.code().as_str())),
            error.to_string(),
        )
    }
}

impl From<token::Failure> for Verdict {
    fn from(failure: token::Failure) -> Self {
        let is_blocked =
            matches!(&failure, token::Failure::Egress(error) if is_blocked(error.code().as_str()));
        Self(word(is_blocked), failure.to_string())
    }
}

fn is_blocked(code: &str) -> bool {
    ["egress.address_blocked", "egress.name_blocked"].contains(&code)
}

fn word(is_denied: bool) -> &'static str {
    if is_denied { "deny" } else { "error" }
}

/// One walk.
struct Walk<'a> {
    egress: &'a Egress,
    permit: &'a Permit,
    deadline: Deadline,
}

impl Walk<'_> {
    async fn of(&self, case: &Case) -> Result<(), Verdict> {
        if let Some(url) = case.input.get("cimd") {
            // Whatever is fetched for a server's OAuth is fetched by such a permit.
            let permit = self.permit.fetch(url);
            return permit
                .map(drop)
                .map_err(|refusal| Verdict("deny", refusal.public));
        }
        if case.input.contains_key("refresh") {
            return self.refresh(&case.setup.stored_token_endpoint).await;
        }
        self.connect(case).await
    }

    async fn connect(&self, case: &Case) -> Result<(), Verdict> {
        let (egress, permit, deadline) = (self.egress, self.permit, self.deadline);
        let lines = case
            .setup
            .challenge
            .iter()
            .map(|line| line.as_bytes().into());
        let challenge = Challenge(lines.collect());
        let found = discovery::discover(egress, permit, Some(&challenge), None, deadline).await?;
        let terms = Terms {
            public_url: "https://gate.example.net".into(),
            ..Terms::default()
        };
        let client = register::client(egress, permit, &found, &terms, deadline).await?;
        let code = token::Code {
            code: "c",
            verifier: "v",
            redirect_uri: "https://gate.example.net/oauth/callback",
            resource: found.resource.as_deref(),
        };
        let tokens = token::exchange(egress, permit, &client, &found, code, deadline).await?;
        let endpoint = found.revocation_endpoint.as_deref();
        revoke::revoke(
            egress,
            permit,
            &client,
            endpoint,
            None,
            Some(&tokens.access),
        )
        .await;
        Ok(())
    }

    async fn refresh(&self, endpoint: &str) -> Result<(), Verdict> {
        let refresh = token::Refresh {
            token: "r",
            scopes: None,
            resource: None,
        };
        let (client, deadline) = (case::client(), self.deadline);
        token::refresh(
            self.egress,
            self.permit,
            &client,
            endpoint,
            refresh,
            deadline,
        )
        .await?;
        Ok(())
    }
}

/// A permit for the case's server, whose private grants are for its OAuth.
fn permit(case: &Case, authority: &Authority) -> Permit {
    Maker {
        auth: Auth::OAuth(Box::<OAuth>::default()),
        trust: Trust {
            roots: vec![authority.pem().into()],
            digest: [1; 32],
        },
        rules: case.rules(),
        ..Maker::new(case::SERVER)
    }
    .permit()
}

#[tokio::test]
async fn what_is_published_leads_nowhere_that_policy_refuses() {
    let authority = Authority::new();
    let mut wrong = Vec::new();
    for case in case::all() {
        let acceptor = authority.acceptor(&case.names());
        let provider = Provider::start(Some(acceptor), case.answers()).await;
        let resolver = TableResolver::default();
        for (name, address) in case.addresses() {
            resolver.then(name, &[address]);
        }
        let dialer = RecordingDialer::to(provider.address);
        let egress = Egress::new(
            Arc::new(resolver),
            dialer.clone(),
            no_roots(),
            ample(),
            Arc::default(),
        );
        let permit = permit(&case, &authority);
        let walk = Walk {
            egress: &egress,
            permit: &permit,
            deadline: Deadline::after(Duration::from_secs(30)),
        };
        let Verdict(got, why) = match walk.of(&case).await {
            Ok(()) => Verdict("allow", String::new()),
            Err(verdict) => verdict,
        };
        let dialled = dialer.dialled();
        let public = |address: &String| address.starts_with("1.") || case.is_granted(address);
        if !case.accepts(got) || !dialled.iter().all(public) {
            wrong.push(format!(
                "{}: {got} ({why}), dialled {dialled:?}; {}",
                case.id, case.reason
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} mismatches:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
