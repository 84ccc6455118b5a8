//! Servers that would have something accepted that nobody looked at, and pins that somebody else wrote.

use super::*;

/// What is said to put right pins that somebody else wrote does so.
#[tokio::test(flavor = "multi_thread")]
async fn unusable_pins_are_explained_and_moved_away() {
    let stage = Stage::new("", "").await;
    stage.pin(&[]).await;
    let database = stage.gate.folder().with_file_name("state/tollgate.db");
    let forge = |sql: &str| {
        let file = rusqlite::Connection::open(&database).unwrap();
        assert!(file.execute(sql, []).unwrap() > 0);
    };
    forge("UPDATE pin_items SET definition = replace(definition, 'Writes', 'Steals')");
    let Stage { says, tools, gate } = stage;
    let stage = Stage {
        says,
        tools,
        gate: gate.restart().await,
    };
    assert_eq!(stage.call("get").await, "catalog.pins_unusable");
    for words in [&[][..], &["--diff"], &["--accept-all"]] {
        let said = stage.pin(words).await;
        assert_eq!(
            said.err,
            "tollgate: catalog.pins_unusable: what is pinned of server `notes` cannot be used: the pins of server \
             `notes` were changed by something else than Tollgate; correct the pins file if the server has one; else \
             stop tollgate, restore its database and its keyring from one backup, and start it again; where there is \
             no backup, move the database away while it is stopped, and every server is pinned anew as it shows \
             itself then\n"
        );
        assert_eq!((said.code, &*said.out), (Some(1), ""));
    }
    let gate = stage.gate.restart_after(|| {
        fs::rename(&database, database.with_extension("old")).unwrap();
    });
    let stage = Stage {
        gate: gate.await,
        ..stage
    };
    assert_eq!(stage.call("put").await, "approval.unavailable");
    assert_eq!(stage.pin(&["--diff"]).await.code, Some(0));
}

/// The definition that was looked at is accepted, not one whose name is what the operator writes.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_cannot_lend_its_digest_to_another_name() {
    let stage = Stage::new("", "").await;
    stage.pin(&[]).await;
    let other = r#"{"name":"put@2cacd488a6a76b8b","inputSchema":{}}"#;
    stage.says.tools(&format!("[{GET},{EVIL},{other}]"));
    let accepted = stage.pin(&["--accept", "put@2cacd488a6a76b8b"]).await;
    assert_eq!(
        accepted.out,
        "accepted tool `put` 2cacd488a6a76b8b\nnotes: pins version 4, in force\n"
    );
    assert_eq!(
        stage.call("put@2cacd488a6a76b8b").await,
        "catalog.unreviewed"
    );
}

/// What one view is shown is not dropped because another view is shown something else.
#[tokio::test(flavor = "multi_thread")]
async fn instructions_that_others_still_hear_stay_when_new_ones_are_accepted() {
    let stage = Stage::new("", "").await;
    stage.says.instructions("Be brief.", "Be brief.");
    stage.pin(&[]).await;
    let heard = async || {
        let agent = Agent::modern("notes");
        let mut heard = Vec::new();
        for ask in [
            agent.request("1", "server/discover", ""),
            agent.hello("2025-11-25", r#"{"elicitation":{}}"#),
        ] {
            let reply = stage.gate.send(ask).await.json();
            heard.push(reply["result"]["instructions"].as_str().unwrap().to_owned());
        }
        heard
    };
    assert_eq!(heard().await, ["Be brief.", "Be brief."]);
    stage.says.instructions("Be long.", "Be brief.");
    assert_eq!(heard().await, ["Be brief.", "Be brief."]);
    let accepted = stage.pin(&["--accept-all"]).await;
    assert_eq!((accepted.code, &*accepted.err), (Some(0), ""));
    assert_eq!(heard().await, ["Be long.", "Be brief."]);
    assert_eq!(stage.pin(&["--diff"]).await.code, Some(0));
    stage.says.instructions("Be brief.", "Be brief.");
    assert_eq!(heard().await, ["Be brief.", "Be brief."]);
}
