//! The client id metadata document: what providers that know no registration read about this gateway
//! (draft-ietf-oauth-client-id-metadata-document).

use serde_json::json;

use crate::connect::Terms;

/// The document; `None` where the operator published none.
pub(in crate::connect) fn document(terms: &Terms) -> Option<String> {
    let url = terms.client_metadata_url.as_deref()?;
    let mut document = json!({
        "client_id": url,
        "client_name": "Tollgate",
        "redirect_uris": [terms.redirect_uri()],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "application_type": "web",
    });
    // Providers refuse a document with any other.
    if terms.public_url.starts_with("https:") {
        document["client_uri"] = json!(&*terms.public_url);
    }
    Some(document.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_names_itself_and_the_way_back() {
        let mut terms = Terms {
            public_url: "https://tollgate.example.com".into(),
            ..Terms::default()
        };
        assert_eq!(document(&terms), None);
        terms.client_metadata_url = Some("https://cdn.example.com/tollgate.json".into());
        assert_eq!(
            document(&terms).unwrap(),
            r#"{"application_type":"web","client_id":"https://cdn.example.com/tollgate.json","client_name":"Tollgate","client_uri":"https://tollgate.example.com","grant_types":["authorization_code","refresh_token"],"redirect_uris":["https://tollgate.example.com/oauth/callback"],"response_types":["code"],"token_endpoint_auth_method":"none"}"#
        );
        terms.public_url = "http://127.0.0.1:8703".into();
        assert!(!document(&terms).unwrap().contains("client_uri"));
    }
}
