//! What a process keeps, and where it refuses to.

use super::*;

#[test]
fn without_records_nothing_runs() {
    let place = Place::new();
    fs::create_dir(place.state()).expect("a folder");
    fs::write(place.state().join("audit"), "a file where a folder belongs").expect("a file");
    let refused = place.run("serve");
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        stderr(&refused).contains("cannot keep records"),
        "{}",
        stderr(&refused)
    );
}

#[test]
fn a_keyring_is_made_once_and_a_damaged_one_is_refused_and_kept() {
    let place = Place::new();
    let keyring = place.state().join("keyring");
    let mut made = None;
    for _ in 0..2 {
        let served = Served::start(&place);
        served.signal(Signal::SIGTERM);
        assert_eq!(served.end(), Some(0));
        let mode = fs::metadata(&keyring).expect("a keyring").permissions();
        assert_eq!(mode.mode() & 0o7777, 0o600);
        let found = fs::read(&keyring).expect("a keyring");
        assert_eq!(made.get_or_insert_with(|| found.clone()), &found);
    }
    for (text, mode, told) in [
        (
            "tollgate-keyring 1\n1 00",
            0o600,
            "does not read as a keyring",
        ),
        ("tollgate-keyring 1\n", 0o644, "has mode 0644, expected uid"),
    ] {
        fs::write(&keyring, text).expect("a file");
        fs::set_permissions(&keyring, fs::Permissions::from_mode(mode)).expect("a mode");
        let refused = place.run("serve");
        assert_eq!(refused.status.code(), Some(1));
        let said = stderr(&refused);
        assert!(said.contains("cannot use the keyring"), "{said}");
        assert!(said.contains(told), "{said}");
        assert_eq!(fs::read_to_string(&keyring).expect("a file"), text);
        assert!(!place.socket().exists());
    }
}

#[test]
fn a_database_is_where_the_settings_say_and_one_that_is_not_safe_is_refused() {
    let place = Place::new();
    let served = Served::start(&place);
    served.signal(Signal::SIGTERM);
    assert_eq!(served.end(), Some(0));
    let usual = place.state().join("tollgate.db");
    let mode = fs::metadata(&usual).expect("a database").permissions();
    assert_eq!(mode.mode() & 0o7777, 0o600);
    assert!(!place.state().join("tollgate.db-wal").exists(), "closed");

    fs::remove_file(&usual).expect("ours");
    let folder = place.0.path().join("elsewhere");
    let path = folder.join("pins.db");
    let url = format!("store.url = \"sqlite:{}\"", path.display());
    place.settings(&url);
    let refused = |told: &str| {
        let refused = place.run("serve");
        let said = stderr(&refused);
        assert_eq!(refused.status.code(), Some(1), "{said}");
        assert!(said.contains(told), "{said}");
        assert!(!place.socket().exists());
    };
    refused("elsewhere/pins.db` as database; let this user read and write it");
    fs::create_dir(&folder).expect("a folder");
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
    };
    mode(&folder, 0o775);
    refused("writable by group or others (mode 0775)");
    mode(&folder, 0o755);
    let served = Served::start(&place);
    served.signal(Signal::SIGTERM);
    assert_eq!(served.end(), Some(0));
    assert!(path.exists() && !usual.exists());

    mode(&path, 0o640);
    refused("cannot use the database: `");
    refused("has mode 0640, expected uid");
    mode(&path, 0o600);
    // The keyring that marked it is gone.
    fs::remove_file(place.state().join("keyring")).expect("ours");
    refused("there is no keyring at `");
}

#[test]
fn a_state_folder_that_others_can_write_is_refused() {
    let place = Place::new();
    fs::create_dir(place.state()).expect("a folder");
    for mode in [0o770, 0o707, 0o777] {
        fs::set_permissions(place.state(), fs::Permissions::from_mode(mode)).expect("a mode");
        let refused = place.run("serve");
        assert_eq!(refused.status.code(), Some(1));
        let said = stderr(&refused);
        assert!(said.contains("the state folder is not safe"), "{said}");
        assert!(said.contains("run `chmod -R go-w "), "{said}");
        assert!(!place.socket().exists());
    }
}

#[test]
fn a_state_folder_that_is_too_deep_for_a_socket_is_refused() {
    let place = Place::new();
    let deep = place.0.path().join("x".repeat(120));
    let text = format!(
        "state_dir = {deep:?}\n[listen]\nagents = \"127.0.0.1:0\"\negress = \"\"\nweb = \"\"\nops = \"\"\n"
    );
    fs::write(place.policy().join("tollgate.toml"), text).expect("a file");
    let refused = place.run("serve");
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        stderr(&refused).contains("longer than the 107 bytes"),
        "{}",
        stderr(&refused)
    );
}
