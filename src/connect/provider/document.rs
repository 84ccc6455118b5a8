//! A metadata document: asked for, and told from an absence, a page, and a failure.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::Value;

use super::{
    challenge,
    fetch::{Unfetched, Way, is_final, is_transient, json},
};
use crate::connect::Error;

/// The longest URL that is taken from a document.
pub(super) const MAX_URL: usize = 2048;

/// The most items of a list that are taken from a document.
const MAX_WORDS: usize = 256;

/// Asks for one document after another, and remembers the first that was there and could not be used.
pub(super) struct Search<'a> {
    pub(super) way: Way<'a>,
    trouble: Option<Error>,
}

impl<'a> Search<'a> {
    pub(super) fn new(way: Way<'a>) -> Self {
        Self { way, trouble: None }
    }

    /// The document at `url`; `None` where there is none that can be read.
    ///
    /// # Errors
    ///
    /// Nobody can tell now whether there is one, which must never count as its absence.
    pub(super) async fn document<T: DeserializeOwned>(
        &mut self,
        url: &str,
    ) -> Result<Option<T>, Error> {
        let server = || self.server();
        let answer = match self.way.get(url).await {
            Ok(answer) if is_transient(&answer) => {
                let host = &answer.destination.host;
                return Err(Error::Transient {
                    server: server(),
                    what: format!("`{host}` answered {} for its metadata", answer.status),
                });
            }
            Ok(answer) => answer,
            Err(Unfetched::Forbidden(refusal)) => {
                self.note(Error::Refused(refusal));
                return Ok(None);
            }
            Err(Unfetched::Failed(failed)) => {
                let error = Error::Egress {
                    server: server(),
                    source: failed.error,
                };
                if !matches!(&error, Error::Egress { source, .. } if is_final(source)) {
                    return Err(error);
                }
                self.note(error);
                return Ok(None);
            }
        };
        let text = json(&answer).filter(|_| answer.status.is_success());
        let document = text.and_then(|text| serde_json::from_slice(text).ok());
        if document.is_none() {
            let host = &answer.destination.host;
            tracing::debug!(%host, status = %answer.status, "no metadata document there");
        }
        Ok(document)
    }

    /// Remembers why a document is not used.
    pub(super) fn note(&mut self, trouble: Error) {
        self.trouble.get_or_insert(trouble);
    }

    /// The same in words.
    pub(super) fn unusable(&mut self, what: impl Into<String>) {
        self.note(self.lacking(what.into()));
    }

    /// The first of those reasons.
    pub(super) fn trouble(&mut self) -> Option<Error> {
        self.trouble.take()
    }

    /// The first of those reasons; where there was nothing at all, these words.
    pub(super) fn give_up(&mut self, what: &str) -> Error {
        let lacking = self.lacking(what.to_owned());
        self.trouble.take().unwrap_or(lacking)
    }

    fn lacking(&self, what: String) -> Error {
        Error::Unusable {
            server: self.server(),
            what,
        }
    }

    pub(super) fn server(&self) -> Arc<str> {
        self.way.permit.server().name.clone()
    }
}

/// A list of words, read leniently: what is no text in it is left out, and what is no list at all counts as absent.
pub(super) fn words<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Vec<String>>, D::Error> {
    Ok(match Value::deserialize(input)? {
        Value::Array(items) => Some(items.into_iter().filter_map(text).take(MAX_WORDS).collect()),
        Value::String(text) => {
            let words = text.split_ascii_whitespace().map(str::to_owned);
            Some(words.take(MAX_WORDS).collect())
        }
        _ => None,
    })
}

/// Those that can be asked for, as many as are taken from one answer.
pub(super) fn scopes(words: Vec<String>) -> Vec<String> {
    let fit = words.into_iter().filter(|word| challenge::is_scope(word));
    fit.take(challenge::MAX_SCOPES).collect()
}

fn text(value: Value) -> Option<String> {
    match value {
        Value::String(text) if text.len() <= MAX_URL => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Listing {
        #[serde(default, deserialize_with = "words")]
        list: Option<Vec<String>>,
    }

    #[test]
    fn a_list_may_be_written_in_several_ways() {
        let read = |text: &str| serde_json::from_str::<Listing>(text).unwrap().list;
        let both = Some(vec!["a".to_owned(), "b".to_owned()]);
        assert_eq!(read(r#"{"list":["a",1,"b"]}"#), both);
        assert_eq!(read(r#"{"list":"a b"}"#), both);
        assert_eq!(read(r#"{"list":null}"#), None);
        assert_eq!(read(r#"{"list":{"a":1}}"#), None);
        assert_eq!(read("{}"), None);
        let many = format!(r#"{{"list":[{}"x"]}}"#, "\"y\",".repeat(1000));
        assert_eq!(read(&many).unwrap().len(), 256);
    }

    #[test]
    fn depth_has_a_bound() {
        let deep = format!(
            "{{\"list\":{}{}}}",
            "[".repeat(200_000),
            "]".repeat(200_000)
        );
        assert!(serde_json::from_str::<Listing>(&deep).is_err());
        let aside = format!("{{\"x\":{}{}}}", "[".repeat(200_000), "]".repeat(200_000));
        assert!(
            serde_json::from_str::<Listing>(&aside).is_ok(),
            "skipped without a stack"
        );
    }
}
