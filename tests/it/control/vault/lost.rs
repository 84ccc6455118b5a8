//! Keyrings that are lost or cannot be used.

use super::*;

#[test]
fn a_lost_keyring_stops_the_start_and_all_can_be_forgotten() {
    let place = Place::new();
    end(Served::start(&place));
    connect(&place, "ann");
    let keyring = place.state().join("keyring");
    let kept = fs::read(&keyring).expect("a keyring");
    fs::remove_file(&keyring).expect("removed");
    let before = fs::read(place.state().join("tollgate.db")).expect("a database");
    let said = refused(&place, &["serve"], 1);
    assert!(said.contains("there is no keyring at"), "{said}");
    assert!(
        said.contains("restore the keyring that belongs to it. Nothing was changed"),
        "{said}"
    );
    no_keyring_is_made(&place);

    let other = Place::new();
    end(Served::start(&other));
    fs::copy(other.state().join("keyring"), &keyring).expect("another keyring");
    let said = refused(&place, &["serve"], 1);
    assert!(said.contains("was sealed under another keyring"), "{said}");
    assert_eq!(
        fs::read(place.state().join("tollgate.db")).expect("a database"),
        before
    );
    assert!(!place.socket().exists());
    fs::write(&keyring, kept).expect("restored");
    let served = Served::start(&place);
    let running = refused(&place, &["vault", "reset", "--forget-all", "--yes"], 1);
    assert!(running.contains("a tollgate already runs"), "{running}");
    // A process that runs makes none either.
    fs::remove_file(&keyring).expect("removed");
    no_keyring_is_made(&place);
    end(served);
    let said = refused(&place, &["vault", "reset", "--forget-all"], 64);
    assert!(said.contains("add --yes"), "{said}");
    refused(&place, &["vault", "reset"], 64);
    let forgot = json(&place, &["vault", "reset", "--forget-all", "--yes"]);
    assert_eq!(
        (&forgot["rows"], &forgot["pins"]),
        (&1.into(), &true.into())
    );
    end(Served::start(&place));
    let row = with_store(&place, async |store, _| {
        store.grant(&whose("ann")).await.expect("read")
    });
    assert_eq!(row, None);
    let reset = |record: &&Value| record["method"] == "vault_reset" && record["kind"] == "admin";
    assert_eq!(place.records().iter().filter(reset).count(), 1);
}

fn no_keyring_is_made(place: &Place) {
    for words in [
        &["keys", "init"][..],
        &["keys", "rotate"],
        &["keys", "rotate", "--kek-done"],
        &["keys", "status"],
    ] {
        let said = refused(place, words, 1);
        assert!(said.contains("there is no keyring at"), "{said}");
        assert!(
            said.contains("tollgate.db` is in use; restore the keyring"),
            "{said}"
        );
    }
    assert!(!place.state().join("keyring").exists());
}

#[test]
fn a_keyring_whose_key_is_lost_is_moved_aside_when_all_is_forgotten() {
    let place = Place::new();
    end(Served::start(&place));
    connect(&place, "ann");
    let keyring = place.state().join("keyring");
    write(&place, "lost.key", KEY);
    let settings = format!("{}\n[vault]\nkey = \"file:lost.key\"\n", place.text());
    let plain = place.text();
    write(&place, "tollgate.toml", &settings);
    json(&place, &["keys", "init"]);
    write(&place, "tollgate.toml", &plain);
    for unusable in [fs::read(&keyring).expect("sealed"), b"damaged".to_vec()] {
        fs::write(&keyring, &unusable).expect("written");
        refused(&place, &["serve"], 1);
        let forgot = json(&place, &["vault", "reset", "--forget-all", "--yes"]);
        let aside = forgot["moved_keyring"].as_str().expect("a path").to_owned();
        assert!(
            aside.starts_with(&format!("{}.unusable-", keyring.display())),
            "{aside}"
        );
        assert_eq!(fs::read(&aside).expect("kept"), unusable);
        fs::remove_file(aside).expect("removed");
        end(Served::start(&place));
    }
}
