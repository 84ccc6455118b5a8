//! A process of the gateway, and the person in front of it.

use std::{collections::HashMap, path::PathBuf};

use serde_json::Value;
use tokio::sync::mpsc;
use tollgate::{
    audit::Journal,
    connect::{Callback, Connection, Connections, Error, Finished, Preview, Started, State},
    policy::Permit,
    subject::Owner,
};

use super::{ISSUER, soon};

/// A process of the gateway.
pub(super) struct Process {
    pub(super) connections: Connections,
    pub(super) journal: Journal,
    pub(super) audit: PathBuf,
    /// Connections that were made.
    pub(super) told: mpsc::Receiver<Permit>,
}

impl Process {
    pub(super) async fn preview(&self, permit: &Permit) -> Result<Preview, Error> {
        self.connections.preview(permit, soon()).await
    }

    pub(super) async fn start(&self, permit: &Permit) -> Begun {
        self.try_start(permit, None, ISSUER).await.unwrap()
    }

    pub(super) async fn try_start(
        &self,
        permit: &Permit,
        return_to: Option<&str>,
        issuer: &str,
    ) -> Result<Begun, Error> {
        let host = issuer.trim_start_matches("http://");
        let seen = format!("{issuer} with endpoints at {host}");
        self.confirm(permit, return_to, &seen).await
    }

    /// Presses the button of a page that showed this.
    pub(super) async fn confirm(
        &self,
        permit: &Permit,
        return_to: Option<&str>,
        seen: &str,
    ) -> Result<Begun, Error> {
        let started = self.connections.start(permit, return_to, seen, soon());
        started.await.map(|started| Begun {
            permit: permit.clone(),
            started,
        })
    }

    /// Everything that a person does.
    pub(super) async fn connect(&self, permit: &Permit) -> Begun {
        let begun = self.start(permit).await;
        self.finish(&begun, &begun.right()).await.unwrap();
        begun
    }

    /// The browser that began comes back with `query`.
    pub(super) async fn finish(
        &self,
        begun: &Begun,
        query: &[(&str, &str)],
    ) -> Result<Finished, Error> {
        let cookies = [begun.cookie()];
        self.answered(query, &cookies, begun.permit.owner(), &begun.permit)
            .await
    }

    /// The same, where policy gives this permit by now.
    pub(super) async fn finish_as(
        &self,
        begun: &Begun,
        query: &[(&str, &str)],
        permit: &Permit,
    ) -> Result<Finished, Error> {
        let cookies = [begun.cookie()];
        self.answered(query, &cookies, permit.owner(), permit).await
    }

    /// Some browser comes, of somebody whom policy gives `permit`.
    pub(super) async fn answered(
        &self,
        query: &[(&str, &str)],
        cookies: &[(String, String)],
        owner: &Owner,
        permit: &Permit,
    ) -> Result<Finished, Error> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let query: Vec<_> = query.iter().map(owned).collect();
        let callback = Callback {
            query: &query,
            cookies,
            owner,
        };
        let judge = |server: &str| (server == "demo").then(|| permit.clone());
        self.connections.finish(callback, judge, soon()).await
    }

    pub(super) async fn view(&self, permit: &Permit) -> Connection {
        self.connections.state(permit).await.unwrap()
    }

    pub(super) async fn state(&self, permit: &Permit) -> State {
        self.view(permit).await.state
    }

    /// What is sent to the server now.
    pub(super) async fn token(&self, permit: &Permit) -> Result<String, Error> {
        let credential = self.connections.credential(permit, soon()).await?.unwrap();
        Ok(credential.value().to_str().unwrap().to_owned())
    }

    /// `kind method outcome code` of every record so far; none of them, nor the database, shows a secret.
    pub(super) async fn records(&self) -> Vec<String> {
        self.journal.close().await.unwrap();
        let mut records = Vec::new();
        for file in std::fs::read_dir(&self.audit).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|end| end == "jsonl") {
                let text = std::fs::read_to_string(path).unwrap();
                assert!(
                    !text.contains("at-1") && !text.contains("rt-1") && !text.contains("the-code")
                );
                records.extend(text.lines().filter_map(summary));
            }
        }
        records
    }
}

fn summary(line: &str) -> Option<String> {
    let record: Value = serde_json::from_str(line).unwrap();
    let text = |key: &str| record[key].as_str().unwrap_or("-");
    let words = ["kind", "method", "outcome", "code"].map(text);
    ["connect", "credential"]
        .contains(&words[0])
        .then(|| words.join(" "))
}

/// A flow that a browser began.
pub(super) struct Begun {
    permit: Permit,
    pub(super) started: Started,
}

impl Begun {
    pub(super) fn cookie(&self) -> (String, String) {
        (
            self.started.cookie.clone(),
            self.started.cookie_value.clone(),
        )
    }

    /// The parameters with which the browser was sent to the provider.
    pub(super) fn sent(&self) -> HashMap<String, String> {
        let url = url::Url::parse(&self.started.authorize_url).unwrap();
        url.query_pairs().into_owned().collect()
    }

    pub(super) fn state(&self) -> String {
        self.sent()["state"].clone()
    }

    /// What the right provider answers.
    pub(super) fn right(&self) -> [(&'static str, &'static str); 3] {
        // Leaked for the length of a test.
        let state = Box::leak(self.state().into_boxed_str());
        [("code", "the-code"), ("state", state), ("iss", ISSUER)]
    }
}
