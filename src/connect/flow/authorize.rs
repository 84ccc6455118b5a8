//! The URL at which a person is asked by the provider (RFC 6749, section 4.1.1; RFC 7636; RFC 8707).

use std::{borrow::Cow, sync::Arc};

use url::{Url, form_urlencoded::Serializer};

/// What is asked for.
pub(super) struct Ask<'a> {
    pub(super) client: &'a str,
    pub(super) redirect_uri: &'a str,
    pub(super) state: &'a str,
    /// PKCE, by S256.
    pub(super) challenge: &'a str,
    pub(super) scopes: &'a [String],
    /// Byte for byte as published.
    pub(super) resource: Option<&'a str>,
    /// The operator's own parameters.
    pub(super) extra: &'a [(Arc<str>, Arc<str>)],
}

/// What is asked for at `endpoint`, whose own query stays as it is. The error says what is wrong with the endpoint.
pub(super) fn url(endpoint: &str, ask: &Ask<'_>) -> Result<String, String> {
    let parsed =
        Url::parse(endpoint).map_err(|error| format!("its authorization endpoint: {error}"))?;
    let ours = ours(ask);
    let named = |name: &str| ours.iter().any(|(own, _)| *own == name);
    if let Some((name, _)) = parsed.query_pairs().find(|(name, _)| named(name)) {
        return Err(format!(
            "its authorization endpoint sets `{name}` itself, expected no parameter of the flow"
        ));
    }
    let mut query = Serializer::new(String::new());
    query.extend_pairs(&ours);
    for (name, value) in ask.extra {
        let taken = named(name) || parsed.query_pairs().any(|(own, _)| own == **name);
        if !taken {
            query.append_pair(name, value);
        }
    }
    let join = match endpoint.split_once('?') {
        None => "?",
        Some((_, "")) => "",
        Some(_) => "&",
    };
    Ok(format!("{endpoint}{join}{}", query.finish()))
}

/// Every parameter of the flow.
fn ours<'a>(ask: &Ask<'a>) -> Vec<(&'static str, Cow<'a, str>)> {
    let mut ours = vec![
        ("response_type", "code".into()),
        ("client_id", ask.client.into()),
        ("redirect_uri", ask.redirect_uri.into()),
        ("state", ask.state.into()),
        ("code_challenge", ask.challenge.into()),
        ("code_challenge_method", "S256".into()),
    ];
    if !ask.scopes.is_empty() {
        ours.push(("scope", ask.scopes.join(" ").into()));
    }
    if let Some(resource) = ask.resource {
        ours.push(("resource", resource.into()));
    }
    ours
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask<'a>(scopes: &'a [String], extra: &'a [(Arc<str>, Arc<str>)]) -> Ask<'a> {
        Ask {
            client: "https://t.example/client?a=b&c",
            redirect_uri: "https://t.example/oauth/callback",
            state: "s-1",
            challenge: "c-1",
            scopes,
            resource: Some("https://mcp.example.com"),
            extra,
        }
    }

    const OURS: &str = "response_type=code&client_id=https%3A%2F%2Ft.example%2Fclient%3Fa%3Db%26c\
        &redirect_uri=https%3A%2F%2Ft.example%2Foauth%2Fcallback&state=s-1&code_challenge=c-1\
        &code_challenge_method=S256";

    #[test]
    fn everything_is_asked_for_once() {
        let scopes = ["read".to_owned(), "offline_access".to_owned()];
        let url = url("https://as.example/authorize", &ask(&scopes, &[])).unwrap();
        let end = "&scope=read+offline_access&resource=https%3A%2F%2Fmcp.example.com";
        assert_eq!(url, format!("https://as.example/authorize?{OURS}{end}"));
    }

    #[test]
    fn the_endpoint_keeps_its_own_query() {
        for (endpoint, begin) in [
            (
                "https://as.example/a?tenant=x%2Fy",
                "https://as.example/a?tenant=x%2Fy&",
            ),
            ("https://as.example/a?", "https://as.example/a?"),
        ] {
            let url = url(endpoint, &ask(&[], &[])).unwrap();
            let end = "&resource=https%3A%2F%2Fmcp.example.com";
            assert_eq!(url, format!("{begin}{OURS}{end}"), "no scope is left out");
        }
    }

    #[test]
    fn nothing_stands_in_for_a_parameter_of_the_flow() {
        let extra = [
            ("prompt", "consent"),
            ("state", "mine"),
            ("resource", "https://evil.test"),
            ("tenant", "other"),
        ]
        .map(|(name, value)| (Arc::from(name), Arc::from(value)));
        let url = |endpoint| url(endpoint, &ask(&[], &extra));
        let end = "&resource=https%3A%2F%2Fmcp.example.com&prompt=consent";
        assert_eq!(
            url("https://as.example/a?tenant=x").unwrap(),
            format!("https://as.example/a?tenant=x&{OURS}{end}")
        );
        for endpoint in [
            "https://as.example/a?state=1",
            "https://as.example/a?x=1&code_challenge_method=plain",
            "https://as.example/a?client%5Fid=other",
        ] {
            let what = url(endpoint).unwrap_err();
            assert!(what.contains("sets `"), "{what}");
        }
    }
}
