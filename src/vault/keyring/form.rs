//! What a keyring's file looks like.
//!
//! Form 1, which earlier versions wrote and this one reads:
//!
//! ```text
//! tollgate-keyring 1
//! 1 ROOT
//! ```
//!
//! Form 2, with one to sixteen data keys, one of them `primary`, the others `decrypt_only` or `disabled`:
//!
//! ```text
//! tollgate-keyring 2
//! deployment DEPLOYMENT
//! root ROOT
//! data KID STATE KEY
//! ```
//!
//! Form 2 sealed: all of the above but its first line, under a key of the file's own, which stands there sealed for one or
//! two key-encryption keys:
//!
//! ```text
//! tollgate-keyring 2 sealed
//! key KEK-ID SEALED-KEY
//! SEALED
//! ```
//!
//! Keys and sealed bytes are lower-case hexadecimal digits.

use std::fmt::{self, Write};

use zeroize::Zeroizing;

use super::super::{
    Kek, KekId, Kid, Sealer,
    keys::{DataKey, KeyState, Keys, MOST},
};
use crate::id;

const FIRST: &str = "tollgate-keyring 1\n";
const SECOND: &str = "tollgate-keyring 2\n";
const SEALED: &str = "tollgate-keyring 2 sealed\n";
/// The most key-encryption keys that a file is sealed for: one, and the one that follows it.
pub(in crate::vault) const KEKS: usize = 2;
/// The longest content in bytes: three lines and the data keys, each with room to spare.
const CONTENT: usize = 128 * (3 + MOST);
/// The longest file in bytes: the content in hexadecimal digits, and what it is sealed with.
pub(super) const LONGEST: usize = 2 * (CONTENT + Sealer::OVERHEAD) + 256 * (1 + KEKS);

/// How a keyring's file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    First,
    Second,
    Sealed,
}

/// What a file says.
pub(super) struct Parsed {
    pub(super) keys: Keys,
    pub(super) form: Form,
    /// The keys that it is sealed for.
    pub(super) keks: Vec<(KekId, Vec<u8>)>,
    /// The file's own key; only a sealed one has it.
    pub(super) file_key: Option<Zeroizing<[u8; 32]>>,
}

/// Why a file gives no keys.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// It is no keyring of a form that this version knows, or was changed.
    Form,
    /// It is sealed, and there is no key-encryption key.
    NoKek,
    /// It is sealed for these.
    OtherKek(Vec<KekId>),
}

/// Reads a whole file.
pub(super) fn parse(text: &[u8], kek: Option<&Kek>) -> Result<Parsed, Unread> {
    if let Some(body) = text.strip_prefix(SEALED.as_bytes()) {
        return unseal(body, kek);
    }
    let (keys, form) = match text.strip_prefix(FIRST.as_bytes()) {
        Some(body) => (first(body), Form::First),
        None => {
            let body = text.strip_prefix(SECOND.as_bytes()).ok_or(Unread::Form)?;
            (second(body), Form::Second)
        }
    };
    Ok(Parsed {
        keys: keys.ok_or(Unread::Form)?,
        form,
        keks: Vec::new(),
        file_key: None,
    })
}

fn first(body: &[u8]) -> Option<Keys> {
    let digits = body.strip_suffix(b"\n")?.strip_prefix(b"1 ")?;
    Some(Keys::of_root(bytes(digits)?))
}

fn second(body: &[u8]) -> Option<Keys> {
    let mut lines = body.strip_suffix(b"\n")?.split(|byte| *byte == b'\n');
    let deployment = bytes(lines.next()?.strip_prefix(b"deployment ")?)?;
    let root = bytes(lines.next()?.strip_prefix(b"root ")?)?;
    let data = lines.map(data_key).collect::<Option<Vec<_>>>()?;
    Keys::listed(root, *deployment, data)
}

fn data_key(line: &[u8]) -> Option<DataKey> {
    let mut words = line.strip_prefix(b"data ")?.split(|byte| *byte == b' ');
    let kid = Kid(*bytes(words.next()?)?);
    let state = KeyState::parse(str::from_utf8(words.next()?).ok()?)?;
    let key = DataKey::new(bytes(words.next()?)?, state);
    (key.kid == kid && words.next().is_none()).then_some(key)
}

fn unseal(body: &[u8], kek: Option<&Kek>) -> Result<Parsed, Unread> {
    let Wrapped { keks, content } = wraps(body).ok_or(Unread::Form)?;
    let kek = kek.ok_or(Unread::NoKek)?;
    let Some((id, wrapped)) = keks.iter().find(|(id, _)| *id == kek.id()) else {
        return Err(Unread::OtherKek(
            keks.into_iter().map(|(id, _)| id).collect(),
        ));
    };
    let open = || -> Option<_> {
        let opened = kek.sealer().open(wrapped, &id.0)?;
        let mut file_key = Zeroizing::new([0; 32]);
        file_key.copy_from_slice(opened.get(..32)?);
        let content = content_sealer(&file_key).open(&content, b"")?;
        Some((second(&content)?, file_key))
    };
    let (keys, file_key) = open().ok_or(Unread::Form)?;
    Ok(Parsed {
        keys,
        form: Form::Sealed,
        keks,
        file_key: Some(file_key),
    })
}

/// A sealed file, read and not opened yet.
struct Wrapped {
    /// The keys that it is sealed for, each with the file's key as it sealed it.
    keks: Vec<(KekId, Vec<u8>)>,
    content: Vec<u8>,
}

fn wraps(body: &[u8]) -> Option<Wrapped> {
    let mut lines = body.strip_suffix(b"\n")?.split(|byte| *byte == b'\n');
    let content = unhexed(lines.next_back()?)?;
    let keks = lines
        .map(|line| {
            let (id, wrapped) = line.strip_prefix(b"key ")?.split_at_checked(17)?;
            Some((KekId(*bytes(id.strip_suffix(b" ")?)?), unhexed(wrapped)?))
        })
        .collect::<Option<Vec<_>>>()?;
    (1..=KEKS)
        .contains(&keks.len())
        .then_some(Wrapped { keks, content })
}

/// The text of a file: plain where it is sealed for nobody.
pub(super) fn write(parsed: &Parsed) -> Zeroizing<String> {
    let content = content(&parsed.keys);
    let (Some(file_key), [_, ..]) = (&parsed.file_key, &*parsed.keks) else {
        return Zeroizing::new(format!("{SECOND}{}", *content));
    };
    let mut text = SEALED.to_owned();
    for (id, wrapped) in &parsed.keks {
        text += &format!("key {id} {}\n", id::hex(wrapped));
    }
    text += &id::hex(&content_sealer(file_key).seal(content.as_bytes(), b""));
    text.push('\n');
    Zeroizing::new(text)
}

/// The file's key, sealed for `kek`.
pub(super) fn wrap(file_key: &Zeroizing<[u8; 32]>, kek: &Kek) -> (KekId, Vec<u8>) {
    let id = kek.id();
    (id, kek.sealer().seal(&**file_key, &id.0))
}

fn content(keys: &Keys) -> Zeroizing<String> {
    // Room for all of it, so that nothing is left behind where it outgrew its place.
    let mut text = Zeroizing::new(String::with_capacity(CONTENT));
    let root = Zeroizing::new(id::hex(&*keys.root));
    let deployment = id::hex(&keys.deployment);
    let mut line = |line: fmt::Arguments<'_>| {
        text.write_fmt(line).expect("a text takes what is written");
    };
    line(format_args!("deployment {deployment}\nroot {}\n", *root));
    for key in &keys.data {
        let digits = Zeroizing::new(id::hex(&*key.key));
        let (kid, state) = (key.kid, key.state.as_str());
        line(format_args!("data {kid} {state} {}\n", *digits));
    }
    text
}

fn content_sealer(file_key: &Zeroizing<[u8; 32]>) -> Sealer {
    Sealer::derive(1, file_key, "keyring")
}

fn bytes<const N: usize>(digits: &[u8]) -> Option<Zeroizing<[u8; N]>> {
    let mut bytes = Zeroizing::new([0; N]);
    unhex(digits, &mut *bytes).then_some(bytes)
}

fn unhexed(digits: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = vec![0; digits.len() / 2];
    unhex(digits, &mut bytes).then_some(bytes)
}

/// Reads lower-case hexadecimal digits into `out`; false where they are not exactly its bytes.
pub(in crate::vault) fn unhex(digits: &[u8], out: &mut [u8]) -> bool {
    let (pairs, rest) = digits.as_chunks::<2>();
    if !rest.is_empty() || pairs.len() != out.len() {
        return false;
    }
    let read = |[high, low]: &[u8; 2]| Some(digit(*high)? << 4 | digit(*low)?);
    out.iter_mut()
        .zip(pairs)
        .all(|(byte, pair)| read(pair).map(|value| *byte = value).is_some())
}

fn digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}
