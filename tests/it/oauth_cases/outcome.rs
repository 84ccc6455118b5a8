//! What became of a request, as data, and whether that is what was expected.

use serde_json::{Value, json};
use tollgate::connect::{
    Error, Revoked,
    provider::{discovery::Discovered, register::Probe, token},
};

pub(super) fn discovered(result: Result<Discovered, Error>) -> Value {
    match result {
        Ok(discovered) => json!({ "ok": discovered }),
        Err(error) => failed(&error),
    }
}

pub(super) fn failed(error: &Error) -> Value {
    let source = std::error::Error::source(error).map(ToString::to_string);
    json!({
        "code": error.code().as_str(),
        "says": format!("{error} {}", source.unwrap_or_default()),
    })
}

pub(super) fn tokens(result: Result<token::Tokens, token::Failure>) -> Value {
    match result {
        Ok(tokens) => json!({ "ok": {
            "access": *tokens.access,
            "refresh": tokens.refresh.as_deref(),
            "expires_in": tokens.expires_in,
            "refresh_expires_in": tokens.refresh_expires_in,
            "scopes": tokens.scopes,
        }}),
        Err(token::Failure::Terminal {
            error,
            description,
            client_dead,
        }) => json!({ "terminal": error, "description": description, "client_dead": client_dead }),
        Err(token::Failure::Transient {
            retry_after,
            unsent,
            what,
            ..
        }) => json!({
            "transient": what,
            "unsent": unsent,
            "retry_after": retry_after.map(|pause| pause.as_secs()),
        }),
        Err(token::Failure::Egress(error)) => {
            json!({ "code": error.code().as_str(), "says": error.to_string() })
        }
    }
}

pub(super) fn probed(probe: Probe) -> Value {
    json!({ "ok": match probe {
        Probe::Alive => "alive",
        Probe::Dead => "dead",
        Probe::Unknown => "unknown",
    }})
}

pub(super) fn revoked(revoked: Revoked) -> Value {
    json!({ "ok": match revoked {
        Revoked::Yes => "yes",
        Revoked::No => "no",
        Revoked::Unsupported => "unsupported",
    }})
}

/// Whether `found` has all that is expected: each member as it stands, but of `says` and `transient` only a part; `null`
/// is what is absent.
pub(super) fn fits(expected: &Value, found: &Value) -> bool {
    let Value::Object(members) = expected else {
        return expected == found;
    };
    members.iter().all(|(name, value)| {
        let found = found.get(name).unwrap_or(&Value::Null);
        match (name.as_str(), value.as_str(), found.as_str()) {
            ("says" | "transient", Some(part), Some(text)) => text.contains(part),
            _ => fits(value, found),
        }
    })
}
