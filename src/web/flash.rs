//! What is told after something was done: it travels in a cookie of the browser, bound to the sign-in, so that the page
//! that tells it has a clean address.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};

use crate::{connect::Error, identity::Browser, vault::Mac};

/// The longest that fits into a cookie beside its name and mark.
const LONGEST: usize = 3500;

/// What is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Flash {
    /// A flow has ended well.
    Connected {
        server: String,
    },
    /// A secret is kept.
    Kept {
        server: String,
    },
    /// A connection has ended: what the provider did, `yes`, `no` or `unsupported`.
    Disconnected {
        server: String,
        revoked: String,
    },
    /// Something did not work.
    Failed(Failed),
    SignedOut,
}

/// What did not work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Failed {
    pub(super) code: String,
    /// What happened.
    pub(super) text: String,
    /// What to do next.
    pub(super) remedy: String,
    /// The provider's own words.
    pub(super) said: Option<String>,
    /// The server, where that is known.
    pub(super) server: Option<String>,
}

impl From<&Error> for Failed {
    /// The provider's own words stand apart from ours.
    fn from(error: &Error) -> Self {
        let code = error.code();
        let (text, said, remedy) = match error {
            Error::Denied { error, description } => {
                let said = match description {
                    Some(description) => format!("{error}: {description}"),
                    None => error.clone(),
                };
                // What agents are told speaks of a link; here is a button.
                let remedy = "try again and agree there, or ask the operator";
                (
                    "the authorization server refused".to_owned(),
                    Some(said),
                    remedy,
                )
            }
            error => (error.to_string(), None, code.remedy()),
        };
        Self {
            code: code.as_str().to_owned(),
            text,
            remedy: remedy.to_owned(),
            said,
            server: None,
        }
    }
}

impl Flash {
    /// What did not work, with a server where that is known.
    pub(super) fn about(error: &Error, server: Option<&str>) -> Self {
        Self::Failed(Failed {
            server: server.map(str::to_owned),
            ..error.into()
        })
    }

    /// The cookie's value.
    pub(super) fn seal(mut self, mac: &Mac, browser: Option<&Browser>) -> String {
        let mut text = self.text();
        if text.len() > LONGEST {
            if let Self::Failed(failed) = &mut self {
                failed.said = None;
                failed.text = "the message is too long to be shown".to_owned();
            }
            text = self.text();
        }
        let mark = crate::id::hex(&mac.sign(&parts(browser, text.as_bytes())));
        format!("{text}.{mark}")
    }

    /// Reads a cookie that [`Flash::seal`] made for this sign-in.
    pub(super) fn open(value: &str, mac: &Mac, browser: Option<&Browser>) -> Option<Self> {
        let (text, mark) = value.split_once('.')?;
        let mark = super::form::unhex(mark)?;
        if !mac.verify(&parts(browser, text.as_bytes()), &mark) {
            return None;
        }
        serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(text).ok()?).ok()
    }

    fn text(&self) -> String {
        let json = serde_json::to_vec(self).expect("texts can be written as JSON");
        BASE64_URL_SAFE_NO_PAD.encode(json)
    }
}

/// Nobody's sign-in has no digest.
fn parts<'a>(browser: Option<&'a Browser>, text: &'a [u8]) -> [&'a [u8]; 3] {
    let digest = browser.map_or(&[][..], |browser| browser.digest());
    [b"result 1", digest, text]
}
