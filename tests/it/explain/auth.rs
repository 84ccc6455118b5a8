//! How a server is shown who calls, and what only the running process knows of it.

use super::{explain, with};

#[test]
fn how_a_server_is_shown_who_calls_is_explained() {
    let server = "url = \"https://jira.corp.example/mcp\"\n[auth]\nmode = \"oauth\"\nclient_id = \"app\"\n\
                  issuer = \"https://login.corp.example/\"\nresource = \"omit\"\n";
    let egress = "[[private]]\nhost = \"jira.corp.example\"\nport = 443\nfor = [\"server:jira\"]\n\
                  [[private]]\nhost = \"login.corp.example\"\nport = 443\naddress = \"10.20.0.9\"\nfor = [\"oauth:jira\"]\n";
    let folder = with(&[
        ("tollgate.toml", ""),
        ("servers/jira.toml", server),
        ("egress.toml", egress),
    ]);
    let args = ["jira", "--resolve", "jira.corp.example=10.20.0.8"];
    let (code, out, faults) = explain(folder.path(), &args);
    assert_eq!(faults, "");
    for line in [
        "  auth       depends  mode = \"oauth\"\n",
        "calls carry a token of each user's own connection; client_id = \"app\", issuer = \"https://login.corp.example/\", \
         resource = \"omit\"; redirect URI http://127.0.0.1:8703/oauth/callback; the running process knows whether \
         this user has one: see `tollgate connections`\n",
        "  10.20.0.8  allow  egress.toml:1: [[private]]\n",
        "  10.20.0.9  allow  egress.toml:5: [[private]]\n",
    ] {
        assert!(out.contains(line), "{line}\n{out}");
    }
    assert_eq!(code, Some(1));
}

#[test]
fn whether_a_secret_is_there_is_known_to_the_running_process() {
    let kept = "whether it is set: see `tollgate secret list`";
    let own = "whether this user has one: see `tollgate connections`";
    for (auth, verdict, says, expected) in [
        ("mode = \"none\"\n", "allow", "", Some(0)),
        (
            "mode = \"shared\"\nsecret = \"file:secret\"\n",
            "allow",
            "one secret for all callers; secret = …\n",
            Some(0),
        ),
        ("mode = \"shared\"\n", "depends", kept, Some(1)),
        ("mode = \"bearer\"\n", "depends", own, Some(1)),
        (
            "mode = \"header\"\nheader = \"X-Key\"\n",
            "depends",
            own,
            Some(1),
        ),
    ] {
        let server =
            format!("url = \"https://wiki.example/mcp\"\naccess = \"everyone\"\n[auth]\n{auth}");
        let folder = with(&[
            ("tollgate.toml", ""),
            ("secret", "s3cret"),
            ("servers/wiki.toml", &server),
        ]);
        let args = ["wiki", "--resolve", "wiki.example=93.184.216.34"];
        let (code, out, faults) = explain(folder.path(), &args);
        assert_eq!((code, faults.as_str()), (expected, ""), "{auth}: {out}");
        assert!(
            out.contains(says) && out.ends_with(&format!("\n{verdict}\n")),
            "{auth}: {out}"
        );
    }
}
