//! The pages of a whole process: the command line makes a link, and a browser follows it.

use std::{fs, num::NonZeroUsize, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use http::Request;
use tempfile::TempDir;
use tollgate::{
    app::{Options, Running, load::Loader, start},
    config::{Endpoint, Environment},
};

use super::house::{field, form, send};

pub(super) fn folder(text: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let policy = dir.path().join("policy");
    for made in [&policy, &dir.path().join("state")] {
        fs::create_dir(made).unwrap();
        fs::set_permissions(made, fs::Permissions::from_mode(0o700)).unwrap();
    }
    let head = format!("state_dir = \"{}\"\n", dir.path().join("state").display());
    let file = policy.join("tollgate.toml");
    write(&file, &(head + text));
    dir
}

/// Writes a file that nobody else reads.
pub(super) fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

pub(super) fn begin(dir: &Path) -> Running {
    start(Options {
        workers: NonZeroUsize::MIN,
        ..Options::new(Loader::new(dir.join("policy"), Environment::default()))
    })
    .unwrap()
}

/// What `tollgate login` says, and whether it worked.
pub(super) async fn login(dir: &Path, words: &[&str]) -> (bool, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command.arg("login").args(words).env_clear();
    command.env("TOLLGATE_POLICY", dir.join("policy"));
    let asked = tokio::task::spawn_blocking(move || command.output().unwrap());
    let said = asked.await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (said.status.success(), text(said.stdout), text(said.stderr))
}

pub(super) async fn end(running: Running) {
    running.handle().drain();
    let ended = tokio::task::spawn_blocking(move || running.wait());
    ended.await.unwrap().unwrap();
}

pub(super) const LISTEN: &str = "[listen]\nagents = \"\"\negress = \"\"\nops = \"\"\n";

#[tokio::test]
async fn the_command_line_prints_a_link_that_signs_in() {
    let dir = folder(&format!(
        "{LISTEN}web = \"127.0.0.1:0\"\n[identity.local]\nuser = \"ann\"\n"
    ));
    let running = begin(dir.path());
    let Some(Endpoint::Tcp(address)) = running.web().cloned() else {
        panic!("a TCP listener");
    };
    let host = address.to_string();
    let (worked, said, _) = login(dir.path(), &[]).await;
    assert!(worked);
    let (what, url) = said.trim_end().split_once('\n').unwrap();
    assert_eq!(
        what,
        "Open this link within 5 minutes. It signs one browser in as ann, once."
    );
    let path = url.strip_prefix(&format!("http://{host}")).unwrap();
    let token = path.strip_prefix("/login?token=").unwrap();

    let get = |path: &str| Request::get(path).header("host", &host);
    let page = send(address, get(path).body(Default::default()).unwrap()).await;
    assert!(page.words().ends_with("Sign in as ann"), "{}", page.words());
    let signed_in = send(address, form(&host, "/login", &[field("token", token)])).await;
    assert_eq!(signed_in.status, 303, "{}", signed_in.body);
    let (cookie, _) = signed_in.cookies()[0].split_once(';').unwrap();
    let home = get("/")
        .header("cookie", cookie)
        .body(Default::default())
        .unwrap();
    assert_eq!(send(address, home).await.status, 200);

    let (worked, said, _) = login(dir.path(), &["--json"]).await;
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert!(worked);
    assert_eq!(
        (&said["user"], &said["tenant"], &said["lasts"]),
        (&"ann".into(), &"default".into(), &300.into())
    );
    let (worked, said, why) = login(dir.path(), &["--user", "eve"]).await;
    assert!(!worked && said.is_empty());
    assert_eq!(
        why,
        "tollgate: user `eve` of tenant `default` is not known, expected the local user; leave --user and \
         --tenant out\n"
    );
    let listeners: Vec<_> = running
        .handle()
        .status()
        .listeners
        .iter()
        .map(|one| one.name.clone())
        .collect();
    assert_eq!(listeners, ["web"]);
    end(running).await;
    let records = crate::audit::records(&dir.path().join("state/audit"));
    let admin = records.iter().filter(|record| record["kind"] == "admin");
    let admin: Vec<_> = admin
        .map(|record| format!("{} {}", record["method"], record["outcome"]))
        .collect();
    assert_eq!(
        admin,
        [
            "\"login\" \"allowed\"",
            "\"sign_in\" \"allowed\"",
            "\"login\" \"allowed\"",
            "\"login\" \"failed\""
        ]
    );
}

#[tokio::test]
async fn pages_may_be_off() {
    let dir = folder(&format!(
        "{LISTEN}web = \"\"\n[identity.local]\nuser = \"ann\"\n"
    ));
    let running = begin(dir.path());
    assert_eq!(running.web(), None);
    let (worked, _, why) = login(dir.path(), &[]).await;
    assert!(!worked);
    assert_eq!(
        why,
        "tollgate: the pages are off; set listen.web in tollgate.toml and restart\n"
    );
    end(running).await;
}

/// A restart keeps people signed in.
#[tokio::test]
async fn sign_ins_outlast_the_process() {
    let dir = folder(&format!(
        "public_url = \"https://pages.test\"\n{LISTEN}web = \"127.0.0.1:0\"\n[identity.local]\nuser = \"ann\"\n"
    ));
    let mut cookie = String::new();
    for turn in 0..2 {
        let running = begin(dir.path());
        let Some(Endpoint::Tcp(address)) = running.web().cloned() else {
            panic!("a TCP listener");
        };
        let host = "pages.test";
        if turn == 0 {
            let (_, said, _) = login(dir.path(), &["--json"]).await;
            let said: serde_json::Value = serde_json::from_str(&said).unwrap();
            let url = said["url"].as_str().unwrap();
            let token = url.strip_prefix("https://pages.test/login?token=").unwrap();
            let mut request = form(host, "/login", &[field("token", token)]);
            let origin = "https://pages.test".parse().unwrap();
            request.headers_mut().insert("origin", origin);
            let page = send(address, request).await;
            cookie = page.cookies()[0].split_once(';').unwrap().0.to_owned();
        }
        let home = Request::get("/")
            .header("host", host)
            .header("cookie", &cookie);
        let page = send(address, home.body(Default::default()).unwrap()).await;
        assert_eq!(page.status, 200, "{turn}");
        end(running).await;
    }
}
