//! Settings of all connections, and the places that follow from them.

use std::{sync::Arc, time::Duration};

/// How long a person has at the provider.
pub(super) const FLOW: Duration = Duration::from_secs(10 * 60);

/// The settings that a reload may change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// Where browsers reach the pages, without a slash at its end.
    pub public_url: Arc<str>,
    /// The client id metadata document that the operator published.
    pub client_metadata_url: Option<Arc<str>>,
    /// Where browsers may be sent back to.
    pub return_to: Vec<Arc<str>>,
}

impl Terms {
    /// Where providers send browsers back to: part of what a client is registered with.
    pub(super) fn redirect_uri(&self) -> String {
        format!("{}/oauth/callback", self.public_url)
    }

    /// The page on which a person connects to `server`.
    pub(super) fn link(&self, server: &str) -> String {
        format!("{}/connect/{server}", self.public_url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_stand_below_the_public_url() {
        let terms = Terms {
            public_url: "https://tollgate.example.com".into(),
            ..Terms::default()
        };
        assert_eq!(
            terms.redirect_uri(),
            "https://tollgate.example.com/oauth/callback"
        );
        assert_eq!(
            terms.link("jira"),
            "https://tollgate.example.com/connect/jira"
        );
    }
}
