//! Connections of a whole process, as the operator sees and ends them.

use super::{
    vault::{ask, connect, end, json, refused},
    *,
};

/// A process with the server `notes`, to which two users are connected.
fn connected() -> (Place, Served) {
    let place = Place::new();
    let text = place.text().replace("web = \"\"", "web = \"127.0.0.1:0\"");
    let servers = place.policy().join("servers");
    fs::create_dir(&servers).expect("a folder");
    fs::set_permissions(&servers, fs::Permissions::from_mode(0o700)).expect("a mode");
    let server = "url = \"https://notes.example/mcp\"\n[auth]\nmode = \"oauth\"\n";
    for (name, text) in [("tollgate.toml", &*text), ("servers/notes.toml", server)] {
        let file = place.policy().join(name);
        fs::write(&file, text).expect("a file");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("a mode");
    }
    let served = Served::start(&place);
    for user in ["ann", "bob"] {
        connect(&place, user);
    }
    (place, served)
}

#[test]
fn connections_are_listed_and_a_server_is_forgotten() {
    let (place, served) = connected();
    let listed = ask(&place, &["connections"]);
    assert_eq!(listed.status.code(), Some(0), "{}", stderr(&listed));
    // What is not as it was sealed is shown as that.
    assert_eq!(
        stdout(&listed),
        "2 connections\n\
         notes  ann (default)  to be connected again by its user: what was kept of it cannot be read\n  oauth\n\
         notes  bob (default)  to be connected again by its user: what was kept of it cannot be read\n  oauth\n"
    );
    let status = stdout(&ask(&place, &["status"]));
    let waiting = "waiting   for their users: 2 connections; `tollgate connections` tells which\n";
    assert!(status.contains(waiting), "{status}");
    let of_bob = json(
        &place,
        &["connections", "--user", "bob", "--server", "notes"],
    );
    let of_bob = of_bob.as_array().expect("an array");
    assert_eq!((of_bob.len(), &of_bob[0]["user"]), (1, &"bob".into()));
    for (filter, found) in [
        (["--server", "other"], 0),
        (["--tenant", "acme"], 0),
        (["--tenant", "default"], 2),
    ] {
        let listed = json(&place, &[&["connections"][..], &filter].concat());
        assert_eq!(listed.as_array().expect("an array").len(), found);
    }
    let nobody = ask(&place, &["connections", "--user", "nobody"]);
    assert_eq!(
        (stdout(&nobody), stderr(&nobody)),
        (
            "0 connections\n".to_owned(),
            "tollgate: nothing is kept for these; leave --user, --tenant and --server out to see all\n"
                .to_owned()
        )
    );

    let said = refused(&place, &["server", "remove", "ghost"], 1);
    assert_eq!(
        said,
        "tollgate: policy.server_unknown: no server `ghost` in the policy that holds, expected one of `notes`; where its file \
         is deleted already, put it back, remove the server, then delete the file: nothing may be sent to the provider of a \
         server that is not registered\n"
    );
    let removed = ask(&place, &["server", "remove", "notes"]);
    assert_eq!(removed.status.code(), Some(0), "{}", stderr(&removed));
    assert!(
        stdout(&removed).starts_with("2 connections to `notes` ended, 0 revoked by the provider; "),
        "{}",
        stdout(&removed)
    );
    assert_eq!(stdout(&ask(&place, &["connections"])), "0 connections\n");
    end(served);
    let events = place.events();
    let count = |event: &str| events.iter().filter(|found| *found == event).count();
    assert_eq!(count("admin server_remove"), 2, "{events:?}");
    assert_eq!(count("connect disconnected"), 2, "{events:?}");
}
