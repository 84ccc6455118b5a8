//! Answers: pages with the headers that shield them, and the ways to other pages.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::Full;
use maud::Markup;

use super::pages;
use crate::refusal::{Code, Fault, Refusal};

/// Nothing but our own stylesheet and our own forms; nobody frames us (CSP level 3).
const POLICY: &str = "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// A page.
pub(super) fn page(status: StatusCode, markup: Markup) -> Response<Full<Bytes>> {
    text(status, "text/html; charset=utf-8", markup.into_string())
}

/// A text of another kind.
pub(super) fn text(
    status: StatusCode,
    kind: &'static str,
    text: impl Into<Bytes>,
) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::new(text.into()));
    *answer.status_mut() = status;
    let kind = HeaderValue::from_static(kind);
    answer.headers_mut().insert(header::CONTENT_TYPE, kind);
    answer
}

/// On to another page, by GET. What stands in this request's URL is told to nobody.
pub(super) fn see(location: &str) -> Result<Response<Full<Bytes>>, Refusal> {
    let mut answer = empty(StatusCode::SEE_OTHER);
    let location = HeaderValue::try_from(location)
        .map_err(|_| Refusal::new(Code::ConnectUnusable, "the next address cannot be sent"))?;
    let headers = answer.headers_mut();
    headers.insert(header::LOCATION, location);
    headers.insert(
        header::REFERRER_POLICY,
        HeaderValue::from_static("no-referrer"),
    );
    Ok(answer)
}

/// The same, at the site's own name.
pub(super) fn moved(location: &str) -> Response<Full<Bytes>> {
    let mut answer = empty(StatusCode::PERMANENT_REDIRECT);
    // It was read from a request's head.
    if let Ok(location) = HeaderValue::try_from(location) {
        answer.headers_mut().insert(header::LOCATION, location);
    }
    answer
}

/// The page of a refusal.
pub(super) fn refused(refusal: &Refusal, allow: &'static str) -> Response<Full<Bytes>> {
    let mut answer = page(status(refusal.code), pages::refused(refusal));
    let headers = answer.headers_mut();
    match refusal.code {
        Code::WebMethod => {
            headers.insert(header::ALLOW, HeaderValue::from_static(allow));
        }
        // RFC 9110, section 15.5.2, wants one; browsers know no scheme for what we ask.
        Code::SignedOut => {
            let scheme = HeaderValue::from_static("Tollgate-Session");
            headers.insert(header::WWW_AUTHENTICATE, scheme);
        }
        _ => {}
    }
    answer
}

/// The status of a refusal's page. Codes that tools carry have none of their own.
pub(super) fn status(code: Code) -> StatusCode {
    let own = StatusCode::from_u16(code.status()).unwrap_or(StatusCode::BAD_REQUEST);
    if own != StatusCode::OK {
        return own;
    }
    match code.fault() {
        Fault::Caller => StatusCode::CONFLICT,
        Fault::Policy => StatusCode::FORBIDDEN,
        Fault::Upstream => StatusCode::BAD_GATEWAY,
        Fault::Internal => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// Puts the headers on that every answer has, where it has not said otherwise.
pub(super) fn shield(answer: &mut Response<Full<Bytes>>) {
    let headers = answer.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "no-store"),
        // Under `no-referrer` browsers hide the origin of our own forms as well.
        (header::REFERRER_POLICY, "same-origin"),
        (
            header::HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (
            header::HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ] {
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
}

fn empty(status: StatusCode) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::default());
    *answer.status_mut() = status;
    answer
}
