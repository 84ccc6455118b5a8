//! A database and its keyring belong together, changes of what is sealed are counted, and all of it can be forgotten.

use std::fs;

use tollgate::{
    catalog::Ledger,
    connect::{Key, Records, Row},
    identity::{SessionRow, Sessions},
    store::{Error, Forgotten, Store, Unavailable},
    vault::Keyring,
};

use super::{Place, everything, reseal::grant, server};

fn keyring(place: &Place) -> Keyring {
    Keyring::open(&place.0.path().join("keyring")).unwrap()
}

fn discovery(place: &Place) -> (Key, Row) {
    let key = Key::Discovery {
        server: "notes".into(),
        endpoint: "https://notes.example/mcp".into(),
    };
    let vault = keyring(place).vault();
    let mut row = Row {
        record: uuid::Uuid::from_bytes([9; 16]),
        version: 1,
        flow: None,
        expires_at: None,
        kid: vault.primary(),
        sealed: Vec::new(),
    };
    row.sealed = vault.seal(&row.binding(&key), b"found");
    (key, row)
}

/// Everything of the folder but what SQLite keeps beside the database while it is open.
fn content(place: &Place) -> Vec<(String, Vec<u8>)> {
    let mut content: Vec<(String, Vec<u8>)> = fs::read_dir(place.0.path())
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| {
            (
                entry.file_name().into_string().unwrap(),
                fs::read(entry.path()).unwrap(),
            )
        })
        .filter(|(name, _)| !name.starts_with("tollgate.db-"))
        .collect();
    content.sort();
    content
}

#[tokio::test]
async fn a_database_of_other_data_keys_is_refused_and_kept() {
    let place = Place::new();
    let store = place.open();
    store
        .put_grant(grant(&keyring(&place).vault(), "ann"))
        .await
        .unwrap();
    store.close().await;
    // The same root key, as after a keyring was restored from before a rotation whose old key is gone.
    let path = place.0.path().join("keyring");
    let text = fs::read_to_string(&path).unwrap();
    let (key, state) = (place.open(), text.lines().last().unwrap().to_owned());
    drop(key);
    let other = place.0.path().join("other");
    Keyring::init(&other, None).unwrap();
    let others = fs::read_to_string(&other).unwrap();
    fs::write(&path, text.replace(&state, others.lines().last().unwrap())).unwrap();

    let before = content(&place);
    let error = place.refused();
    assert!(matches!(error, Error::Keyring { .. }), "{error}");
    assert_eq!(error.code().as_str(), "vault.key");
    assert_eq!(
        error.to_string(),
        format!(
            "`{}` was sealed under another keyring, or under keys that this one has no more; restore the keyring that \
             belongs to it. Nothing was changed. If that is lost: `tollgate vault reset --forget-all`",
            place.file().display()
        )
    );
    assert_eq!(content(&place), before);
    fs::write(&path, text).unwrap();
    place.open();
}

#[tokio::test]
async fn a_check_that_was_changed_is_refused() {
    for change in [
        "UPDATE vault_check SET sealed = x'00'",
        "UPDATE vault_check SET sealed = ''",
        "UPDATE vault_check SET record = x'00'",
        "UPDATE vault_check SET record = zeroblob(16)",
    ] {
        let place = Place::new();
        drop(place.open());
        place
            .sql()
            .execute_batch(&change.replace("''", "x''"))
            .unwrap();
        let error = place.refused();
        assert!(matches!(error, Error::Keyring { .. }), "{change}: {error}");
    }
}

#[tokio::test]
async fn a_database_of_before_the_vault_is_brought_up_to_date() {
    let place = Place::new();
    let store = place.open();
    assert!(
        Ledger::replace(&store, &server("a"), None, &everything())
            .await
            .unwrap()
    );
    drop(store);
    place
        .sql()
        .execute_batch(
            "DROP TABLE vault_check; DROP TABLE vault_changes; DROP TABLE grants; DROP TABLE fences; DROP TABLE sealed;
            DROP TABLE login_links; DROP TABLE sessions;
            DELETE FROM migrations WHERE version > 1;",
        )
        .unwrap();
    let store = place.open();
    assert_eq!(
        Ledger::read(&store, &server("a")).await.unwrap(),
        Some(everything())
    );
    assert_eq!(store.changes().await.unwrap(), 0);
    assert_eq!(
        store.sealed_rows().await.unwrap(),
        [(keyring(&place).vault().primary(), 1)]
    );
}

#[tokio::test]
async fn every_change_of_what_is_sealed_is_counted_and_nothing_else() {
    let place = Place::new();
    let (store, vault) = (place.open(), keyring(&place).vault());
    let row = grant(&vault, "ann");
    let (key, found) = discovery(&place);
    assert_eq!(store.changes().await.unwrap(), 0);
    store.put_grant(row.clone()).await.unwrap();
    Records::replace(&store, &key, None, &found).await.unwrap();
    assert_eq!(store.changes().await.unwrap(), 2);
    assert_eq!(store.sealed_rows().await.unwrap(), [(vault.primary(), 3)]);

    store.grant(&row.key).await.unwrap();
    assert!(
        !Records::replace(&store, &key, None, &found).await.unwrap(),
        "one is there"
    );
    assert!(
        !store.overwrite(7, &row).await.unwrap(),
        "it has another version"
    );
    assert!(
        Ledger::replace(&store, &server("a"), None, &everything())
            .await
            .unwrap(),
        "pins"
    );
    assert_eq!(store.changes().await.unwrap(), 2);

    assert!(store.overwrite(row.version, &row).await.unwrap());
    store.take(&key).await.unwrap();
    store.remove_grant(&row.key, None).await.unwrap();
    assert_eq!(store.changes().await.unwrap(), 5);
    drop(store);
    assert_eq!(place.open().found(), 5);
}

#[tokio::test]
async fn the_number_of_changes_is_marked() {
    for change in [
        "UPDATE vault_changes SET number = 7",
        "DELETE FROM vault_changes",
        "UPDATE vault_changes SET mac = x'00'",
    ] {
        let place = Place::new();
        let store = place.open();
        place.sql().execute_batch(change).unwrap();
        let error = store.changes().await.unwrap_err();
        assert!(matches!(error, Unavailable::Forged), "{change}: {error}");
        let row = grant(&keyring(&place).vault(), "ann");
        assert!(store.put_grant(row.clone()).await.is_err());
        assert_eq!(
            store.grant(&row.key).await.unwrap(),
            None,
            "nothing took effect"
        );
        drop(store);
        assert!(matches!(place.refused(), Error::Forged { .. }), "{change}");
    }
}

#[tokio::test]
async fn an_older_database_reads_and_writes_no_connection_until_it_is_accepted() {
    let place = Place::new();
    let store = place.open();
    let row = grant(&keyring(&place).vault(), "ann");
    store.put_grant(row.clone()).await.unwrap();
    store.refuse_older(true);
    for error in [
        store.grant(&row.key).await.unwrap_err(),
        store.put_grant(row.clone()).await.unwrap_err(),
        store.remove_grant(&row.key, None).await.unwrap_err(),
        store
            .rows(&tollgate::connect::Of::Everyone, None)
            .await
            .unwrap_err(),
    ] {
        assert_eq!(error.code().as_str(), "vault.older");
    }
    // Pins are another matter.
    assert_eq!(Ledger::read(&store, &server("a")).await.unwrap(), None);
    let ended = SessionRow {
        digest: [7; 32],
        owner: row.key.owner.clone(),
        made: 1,
        seen: 1,
        ends: i64::MAX,
        mac: [0; 32],
    };
    store.put_session(&ended).await.unwrap();
    assert_eq!(store.count_beyond(40).await.unwrap(), 41);
    assert_eq!(
        store.session(&ended.digest).await.unwrap(),
        None,
        "who had signed out since is not signed in again"
    );
    store.refuse_older(false);
    assert_eq!(store.changes().await.unwrap(), 41);
    assert_eq!(store.grant(&row.key).await.unwrap(), Some(row));
}

#[tokio::test]
async fn all_that_is_sealed_can_be_forgotten_and_pins_stay() {
    let place = Place::new();
    let store = place.open();
    store
        .put_grant(grant(&keyring(&place).vault(), "ann"))
        .await
        .unwrap();
    let (key, found) = discovery(&place);
    Records::replace(&store, &key, None, &found).await.unwrap();
    Ledger::replace(&store, &server("a"), None, &everything())
        .await
        .unwrap();
    store.close().await;
    let forgotten = Store::reset(&place.file(), &keyring(&place)).unwrap();
    assert_eq!(
        forgotten,
        Forgotten {
            rows: 2,
            pins: false
        }
    );
    let store = place.open();
    assert_eq!(store.found(), 3);
    assert_eq!(
        store.sealed_rows().await.unwrap(),
        [(keyring(&place).vault().primary(), 1)]
    );
    assert_eq!(
        Ledger::read(&store, &server("a")).await.unwrap(),
        Some(everything())
    );
}

#[tokio::test]
async fn where_the_keyring_is_lost_pins_are_forgotten_too() {
    let place = Place::new();
    let store = place.open();
    store
        .put_grant(grant(&keyring(&place).vault(), "ann"))
        .await
        .unwrap();
    Ledger::replace(&store, &server("a"), None, &everything())
        .await
        .unwrap();
    store.close().await;
    fs::remove_file(place.0.path().join("keyring")).unwrap();
    assert!(matches!(place.refused(), Error::Keyring { .. }));
    let forgotten = Store::reset(&place.file(), &keyring(&place)).unwrap();
    assert_eq!(
        forgotten,
        Forgotten {
            rows: 1,
            pins: true
        }
    );
    let store = place.open();
    assert_eq!(Ledger::read(&store, &server("a")).await.unwrap(), None);
    assert!(
        Ledger::replace(&store, &server("a"), None, &everything())
            .await
            .unwrap()
    );
}
