//! Refreshed connections in the spool: they hold back the end of the key that they are sealed under.

use tollgate::vault::{Binding, Purpose};

use super::*;

/// A file of the spool, sealed under the primary key.
fn spool(place: &Place) -> PathBuf {
    let folder = place.state().join("spool");
    fs::create_dir_all(&folder).expect("a folder");
    let keyring = Keyring::open(&place.state().join("keyring")).expect("a keyring");
    let record = record("ann");
    let sealed = keyring
        .vault()
        .seal(&Binding::of_row(Purpose::Spool, record, 0), b"{}");
    let file = folder.join(format!("{record}.sealed"));
    fs::write(&file, sealed).expect("a file");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("a mode");
    file
}

/// `--disable`, and what it says where that is refused.
fn held(place: &Place, option: &str, old: &str) {
    let said = refused(place, &["keys", "rotate", option, old], 1);
    let told =
        format!("are sealed under the key {old} still, since the database has not taken them");
    assert!(
        said.contains("1 refreshed connections in `") && said.contains(&told),
        "{said}"
    );
    let keys = json(place, &["keys", "status"]);
    assert_eq!(
        (&keys["keys"][0]["rows"], &keys["keys"][0]["spooled"]),
        (&0.into(), &1.into())
    );
    let shown = stdout(&ask(place, &["keys", "status"]));
    assert!(shown.contains("  0 rows, 1 in the spool\n"), "{shown}");
}

#[test]
fn a_spooled_result_holds_back_the_end_of_its_key() {
    let place = Place::new();
    end(Served::start(&place));
    let file = spool(&place);
    let content = fs::read(&file).expect("a file");
    let before = json(&place, &["keys", "rotate"]);
    let old = before["keys"][0]["kid"].as_str().expect("a key").to_owned();
    // Without a process the row that shows whose the database is follows at the next start.
    let mut served = Served::start_after(&place, "a file of the spool cannot be used; it stays");
    while json(&place, &["keys", "status"])["keys"][0]["rows"] != 0 {
        std::thread::yield_now();
    }
    held(&place, "--disable", &old);
    fs::remove_file(&file).expect("a file");
    json(&place, &["keys", "rotate", "--disable", &old]);
    // One that comes back, as from a backup.
    fs::write(&file, &content).expect("a file");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("a mode");
    held(&place, "--destroy", &old);
    served.signal(Signal::SIGTERM);
    served.until("stopped");
    held(&place, "--destroy", &old);
    fs::remove_file(&file).expect("a file");
    let left = json(&place, &["keys", "rotate", "--destroy", &old]);
    assert_eq!(left["keys"].as_array().map(Vec::len), Some(1));
}
