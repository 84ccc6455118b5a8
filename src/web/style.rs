//! The one stylesheet. The digest in its name changes with it, so that browsers may keep it.

use std::sync::LazyLock;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::Full;
use sha2::{Digest, Sha256};

use super::{answer, route};
use crate::{id, refusal::Refusal};

const TEXT: &str = include_str!("style.css");

static DIGEST: LazyLock<String> = LazyLock::new(|| id::hex(&Sha256::digest(TEXT)[..8]));

/// Its path.
pub(super) fn path() -> String {
    format!("/style-{}.css", *DIGEST)
}

/// The stylesheet, if that is its digest.
pub(super) fn sheet(digest: &str) -> Result<Response<Full<Bytes>>, Refusal> {
    if digest != *DIGEST {
        return Err(route::unknown());
    }
    let mut answer = answer::text(StatusCode::OK, "text/css; charset=utf-8", TEXT);
    let kept = HeaderValue::from_static("public, max-age=31536000, immutable");
    answer.headers_mut().insert(header::CACHE_CONTROL, kept);
    Ok(answer)
}
