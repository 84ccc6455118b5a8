//! Forms: reading one within its bounds, and the proof that it came from a page of ours in the same sign-in.

use std::time::Duration;

use bytes::Bytes;
use http::{header, request::Parts};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::time::timeout;
use url::form_urlencoded;
use zeroize::Zeroizing;

use crate::{
    identity::Browser,
    refusal::{Code, Refusal},
    vault::Mac,
};

/// The longest form: a secret of 8 KiB, each byte of which may take three.
const LONGEST: usize = 32 << 10;
/// How much of a longer one is taken in, so that its sender gets to read the answer.
const DISCARDED: usize = 1 << 20;
/// How long one may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Fields that are looked at.
const FIELDS: usize = 16;

/// The field that holds the proof.
pub(super) const PROOF: &str = "proof";

/// The fields of a form, wiped when dropped: one of them may be a secret.
pub(super) struct Form(Vec<(String, Zeroizing<String>)>);

impl Form {
    /// A field; `None` where it is missing.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let mut fields = self.0.iter();
        fields
            .find(|(found, _)| found == name)
            .map(|(_, value)| value.as_str())
    }

    /// Demands that this form was made for `path` in this sign-in.
    ///
    /// # Errors
    ///
    /// [`Code::WebForm`].
    pub(super) fn prove(&self, mac: &Mac, browser: &Browser, path: &str) -> Result<(), Refusal> {
        let given = self.get(PROOF).and_then(unhex);
        let parts = parts(browser, path);
        if given.is_some_and(|given| mac.verify(&parts, &given)) {
            return Ok(());
        }
        Err(wrong("this form does not belong to this sign-in"))
    }
}

/// The proof for the forms of `path` in this sign-in.
pub(super) fn proof(mac: &Mac, browser: &Browser, path: &str) -> String {
    crate::id::hex(&mac.sign(&parts(browser, path)))
}

fn parts<'a>(browser: &'a Browser, path: &'a str) -> [&'a [u8]; 3] {
    [b"form 1", browser.digest(), path.as_bytes()]
}

/// Reads a form.
///
/// # Errors
///
/// Another kind of body, one that is too long or too slow, and a field that stands twice.
pub(super) async fn read(head: &Parts, body: Incoming) -> Result<Form, Refusal> {
    let kind = head.headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        return Err(wrong("this is not a form of these pages"));
    }
    let bytes = timeout(PATIENCE, collect(body)).await.map_err(|_| {
        let public = format!("the form did not arrive within {} s", PATIENCE.as_secs());
        Refusal::new(Code::SlowBody, public)
    })??;
    parse(&bytes)
}

async fn collect(mut body: Incoming) -> Result<Zeroizing<Vec<u8>>, Refusal> {
    let announced = body.size_hint().lower();
    let (mut whole, mut taken) = (Zeroizing::new(Vec::with_capacity(LONGEST)), 0);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            Refusal::new(Code::BodyBroken, "the form broke off").with_detail(error.to_string())
        })?;
        let piece = frame.into_data().unwrap_or_else(|_| Bytes::new());
        taken += piece.len();
        if taken <= LONGEST {
            // Within what was set aside: no copy is left behind.
            whole.extend_from_slice(&piece);
        } else if taken > DISCARDED || announced > DISCARDED as u64 {
            break;
        }
    }
    if taken > LONGEST {
        let public = format!("the form is larger than {LONGEST} bytes");
        return Err(Refusal::new(Code::BodyTooLarge, public));
    }
    Ok(whole)
}

fn parse(bytes: &[u8]) -> Result<Form, Refusal> {
    let mut form = Form(Vec::new());
    for (name, value) in form_urlencoded::parse(bytes) {
        if form.get(&name).is_some() || form.0.len() == FIELDS {
            return Err(wrong("this is not a form of these pages"));
        }
        let value = Zeroizing::new(value.into_owned());
        form.0.push((name.into_owned(), value));
    }
    Ok(form)
}

fn wrong(public: &str) -> Refusal {
    Refusal::new(Code::WebForm, public)
}

pub(super) fn unhex(text: &str) -> Option<[u8; 32]> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
        return None;
    };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let bytes = pairs.iter().map(|[high, low]| {
        let byte = digit(*high)? << 4 | digit(*low)?;
        u8::try_from(byte).ok()
    });
    bytes.collect::<Option<Vec<u8>>>()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_decoded_and_stand_once() {
        let form = parse(b"a=1+2%26&secret=x%20y").unwrap();
        assert_eq!(form.get("a"), Some("1 2&"));
        assert_eq!(form.get("secret"), Some("x y"));
        assert_eq!(form.get("b"), None);
        assert_eq!(parse(b"a=1&a=2").err().unwrap().code, Code::WebForm);
        let many: String = (0..17).map(|number| format!("f{number}=&")).collect();
        assert_eq!(parse(many.as_bytes()).err().unwrap().code, Code::WebForm);
    }

    #[test]
    fn digits_are_read_whole() {
        let text = "00af".repeat(16);
        assert_eq!(unhex(&text).unwrap()[..4], [0x00, 0xaf, 0x00, 0xaf]);
        for wrong in ["", "0", "zz", &text[..62], &format!("{text}00")] {
            assert_eq!(unhex(wrong), None, "{wrong}");
        }
    }
}
