//! Databases that are older than they were: told, and used again on the operator's word.

use super::*;

#[test]
fn an_older_database_is_told_and_connections_wait_for_the_operator() {
    let place = Place::new();
    end(Served::start(&place));
    connect(&place, "ann");
    let database = place.state().join("tollgate.db");
    let backup = fs::read(&database).expect("a database");
    connect(&place, "bob");
    // The mark is set while a process runs, and at its end.
    end(Served::start(&place));
    let said = refused(&place, &["vault", "accept-restore"], 1);
    assert!(said.contains("no tollgate answers at"), "{said}");

    fs::write(&database, &backup).expect("a restore");
    let mut served = Served::start_after(
        &place,
        "the database is older than one that was in use here",
    );
    assert_eq!(json(&place, &["status"])["vault"]["older"], true);
    let shown = ask(&place, &["status"]);
    assert!(
        stdout(&shown).contains("then `tollgate vault accept-restore`"),
        "{}",
        stdout(&shown)
    );
    assert_eq!(json(&place, &["vault", "accept-restore"])["changes"], 3);
    assert_eq!(json(&place, &["status"])["vault"]["older"], false);
    let said = refused(&place, &["vault", "accept-restore"], 1);
    assert!(said.contains("there is nothing to accept"), "{said}");
    served.signal(Signal::SIGTERM);
    served.until("stopped");
    end(Served::start(&place));

    // The same backup once more is older again.
    fs::write(&database, &backup).expect("a restore");
    let mut served = Served::start_after(
        &place,
        "the database is older than one that was in use here",
    );
    served.signal(Signal::SIGTERM);
    served.until("stopped");
    let records = place.records();
    let found = |method: &str, code: &str| {
        let fits = |record: &&Value| record["method"] == method && record["code"] == code;
        records.iter().filter(fits).count()
    };
    assert_eq!(found("older_database", "vault.older"), 2);
    let accepted = |record: &&Value| {
        record["method"] == "vault_accept_restore" && record["outcome"] == "allowed"
    };
    assert_eq!(records.iter().filter(accepted).count(), 1);
}

#[test]
fn a_mark_that_was_changed_is_an_older_database_too() {
    let place = Place::new();
    end(Served::start(&place));
    let mark = place.state().join("vault.mark");
    let text = fs::read_to_string(&mark).expect("a mark");
    assert!(text.starts_with("tollgate-mark 1\n0 "), "{text}");
    fs::write(&mark, text.replace("\n0 ", "\n1 ")).expect("changed");
    let served = Served::start_after(
        &place,
        "the database is older than one that was in use here",
    );
    assert_eq!(json(&place, &["vault", "accept-restore"])["changes"], 1);
    end(served);
    end(Served::start(&place));
}

#[test]
fn processes_share_a_database_and_a_keyring_and_one_word_of_the_operator() {
    let (one, two) = (Place::new(), Place::new());
    two.settings(&format!(
        "store.url = \"sqlite:{0}/tollgate.db\"\nvault.keyring = \"{0}/keyring\"",
        one.state().display()
    ));
    let first = Served::start(&one);
    let mut second = Served::start(&two);
    connect(&one, "ann");
    json(&one, &["keys", "rotate"]);
    second.until("the keyring was changed");
    let keys = |place| json(place, &["keys", "status"])["keys"].clone();
    assert_eq!(keys(&one).as_array().expect("keys").len(), 2);
    assert_eq!(keys(&one)[1]["kid"], keys(&two)[1]["kid"]);
    end(first);
    end(second);
    let database = one.state().join("tollgate.db");
    let backup = fs::read(&database).expect("a database");
    connect(&one, "bob");
    end(Served::start(&one));
    end(Served::start(&two));
    fs::write(&database, &backup).expect("a restore");
    let older = "the database is older than one that was in use here";
    let mut first = Served::start_after(&one, older);
    let mut second = Served::start_after(&two, older);
    json(&one, &["vault", "accept-restore"]);
    second.until("no longer older");
    assert_eq!(json(&two, &["status"])["vault"]["older"], false);
    for served in [&mut first, &mut second] {
        served.signal(Signal::SIGTERM);
        served.until("stopped");
    }
}
