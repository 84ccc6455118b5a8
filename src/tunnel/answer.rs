//! Refusals and failures as a client of the proxy sees them.

use std::{fmt::Write as _, sync::Arc};

use http::{Method, StatusCode, header::ACCEPT};
use serde_json::json;

use super::Head;
use crate::{
    policy::Denied,
    refusal::{Code, Fault, Refusal, Shape},
};

/// A refusal, and the rule that decided.
#[derive(Clone, Debug)]
pub(super) struct Refused {
    pub(super) refusal: Refusal,
    pub(super) rule: Option<Arc<str>>,
}

/// What of a request decides how a refusal of it looks.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked {
    json: bool,
    /// HEAD, whose answer has no body.
    bare: bool,
}

impl Asked {
    pub(super) fn of(head: &Head) -> Self {
        let accept = head.headers.get(ACCEPT);
        let accept = accept.map(|accept| accept.as_bytes().to_ascii_lowercase());
        Self {
            json: accept.is_some_and(|accept| memchr::memmem::find(&accept, b"json").is_some()),
            bare: head.method == Method::HEAD,
        }
    }
}

impl<R: Into<Refusal>> From<R> for Refused {
    fn from(refusal: R) -> Self {
        Self {
            refusal: refusal.into(),
            rule: None,
        }
    }
}

impl Refused {
    pub(super) fn by_rule(denied: Denied) -> Self {
        Self {
            refusal: denied.refusal,
            rule: Some(denied.rule),
        }
    }
}

/// The whole answer. Many clients show nothing but the status line, so that the code stands there, too.
pub(super) fn bytes(refused: &Refused, asked: &Asked, keep: bool) -> Vec<u8> {
    let code = refused.refusal.code;
    let status = status(code);
    let (kind, body) = body(refused, asked.json);
    let mut text = format!(
        "HTTP/1.1 {} {} ({})\r\ncontent-type: {kind}\r\ncontent-length: {}\r\ncache-control: no-store\r\n",
        status.as_u16(),
        status.canonical_reason().unwrap_or_default(),
        code.as_str(),
        body.len()
    );
    match status {
        StatusCode::PROXY_AUTHENTICATION_REQUIRED => text.push_str(
            "proxy-authenticate: Basic realm=\"Tollgate\"\r\nproxy-authenticate: Bearer realm=\"Tollgate\"\r\n",
        ),
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            text.push_str("retry-after: 1\r\n");
        }
        _ => {}
    }
    if !keep {
        text.push_str("connection: close\r\n");
    }
    text.push_str("\r\n");
    if !asked.bare {
        text.push_str(&body);
    }
    text.into_bytes()
}

fn body(refused: &Refused, json: bool) -> (&'static str, String) {
    let Refused { refusal, rule } = refused;
    if json {
        let mut error = json!({
            "code": refusal.code.as_str(),
            "message": refusal.public,
            "remedy": refusal.code.remedy(),
        });
        if let Some(rule) = rule {
            error["rule"] = json!(&**rule);
        }
        return ("application/json", json!({ "error": error }).to_string());
    }
    let mut text = format!("{}\n", refusal.text());
    if let Some(rule) = rule {
        writeln!(text, "decided by {rule}").expect("a String takes all that is written to it");
    }
    ("text/plain; charset=utf-8", text)
}

/// The status of a refusal on this listener. Whatever is wrong with a credential is 407: clients take 401 for the target's.
fn status(code: Code) -> StatusCode {
    let number = match code {
        Code::EvidenceMissing | Code::EvidenceInvalid | Code::EvidenceExpired => 407,
        Code::NameBlocked | Code::AddressBlocked => 403,
        Code::RecordUnavailable | Code::AnswersOverloaded | Code::Exhausted => 503,
        Code::DnsTimeout
        | Code::ConnectTimeout
        | Code::FirstByteTimeout
        | Code::IdleTimeout
        | Code::CallTimeout => 504,
        _ if code.shape() != Shape::Http && code.fault() == Fault::Upstream => 502,
        _ => code.status(),
    };
    StatusCode::from_u16(number)
        .ok()
        .filter(|status| status.is_client_error() || status.is_server_error())
        .unwrap_or(StatusCode::BAD_GATEWAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(refused: &Refused, json: bool) -> String {
        let asked = Asked { json, bare: false };
        String::from_utf8(bytes(refused, &asked, false)).unwrap()
    }

    #[test]
    fn a_refusal_names_code_rule_and_remedy() {
        let refused = Refused {
            refusal: Refusal::new(Code::HostNotAllowed, "`https://a.test` is not allowed"),
            rule: Some("egress.toml:3: [[deny]]".into()),
        };
        assert_eq!(
            told(&refused, false),
            "HTTP/1.1 403 Forbidden (egress.host_not_allowed)\r\ncontent-type: text/plain; charset=utf-8\r\n\
             content-length: 162\r\ncache-control: no-store\r\nconnection: close\r\n\r\n\
             egress.host_not_allowed: `https://a.test` is not allowed; ask the operator whether egress.toml should allow \
             this host and port\ndecided by egress.toml:3: [[deny]]\n"
        );
        let json = told(&refused, true);
        let body: serde_json::Value =
            serde_json::from_str(json.split_once("\r\n\r\n").unwrap().1).unwrap();
        assert_eq!(body["error"]["code"], "egress.host_not_allowed");
        assert_eq!(body["error"]["rule"], "egress.toml:3: [[deny]]");
    }

    #[test]
    fn statuses_tell_refusals_from_failures() {
        for (code, expected) in [
            (Code::EvidenceExpired, 407),
            (Code::ProxyCredentialMissing, 407),
            (Code::ScopeMissing, 403),
            (Code::AddressBlocked, 403),
            (Code::NameUnresolved, 502),
            (Code::ConnectFailed, 502),
            (Code::Exhausted, 503),
            (Code::ConnectTimeout, 504),
            (Code::DnsTimeout, 504),
            (Code::RecordUnavailable, 503),
            (Code::TunnelRate, 429),
        ] {
            assert_eq!(status(code), expected, "{code:?}");
        }
    }

    #[test]
    fn credentials_are_asked_for() {
        let missing = Refusal::new(Code::ProxyCredentialMissing, "none");
        let answer = told(&missing.into(), false);
        assert!(answer.contains("\r\nproxy-authenticate: Basic realm=\"Tollgate\"\r\n"));
    }
}
