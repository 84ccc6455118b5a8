//! Forms that a client sends with its authentication (RFC 6749, section 2.3.1); they hold secrets, and are wiped.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderName, HeaderValue};
use url::form_urlencoded::{Serializer, byte_serialize};
use zeroize::Zeroizing;

use super::{
    fetch::{FORM, authorization, content},
    register::Client,
};
use crate::policy::TokenAuth;

/// The fields and the body of a form with `pairs`, in which `client` shows itself by `auth`. A secret that it does not have
/// is not shown.
pub(super) fn authenticated(
    client: &Client,
    auth: TokenAuth,
    pairs: &[(&str, &str)],
) -> (Vec<(HeaderName, HeaderValue)>, Zeroizing<Vec<u8>>) {
    let secret = client.secret.as_deref().map(String::as_str);
    let mut all = pairs.to_vec();
    let mut fields = vec![content(FORM)];
    match (auth, secret) {
        (TokenAuth::Basic, Some(secret)) => fields.extend(basic(&client.id, secret)),
        (TokenAuth::Post, Some(secret)) => {
            all.extend([("client_id", &*client.id), ("client_secret", secret)]);
        }
        (TokenAuth::Basic | TokenAuth::Post, None) | (TokenAuth::None, _) => {
            all.push(("client_id", &client.id));
        }
    }
    // Room for all of it escaped, so that no copy stays behind.
    let room = all
        .iter()
        .map(|(name, value)| name.len() + 3 * value.len() + 2);
    let mut form = Serializer::new(String::with_capacity(room.sum()));
    form.extend_pairs(all);
    (fields, Zeroizing::new(form.finish().into_bytes()))
}

/// Both parts are form-encoded first.
fn basic(id: &str, secret: &str) -> Option<(HeaderName, HeaderValue)> {
    let encoded = |text: &str| {
        let mut encoded = Zeroizing::new(String::with_capacity(3 * text.len()));
        encoded.extend(byte_serialize(text.as_bytes()));
        encoded
    };
    let (id, secret) = (encoded(id), encoded(secret));
    let pair = Zeroizing::new(format!("{}:{}", *id, *secret));
    let code = Zeroizing::new(STANDARD.encode(pair.as_bytes()));
    authorization(&Zeroizing::new(format!("Basic {}", *code)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connect::provider::register::Origin;

    #[test]
    fn a_client_shows_itself_as_it_was_registered() {
        let client = |secret: Option<&str>| Client {
            id: "a b".into(),
            secret: secret.map(|secret| secret.to_owned().into()),
            auth: TokenAuth::None,
            secret_expires_at: None,
            management: None,
            origin: Origin::PreRegistered,
        };
        let shown = |auth, secret| {
            let (fields, body) =
                authenticated(&client(secret), auth, &[("token", "x+y"), ("e", "")]);
            let header = fields
                .get(1)
                .map(|(_, value)| value.to_str().expect("ASCII").to_owned());
            let room = body.capacity();
            let body = String::from_utf8(body.to_vec()).expect("ASCII");
            assert!(body.len() <= room);
            (header, body)
        };
        let basic = (
            Some("Basic YStiOnMlM0F0".to_owned()),
            "token=x%2By&e=".to_owned(),
        );
        assert_eq!(shown(TokenAuth::Basic, Some("s:t")), basic);
        for (auth, secret, body) in [
            (TokenAuth::Basic, None, "token=x%2By&e=&client_id=a+b"),
            (
                TokenAuth::Post,
                Some("s:t"),
                "token=x%2By&e=&client_id=a+b&client_secret=s%3At",
            ),
            (TokenAuth::Post, None, "token=x%2By&e=&client_id=a+b"),
            (TokenAuth::None, Some("s:t"), "token=x%2By&e=&client_id=a+b"),
        ] {
            assert_eq!(shown(auth, secret), (None, body.to_owned()), "{auth:?}");
        }
    }
}
