//! The whole product, started in this process over a policy folder of its own.

use std::{
    fs,
    net::SocketAddr,
    num::NonZeroUsize,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustls::pki_types::ServerName;
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tollgate::{
    app::{Handle, Options, Running, load::Loader, start},
    audit::verify_folder,
    config::{Endpoint, Environment},
    egress::Io,
    tunnel::OpenTunnel,
};

use super::{
    certs::trusting,
    client::{Ask, Exchange, Reply, patiently},
};

/// Stands for what is at the top of `tollgate.toml`.
const TOP: &str = "top of tollgate.toml";

/// The files of a policy, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Policy(Vec<(String, String)>);

impl Policy {
    /// One user without a credential, `ann`, who is an admin; `more` goes to the end of `tollgate.toml`.
    pub(crate) fn local(more: &str) -> Self {
        Self::with_identity("[identity.local]\nuser = \"ann\"\n", more)
    }

    /// Agent keys; `ann` is an admin.
    pub(crate) fn keys(keys: &[(&str, &str)], more: &str) -> Self {
        let keys: String = keys
            .iter()
            .map(|(key, who)| {
                let digest = <sha2::Sha256 as sha2::Digest>::digest(key.as_bytes());
                let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
                format!("[[key]]\nsha256 = \"{digest}\"\n{who}\n")
            })
            .collect();
        let identity = "[identity]\nadmins = { users = [\"ann\"] }\n[identity.keys]\n";
        Self::with_identity(identity, more).file("keys.toml", keys)
    }

    fn with_identity(identity: &str, more: &str) -> Self {
        let text = format!("{identity}[dns]\nservers = [\"127.0.0.1:9\"]\n{more}\n");
        Self::default().file("tollgate.toml", text)
    }

    /// A server at `address`; `keys` stand above the tables of its file, `tables` below.
    pub(crate) fn server(self, name: &str, address: SocketAddr, keys: &str, tables: &str) -> Self {
        let url = format!("http://{address}/mcp");
        self.at(name, &url, address.port(), keys, tables)
    }

    /// A server at `url`, with the grant that its loopback host needs.
    pub(crate) fn at(self, name: &str, url: &str, port: u16, keys: &str, tables: &str) -> Self {
        let host = url.split(['/', ':']).nth(3).unwrap();
        let grant =
            format!("[[private]]\nhost = \"{host}\"\nport = {port}\nfor = [\"server:{name}\"]\n");
        // Lists are compared with the server's own, where the test is not about Tollgate's tools.
        let builtin = if keys.contains("builtin") {
            ""
        } else {
            "builtin = false\n"
        };
        let text = format!(
            "url = \"{url}\"\n{builtin}read_only = [\"get_*\"]\n{keys}\n[tools.send_mail]\napproval = \"never\"\n[tools.get_hidden]\nhidden = true\n{tables}\n"
        );
        self.file(&format!("servers/{name}.toml"), text)
            .file("egress.toml", grant)
    }

    /// Writes the files into `policy` in `dir`, beside a folder for the state; `listen` are more keys of `[listen]`.
    pub(crate) fn write(&self, dir: &Path, listen: &str) {
        let folder = dir.join("policy");
        let state = dir.join("state");
        for made in [&folder, &folder.join("servers"), &state] {
            fs::create_dir(made).unwrap();
            fs::set_permissions(made, fs::Permissions::from_mode(0o700)).unwrap();
        }
        // Pages are for tests that are about them.
        let web = if listen.contains("web = ") {
            ""
        } else {
            "web = \"\"\n"
        };
        let top = self.0.iter().find(|(name, _)| name == TOP);
        let top = top.map_or("", |(_, text)| text);
        let head = format!(
            "{top}state_dir = \"{}\"\n[listen]\nagents = \"127.0.0.1:0\"\negress = \"127.0.0.1:0\"\nops = \"\"\n{web}{listen}\n",
            state.display()
        );
        for (name, text) in self.0.iter().filter(|(name, _)| name != TOP) {
            let text = match &**name {
                "tollgate.toml" => format!("{head}{text}"),
                _ => text.clone(),
            };
            write(&folder.join(name), &text);
        }
    }

    /// Keys at the top of `tollgate.toml`, above its tables.
    pub(crate) fn top(self, keys: &str) -> Self {
        self.file(TOP, keys)
    }

    /// Puts `to` in place of `from` in every file.
    pub(crate) fn replacing(mut self, from: &str, to: &str) -> Self {
        for (_, text) in &mut self.0 {
            *text = text.replace(from, to);
        }
        self
    }

    /// Adds to a file.
    pub(crate) fn file(mut self, name: &str, text: impl Into<String>) -> Self {
        let text = text.into();
        match self.0.iter_mut().find(|(found, _)| found == name) {
            Some((_, before)) => before.push_str(&text),
            None => self.0.push((name.to_owned(), text)),
        }
        self
    }
}

/// A running Tollgate.
pub(crate) struct Gate {
    pub(crate) address: SocketAddr,
    pub(crate) egress: SocketAddr,
    pub(crate) handle: Handle,
    running: Running,
    dir: TempDir,
    tls: Option<TlsConnector>,
}

impl Gate {
    /// Starts with one worker.
    pub(crate) fn start(policy: &Policy) -> Self {
        Self::start_with(policy, 1, "")
    }

    /// Starts with more workers, and more keys of `[listen]`.
    pub(crate) fn start_with(policy: &Policy, workers: usize, listen: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        policy.write(dir.path(), listen);
        Self::over(dir, workers)
    }

    /// Starts over the files of `dir`.
    fn over(dir: TempDir, workers: usize) -> Self {
        let loader = Loader::new(dir.path().join("policy"), Environment::default());
        let running = start(Options {
            workers: NonZeroUsize::new(workers).unwrap(),
            grace: Duration::from_secs(10),
            ..Options::new(loader)
        })
        .unwrap_or_else(|error| panic!("{error:?}"));
        let Some(Endpoint::Tcp(address)) = running.agents().cloned() else {
            panic!("a TCP listener");
        };
        let Some(Endpoint::Tcp(egress)) = running.egress().cloned() else {
            panic!("a TCP listener");
        };
        Self {
            address,
            egress,
            handle: running.handle(),
            running,
            dir,
            tls: None,
        }
    }

    /// Speaks TLS to it from now on, trusting `root`.
    pub(crate) fn over_tls(mut self, root: rustls::pki_types::CertificateDer<'static>) -> Self {
        self.tls = Some(trusting(root));
        self
    }

    /// A new connection.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is an agent's side: it connects to Tollgate, on loopback"
    )]
    pub(crate) async fn connect(&self) -> Box<dyn Io> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        match &self.tls {
            None => Box::new(stream),
            Some(_) => Box::new(self.within_tls(stream).await.unwrap()),
        }
    }

    /// Speaks TLS to `localhost` on a connection.
    pub(crate) async fn within_tls<S: Io>(
        &self,
        stream: S,
    ) -> std::io::Result<tokio_rustls::client::TlsStream<S>> {
        let name = ServerName::try_from("localhost").unwrap();
        let tls = self.tls.as_ref().expect("a root to trust");
        patiently(tls.connect(name, stream)).await
    }

    /// The tunnels that are open now.
    pub(crate) fn tunnels(&self) -> Vec<OpenTunnel> {
        self.handle.tunnels()
    }

    /// Sends a request and reads the head of its answer.
    pub(crate) async fn open(&self, ask: Ask) -> Exchange {
        let bytes = ask.bytes(&self.address.to_string());
        let begun = Exchange::begin(self.connect().await, &bytes).await;
        begun.expect("an answer")
    }

    /// Sends a request and reads its whole answer.
    pub(crate) async fn send(&self, ask: Ask) -> Reply {
        self.open(ask).await.whole().await
    }

    /// The policy folder.
    pub(crate) fn folder(&self) -> PathBuf {
        self.dir.path().join("policy")
    }

    /// The folder of the records.
    pub(crate) fn records_folder(&self) -> PathBuf {
        self.dir.path().join("state/audit")
    }

    /// The records on disk now.
    pub(crate) fn records(&self) -> Vec<Value> {
        crate::audit::records(&self.records_folder())
    }

    /// The value of a metric without labels.
    pub(crate) fn metric(&self, name: &str) -> i64 {
        let text = self.handle.metrics();
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().trim().parse().unwrap()
    }

    /// Drains, waits for the end, and returns what was recorded, once its chain was verified.
    pub(crate) async fn stop(self) -> Vec<Value> {
        let folder = self.records_folder();
        self.handle.drain();
        ended(self.running).await;
        verify_folder(&folder).unwrap();
        crate::audit::records(&folder)
    }

    /// Drains, waits for the end, and starts again with the same files and the same state, on another port.
    pub(crate) async fn restart(self) -> Self {
        self.restart_after(|| {}).await
    }

    /// The same, with something done in between.
    pub(crate) async fn restart_after(self, stopped: impl FnOnce()) -> Self {
        self.handle.drain();
        ended(self.running).await;
        stopped();
        Self::over(self.dir, 1)
    }
}

async fn ended(running: Running) {
    let waiting = tokio::task::spawn_blocking(move || running.wait());
    waiting.await.unwrap().unwrap();
}

/// Writes a file that nobody else may change.
pub(crate) fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

/// Waits until `holds`; what it waits for happens on other threads, unseen.
pub(crate) async fn eventually(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < end, "not within a minute: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// What became of definitions, in order: `method tool code`.
pub(crate) fn catalog(records: &[Value]) -> Vec<String> {
    let text = |record: &Value, key: &str| record[key].as_str().unwrap_or_default().to_owned();
    records
        .iter()
        .filter(|record| record["kind"] == "catalog")
        .map(|record| {
            let [method, tool, code] = ["method", "tool", "code"].map(|key| text(record, key));
            format!("{method} {tool} {code}").trim_end().to_owned()
        })
        .collect()
}

/// How requests ended, in order: `kind outcome code`, or `kind intent`.
pub(crate) fn ends(records: &[Value]) -> Vec<String> {
    let text = |record: &Value, key: &str| record[key].as_str().unwrap_or_default().to_owned();
    records
        .iter()
        .filter(|record| !["lifecycle", "policy", "catalog"].contains(&&*text(record, "kind")))
        .map(|record| {
            let end = match &*text(record, "phase") {
                "intent" => "intent".to_owned(),
                _ => format!("{} {}", text(record, "outcome"), text(record, "code")),
            };
            format!("{} {end}", text(record, "kind"))
                .trim_end()
                .to_owned()
        })
        .collect()
}
