//! `local`: one fixed user, no credential; the machine's own walls are the evidence.

use std::sync::Arc;

use http::{HeaderMap, header::AUTHORIZATION};

use super::{
    BROWSER, Error,
    headers::{self, Named},
};
use crate::subject::{Owner, Scopes, Subject};

/// The agent's name where nothing tells agents apart.
const AGENT: &str = "local";

/// Everyone is one user.
#[derive(Clone)]
pub struct Local {
    subject: Arc<Subject>,
}

impl Local {
    pub(super) fn new(user: &str, tenant: &str) -> Self {
        Self {
            subject: Arc::new(Subject {
                tenant: tenant.into(),
                agent: AGENT.into(),
                user: user.into(),
                groups: Arc::new([]),
                scopes: Scopes::CALL,
                conversation: None,
                turn: None,
                acting: None,
                evidence: "local".into(),
            }),
        }
    }

    pub(super) fn subject(&self) -> &Arc<Subject> {
        &self.subject
    }

    /// The local user, behind a browser.
    pub(super) fn person(&self, owner: &Owner) -> Option<Subject> {
        (self.subject.owner() == *owner).then(|| Subject {
            agent: BROWSER.into(),
            ..(*self.subject).clone()
        })
    }

    pub(super) fn identify(
        &self,
        headers: &HeaderMap,
        named: Named<'_>,
    ) -> Result<Arc<Subject>, Error> {
        // A credential that nobody judges must not look as if it had been accepted.
        if headers.contains_key(AUTHORIZATION) {
            return Err(Error::NotJudged);
        }
        if named.has(headers::USER) || named.has(headers::GROUPS) {
            return Err(Error::Acting(
                "the local user acts for nobody else".to_owned(),
            ));
        }
        Ok(self.subject.clone())
    }
}
