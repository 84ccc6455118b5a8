//! The protected resource: where its metadata may be, and whether a document is about it (RFC 9728).

use serde::Deserialize;

use super::{discovery::Discovered, document::words};
use crate::{
    address::Target,
    policy::{self, Endpoint},
};

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// What is read of a document; a member that stands twice makes it unusable.
#[derive(Debug, Deserialize)]
pub(super) struct Document {
    #[serde(default)]
    pub(super) resource: String,
    #[serde(default)]
    pub(super) authorization_servers: Vec<String>,
    #[serde(default, deserialize_with = "words")]
    pub(super) scopes_supported: Option<Vec<String>>,
}

/// Where the metadata of the server at `endpoint` may be, besides where a challenge says: its path inserted, then the
/// root (section 3.1).
pub(super) fn candidates(endpoint: &Endpoint) -> Vec<String> {
    let (target, path) = (endpoint.target(), endpoint.path().as_str());
    let root = format!("{target}{WELL_KNOWN}");
    match path.strip_prefix('/') {
        Some("") => vec![root],
        Some(rest) if rest.starts_with('?') => vec![format!("{root}{rest}"), root],
        _ => vec![format!("{root}{path}"), root],
    }
}

/// Whether `resource` names the server at `endpoint`, or what it is a part of: the same scheme, host and port, and a
/// path that is the same or a parent at a segment boundary. Paths are compared as they are written; only the slash of
/// the root means nothing.
pub(super) fn names(resource: &str, endpoint: &Endpoint) -> bool {
    let Ok((target, path)) = Target::from_wire_with_path(resource) else {
        return false;
    };
    let own = endpoint.path();
    if target != *endpoint.target() {
        return false;
    }
    if path.contains('?') {
        return path == own.as_str();
    }
    if path == "/" || path == own.path() {
        return true;
    }
    match own.path().strip_prefix(&*path) {
        Some(rest) if path.ends_with('/') => !rest.is_empty(),
        Some(rest) => rest.len() > 1 && rest.starts_with('/'),
        None => false,
    }
}

/// The identifier of a server that publishes none: its URL, without the slash of a root.
pub(super) fn canonical(endpoint: &Endpoint) -> String {
    let path = endpoint.path().as_str();
    format!(
        "{}{}",
        endpoint.target(),
        if path == "/" { "" } else { path }
    )
}

/// What to send as `resource` (RFC 8707) in authorization and token requests alike: as the operator says, else as it
/// was discovered, byte for byte.
pub(in crate::connect) fn sent(knobs: &policy::OAuth, discovered: &Discovered) -> Option<String> {
    match &knobs.resource {
        policy::Resource::Auto => discovered.resource.clone(),
        policy::Resource::Omit => None,
        policy::Resource::Exactly(resource) => Some(resource.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(url: &str) -> Endpoint {
        let (target, path) = Target::from_operator_with_path(url).unwrap();
        Endpoint::new(target, &path).unwrap()
    }

    #[test]
    fn the_path_is_inserted_before_the_root_is_tried() {
        let of = |url| candidates(&endpoint(url));
        let root = "https://h/.well-known/oauth-protected-resource";
        assert_eq!(
            of("https://h/public/mcp"),
            [&format!("{root}/public/mcp"), root]
        );
        assert_eq!(of("https://h/mcp?x=1"), [&format!("{root}/mcp?x=1"), root]);
        assert_eq!(of("https://h/?x=1"), [&format!("{root}?x=1"), root]);
        assert_eq!(of("https://H:443/"), [root]);
        assert_eq!(
            of("https://h:8443"),
            ["https://h:8443/.well-known/oauth-protected-resource"]
        );
    }

    #[test]
    fn the_same_place_or_a_parent_of_it_is_accepted() {
        for (resource, url, fits) in [
            ("https://h/mcp", "https://h/mcp", true),
            ("https://H:443/mcp", "https://h/mcp", true),
            ("https://h", "https://h/mcp", true),
            ("https://h/", "https://h/mcp", true),
            ("https://h", "https://h/", true),
            ("https://h/", "https://h", true),
            ("https://h/a", "https://h/a/b/mcp", true),
            ("https://h/a/", "https://h/a/b", true),
            ("https://h/mcp", "https://h/mcp?x=1", true),
            ("https://h/mcp?x=1", "https://h/mcp?x=1", true),
            ("https://h/mcp?x=2", "https://h/mcp?x=1", false),
            ("https://h/foo", "https://h/foo/", false),
            ("https://h/foo/", "https://h/foo", false),
            ("https://h/mc", "https://h/mcp", false),
            ("https://h/mcp/other", "https://h/mcp", false),
            ("https://h/a%2Fb", "https://h/a/b", false),
            ("https://h/a/b", "https://h/a%2Fb", false),
            ("https://h/MCP", "https://h/mcp", false),
            ("http://h/mcp", "https://h/mcp", false),
            ("https://h:8443/mcp", "https://h/mcp", false),
            ("https://other/mcp", "https://h/mcp", false),
            ("https://u@h/mcp", "https://h/mcp", false),
            ("https://h/mcp#f", "https://h/mcp", false),
            ("urn:mcp", "https://h/mcp", false),
            ("", "https://h/mcp", false),
        ] {
            assert_eq!(
                names(resource, &endpoint(url)),
                fits,
                "{resource} for {url}"
            );
        }
    }

    #[test]
    fn a_server_that_publishes_nothing_is_named_by_its_url() {
        assert_eq!(canonical(&endpoint("https://H/")), "https://h");
        assert_eq!(canonical(&endpoint("https://h:1/Mcp/")), "https://h:1/Mcp/");
    }

    #[test]
    fn the_operator_decides_what_is_sent() {
        let discovered = Discovered {
            resource: Some("https://h/".into()),
            ..Default::default()
        };
        let sent = |resource| {
            let knobs = policy::OAuth {
                resource,
                ..Default::default()
            };
            sent(&knobs, &discovered)
        };
        assert_eq!(sent(policy::Resource::Auto).as_deref(), Some("https://h/"));
        assert_eq!(sent(policy::Resource::Omit), None);
        let exactly = policy::Resource::Exactly("urn:x".into());
        assert_eq!(sent(exactly).as_deref(), Some("urn:x"));
    }
}
