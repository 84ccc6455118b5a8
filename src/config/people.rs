//! What only people's browsers need: `public_url`, `[vault]`, `[connect]`, `[web]`.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use url::{Host, Url};

use super::{Connect, Listen, Login, Settings, Vault, Web, parts::origin};
use crate::{
    secret::Source,
    table::{Item, Table},
};

impl Settings {
    /// Where people reach the pages, without a slash at its end: `public_url`, else the web listener's own address.
    /// `None` where there is neither.
    pub fn public_url_or_default(&self) -> Option<Arc<str>> {
        let derived = || Some(self.public_url_at(self.listen.web?));
        self.public_url.clone().or_else(derived)
    }

    /// The same for a web listener that was bound to `web`, whose port the system may have chosen.
    pub fn public_url_at(&self, web: SocketAddr) -> Arc<str> {
        let derived = || {
            let scheme = if self.listen.tls.is_some() {
                "https"
            } else {
                "http"
            };
            format!("{scheme}://{web}").into()
        };
        self.public_url.clone().unwrap_or_else(derived)
    }
}

/// An origin that browsers may be sent to with what concerns a person: https, or this machine.
pub(super) fn public_url(root: &Table<'_>) -> Option<Arc<str>> {
    let written = root.text("public_url")?;
    let Some(origin) = origin(&written.value) else {
        let message =
            "expected \"https://HOST\" or \"http://HOST:PORT\", without a path; correct it";
        root.fault(written.fault(message));
        return None;
    };
    if !is_safe(&Url::parse(&origin).ok()?) {
        let message = "plain http is for loopback only, since people sign in there; use https";
        root.fault(written.fault(message));
    }
    Some(origin)
}

/// An address that other machines use is not how people know it.
pub(super) fn check_public(root: &Table<'_>, listen: &Listen, public_url: Option<&str>) {
    let open = listen.web.filter(|web| !web.ip().is_loopback());
    let Some(web) = open.filter(|_| public_url.is_none()) else {
        return;
    };
    let place = root
        .table("listen")
        .map_or_else(|| root.place(), |table| table.place_of("web"));
    root.fault(place.fault(format!(
        "people do not reach it as {web}; say how they do, as in public_url = \"https://tollgate.example.com\""
    )));
}

pub(super) fn vault(table: &Table<'_>) -> Vault {
    Vault {
        keyring: file(table, "keyring"),
        mark: file(table, "mark"),
        key: key(table),
    }
}

/// The absolute path of a file.
fn file(table: &Table<'_>, key: &'static str) -> Option<PathBuf> {
    let written = table.text(key)?;
    let path = Path::new(&written.value);
    let fits = path.is_absolute() && path.file_name().is_some();
    if !fits {
        table.fault(written.fault("expected the absolute path of a file; begin it with `/`"));
    }
    fits.then(|| PathBuf::from(&written.value))
}

/// Where the key is kept; what is written is never repeated, since it may be the key itself.
fn key(table: &Table<'_>) -> Option<Source> {
    if table.has("key") && !table.has_text("key") {
        let message = "expected `env:NAME`, `file:PATH` or `credential:NAME`";
        table.fault(table.place_of("key").fault(message));
        return None;
    }
    let written = table.text("key")?;
    let source = Source::parse(&written.value);
    source
        .map_err(|error| table.fault(written.fault(error)))
        .ok()
}

pub(super) fn connect(table: &Table<'_>) -> Connect {
    let client_metadata_url = table
        .text("client_metadata_url")
        .and_then(|written| client_metadata_url(table, &written));
    let mut return_to = Vec::new();
    for item in table.texts("return_to").unwrap_or_default() {
        match Url::parse(&item.value).ok().filter(is_place) {
            Some(url) => return_to.push(url.as_str().into()),
            None => table.fault(item.fault(
                "expected where an app is, such as \"https://app.example.com/\": https, or http to loopback, without a \
                 password, a query and a fragment; correct it",
            )),
        }
    }
    Connect {
        client_metadata_url,
        return_to,
    }
}

/// A URL that is a client id (OAuth Client ID Metadata Document, section 3), in the one form that is compared.
fn client_metadata_url(table: &Table<'_>, written: &Item<String>) -> Option<Arc<str>> {
    let url = Url::parse(&written.value).ok();
    let fits = |url: &Url| {
        url.scheme() == "https"
            && is_place(url)
            && url.path() != "/"
            && url.as_str() == written.value
    };
    let url = url.filter(fits);
    if url.is_none() {
        table.fault(written.fault(
            "expected an https URL with a path and without a password, a query, a fragment and `..`, as everybody writes \
             it: \"https://tollgate.example.com/oauth/client-metadata.json\"; correct it",
        ));
    }
    url.map(|url| url.as_str().into())
}

pub(super) fn web(table: &Table<'_>) -> Web {
    let words = [("local", Some(Login::Local)), ("oidc", None), ("app", None)];
    Web {
        login: table.choice("login", &words).unwrap_or_default(),
    }
}

/// A place for browsers that says nothing but where it is.
fn is_place(url: &Url) -> bool {
    let bare = url.query().is_none() && url.fragment().is_none();
    bare && url.username().is_empty() && url.password().is_none() && is_safe(url)
}

/// Https, or http to this machine.
fn is_safe(url: &Url) -> bool {
    let local = match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    };
    url.host().is_some() && (url.scheme() == "https" || (url.scheme() == "http" && local))
}
