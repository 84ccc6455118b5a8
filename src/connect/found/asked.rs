//! What a server answers to whoever shows no credential: the challenge that discovery begins with.

use std::time::Duration;

use bytes::Bytes;
use http::{
    HeaderValue, Method, StatusCode,
    header::{ACCEPT, CONTENT_TYPE, WWW_AUTHENTICATE},
};

use crate::{
    connect::{Challenge, Inner, kept::grant},
    deadline::Deadline,
    egress::{Fetch, FieldLines},
    policy::Permit,
};

/// A request that changes nothing and that every server knows.
const BODY: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EITHER: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
/// Bytes of the answer, of which only the head counts.
const LONGEST: usize = 64 << 10;
/// How long a server has.
const LIMIT: Duration = Duration::from_secs(10);

/// The challenge of a 401; `None` where the server answers anything else, or not in time.
pub(super) async fn challenge(
    inner: &Inner,
    permit: &Permit,
    deadline: Deadline,
) -> Option<Challenge> {
    let url = grant::endpoint(permit.server());
    let leg = permit.fetch(&url).ok()?;
    let mut fields = FieldLines::new();
    fields.add(&ACCEPT, &EITHER);
    fields.add(&CONTENT_TYPE, &JSON);
    let fetch = Fetch {
        permit: &leg,
        method: Method::POST,
        fields,
        body: Bytes::from_static(BODY.as_bytes()),
        response_bytes: LONGEST,
        deadline: deadline.min(Deadline::after(LIMIT)),
    };
    let answer = inner.egress.fetch(fetch).await.ok()?;
    let lines = answer.headers.all(&WWW_AUTHENTICATE).map(Box::from);
    (answer.status == StatusCode::UNAUTHORIZED).then(|| Challenge(lines.collect()))
}
