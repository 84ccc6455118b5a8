//! `servers/NAME.toml`.

use std::{collections::HashMap, path::Path, sync::Arc, time::Duration};

use ahash::RandomState;
use rustls::pki_types::{CertificateDer, pem::PemObject};
use sha2::{Digest, Sha256};

use super::{
    Access, Approval, Endpoint, Era, File, Inputs, Mark, Pattern, Pin, ReadOnly, Relay, Server,
    ServerLimits, ToolOverride, Trust, auth_file,
    words::{word, words},
};
use crate::{
    address::{Scheme, Target},
    deadline::CEILING,
    subject::DEFAULT_TENANT,
    table::{self, Fault, Item, Place, Table},
};

/// The most that `response_bytes` may say.
const LARGEST_RESPONSE: u64 = 64 << 20;

/// The most that `result_bytes` may say.
const LARGEST_RESULT: u64 = 4 << 20;

/// A server, and what only shows beside the other files.
pub(super) struct Draft {
    pub(super) server: Server,
    /// Where the file begins, for faults of the whole.
    pub(super) place: Place,
    /// Where `pin` stands, or would.
    pub(super) pin: Place,
    /// Whether the file says whose the server is.
    pub(super) names_tenants: bool,
    /// Where `insecure_http = true` stands, if it does: it needs a private grant.
    pub(super) insecure: Option<Place>,
    /// Where `allow_http_loopback = true` stands in `[auth]`, if it does: it needs one too.
    pub(super) plain: Option<Place>,
}

/// Reads a server's file; `None` where too little of it can be understood.
pub(super) fn read(
    name: &str,
    file: &File,
    inputs: &Inputs<'_>,
    faults: &mut Vec<Fault>,
) -> Option<Draft> {
    let (draft, found) = table::read(&file.path, &file.text, |root| server(name, root, inputs));
    faults.extend(found);
    draft.flatten()
}

fn server(name: &str, root: &Table<'_>, inputs: &Inputs<'_>) -> Option<Draft> {
    root.choice(
        "kind",
        &[("mcp", Some(())), ("mcp-sse", None), ("openapi", None)],
    );
    let insecure = root
        .flag("insecure_http")
        .filter(|on| *on)
        .map(|_| root.place_of("insecure_http"));
    let url = root
        .required_text("url")
        .and_then(|url| destination(&url, insecure.as_ref(), root));

    let title = root.text("title").and_then(|title| word(root, title));
    let access = access(root);
    let names_tenants = root.has("tenants");
    let tenants = tenants(root);
    let read_only = read_only(root);
    let pin = pin(name, root, inputs);
    let marks = [("meta", Some(Mark::Meta)), ("text", Some(Mark::Text))];
    let mark = root.choice("mark", &marks).unwrap_or_default();
    let builtin = root.flag("builtin").unwrap_or(true);
    let eras = [
        ("auto", Some(Era::Auto)),
        ("modern", Some(Era::Modern)),
        ("legacy", Some(Era::Legacy)),
    ];
    let era = root.choice("era", &eras).unwrap_or_default();
    let auth = auth_file::read(root, inputs);
    let trust = trust(root, &file_folder(root), inputs);
    let relay = relay(root);
    let tools = tools(root);
    let limits = limits(root, inputs.limits);
    later(root);

    let endpoint = url?;
    Some(Draft {
        server: Server {
            name: name.into(),
            title,
            endpoint,
            access,
            tenants,
            read_only,
            pin,
            mark,
            builtin,
            era,
            auth: auth.auth,
            trust,
            relay,
            tools,
            limits,
        },
        place: root.place(),
        pin: root.place_of("pin"),
        names_tenants,
        insecure,
        plain: auth.plain,
    })
}

fn relay(root: &Table<'_>) -> Relay {
    let mut relay = Relay::default();
    if let Some(table) = root.table("relay") {
        for (key, on) in [
            ("elicitation", &mut relay.elicitation),
            ("sampling", &mut relay.sampling),
            ("roots", &mut relay.roots),
        ] {
            *on = table.flag(key).unwrap_or(*on);
        }
    }
    relay
}

/// What the design knows and this version does not.
fn later(root: &Table<'_>) {
    root.unavailable(&["spec", "grants"]);
    root.only_false(&["trace"]);
}

/// The target, and the path with its query exactly as written. A url is never repeated in a message: it may hold a
/// secret.
fn destination(url: &Item<String>, insecure: Option<&Place>, root: &Table<'_>) -> Option<Endpoint> {
    const REMEDY: &str = "write it like \"https://mcp.example.com/mcp\"";
    if !url.value.contains("://") {
        root.fault(url.fault(format!("not an absolute URL; {REMEDY}")));
        return None;
    }
    let (target, path) = match Target::from_operator_with_path(&url.value) {
        Ok(parts) => parts,
        Err(error) => {
            root.fault(url.fault(format!("{error}; {REMEDY}")));
            return None;
        }
    };
    match (target.scheme(), insecure) {
        (Scheme::Http, None) if !target.host().is_loopback() => root.fault(url.fault(
            "plain http is for loopback only; use https, or set insecure_http = true and name the host in a \
             `[[private]]` table of egress.toml",
        )),
        (Scheme::Https, Some(place)) => {
            root.fault(place.fault("the url is https, so this has no effect; remove the key"));
        }
        _ => {}
    }
    let endpoint = Endpoint::new(target, &path);
    endpoint
        .map_err(|error| {
            root.fault(url.fault(format!("the path cannot be requested: {error}; {REMEDY}")))
        })
        .ok()
}

fn access(root: &Table<'_>) -> Access {
    let words = [
        ("admins", Some(Access::Admins)),
        ("everyone", Some(Access::Everyone)),
        ("grants", None),
    ];
    root.choice("access", &words).unwrap_or_default()
}

fn tenants(root: &Table<'_>) -> Vec<Arc<str>> {
    if !root.has("tenants") {
        return vec![DEFAULT_TENANT.into()];
    }
    let tenants = words(root, "tenants");
    if tenants.is_empty() {
        let message =
            "no tenant is named, so nobody could use the server; name one, or remove the key";
        root.fault(root.place_of("tenants").fault(message));
    }
    tenants
}

fn read_only(root: &Table<'_>) -> ReadOnly {
    if root.has_text("read_only") {
        if let Some(text) = root.text("read_only") {
            if text.value == "hints" {
                return ReadOnly::Hints;
            }
            root.fault(text.fault(format!(
                "found the string `{}`, expected \"hints\" or a list of patterns, like [\"get_*\"]",
                text.value
            )));
        }
        return ReadOnly::default();
    }
    let mut patterns = Vec::new();
    for item in root.texts("read_only").unwrap_or_default() {
        if item.value.is_empty() {
            root.fault(
                item.fault("an empty pattern covers no tool; write a name such as \"get_*\""),
            );
        }
        patterns.push(Pattern::new(&item.value));
    }
    ReadOnly::Patterns(patterns)
}

/// Where the pins are; those of a file are read as text, and understood where they are used.
fn pin(name: &str, root: &Table<'_>, inputs: &Inputs<'_>) -> Pin {
    let words = [("first-use", Some(false)), ("file", Some(true))];
    if !root.choice("pin", &words).unwrap_or_default() {
        return Pin::FirstUse;
    }
    let path = format!("pins/{name}.json");
    let file = inputs.files.iter().find(|file| file.path == path);
    Pin::File(file.map(|file| file.text.as_str().into()))
}

fn tools(root: &Table<'_>) -> HashMap<Arc<str>, ToolOverride, RandomState> {
    let mut tools = HashMap::default();
    for (name, tool) in root.named_tables("tools") {
        let words = [
            ("ask", Some(Approval::Ask)),
            ("always-ask", Some(Approval::AlwaysAsk)),
            ("never", Some(Approval::Never)),
        ];
        let own = ToolOverride {
            approval: tool.choice("approval", &words),
            hidden: tool.flag("hidden").unwrap_or_default(),
        };
        if name.value.contains('*') {
            root.fault(
                name.fault("a tool's table takes one exact name; write the name without `*`"),
            );
        }
        tools.insert(name.value.into(), own);
    }
    tools
}

fn limits(root: &Table<'_>, outer: ServerLimits) -> ServerLimits {
    let Some(table) = root.table("limits") else {
        return outer;
    };
    let bounds = || Duration::from_millis(1)..=CEILING;
    let response = table.integer("response_bytes", 1024..=LARGEST_RESPONSE);
    let response = response.and_then(|bytes| usize::try_from(bytes).ok());
    let count = |key, bounds| {
        let found = table.integer(key, bounds);
        found.and_then(|found| usize::try_from(found).ok())
    };
    let result = count("result_bytes", 1024..=LARGEST_RESULT);
    let concurrency = count("concurrency", 1..=1024);
    ServerLimits {
        call: table.duration("timeout", bounds()).unwrap_or(outer.call),
        connect: table.duration("connect", bounds()).unwrap_or(outer.connect),
        first_byte: table
            .duration("first_byte", bounds())
            .unwrap_or(outer.first_byte),
        idle: table.duration("idle", bounds()).unwrap_or(outer.idle),
        response_bytes: response.unwrap_or(outer.response_bytes),
        result_bytes: result.unwrap_or(outer.result_bytes),
        concurrency: concurrency.unwrap_or(outer.concurrency),
    }
}

fn file_folder(root: &Table<'_>) -> String {
    let file = root.file();
    file.rsplit_once('/')
        .map_or(String::new(), |(folder, _)| format!("{folder}/"))
}

fn trust(root: &Table<'_>, folder: &str, inputs: &Inputs<'_>) -> Trust {
    let mut roots: Vec<Arc<str>> = Vec::new();
    for item in root.texts("ca").unwrap_or_default() {
        let path = if Path::new(&item.value).is_absolute() {
            item.value.clone()
        } else {
            format!("{folder}{}", item.value)
        };
        match (inputs.read)(&path).and_then(|text| certificates(&text).map(|()| text)) {
            Ok(text) => roots.push(text.into()),
            Err(error) => root.fault(item.fault(format!("`{path}`: {error}"))),
        }
    }
    Trust {
        digest: digest(&roots),
        roots,
    }
}

fn certificates(pem: &str) -> Result<(), String> {
    const REMEDY: &str =
        "expected one or more certificates of authorities in PEM form; export them again";
    let mut store = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        let certificate = certificate.map_err(|_| format!("not readable as PEM; {REMEDY}"))?;
        let added = store.add(certificate);
        added.map_err(|_| format!("holds a certificate that cannot be a root; {REMEDY}"))?;
    }
    if store.is_empty() {
        return Err(format!("holds no certificate; {REMEDY}"));
    }
    Ok(())
}

fn digest(roots: &[Arc<str>]) -> [u8; 32] {
    if roots.is_empty() {
        return [0; 32];
    }
    let mut hash = Sha256::new();
    for root in roots {
        hash.update(u64::try_from(root.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(root.as_bytes());
    }
    hash.finalize().into()
}
