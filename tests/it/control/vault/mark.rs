//! The mark of the vault in a place of its own, which a copy of the state folder does not have.

use super::*;

/// Where the mark is, and a process's settings with it there.
fn elsewhere(place: &Place) -> PathBuf {
    let folder = place.0.path().join("marks");
    fs::create_dir(&folder).expect("a folder");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).expect("a mode");
    let mark = folder.join("vault.mark");
    place.settings(&format!("vault.mark = {mark:?}"));
    mark
}

/// Everything in the state folder but its socket and its records.
fn copy(from: &Path, to: &Path) {
    for name in ["tollgate.db", "keyring", "vault.mark"] {
        match fs::read(from.join(name)) {
            Ok(content) => fs::write(to.join(name), content).expect("a file"),
            Err(_) => drop(fs::remove_file(to.join(name))),
        }
    }
}

/// A copy of all of the state folder from before `bob` was connected, in the place of it.
fn roll_back(place: &Place) {
    end(Served::start(place));
    connect(place, "ann");
    end(Served::start(place));
    let backup = tempfile::tempdir().expect("a folder");
    copy(&place.state(), backup.path());
    connect(place, "bob");
    end(Served::start(place));
    copy(backup.path(), &place.state());
}

#[test]
fn a_copy_of_the_whole_folder_is_noticed_by_a_mark_elsewhere_only() {
    let beside = Place::new();
    roll_back(&beside);
    let served = Served::start(&beside);
    assert_eq!(json(&beside, &["status"])["vault"]["older"], false);
    end(served);

    let place = Place::new();
    let mark = elsewhere(&place);
    roll_back(&place);
    assert!(mark.exists() && !place.state().join("vault.mark").exists());
    let served = Served::start_after(
        &place,
        "the database is older than one that was in use here",
    );
    assert_eq!(json(&place, &["vault", "accept-restore"])["changes"], 3);
    end(served);
    assert_eq!(
        json(&place, &["vault", "reset", "--forget-all", "--yes"])["rows"],
        1
    );
    assert!(!mark.exists());
}

#[test]
fn a_mark_that_others_could_take_away_is_refused() {
    let place = Place::new();
    let mark = elsewhere(&place);
    let folder = mark.parent().expect("a folder");
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).expect("a mode");
    let said = refused(&place, &["serve"], 1);
    assert!(said.contains("marks"), "{said}");
    assert!(!mark.exists());
    place.settings("vault.mark = \"marks/vault.mark\"");
    let said = refused(&place, &["serve"], 78);
    assert!(
        said.contains("vault.mark: expected the absolute path of a file; begin it with `/`"),
        "{said}"
    );
}
