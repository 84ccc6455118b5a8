//! Reading a request body within its bounds.

use std::{error::Error as _, io, time::Duration};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header::EXPECT};
use http_body::Body;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::timeout;

use crate::refusal::{Code, Refusal};

/// How much of a refused body is taken in, and for how long, so that its sender gets to read the answer.
const DISCARD_BYTES: usize = 4 * 1024 * 1024;
const DISCARD: Duration = Duration::from_secs(1);

/// Reads the whole body.
///
/// # Errors
///
/// A body that is announced or found to be larger than the bound, that takes too long, or that ends early. The second
/// value is what was not read.
pub(super) async fn read(
    mut body: Incoming,
    cap: usize,
    within: Duration,
) -> Result<Bytes, (Refusal, Incoming)> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    if body.size_hint().lower() > u64::try_from(cap).unwrap_or(u64::MAX) {
        return Err((too_large(cap), body));
    }
    match timeout(within, collect(&mut body, cap)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(refusal)) => Err((refusal, body)),
        Err(_) => {
            let public = format!("the body did not arrive within {} s", within.as_secs());
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

async fn collect(body: &mut Incoming, cap: usize) -> Result<Bytes, Refusal> {
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| broken(&error))?;
        let Ok(piece) = frame.into_data() else {
            continue;
        };
        if whole.len() + piece.len() > cap {
            return Err(too_large(cap));
        }
        // The usual body is one piece, and is not copied.
        if whole.is_empty() && body.is_end_stream() {
            return Ok(piece);
        }
        whole.extend_from_slice(&piece);
    }
    Ok(whole.freeze())
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
