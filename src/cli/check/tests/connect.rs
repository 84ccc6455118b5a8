//! What people connect to, and through which pages.

use super::*;

#[test]
fn what_people_connect_is_told_with_what_acts() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = "url = \"https://mcp.example.com/mcp\"\n[auth]\nmode = \"oauth\"\nclient_id = \"app\"\n\
                  issuer = \"https://login.microsoftonline.com/common/v2.0\"\n";
    let files = [
        (
            "tollgate.toml",
            "public_url = \"https://t.example\"\noffer = \"connected\"\n[connect]\nclient_metadata_url = \"https://u.example/client.json\"\n\
             return_to = [\"https://app.example/done\", \"https://two.example/\"]\n[vault]\nkey = \"env:KEY\"\nmark = \"/srv/marks/vault.mark\"\n",
        ),
        ("servers/m.toml", server),
        (
            "servers/p.toml",
            "url = \"http://p.corp.example/\"\ninsecure_http = true\n[auth]\nmode = \"bearer\"\n",
        ),
        (
            "servers/q.toml",
            "url = \"https://q.example/\"\n[auth]\nmode = \"oauth\"\nissuer = \"https://10.0.0.7/\"\n",
        ),
        (
            "servers/r.toml",
            "url = \"https://r.example/\"\n[auth]\nmode = \"oauth\"\nissuer = \"https://github.com/login/oauth\"\n\
             registration = \"dcr\"\n",
        ),
        (
            "egress.toml",
            "[[private]]\nhost = \"p.corp.example\"\nport = 80\nfor = [\"server:p\"]\n\
             [[private]]\nhost = \"login.microsoftonline.com\"\nport = 443\nfor = [\"oauth:m\"]\n",
        ),
    ];
    let loader = loader(folder.path(), &files);
    let report = Report::new(&loader, &loader.load().expect("no faults"));
    let text = report.text(Styles::plain());
    for line in [
        "servers   m at https://mcp.example.com, for admins of default, pin = \"first-use\", mode = \"oauth\" (client_id = \
         \"app\", issuer = \"https://login.microsoftonline.com/common/v2.0\", registration = \"pre-registered\", pkce = \
         \"assume_s256\", resource = \"omit\", refresh_scope = \"send\"), presets: entra\n",
        "          p at http://p.corp.example, for admins of default, pin = \"first-use\", mode = \"bearer\"\n",
        "          login.microsoftonline.com port 443 for oauth:m (egress.toml:5: [[private]])\n",
        "web       127.0.0.1:8703, plain, reached at https://t.example\n",
        "redirect  https://t.example/oauth/callback\n",
        "document  https://u.example/client.json\n",
        "return_to https://app.example/done\n          https://two.example/\n",
        "offer     connected: of these, the servers that a caller is connected to, and those that want no connection\n",
        "keyring   /nonexistent/state/keyring, sealed by the key in env:KEY\n",
        "mark      /srv/marks/vault.mark\n",
        "warning   the key of the keyring is in the variable KEY, which other programs of this user can read; use \
         credential: or file:\n",
        "warning   connect.client_metadata_url is `https://u.example/client.json`, and the document is served at \
         `https://t.example/oauth/client-metadata.json`; set it to that, with the public_url by which authorization servers \
         reach it, unless a proxy serves it there\n",
        "warning   the authorization server of `q` cannot be reached: `https://10.0.0.7` is in 10.0.0.0/8 (private use, RFC \
         1918); a [[private]] table in egress.toml with host = \"10.0.0.7\", port = 443 and for = [\"oauth:q\"] would open it\n",
        "warning   nobody will be able to connect to server `r`: its authorization server is known to register nobody by \
         itself; register Tollgate there, and set auth.client_id\n",
        "warning   server `p` gets credentials over plain http, which everybody on the way can read; use https\n",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let json: serde_json::Value = serde_json::from_str(&json(&report)).expect("JSON");
    assert_eq!(json["servers"][0]["auth"]["mode"], "oauth");
    assert_eq!(
        json["servers"][0]["auth"]["presets"],
        serde_json::json!(["entra"])
    );
    assert_eq!(json["redirect_uri"], "https://t.example/oauth/callback");
    assert_eq!(json["client_metadata_url"], "https://u.example/client.json");
    assert_eq!(json["return_to"][1], "https://two.example/");
}

#[test]
fn a_client_metadata_document_is_where_the_pages_serve_it() {
    for (public_url, warned) in [
        ("public_url = \"https://t.example\"\n", false),
        ("public_url = \"https://t.example:8443\"\n", true),
        ("", true),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let document = "client_metadata_url = \"https://t.example/oauth/client-metadata.json\"\n";
        let settings = format!("{public_url}[connect]\n{document}");
        let loader = loader(folder.path(), &[("tollgate.toml", &settings)]);
        let report = Report::new(&loader, &loader.load().expect("no faults"));
        let text = report.text(Styles::plain());
        let found = text.contains("connect.client_metadata_url is");
        assert_eq!(found, warned, "{text}");
    }
}
