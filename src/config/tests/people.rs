//! `public_url`, `[vault]`, `[connect]`, `[web]` and the web listener.

use super::*;

#[test]
fn people_reach_the_pages_at_public_url_or_at_the_listener() {
    let at = |text: &str| settings(text).public_url_or_default();
    assert_eq!(at("").as_deref(), Some("http://127.0.0.1:8703"));
    assert_eq!(
        at("[listen]\nweb = \"[::1]:9003\"\ntls = { cert = \"file:a\", key = \"file:b\" }\n")
            .as_deref(),
        Some("https://[::1]:9003")
    );
    let named = "public_url = \"https://tollgate.example.com/\"\n";
    assert_eq!(at(named).as_deref(), Some("https://tollgate.example.com"));
    assert_eq!(at("[listen]\nweb = \"\"\n"), None);

    let bound = address("127.0.0.1:40123");
    let chosen = settings("[listen]\nweb = \"127.0.0.1:0\"\n");
    assert_eq!(&*chosen.public_url_at(bound), "http://127.0.0.1:40123");
    let public = settings(named).public_url_at(bound);
    assert_eq!(&*public, "https://tollgate.example.com");
}

#[test]
fn plain_http_is_for_loopback() {
    for fits in [
        "https://tollgate.example.com",
        "http://127.0.0.1:8703",
        "http://[::1]:8703",
        "http://localhost:8703",
        "http://tollgate.localhost",
    ] {
        settings(&format!("public_url = \"{fits}\"\n"));
    }
    for wrong in [
        "http://tollgate.example.com",
        "http://10.0.0.5:8703",
        "http://localhost.example",
    ] {
        assert_eq!(
            faults(&format!("public_url = \"{wrong}\"\n")),
            "tollgate.toml:1:14: public_url: plain http is for loopback only, since people sign in there; use https"
        );
    }
}

#[test]
fn an_open_web_listener_needs_tls_a_name_and_callers_who_are_known() {
    let open = "[identity.keys]\n[listen]\nweb = \"0.0.0.0:8703\"\n";
    assert_eq!(
        faults(open),
        "\
tollgate.toml:3:7: listen.web: open to other machines without TLS; add tls = { cert = …, key = … }, or behind_tls = true where TLS ends in front of it
tollgate.toml:3:7: listen.web: people do not reach it as 0.0.0.0:8703; say how they do, as in public_url = \"https://tollgate.example.com\""
    );
    settings(&format!(
        "public_url = \"https://tollgate.example.com\"\n{open}behind_tls = true\n"
    ));
    assert_eq!(
        faults(
            "public_url = \"https://t.example\"\n[listen]\nweb = \"0.0.0.0:8703\"\nbehind_tls = true\n"
        ),
        "tollgate.toml:1:1: without `[identity]` nobody is asked for a credential, but listen.web is open to other \
         machines; add `[identity.keys]`, or listen on 127.0.0.1"
    );
    assert_eq!(
        faults("[listen]\nweb = \"127.0.0.1:8702\"\n"),
        "tollgate.toml:2:7: listen.web: listen.ops (127.0.0.1:8702) and listen.web (127.0.0.1:8702) want the same port; \
         give one of them another"
    );
}

#[test]
fn the_keyring_has_a_place_and_its_key_a_source() {
    let said = settings(
        "[vault]\nkeyring = \"/srv/keyring\"\nmark = \"/srv/marks/m\"\nkey = \"credential:tollgate-key\"\n",
    );
    assert_eq!(
        said.vault,
        Vault {
            keyring: Some("/srv/keyring".into()),
            mark: Some("/srv/marks/m".into()),
            key: Some(Source::Credential("tollgate-key".into())),
        }
    );
    assert_eq!(said.keyring(), PathBuf::from("/srv/keyring"));
    assert_eq!(said.mark(), PathBuf::from("/srv/marks/m"));
    let silent = settings("[vault]\n");
    assert_eq!(silent.vault, Vault::default());
    assert_eq!(
        silent.keyring(),
        PathBuf::from("/home/me/.local/state/tollgate/keyring")
    );
    assert_eq!(
        silent.mark(),
        PathBuf::from("/home/me/.local/state/tollgate/vault.mark")
    );
    assert_eq!(
        faults("[vault]\nkeyring = \"keyring\"\nkey = \"s3cret\"\nkeys = 1\n"),
        "\
tollgate.toml:2:11: vault.keyring: expected the absolute path of a file; begin it with `/`
tollgate.toml:3:7: vault.key: expected `env:NAME`, `file:PATH` or `credential:NAME`
tollgate.toml:4:1: vault.keys: unknown key; did you mean `key`?"
    );
    assert_eq!(
        faults("[vault]\nkey = 271828\n"),
        "tollgate.toml:2:7: vault.key: expected `env:NAME`, `file:PATH` or `credential:NAME`"
    );
}

#[test]
fn a_client_metadata_url_is_https_with_a_path_in_one_form() {
    let url = "https://tollgate.example.com/oauth/client-metadata.json";
    let said = settings(&format!("[connect]\nclient_metadata_url = \"{url}\"\n"));
    assert_eq!(said.connect.client_metadata_url.as_deref(), Some(url));
    for wrong in [
        "http://tollgate.example.com/oauth/client-metadata.json",
        "http://127.0.0.1:8703/oauth/client-metadata.json",
        "https://tollgate.example.com",
        "https://tollgate.example.com/",
        "https://Tollgate.example.com/a",
        "https://tollgate.example.com:443/a",
        "https://tollgate.example.com/../a",
        "https://tollgate.example.com/a?b",
        "https://tollgate.example.com/a#b",
        "https://u:p@tollgate.example.com/a",
        "a.json",
    ] {
        let found = faults(&format!("[connect]\nclient_metadata_url = \"{wrong}\"\n"));
        assert!(
            found.starts_with(
                "tollgate.toml:2:23: connect.client_metadata_url: expected an https URL with a path"
            ),
            "{wrong}: {found}"
        );
    }
}

#[test]
fn browsers_are_sent_back_to_https_or_loopback() {
    let said = settings(
        "[connect]\nreturn_to = [\"https://App.example.com\", \"http://localhost:5173/done\"]\n",
    );
    let places: Vec<&str> = said
        .connect
        .return_to
        .iter()
        .map(|place| &**place)
        .collect();
    assert_eq!(
        places,
        ["https://app.example.com/", "http://localhost:5173/done"]
    );
    for wrong in [
        "http://app.example.com/",
        "https://app.example.com/?x",
        "https://app.example.com/#x",
        "https://u:p@app.example.com/",
        "javascript:alert(1)",
        "/done",
        "*",
    ] {
        let found = faults(&format!("[connect]\nreturn_to = [\"{wrong}\"]\n"));
        assert!(
            found.starts_with("tollgate.toml:2:14: connect.return_to[0]: expected where an app is"),
            "{wrong}: {found}"
        );
    }
}

#[test]
fn browsers_sign_in_locally_in_this_version() {
    let said = settings("[web]\nlogin = \"local\"\n").web;
    assert_eq!(said.login, Login::Local);
    for later in ["oidc", "app"] {
        assert_eq!(
            faults(&format!("[web]\nlogin = \"{later}\"\n")),
            format!(
                "tollgate.toml:2:9: web.login: `{later}` is not available in this version; use `local`"
            )
        );
    }
}

#[test]
fn what_concerns_people_is_taken_up_but_not_where_it_stands() {
    let running = settings("");
    let text = "[listen]\nweb = \"127.0.0.1:9003\"\n[vault]\nkeyring = \"/srv/keyring\"\n[connect]\nreturn_to = [\"https://a.example/\"]\n";
    let (taken, kept) = settings(text).taken_up_by(&running);
    assert_eq!(kept, ["listen.web", "vault"]);
    assert_eq!(taken.listen.web, running.listen.web);
    assert_eq!(taken.vault, running.vault);
    assert_eq!(taken.connect.return_to, [Arc::from("https://a.example/")]);
}
