mod store;

mod limits;
mod listen;
mod parent;
mod people;

use super::*;

fn environment() -> Environment {
    Environment {
        home: Some("/home/me".into()),
        ..Environment::default()
    }
}

fn settings(text: &str) -> Settings {
    read(Some(text), &environment()).expect("settings without faults")
}

fn faults_in(text: &str, environment: &Environment) -> String {
    let faults = read(Some(text), environment).expect_err("faults");
    let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

fn faults(text: &str) -> String {
    faults_in(text, &environment())
}

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

#[test]
fn a_fresh_start_is_local_and_on_loopback() {
    let fresh = read(None, &environment()).expect("no faults");
    assert_eq!(
        fresh.listen.agents,
        Some(Endpoint::Tcp(address("127.0.0.1:8700")))
    );
    assert_eq!(fresh.listen.ops, Some(address("127.0.0.1:8702")));
    assert_eq!(
        fresh.identity.method,
        Method::Local {
            user: "local".into(),
            tenant: "default".into()
        }
    );
    assert_eq!(fresh.audit.on_failure, OnFailure::Stop);
    assert_eq!(fresh.limits.response_bytes, 4_194_304);
    assert_eq!(
        fresh.state_dir,
        PathBuf::from("/home/me/.local/state/tollgate")
    );
    assert_eq!(
        fresh.control_socket(),
        PathBuf::from("/home/me/.local/state/tollgate/control.sock")
    );
    assert_eq!(
        fresh.store,
        PathBuf::from("/home/me/.local/state/tollgate/tollgate.db")
    );
    assert_eq!(fresh, settings(""), "an empty file says no more than none");
}

#[test]
fn every_key_acts() {
    let all = settings(
        r#"
public_url = "https://Tollgate.example.com:443/"
state_dir = "/var/lib/tollgate"
naming = "server"
offer = "connected"
[listen]
agents = "0.0.0.0:8700"
ops = "[::1]:9000"
egress = "[::1]:9001"
web = ""
behind_tls = true
allowed_origins = ["HTTPS://App.example.com:443", "http://localhost:5173"]
tls = { cert = "file:tls.crt", key = "credential:tls-key" }
[identity]
admins = { users = ["ann"], groups = ["ops"] }
[identity.keys]
[store]
url = "sqlite:/srv/tollgate/pins.db"
[audit]
on_failure = "reads"
arguments = "none"
group = ""
[limits]
request_bytes = 2048
response_bytes = 4096
connect = "1s"
first_byte = "2s"
idle = "3s"
call = "2m"
[dns]
servers = ["10.0.0.53", "[fd00::53]:5353"]
[[dns.zone]]
suffix = "Corp.example."
servers = ["10.1.0.53:53"]
[egress.parent]
url = "http://Proxy.example:3128/"
parent_resolves = true
[vault]
keyring = "/srv/tollgate/keyring"
mark = "/srv/marks/vault.mark"
key = "credential:tollgate-key"
[connect]
client_metadata_url = "https://tollgate.example.com/oauth/client-metadata.json"
return_to = ["https://app.example.com/"]
[web]
login = "local"
"#,
    );
    assert_eq!(
        all,
        Settings {
            public_url: Some("https://tollgate.example.com".into()),
            state_dir: "/var/lib/tollgate".into(),
            store: "/srv/tollgate/pins.db".into(),
            offer: Offer::Connected,
            listen: Listen {
                agents: Some(Endpoint::Tcp(address("0.0.0.0:8700"))),
                egress: Some(address("[::1]:9001")),
                ops: Some(address("[::1]:9000")),
                web: None,
                tls: Some(Tls {
                    cert: Source::File("tls.crt".into()),
                    key: Source::Credential("tls-key".into()),
                }),
                behind_tls: true,
                allowed_origins: vec![
                    "https://app.example.com".into(),
                    "http://localhost:5173".into()
                ],
            },
            identity: Identity {
                admins: Admins {
                    users: vec!["ann".into()],
                    groups: vec!["ops".into()],
                },
                method: Method::Keys,
            },
            audit: Audit {
                on_failure: OnFailure::Reads,
            },
            limits: Limits {
                request_bytes: 2048,
                response_bytes: 4096,
                connect: Duration::from_secs(1),
                first_byte: Duration::from_secs(2),
                idle: Duration::from_secs(3),
                call: Duration::from_secs(120),
                running: 4,
                waiting: 4,
                turn_bytes: 512 << 10,
            },
            dns: Dns {
                servers: vec![address("10.0.0.53:53"), address("[fd00::53]:5353")],
                zones: vec![Zone {
                    suffix: "corp.example".into(),
                    servers: vec![address("10.1.0.53:53")],
                }],
            },
            parent: Some(Parent {
                url: "http://proxy.example:3128".into(),
                resolves: true,
            }),
            vault: Vault {
                keyring: Some("/srv/tollgate/keyring".into()),
                mark: Some("/srv/marks/vault.mark".into()),
                key: Some(Source::Credential("tollgate-key".into())),
            },
            connect: Connect {
                client_metadata_url: Some(
                    "https://tollgate.example.com/oauth/client-metadata.json".into()
                ),
                return_to: vec!["https://app.example.com/".into()],
            },
            web: Web {
                login: Login::Local,
            },
        }
    );
}

#[test]
fn what_this_version_lacks_is_refused_key_by_key() {
    let text = r#"
naming = "mcp"
[identity.jwt]
issuer = "x"
[identity.mtls]
[identity.keys]
[store]
url = "postgres://db.example/tollgate"
[web]
login = "oidc"
[audit]
arguments = "redacted"
group = "siem"
"#;
    assert_eq!(
        faults(text),
        "\
tollgate.toml:2:10: naming: `mcp` is not available in this version; use `server`
tollgate.toml:3:1: identity.jwt: this key is not available in this version; remove it
tollgate.toml:5:1: identity.mtls: this key is not available in this version; remove it
tollgate.toml:8:7: store.url: PostgreSQL is not available in this version; use \"sqlite:PATH\", or remove the key
tollgate.toml:10:9: web.login: `oidc` is not available in this version; use `local`
tollgate.toml:12:13: audit.arguments: `redacted` is not available in this version; use `none`
tollgate.toml:13:9: audit.group: this key is not available in this version; use \"\", or remove it"
    );
}

#[test]
fn the_local_user_stays_on_a_machine_of_ones_own() {
    let open = "[listen]\nagents = \"0.0.0.0:8700\"\nbehind_tls = true\n";
    assert_eq!(
        faults(open),
        "tollgate.toml:1:1: without `[identity]` nobody is asked for a credential, but listen.agents is open to other \
         machines; add `[identity.keys]`, or listen on 127.0.0.1 or unix:PATH"
    );
    assert_eq!(
        faults(&open.replace("agents", "egress").replace("8700", "8701")),
        "tollgate.toml:1:1: without `[identity]` nobody is asked for a credential, but listen.egress is open to other \
         machines; add `[identity.keys]`, or listen on 127.0.0.1"
    );
    let explicit = format!("{open}[identity.local]\nuser = \"me\"\n");
    assert!(
        faults(&explicit)
            .starts_with("tollgate.toml:4:1: identity.local: `[identity.local]` asks nobody")
    );

    let pod = Environment {
        kubernetes_service_host: Some("10.96.0.1".into()),
        ..environment()
    };
    assert_eq!(
        faults_in("", &pod),
        "tollgate.toml:1:1: without `[identity]` nobody is asked for a credential, and every container of this \
         Kubernetes pod could call; add `[identity.keys]`, or `[identity.local]` with force = true"
    );
    let forced = read(
        Some("[identity.local]\nuser = \"me\"\ntenant = \"acme\"\nforce = true\n"),
        &pod,
    );
    assert_eq!(
        forced.expect("no faults").identity.method,
        Method::Local {
            user: "me".into(),
            tenant: "acme".into()
        }
    );
    assert!(read(Some("[identity.keys]\n"), &pod).is_ok());
}

#[test]
fn identity_is_one_method_and_never_none() {
    assert_eq!(
        faults("[identity.local]\n[identity.keys]\n"),
        "tollgate.toml:2:1: identity.keys: stands beside `[identity.local]`, which lets everyone in without a key; keep \
         one of the two"
    );
    assert_eq!(
        faults("[identity]\nadmins = { users = [\"ann\"] }\n"),
        "tollgate.toml:1:1: identity: says how nobody is known; add `[identity.keys]` (or `[identity.local]` on a \
         machine of your own)"
    );
}

#[test]
fn secrets_are_named_and_never_written() {
    let found = faults("[listen]\ntls = { cert = \"file:a\", key = \"-----BEGIN hunter2\" }\n");
    assert_eq!(
        found,
        "tollgate.toml:2:32: listen.tls.key: expected `env:NAME`, `file:PATH` or `credential:NAME`"
    );
}

#[test]
fn origins_zones_and_servers_are_exact() {
    let text = r#"
public_url = "https://u:p@example.com"
[listen]
allowed_origins = ["*", "https://app.example.com/path", "app.example.com", "null"]
[dns]
servers = ["dns.example", "10.0.0.53:0"]
[[dns.zone]]
suffix = ""
servers = []
"#;
    assert_eq!(
        faults(text),
        "\
tollgate.toml:2:14: public_url: expected \"https://HOST\" or \"http://HOST:PORT\", without a path; correct it
tollgate.toml:4:20: listen.allowed_origins[0]: found `*`, expected an exact origin such as \"https://app.example.com\"; correct it
tollgate.toml:4:25: listen.allowed_origins[1]: found `https://app.example.com/path`, expected an exact origin such as \"https://app.example.com\"; correct it
tollgate.toml:4:57: listen.allowed_origins[2]: found `app.example.com`, expected an exact origin such as \"https://app.example.com\"; correct it
tollgate.toml:4:76: listen.allowed_origins[3]: found `null`, expected an exact origin such as \"https://app.example.com\"; correct it
tollgate.toml:6:12: dns.servers[0]: found `dns.example`, expected a name server's address such as \"10.0.0.53:53\"; correct it
tollgate.toml:6:27: dns.servers[1]: found `10.0.0.53:0`, expected a name server's address such as \"10.0.0.53:53\"; correct it
tollgate.toml:8:10: dns.zone[0].suffix: found ``, expected a zone such as \"corp.example\"; correct it
tollgate.toml:9:11: dns.zone[0].servers: a zone needs name servers; add servers = [\"ADDRESS:53\"]"
    );
}

#[test]
fn the_environment_places_the_state() {
    let place = |change: fn(&mut Environment)| {
        let mut environment = environment();
        change(&mut environment);
        read(None, &environment).map(|settings| settings.state_dir)
    };
    let systemd = place(|e| {
        e.state_directory = Some("/var/lib/tollgate".into());
        e.xdg_state_home = Some("/x".into());
    });
    assert_eq!(systemd, Ok("/var/lib/tollgate".into()));
    assert_eq!(
        place(|e| e.xdg_state_home = Some("/x".into())),
        Ok("/x/tollgate".into())
    );
    assert!(place(|e| e.home = None).is_err());
    assert!(faults("state_dir = \"state\"\n").contains("expected an absolute path"));
}

#[test]
fn what_needs_a_restart_is_kept_and_named() {
    let running = settings("[listen]\nagents = \"127.0.0.1:1\"\n");
    let text = "state_dir = \"/x\"\npublic_url = \"https://a.example\"\n[listen]\nagents = \"127.0.0.1:2\"\n\
                allowed_origins = [\"http://b.example\"]\n[audit]\non_failure = \"reads\"\n[identity.keys]\n\
                [limits]\ncall = \"7s\"\nrunning = 1\nwaiting = 2\nturn_bytes = 70000\n[dns]\nservers = [\"10.0.0.53\"]\n";
    let (taken, kept) = settings(text).taken_up_by(&running);
    assert_eq!(
        kept,
        ["state_dir", "store", "listen.agents", "identity", "audit"]
    );
    assert_eq!(taken.listen.agents, running.listen.agents);
    assert_eq!(taken.identity.method, running.identity.method);
    assert_eq!(taken.state_dir, running.state_dir);
    assert_eq!(taken.store, running.store);
    assert_eq!(taken.limits.call, Duration::from_secs(7));
    let calls = (
        taken.limits.running,
        taken.limits.waiting,
        taken.limits.turn_bytes,
    );
    assert_eq!(calls, (1, 2, 70_000));
    assert_eq!(taken.dns.servers, [address("10.0.0.53:53")]);
    assert_eq!(taken.public_url.as_deref(), Some("https://a.example"));
    assert_eq!(
        taken.listen.allowed_origins,
        [Arc::from("http://b.example")]
    );
}
