//! `[auth]` of `servers/NAME.toml`.

mod checks;
mod oauth;

use std::sync::Arc;

use http::HeaderName;

use super::{Auth, Inputs, Shared};
use crate::{
    secret::{Secret, Source},
    table::{Place, Table},
};

/// What the table says, and what only shows beside the other files.
#[derive(Default)]
pub(super) struct Read {
    pub(super) auth: Auth,
    /// Where `allow_http_loopback = true` stands, if it does: it needs a private grant.
    pub(super) plain: Option<Place>,
}

/// Bytes of a secret at most.
const LONGEST_SECRET: usize = 8192;

/// Headers that are about the connection, the framing, the place or the protocol: a secret in one of them would be left
/// out, or break the call.
const TAKEN: &[&str] = &[
    "accept",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// How the server is shown who calls.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    None,
    Bearer,
    Header,
    OAuth,
    Shared,
}

impl Mode {
    const WORDS: &[(&'static str, Option<Self>)] = &[
        ("none", Some(Self::None)),
        ("bearer", Some(Self::Bearer)),
        ("header", Some(Self::Header)),
        ("oauth", Some(Self::OAuth)),
        ("shared", Some(Self::Shared)),
    ];

    /// The keys beside `mode` that act.
    fn keys(self) -> &'static [&'static str] {
        match self {
            Self::None | Self::Bearer => &[],
            Self::Header => &["header"],
            Self::Shared => &["header", "secret"],
            Self::OAuth => oauth::KEYS,
        }
    }
}

/// Reads the table; without one nothing is sent.
pub(super) fn read(root: &Table<'_>, inputs: &Inputs<'_>) -> Read {
    let Some(table) = root.table("auth") else {
        return Read::default();
    };
    if !table.has("mode") {
        let missing = "`mode` is missing; add mode = \"none\", \"bearer\", \"header\", \"oauth\" or \"shared\"";
        table.fault(table.place().fault(missing));
    }
    let mode = table.choice("mode", Mode::WORDS);
    check_keys(&table, mode);
    let auth = match mode {
        None | Some(Mode::None) => Auth::None,
        Some(Mode::Bearer) => Auth::Bearer,
        Some(Mode::Header) => {
            if !table.has("header") {
                let missing = "`header` is missing; name the header that takes each user's secret";
                table.fault(table.place().fault(missing));
            }
            header(&table).map(Auth::Header).unwrap_or_default()
        }
        Some(Mode::Shared) => shared(&table, inputs).map(Auth::Shared).unwrap_or_default(),
        Some(Mode::OAuth) => Auth::OAuth(Box::new(oauth::read(&table, inputs))),
    };
    check_pages(&table, &auth, inputs);
    let plain = auth.oauth().is_some_and(|knobs| knobs.allow_http_loopback);
    Read {
        auth,
        plain: plain.then(|| table.place_of("allow_http_loopback")),
    }
}

/// Where people have to come to a page, there has to be one.
fn check_pages(table: &Table<'_>, auth: &Auth, inputs: &Inputs<'_>) {
    if !inputs.web && !matches!(auth, Auth::None | Auth::Shared(_)) {
        let message = "people connect on the web listener, which is off; set listen.web in tollgate.toml, as in web = \
                       \"127.0.0.1:8703\", or use mode = \"shared\"";
        table.fault(table.place_of("mode").fault(message));
    }
}

/// A key of another mode would look as if it acted.
fn check_keys(table: &Table<'_>, mode: Option<Mode>) {
    for key in ["header", "secret"].iter().chain(oauth::KEYS) {
        // Asked for in any case, so that it is not unknown where the mode is what is wrong.
        let written = table.has(key);
        let Some(mode) = mode.filter(|mode| written && !mode.keys().contains(key)) else {
            continue;
        };
        let mut words = Mode::WORDS.iter();
        let word = words.find(|(_, other)| *other == Some(mode));
        let word = word.map_or("", |(word, _)| word);
        let message =
            format!("has no effect beside mode = \"{word}\"; remove it, or correct the mode");
        table.fault(table.place_of(key).fault(message));
    }
}

fn shared(table: &Table<'_>, inputs: &Inputs<'_>) -> Option<Shared> {
    let header = header(table);
    // Without the key it is in the vault, where the operator puts it on the machine.
    let secret = match table.has("secret") {
        true => Some(secret(table, "secret", inputs)?),
        false => None,
    };
    Some(Shared { header, secret })
}

fn header(table: &Table<'_>) -> Option<HeaderName> {
    let written = table.text("header")?;
    let name = HeaderName::try_from(written.value.as_str()).ok();
    let Some(name) = name else {
        table.fault(
            written.fault("expected the name of a header, such as \"X-Api-Key\"; correct it"),
        );
        return None;
    };
    let word = name.as_str();
    if TAKEN.contains(&word) || word.starts_with("tollgate-") {
        table.fault(written.fault(format!(
            "`{word}` is not for secrets: Tollgate writes it itself, or never sends it; name another"
        )));
        return None;
    }
    Some(name)
}

/// The secret that `key` says the place of; what is written is never repeated, since it may be the secret itself.
fn secret(table: &Table<'_>, key: &'static str, inputs: &Inputs<'_>) -> Option<Arc<Secret>> {
    const EXPECTED: &str =
        "expected `env:NAME`, `file:PATH` or `credential:NAME`, and never the secret itself";
    if table.has(key) && !table.has_text(key) {
        table.fault(table.place_of(key).fault(EXPECTED));
        return None;
    }
    let written = table.text(key)?;
    let fault = |message: &str| table.fault(written.fault(message));
    let Ok(source) = Source::parse(&written.value) else {
        fault(EXPECTED);
        return None;
    };
    let secret = match (inputs.secret)(&source) {
        Ok(secret) => secret,
        Err(why) => {
            fault(&why);
            return None;
        }
    };
    let text = secret.expose();
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    let visible = text.iter().all(|byte| (b' '..=b'~').contains(byte));
    let trimmed = text.trim_ascii() == text;
    if text.is_empty() || text.len() > LONGEST_SECRET || !visible || !trimmed {
        fault(
            "what is kept there cannot be sent; expected one line of 1 to 8192 visible ASCII characters, without spaces at \
             its ends",
        );
        return None;
    }
    Some(Arc::new(Secret::new(text.to_vec())))
}
