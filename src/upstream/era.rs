//! Which era a server speaks, found out by asking and remembered for a while.

use std::{sync::Arc, time::Duration};

use ahash::RandomState;
use dashmap::DashMap;
use tokio::time::Instant;

use super::{Error, Request, Upstream, Wire, own};
use crate::{
    deadline::Deadline,
    egress::Effect,
    mcp::{Method, Revision},
    policy::{Endpoint, Era, Permit, Server},
};

/// How long what was found out holds.
const REMEMBERED: Duration = Duration::from_secs(300);

/// What is known of the servers that policy names; shared by all workers.
#[derive(Debug, Default)]
pub struct Eras {
    known: DashMap<Arc<str>, Known, RandomState>,
}

#[derive(Debug)]
struct Known {
    endpoint: Endpoint,
    modern: bool,
    until: Instant,
}

impl Eras {
    /// Forgets servers that policy no longer names.
    pub fn retain(&self, named: impl Fn(&str) -> bool) {
        self.known.retain(|name, _| named(name));
    }

    fn recall(&self, server: &Server) -> Option<bool> {
        let known = self.known.get(&server.name)?;
        let same = known.endpoint == server.endpoint;
        (same && known.until > Instant::now()).then_some(known.modern)
    }

    fn remember(&self, server: &Server, modern: bool) {
        let known = Known {
            endpoint: server.endpoint.clone(),
            modern,
            until: Instant::now() + REMEMBERED,
        };
        self.known.insert(server.name.clone(), known);
    }
}

impl Upstream {
    /// Makes sure that the server speaks the modern era. A server whose era is not known is asked for
    /// `server/discover`, which has no effect whatever the server takes it for (MCP 2026-07-28, backward compatibility).
    pub(super) async fn require_modern(
        &self,
        permit: &Permit,
        deadline: Deadline,
    ) -> Result<(), Error> {
        if self.speaks_modern(permit, deadline).await? {
            return Ok(());
        }
        Err(Error::Era {
            server: permit.server().name.clone(),
            wanted: Revision::MODERN,
            spoken: Revision::LEGACY.as_str().to_owned(),
        })
    }

    /// Whether the server speaks the modern era; one of which that is not known is asked.
    pub async fn speaks_modern(&self, permit: &Permit, deadline: Deadline) -> Result<bool, Error> {
        let server = permit.server();
        let known = match server.era {
            Era::Modern => Some(true),
            Era::Legacy => Some(false),
            Era::Auto => self.eras.recall(server),
        };
        match known {
            Some(modern) => Ok(modern),
            None => {
                // Rare, and its state large: boxed, it does not weigh on every call.
                let modern = Box::pin(self.probe(permit, deadline)).await?;
                self.eras.remember(server, modern);
                Ok(modern)
            }
        }
    }

    /// Whether it is known, without asking, that the server speaks the modern era.
    pub fn is_known_modern(&self, server: &Server) -> bool {
        match server.era {
            Era::Modern => true,
            Era::Legacy => false,
            Era::Auto => self.eras.recall(server) == Some(true),
        }
    }

    async fn probe(&self, permit: &Permit, deadline: Deadline) -> Result<bool, Error> {
        let id = self.next_id();
        let request = Request {
            permit,
            wire: Wire::Modern(own::fields(Method::Discover)),
            body: own::discover_body(id, "{}"),
            id,
            effect: &Effect::Read,
            credential: None,
            deadline,
        };
        let answered = self.exchange(request).await?;
        let answer = match answered.answer {
            Ok(answer) => answer,
            // A session server answers a request outside any session with a bare 4xx.
            Err(
                Error::Status {
                    status: 400..=499, ..
                }
                | Error::ContentType { .. },
            ) => return Ok(false),
            Err(error) => return Err(error),
        };
        let message = answer.whole().await?;
        Ok(match (message.error_code(), message.result()) {
            (Some(-32022..=-32020), _) => true,
            (Some(-32601), _) => message.status.as_u16() == 404,
            (Some(_), _) | (None, None) => false,
            (None, Some(result)) => lists_modern(result),
        })
    }
}

/// Whether a discovery result offers the modern revision. One that names no versions is a modern server's all the same.
fn lists_modern(result: &str) -> bool {
    #[derive(serde::Deserialize)]
    struct Discovery {
        #[serde(rename = "supportedVersions")]
        supported_versions: Option<Vec<String>>,
        capabilities: Option<serde::de::IgnoredAny>,
    }
    match serde_json::from_str::<Discovery>(result) {
        Ok(Discovery {
            supported_versions: Some(versions),
            ..
        }) => versions
            .iter()
            .any(|version| version == Revision::MODERN.as_str()),
        Ok(Discovery { capabilities, .. }) => capabilities.is_some(),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn discovery_results_tell_the_era() {
        for (result, modern) in [
            (r#"{"supportedVersions":["2026-07-28","2025-11-25"]}"#, true),
            (
                r#"{"supportedVersions":["2025-11-25"],"capabilities":{}}"#,
                false,
            ),
            (r#"{"capabilities":{"tools":{}}}"#, true),
            (r#"{"tools":[]}"#, false),
            ("[]", false),
        ] {
            assert_eq!(lists_modern(result), modern, "{result}");
        }
    }
}
