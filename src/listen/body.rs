//! Reading a request body within its bounds.

use std::{error::Error as _, io, time::Duration};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header::EXPECT};
use http_body::Body;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::time::{Instant, timeout, timeout_at};

use super::hush;
use crate::{
    memory::{Full, Memory, Reservation},
    refusal::{Code, Refusal},
};

/// How much of a refused body is taken in, and for how long, so that its sender gets to read the answer.
const DISCARD_BYTES: usize = 4 * 1024 * 1024;
const DISCARD: Duration = Duration::from_secs(1);

/// What a body may take.
pub(super) struct Bounds<'a> {
    /// Its bytes.
    pub(super) bytes: usize,
    /// When its request came.
    pub(super) since: Instant,
    /// The time from then until it has come whole.
    pub(super) within: Duration,
    /// What all bodies hold together. Only bytes that have come count: those that are announced cost their sender nothing.
    pub(super) together: &'a Memory,
}

/// Reads the whole body.
///
/// # Errors
///
/// A body that is announced or found to be larger than the bound, that takes too long, that ends early, or that all
/// bodies together leave no room for. The second value is what was not read.
pub(super) async fn read(
    mut body: Incoming,
    bounds: &Bounds<'_>,
) -> Result<Bytes, (Refusal, Incoming)> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    if body.size_hint().lower() > u64::try_from(bounds.bytes).unwrap_or(u64::MAX) {
        return Err((too_large(bounds.bytes), body));
    }
    match timeout_at(bounds.since + bounds.within, collect(&mut body, bounds)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(refusal)) => Err((refusal, body)),
        Err(_) => {
            let public = format!(
                "the body did not arrive within {} s",
                bounds.within.as_secs()
            );
            Err((Refusal::new(Code::SlowBody, public), body))
        }
    }
}

/// Takes in the rest of a body that nobody will look at. Returns whether it came to its end, so that the connection can
/// go on.
pub(super) async fn discard(mut body: Incoming, headers: &HeaderMap) -> bool {
    if body.is_end_stream() {
        return true;
    }
    // Reading would answer `100 Continue` and invite what is not wanted.
    if headers.contains_key(EXPECT) {
        return false;
    }
    let whole = async {
        let mut taken = 0;
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else { return false };
            taken += frame.data_ref().map_or(0, Bytes::len);
            if taken > DISCARD_BYTES {
                return false;
            }
        }
        true
    };
    timeout(DISCARD, whole).await.unwrap_or(false)
}

async fn collect(body: &mut Incoming, bounds: &Bounds<'_>) -> Result<Bytes, Refusal> {
    let mut held = Reservation::default();
    let mut whole = BytesMut::new();
    while let Some(frame) = hush::take(body).await {
        let frame = frame.map_err(|error| broken(&error))?;
        let Ok(piece) = frame.into_data() else {
            continue;
        };
        if whole.len() + piece.len() > bounds.bytes {
            return Err(too_large(bounds.bytes));
        }
        held.grow(piece.len(), bounds.together).map_err(|Full| {
            Refusal::new(Code::Overloaded, "too many large requests are on their way")
        })?;
        // The usual body is one piece, and is not copied.
        if whole.is_empty() && body.is_end_stream() {
            return Ok(held.attach(piece));
        }
        whole.extend_from_slice(&piece);
    }
    Ok(held.attach(whole.freeze()))
}

fn too_large(cap: usize) -> Refusal {
    Refusal::new(
        Code::BodyTooLarge,
        format!("the body is larger than {cap} bytes"),
    )
}

fn broken(error: &hyper::Error) -> Refusal {
    let cause = error
        .source()
        .and_then(|source| source.downcast_ref::<io::Error>());
    let gone = error.is_incomplete_message()
        || cause.is_some_and(|cause| {
            matches!(
                cause.kind(),
                io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset
            )
        });
    if gone {
        return Refusal::new(Code::ClientGone, "the connection ended before the body did");
    }
    Refusal::new(
        Code::BodyBroken,
        "the body is not framed as its headers say",
    )
    .with_detail(cause.map_or_else(|| error.to_string(), ToString::to_string))
}
