mod auth;
mod grants;
mod keys;
mod servers;

use std::time::Duration;

use proptest::prelude::*;

use super::*;

const LIMITS: ServerLimits = ServerLimits {
    call: Duration::from_secs(60),
    connect: Duration::from_secs(5),
    first_byte: Duration::from_secs(30),
    idle: Duration::from_secs(30),
    response_bytes: 4 << 20,
    result_bytes: 64 << 10,
    concurrency: 16,
};

fn files(files: &[(&str, &str)]) -> Vec<File> {
    let file = |(path, text): &(&str, &str)| File {
        path: (*path).to_owned(),
        text: (*text).to_owned(),
    };
    files.iter().map(file).collect()
}

fn inputs(files: &[File]) -> Inputs<'_> {
    Inputs {
        files,
        read: &|path| Err(format!("no file `{path}`")),
        secret: &|source| Err(format!("no secret at {source:?}")),
        web: true,
        client_metadata: true,
        private_allowlist: None,
        access_mode: None,
        kubernetes: None,
        admins: Admins::default(),
        local: None,
        limits: LIMITS,
        calls: CallLimits::default(),
        connected_only: false,
        own_addresses: Vec::new(),
        own_listeners: Vec::new(),
        parent: None,
    }
}

/// Compiles with `change` made to inputs that hold nothing else.
fn compiled(
    texts: &[(&str, &str)],
    change: impl FnOnce(&mut Inputs<'_>),
) -> Result<Snapshot, Vec<String>> {
    let files = files(texts);
    let mut inputs = inputs(&files);
    change(&mut inputs);
    said(&inputs)
}

fn said(inputs: &Inputs<'_>) -> Result<Snapshot, Vec<String>> {
    compile(inputs).map_err(|faults| faults.iter().map(Fault::to_string).collect())
}

fn policy(files: &[(&str, &str)]) -> Snapshot {
    compiled(files, |_| {}).expect("a policy without faults")
}

fn faults(files: &[(&str, &str)]) -> String {
    compiled(files, |_| {}).expect_err("faults").join("\n")
}

#[test]
fn faults_of_all_files_come_at_once_and_in_order() {
    let files = [
        (
            "servers/b.toml",
            "url = \"http://mcp.example.com/\"\nacces = \"everyone\"\n",
        ),
        (
            "servers/a.toml",
            "title = \"A\"\n[limits]\ntimeout = \"121s\"\n[tools.\"x*\"]\n",
        ),
        (
            "keys.toml",
            "[[key]]\nsha256 = \"abc\"\nagent = \"\"\nscopes = [\"decide\", \"all\"]\n",
        ),
        (
            "egress.toml",
            "[[private]]\nhost = \"*.corp.example\"\nport = \"any\"\nfor = [\"webhook\", \"x\"]\n",
        ),
        ("servers/Big.toml", "url = \"https://mcp.example.com/\"\n"),
        ("access.toml", ""),
        ("notes.toml", ""),
    ];
    assert_eq!(
        faults(&files),
        "\
access.toml: not available in this version; remove the file, or begin its name with `_`
egress.toml:2:8: private[0].host: a private grant opens one exact host, never a pattern; write the host's name
egress.toml:4:8: private[0].for[0]: `webhook` is not available in this version; remove it
egress.toml:4:19: private[0].for[1]: found `x`, expected \"server:NAME\", \"oauth:NAME\" or \"proxy\"; correct it
keys.toml:1:1: key[0]: `user` is missing; add it
keys.toml:2:10: key[0].sha256: expected 64 hexadecimal digits, the SHA-256 of a key; `tollgate agent-key new` writes them
keys.toml:3:9: key[0].agent: expected 1 to 128 visible characters, without spaces at the ends; correct the name
keys.toml:4:11: key[0].scopes[0]: the scope `decide` is not available in this version; remove it
keys.toml:4:21: key[0].scopes[1]: found `all`, expected `call` or `act-for`; correct the scope
notes.toml: not a name that is read; expected tollgate.toml, keys.toml, egress.toml, servers/NAME.toml, server.NAME.toml or pins/NAME.json; rename it, or begin its name with `_` to leave it out
servers/Big.toml: `Big` cannot be a server's name; use 1 to 32 of `a-z`, `0-9` and `-`, beginning with a letter or digit
servers/a.toml:1:1: `url` is missing; add it
servers/a.toml:3:11: limits.timeout: found 121s, expected 1ms to 2m
servers/a.toml:4:8: tools.\"x*\": a tool's table takes one exact name; write the name without `*`
servers/b.toml:1:7: url: plain http is for loopback only; use https, or set insecure_http = true and name the host in a `[[private]]` table of egress.toml
servers/b.toml:2:1: acces: unknown key; did you mean `access`?"
    );
}

#[test]
fn once_there_are_two_tenants_servers_name_theirs() {
    let key = |digit: &str, tenant: &str| {
        let digest = digit.repeat(64);
        format!(
            "[[key]]\nsha256 = \"{digest}\"\nagent = \"a\"\nuser = \"u\"\ntenant = \"{tenant}\"\n"
        )
    };
    let keys = key("a", "acme") + &key("b", "default");
    let open = ("servers/a.toml", "url = \"https://mcp.example.com/\"\n");
    let named = (
        "servers/b.toml",
        "url = \"https://mcp.example.com/\"\ntenants = [\"acme\"]\n",
    );
    assert_eq!(
        faults(&[open, named, ("keys.toml", &keys)]),
        "servers/a.toml:1:1: `tenants` is missing, and there are the tenants `acme`, `default`; name those whose callers \
         may see this server"
    );
    assert_eq!(policy(&[named, ("keys.toml", &keys)]).servers.len(), 1);
    assert!(faults(&[open, ("keys.toml", &key("a", "acme"))]).contains("`tenants` is missing"));
}

#[test]
fn the_access_mode_is_one_of_two_words() {
    for (written, expected) in [
        (None, AccessMode::Files),
        (Some(""), AccessMode::Files),
        (Some("admins"), AccessMode::Admins),
        (Some("all-users"), AccessMode::AllUsers),
    ] {
        let policy = compiled(&[], |inputs| inputs.access_mode = written).expect("no faults");
        assert_eq!(policy.access_mode, expected);
    }
    let found = compiled(&[], |inputs| inputs.access_mode = Some("everyone"));
    assert_eq!(
        found.expect_err("a fault"),
        [
            "TOOLS_ACCESS_MODE: found `everyone`, expected `admins` or `all-users`; correct or unset it"
        ]
    );
}

proptest! {
    /// Whatever stands in the files: a policy or faults within the files, and never a panic.
    #[test]
    fn any_text_gives_a_policy_or_faults(server in ".{0,200}", egress in "[a-z\\[\\]=\"\n .0-9]{0,200}", keys in any::<Vec<u8>>()) {
        let keys = String::from_utf8_lossy(&keys).into_owned();
        let texts = [("servers/a.toml", &*server), ("egress.toml", &*egress), ("keys.toml", &*keys)];
        let files = files(&texts);
        if let Err(faults) = compile(&inputs(&files)) {
            for fault in faults {
                let (_, text) = texts.iter().find(|(path, _)| *path == fault.file).expect("one of the files");
                prop_assert!(fault.line >= 1 && fault.line <= text.matches('\n').count() + 1);
                prop_assert!(fault.column >= 1 && fault.column <= text.chars().count() + 1);
            }
        }
    }

    /// Values of the right type and any content do not panic either.
    #[test]
    fn any_value_gives_a_policy_or_faults(text in "[^\"\\\\\\p{Cc}]{0,40}", number in any::<i64>()) {
        let server = format!(
            "url = \"{text}\"\ntitle = \"{text}\"\nread_only = [\"{text}\"]\nca = [\"{text}\"]\ntenants = [\"{text}\"]\n\
             [limits]\ntimeout = \"{text}\"\nresponse_bytes = {number}\n[tools.\"{text}\"]\napproval = \"{text}\"\n"
        );
        let egress = format!(
            "nat64_prefixes = [\"{text}\"]\nfake_ip_ranges = [\"{text}\"]\n[[private]]\nhost = \"{text}\"\nport = {number}\n\
             addresses = [\"{text}\"]\nfor = [\"server:{text}\", \"proxy\"]\n[[allow]]\nhost = \"{text}\"\nwho.users = [\"{text}\"]\n\
             scheme = \"http\"\nmethods = [\"{text}\"]\npaths = [\"/{text}\"]\n[[deny]]\nhost = \"*.{text}:1\"\nwho.agents = [\"{text}\"]\n"
        );
        let found = compiled(&[("servers/a.toml", &server), ("egress.toml", &egress)], |_| {});
        prop_assert!(found.is_err());
    }
}
