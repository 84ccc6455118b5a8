//! Servers that want a credential.

use super::*;
use crate::support::{
    client::{Ask, Exchange, Reply},
    gate::eventually,
    protected::Doorkeeper,
};

const UNASKED: &str = "tollgate: server `notes` was not asked, since it wants a user's credential; this is what callers were \
                       shown since tollgate started\n";
const UNSEEN: &str = "tollgate: nothing of server `notes` was shown to any caller yet, and it wants a user's credential; have \
                      a user of it list its tools, then accept\n";

/// A process with its pages before a server that lets in whoever shows `good`.
async fn stage(keys: &str, auth: &str) -> Stage {
    let says = Says::new(&format!("[{GET},{PUT}]"));
    let keeper = Doorkeeper::letting(&["Bearer good"]);
    let script = says.script();
    let tools = Tools::start(move |seen| {
        let refused = keeper.says("authorization", seen);
        refused.or_else(|| script(seen))
    })
    .await;
    let policy = Policy::local("").server("notes", tools.address, keys, auth);
    Stage {
        says,
        tools,
        gate: Gate::start_with(&policy, 1, "web = \"127.0.0.1:0\"\n"),
    }
}

/// Has the local user sign in and enter `good`, as a browser does.
async fn enter(stage: &Stage) {
    let link = stage.run(&["login"]).await.out;
    let (_, url) = link.trim_end().split_once("http://").expect("a link");
    let (host, token) = url.split_once("/login?token=").expect("a link");
    let form = |path: &str, body: String| {
        Ask::post(path, body)
            .set("Content-Type", "application/x-www-form-urlencoded")
            .with("Origin", &format!("http://{host}"))
            .with("Sec-Fetch-Site", "same-origin")
    };
    let signed_in = visit(host, form("/login", format!("token={token}"))).await;
    let cookie = signed_in.header("set-cookie").expect("a cookie");
    let (cookie, _) = cookie.split_once(';').expect("attributes");
    let page = visit(
        host,
        Ask::bare("GET", "/connect/notes").with("Cookie", cookie),
    )
    .await;
    let mut fields = url::form_urlencoded::Serializer::new(String::new());
    let (_, inputs) = page
        .body
        .split_once("action=\"/connect/notes\"")
        .expect("a form");
    for input in inputs.split("<input type=\"hidden\"").skip(1) {
        let attribute = |name: &str| {
            let (_, rest) = input.split_once(&format!("{name}=\"")).expect("attribute");
            rest.split_once('"').expect("its end").0.to_owned()
        };
        fields.append_pair(&attribute("name"), &attribute("value"));
    }
    fields.append_pair("secret", "good");
    let kept = form("/connect/notes", fields.finish()).with("Cookie", cookie);
    let kept = visit(host, kept).await;
    assert_eq!(
        (kept.status, kept.header("location")),
        (303, Some("/result"))
    );
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is a browser's side: it connects to Tollgate, on loopback"
)]
async fn visit(host: &str, ask: Ask) -> Reply {
    let stream = tokio::net::TcpStream::connect(host).await.unwrap();
    let begun = Exchange::begin(Box::new(stream), &ask.bytes(host)).await;
    begun.expect("an answer").whole().await
}

/// What the operator looks at and accepts is what users were shown.
#[tokio::test(flavor = "multi_thread")]
async fn drift_at_a_server_that_wants_a_users_credential_is_accepted() {
    let stage = stage("", "[auth]\nmode = \"bearer\"\n").await;
    let early = stage.pin(&["--accept-all"]).await;
    assert_eq!((early.code, &*early.err), (Some(1), UNSEEN));
    let nothing = stage.pin(&[]).await;
    assert_eq!((nothing.code, &*nothing.err), (Some(0), UNASKED));

    enter(&stage).await;
    eventually("the lists are read with the first connection", || {
        let records = stage.gate.records();
        records.iter().any(|record| record["method"] == "read")
    })
    .await;
    assert_eq!(stage.call("put").await, "approval.unavailable");
    let same = stage.pin(&["--diff"]).await;
    assert_eq!(
        (same.code, &*same.out, &*same.err),
        (
            Some(0),
            "notes: nothing differs from what is pinned\n",
            UNASKED
        )
    );

    stage.says.tools(&format!("[{GET},{EVIL}]"));
    let agent = Agent::modern("notes");
    stage.gate.send(agent.request("1", "tools/list", "")).await;
    assert_eq!(stage.call("put").await, "catalog.drifted");
    let diff = stage.pin(&["--diff"]).await;
    assert_eq!((diff.code, &*diff.err), (Some(1), UNASKED));
    assert!(diff.out.contains("+++ seen   2cacd488a6a76b8b\n"));
    let accepted = stage.pin(&["--accept", "put@2cacd488a6a76b8b"]).await;
    assert_eq!((accepted.code, &*accepted.err), (Some(0), ""));
    assert!(
        accepted
            .out
            .starts_with("accepted tool `put` 2cacd488a6a76b8b\n"),
        "{}",
        accepted.out
    );
    assert_eq!(stage.call("put").await, "approval.unavailable");
    assert_eq!(stage.pin(&[]).await.code, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pins_file_is_written_from_what_users_were_shown() {
    let stage = stage("pin = \"file\"\n", "[auth]\nmode = \"bearer\"\n").await;
    let file = stage.gate.folder().join("pins/notes.json");
    assert_eq!(stage.pin(&["--accept-all"]).await.err, UNSEEN);
    assert!(!file.exists());
    enter(&stage).await;
    assert_eq!(stage.call("put").await, "catalog.unreviewed");
    let new = stage.pin(&[]).await;
    assert_eq!((new.code, &*new.err), (Some(1), UNASKED));
    let written = stage.pin(&["--accept-all"]).await;
    assert_eq!((written.code, &*written.err), (Some(0), ""));
    assert!(
        fs::read_to_string(&file)
            .unwrap()
            .contains("Writes a note.")
    );
    assert_eq!(stage.call("put").await, "approval.unavailable");
    assert_eq!(stage.pin(&[]).await.code, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_a_shared_secret_is_read_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let secret = dir.path().join("secret");
    write(&secret, "good\n");
    let auth = format!(
        "[auth]\nmode = \"shared\"\nsecret = \"file:{}\"\n",
        secret.display()
    );
    let stage = stage("", &auth).await;
    let first = stage.pin(&[]).await;
    assert_eq!((first.code, &*first.err), (Some(0), ""));
    stage.says.tools(&format!("[{GET},{EVIL}]"));
    let diff = stage.pin(&["--diff"]).await;
    assert_eq!((diff.code, &*diff.err), (Some(1), ""));
    assert_eq!(stage.pin(&["--accept", "put"]).await.code, Some(0));
    let seen = stage.tools.seen();
    assert!(!seen.is_empty());
    assert!(
        seen.iter()
            .all(|seen| seen.header("authorization") == Some("Bearer good"))
    );
}
