//! `[listen]`.

use super::*;

#[test]
fn a_listener_is_an_address_a_socket_or_off() {
    let off = settings("[listen]\nagents = \"\"\nops = \"\"\n");
    assert_eq!((off.listen.agents, off.listen.ops), (None, None));
    let unix = settings("[listen]\nagents = \"unix:/run/tollgate/agents.sock\"\n");
    assert_eq!(
        unix.listen.agents,
        Some(Endpoint::Unix("/run/tollgate/agents.sock".into()))
    );
    assert_eq!(
        faults("[listen]\nagents = \"unix:agents.sock\"\nops = \"8702\"\n"),
        "\
tollgate.toml:2:10: listen.agents: expected `unix:` and an absolute path of at most 107 bytes; correct the path
tollgate.toml:3:7: listen.ops: found `8702`, expected an address and port such as \"127.0.0.1:8700\" or \"[::1]:8700\", or \"\" for off"
    );
}

#[test]
fn an_open_listener_needs_tls() {
    let open = "[identity.keys]\n[listen]\nagents = \"10.0.0.5:8700\"\n";
    assert_eq!(
        faults(open),
        "tollgate.toml:3:10: listen.agents: open to other machines without TLS; add tls = { cert = …, key = … }, or \
         behind_tls = true where TLS ends in front of it"
    );
    settings(&format!("{open}behind_tls = true\n"));
    settings(&format!(
        "{open}tls = {{ cert = \"file:a\", key = \"env:B\" }}\n"
    ));
}

#[test]
fn two_listeners_on_one_port_are_a_fault() {
    let environment = Environment {
        state_directory: Some("/nonexistent/state".into()),
        ..Environment::default()
    };
    let said = |text: &str| {
        let faults = read(Some(text), &environment).err().unwrap_or_default();
        let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
        lines.join("\n")
    };
    assert_eq!(
        said("[listen]\nagents = \"127.0.0.1:9000\"\nops = \"0.0.0.0:9000\"\n"),
        "tollgate.toml:3:7: listen.ops: listen.agents (127.0.0.1:9000) and listen.ops (0.0.0.0:9000) want the same port; give one of them another"
    );
    assert!(said("[listen]\nagents = \"127.0.0.1:8702\"\n").contains("want the same port"));
    for apart in [
        "[listen]\nagents = \"127.0.0.1:0\"\nops = \"127.0.0.1:0\"\n",
        "[listen]\nagents = \"127.0.0.1:9000\"\nops = \"127.0.0.2:9000\"\n",
        "[listen]\nagents = \"[::1]:9000\"\nops = \"0.0.0.0:9000\"\n",
        "[listen]\nagents = \"\"\nops = \"127.0.0.1:8700\"\n",
    ] {
        assert_eq!(said(apart), "", "{apart}");
    }
}
