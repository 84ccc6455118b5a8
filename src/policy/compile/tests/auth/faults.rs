//! What is wrong with an `[auth]`.

use super::*;

#[test]
fn what_is_missing_or_wrong_is_told_at_its_place() {
    let text = r#"mode = "oauth"
client_id = ""
client_secret = "env:GONE"
issuer = "https://auth.example.com/?x"
registration = "dynamic"
trusted_issuer = "http://auth.example.com"
metadata_url = "https://u:hunter2@auth.example.com/"
pkce = "plain"
resource = "no uri"
scopes = ["a b", "", "read", "read"]
on_issuer_change = "stay"
refresh_scope = true
token_auth_method = "private_key_jwt"
extra_authorize_params = { state = "x", prompt = 1, audience = "" }
revoke = "on"
"#;
    assert_eq!(
        wrong(text),
        "\
servers/a.toml:4:13: auth.client_id: expected 1 to 2048 visible ASCII characters; correct it
servers/a.toml:5:17: auth.client_secret: nothing at Env(\"GONE\")
servers/a.toml:6:10: auth.issuer: an issuer has no query; write it as its metadata does
servers/a.toml:7:16: auth.registration: found `dynamic`, expected one of `auto`, `cimd`, `dcr`, `pre-registered`
servers/a.toml:8:18: auth.trusted_issuer: `auth.example.com` is named with plain http, expected https; correct the URL
servers/a.toml:9:16: auth.metadata_url: a user name or password stands before the host; leave it out and configure credentials instead
servers/a.toml:10:8: auth.pkce: found `plain`, expected one of `strict`, `assume_s256`
servers/a.toml:11:12: auth.resource: expected \"auto\", \"omit\", or an absolute URI without a fragment; correct it
servers/a.toml:12:11: auth.scopes[0]: expected one scope, of visible ASCII characters without spaces, `\"` and `\\`; correct it
servers/a.toml:12:18: auth.scopes[1]: expected one scope, of visible ASCII characters without spaces, `\"` and `\\`; correct it
servers/a.toml:12:30: auth.scopes[3]: `read` stands twice; remove one
servers/a.toml:13:20: auth.on_issuer_change: found `stay`, expected one of `ask`, `follow`
servers/a.toml:14:17: auth.refresh_scope: found `true`, expected a string
servers/a.toml:15:21: auth.token_auth_method: `private_key_jwt` is not available in this version; use `none`, `client_secret_basic`, `client_secret_post`
servers/a.toml:16:28: auth.extra_authorize_params.state: unknown key; expected one of `access_type`, `prompt`, `audience`, `login_hint`, `domain_hint`
servers/a.toml:16:50: auth.extra_authorize_params.prompt: found the integer 1, expected a string
servers/a.toml:16:64: auth.extra_authorize_params.audience: expected 1 to 2048 visible ASCII characters; correct it
servers/a.toml:17:10: auth.revoke: found `on`, expected one of `auto`, `off`"
    );
}

#[test]
fn a_secret_is_named_and_never_written() {
    const EXPECTED: &str =
        "expected `env:NAME`, `file:PATH` or `credential:NAME`, and never the secret itself";
    const UNFIT: &str = "what is kept there cannot be sent; expected one line of 1 to 8192 visible ASCII characters, \
                         without spaces at its ends";
    for (written, message) in [
        ("\"hunter2\"", EXPECTED),
        ("\"secret:hunter2\"", EXPECTED),
        ("271828", EXPECTED),
        ("[\"hunter2\"]", EXPECTED),
        ("\"credential:lines\"", UNFIT),
        ("\"credential:empty\"", UNFIT),
    ] {
        assert_eq!(
            wrong(&format!("mode = \"shared\"\nsecret = {written}\n")),
            format!("servers/a.toml:4:10: auth.secret: {message}")
        );
        let found = wrong(&format!(
            "mode = \"oauth\"\nclient_id = \"x\"\nissuer = \"https://a.example\"\nclient_secret = {written}\n"
        ));
        assert_eq!(
            found,
            format!("servers/a.toml:6:17: auth.client_secret: {message}")
        );
    }
}

#[test]
fn knobs_that_need_one_another() {
    let issuer = "issuer = \"https://a.example\"\n";
    let client = "client_id = \"x\"\n";
    for (text, key, message) in [
        (
            client.to_owned(),
            "client_id",
            "needs `issuer`: a client is known to one authorization server and shown to no other; add it",
        ),
        (
            "client_secret = \"env:KEY\"\n".to_owned(),
            "client_secret",
            "needs `client_id`; add it, or remove the secret",
        ),
        (
            "registration = \"pre-registered\"\n".to_owned(),
            "registration",
            "needs `client_id` and `issuer`; add them, or use another registration",
        ),
        (
            "issuer = \"https://github.com/login/oauth\"\n".to_owned(),
            "issuer",
            "needs `client_id`: this provider registers nobody by itself (preset github); register Tollgate there, and add \
             its client_id",
        ),
        (
            format!("{client}{issuer}registration = \"dcr\"\n"),
            "client_id",
            "has no effect beside this registration; remove it, or set registration = \"pre-registered\"",
        ),
        (
            "endpoints = { authorization = \"https://a.example/a\", token = \"https://a.example/t\" }\n".to_owned(),
            "endpoints",
            "needs `issuer`: what is kept for people is kept by its name, and answers are held against it; add it",
        ),
        (
            format!("{client}{issuer}client_secret = \"env:KEY\"\ntoken_auth_method = \"none\"\n"),
            "token_auth_method",
            "with `none` the client_secret is never sent; remove one of the two",
        ),
        (
            format!("{client}{issuer}token_auth_method = \"client_secret_post\"\n"),
            "token_auth_method",
            "needs `client_secret`; add it, or use `none`",
        ),
        (
            "scopes = [\"a\", \"b\"]\nscopes_max = [\"a\"]\n".to_owned(),
            "scopes",
            "`b` is not in `scopes_max`; add it there, or remove it here",
        ),
    ] {
        let found = wrong(&format!("mode = \"oauth\"\n{text}"));
        assert!(
            found.ends_with(&format!(": auth.{key}: {message}")) && found.lines().count() == 1,
            "{text}: {found}"
        );
    }
    let endpoints = "[auth.endpoints]\nauthorization = \"https://a.example/a\"\ntoken = \"https://a.example/t\"\n";
    assert_eq!(
        wrong(&format!(
            "mode = \"oauth\"\n{issuer}metadata_url = \"https://a.example/m\"\ntrusted_issuer = \"https://b.example\"\n{endpoints}"
        )),
        "\
servers/a.toml:5:16: auth.metadata_url: has no effect beside `endpoints`, which stand in place of metadata; keep one of the two
servers/a.toml:6:18: auth.trusted_issuer: has no effect beside `endpoints`, which stand in place of metadata; remove it"
    );
}

#[test]
fn a_key_of_another_mode_is_a_fault() {
    for (mode, keys, wrong_keys) in [
        ("none", "", "header"),
        ("bearer", "", "secret"),
        ("header", "header = \"x-key\"\n", "secret"),
        ("shared", "secret = \"env:KEY\"\n", "client_id"),
        ("oauth", "", "header"),
        ("bearer", "", "allow_http_loopback"),
    ] {
        let found = wrong(&format!("mode = \"{mode}\"\n{keys}{wrong_keys} = \"x\"\n"));
        assert!(
            found.ends_with(&format!(
                "auth.{wrong_keys}: has no effect beside mode = \"{mode}\"; remove it, or correct the mode"
            )),
            "{found}"
        );
    }
    assert_eq!(
        wrong("client_id = \"x\"\nzzzzzz = 1\n").lines().next(),
        Some(
            "servers/a.toml:2:1: auth: `mode` is missing; add mode = \"none\", \"bearer\", \"header\", \"oauth\" or \"shared\""
        )
    );
    assert_eq!(
        wrong("mode = \"header\"\n"),
        "servers/a.toml:2:1: auth: `header` is missing; name the header that takes each user's secret"
    );
}

#[test]
fn a_header_is_one_that_a_secret_may_stand_in() {
    for name in [
        "Host",
        "content-length",
        "Transfer-Encoding",
        "Mcp-Session-Id",
        "Tollgate-User",
        "Accept",
        "Connection",
    ] {
        let found = wrong(&format!("mode = \"header\"\nheader = \"{name}\"\n"));
        assert!(
            found.starts_with("servers/a.toml:4:10: auth.header: `"),
            "{found}"
        );
        assert!(found.contains("is not for secrets"), "{found}");
    }
    for name in ["", "x y", "x:y", "ü"] {
        assert_eq!(
            wrong(&format!("mode = \"header\"\nheader = \"{name}\"\n")),
            "servers/a.toml:4:10: auth.header: expected the name of a header, such as \"X-Api-Key\"; correct it"
        );
    }
}

#[test]
fn people_need_a_page_and_a_document_its_url() {
    for (mode, needs) in [
        ("mode = \"oauth\"\n", true),
        ("mode = \"bearer\"\n", true),
        ("mode = \"header\"\nheader = \"x-key\"\n", true),
        ("mode = \"shared\"\nsecret = \"env:KEY\"\n", false),
        ("mode = \"none\"\n", false),
    ] {
        let found = with(mode, |inputs| inputs.web = false);
        assert_eq!(found.is_err(), needs, "{mode}");
        if let Err(found) = found {
            assert_eq!(
                found,
                [
                    "servers/a.toml:3:8: auth.mode: people connect on the web listener, which is off; set listen.web in \
                     tollgate.toml, as in web = \"127.0.0.1:8703\", or use mode = \"shared\""
                ]
            );
        }
    }
    let found = with("mode = \"oauth\"\nregistration = \"cimd\"\n", |inputs| {
        inputs.client_metadata = false;
    });
    assert_eq!(
        found.expect_err("a fault"),
        [
            "servers/a.toml:4:16: auth.registration: needs `client_metadata_url` in `[connect]` of tollgate.toml, where \
             authorization servers read who Tollgate is; set it, or use another registration"
        ]
    );
}
