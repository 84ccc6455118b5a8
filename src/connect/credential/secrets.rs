//! Static secrets that people enter: sealed for one person, one server and the URL it had then.

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::{
    audit::{Kind, OutcomeKind},
    connect::{
        Error, GrantKey, Inner, Key, RecordsError, inner,
        kept::{self, grant},
    },
    policy::{Auth, Permit, Server},
};

/// Characters of a secret at most.
const LONGEST: usize = 8192;
/// How often a row is written while others write it too.
const TRIES: usize = 4;

/// What is sealed.
#[derive(Serialize, Deserialize)]
pub(in crate::connect) struct Entered {
    pub(super) value: Zeroizing<String>,
    /// The server's registered URL.
    pub(super) endpoint: String,
    /// Unix seconds.
    pub(in crate::connect) at: i64,
}

/// Keeps `secret` for the permit's owner.
///
/// # Errors
///
/// It cannot stand in a header, the server takes none, or the database does not work.
pub(in crate::connect) async fn enter(
    inner: &Inner,
    permit: &Permit,
    secret: &[u8],
) -> Result<(), Error> {
    let value = match &permit.server().auth {
        Auth::Bearer => fit(secret, false),
        Auth::Header(_) => fit(secret, true),
        Auth::None | Auth::OAuth(_) | Auth::Shared(_) => {
            return Err(Error::Unusable {
                server: permit.server().name.clone(),
                what:
                    "nobody enters a secret for it; set auth.mode to \"bearer\" or \"header\" where each user has one"
                        .to_owned(),
            });
        }
    };
    let entered = Entered {
        value: value.ok_or(Error::Secret)?,
        endpoint: grant::endpoint(permit.server()),
        at: inner.now(),
    };
    let key = inner::key(permit);
    put(inner, &Key::Secret(key.clone()), &entered).await?;
    inner.forget(&key);
    inner.note(Kind::Connect, "entered", &key, (OutcomeKind::Allowed, None));
    // Where there is no room, the next call tells what the server shows.
    drop(inner.made.try_send(permit.clone()));
    Ok(())
}

/// A secret goes to no other URL than the one it was entered for.
pub(in crate::connect) fn check(
    entered: Entered,
    server: Option<&Server>,
) -> Result<Entered, &'static str> {
    match server {
        Some(server) if grant::endpoint(server) != entered.endpoint => Err("origin_changed"),
        _ => Ok(entered),
    }
}

/// Takes the secret away; whether there was one.
pub(in crate::connect) async fn remove(
    inner: &Inner,
    key: &GrantKey,
) -> Result<bool, RecordsError> {
    let row = inner.records.take(&Key::Secret(key.clone())).await?;
    Ok(row.is_some())
}

/// Visible ASCII, with spaces inside where a whole header value is entered.
fn fit(secret: &[u8], spaced: bool) -> Option<Zeroizing<String>> {
    let inside = |byte: &u8| byte.is_ascii_graphic() || spaced && *byte == b' ';
    let ends = [secret.first()?, secret.last()?];
    let fits = secret.len() <= LONGEST
        && secret.iter().all(inside)
        && ends.iter().all(|byte| byte.is_ascii_graphic());
    let text = std::str::from_utf8(secret).ok().filter(|_| fits)?;
    Some(Zeroizing::new(text.to_owned()))
}

async fn put(inner: &Inner, key: &Key, entered: &Entered) -> Result<(), Error> {
    for _ in 0..TRIES {
        let row = inner.records.read(key).await?;
        let version = row.map(|row| row.version);
        if kept::replace(inner, key, version, entered, None).await? {
            return Ok(());
        }
    }
    let Key::Secret(key) = key else {
        return Err(Error::Secret);
    };
    Err(Error::Transient {
        server: key.server.clone(),
        what: "the secret is being written by somebody else; try again".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_stand_in_a_header_is_kept() {
        let fits = |secret: &[u8], spaced| fit(secret, spaced).is_some();
        for secret in [&b"x"[..], b"sk-1234_~!", &[b'a'; 8192]] {
            assert!(fits(secret, false));
            assert!(fits(secret, true));
        }
        assert!(fits(b"Token abc", true));
        assert!(!fits(b"Token abc", false), "a bearer token has no space");
        for secret in [
            &b""[..],
            b" ",
            b" x",
            b"x ",
            b"x\n",
            b"x\r\nHost: evil.test",
            b"x\ty",
            b"x\0",
            b"\x7f",
            "schlüssel".as_bytes(),
            b"\xff",
            &[b'a'; 8193],
        ] {
            assert!(!fits(secret, true), "{secret:?}");
        }
    }
}
