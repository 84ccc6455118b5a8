//! Whoever can write the database grants himself nothing: every change by another connection is found.

use std::fs;

use rusqlite::Connection;
use tollgate::{
    catalog::{Ledger, LedgerError, Pinned, ServerKey},
    store::Error,
};

use super::{Place, everything, open, server, tools};

/// A database in which something is pinned of `a` and `b`.
async fn prepared() -> Place {
    let place = Place::new();
    let store = place.open();
    assert!(
        store
            .replace(&server("a"), None, &everything())
            .await
            .unwrap()
    );
    let of_b = tools(5, &["x", "y"]);
    assert!(store.replace(&server("b"), None, &of_b).await.unwrap());
    place
}

/// What a store that runs, and one that is opened then, make of a change.
async fn found(place: &Place, change: impl FnOnce(&Connection)) -> [Found; 2] {
    let store = place.open();
    change(&place.sql());
    let running = Found::of(store.read(&server("a")).await);
    drop(store);
    let opened = match open(place.0.path()) {
        Ok(store) => Found::of(store.read(&server("a")).await),
        Err(Error::Forged { .. }) => Found::Forged,
        Err(error) => panic!("{error}"),
    };
    [running, opened]
}

#[derive(Debug, PartialEq)]
enum Found {
    Nothing,
    Intact,
    Forged,
    Other,
}

impl Found {
    fn of(read: Result<Option<Pinned>, LedgerError>) -> Self {
        match read {
            Ok(None) => Self::Nothing,
            Ok(Some(pinned)) if pinned == everything() => Self::Intact,
            Ok(Some(_)) => Self::Other,
            Err(LedgerError::Forged { server }) if &*server == "a" => Self::Forged,
            Err(error) => panic!("{error}"),
        }
    }
}

async fn is_found(sql: &str) {
    let place = prepared().await;
    let result = found(&place, |other| {
        other
            .execute_batch(&format!("PRAGMA foreign_keys = OFF; {sql}"))
            .expect(sql);
        assert!(other.changes() > 0 || sql.contains("TABLE"), "{sql}");
    });
    assert_eq!(result.await, [Found::Forged, Found::Forged], "{sql}");
}

#[tokio::test]
async fn every_changed_column_is_found() {
    let texts = [
        "server",
        "endpoint",
        "kind",
        "name",
        "made_by",
        "definition",
    ];
    let place = prepared().await;
    let sql = place.sql();
    let mut seen = 0;
    for (table, rows) in [
        ("pins", "server = 'a'"),
        ("pin_items", "pin = 1 AND name = 'a'"),
        ("pins_of_all", "id = 1"),
    ] {
        let mut columns = sql
            .prepare("SELECT name, type FROM pragma_table_info(?1)")
            .unwrap();
        let columns: Vec<(String, String)> = columns
            .query_map([table], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        for (column, kind) in columns {
            // The number of a row is a name for it; it is checked below where it says something.
            if column == "id" {
                continue;
            }
            let change = match &*kind {
                "INTEGER" => format!("{column} + 1"),
                "BLOB" => format!("CAST({column} || 'x' AS BLOB)"),
                _ => format!("{column} || 'x'"),
            };
            is_found(&format!(
                "UPDATE {table} SET {column} = {change} WHERE {rows}"
            ))
            .await;
            if kind == "BLOB" {
                is_found(&format!(
                    "UPDATE {table} SET {column} = zeroblob(length({column})) WHERE {rows}"
                ))
                .await;
                is_found(&format!("UPDATE {table} SET {column} = x'' WHERE {rows}")).await;
            }
            seen += usize::from(texts.contains(&&*column));
        }
    }
    assert_eq!(seen, texts.len());
}

#[tokio::test]
async fn single_items_are_found_whatever_is_done_with_them() {
    let one = "pin = 1 AND name = 'a'";
    for sql in [
        format!("DELETE FROM pin_items WHERE {one}"),
        "DELETE FROM pin_items".to_owned(),
        "INSERT INTO pin_items SELECT pin, kind, name || 'x', digest, version, made_by, mac, definition FROM pin_items WHERE pin = 1".to_owned(),
        "INSERT INTO pin_items SELECT 1, kind, name, digest, version, made_by, mac, definition FROM pin_items WHERE pin = 2".to_owned(),
        format!("UPDATE pin_items SET made_by = 'operator' WHERE {one}"),
        format!("UPDATE pin_items SET definition = '{{}}' WHERE {one}"),
        format!("UPDATE pin_items SET kind = 'resource' WHERE {one}"),
        format!("UPDATE pin_items SET pin = 2 WHERE {one}"),
        "UPDATE pin_items SET pin = 3 - pin".to_owned(),
        "UPDATE pins SET id = 9 WHERE server = 'a'".to_owned(),
        "DELETE FROM pins WHERE server = 'a'".to_owned(),
        "DELETE FROM pins".to_owned(),
        "DELETE FROM pins WHERE server = 'b'".to_owned(),
        "DELETE FROM pins_of_all".to_owned(),
        "INSERT INTO pins SELECT 9, 'c', endpoint, version, reviewed, views, items, bytes, list, mac FROM pins WHERE id = 1".to_owned(),
        "UPDATE pins SET id = id + 10; UPDATE pins SET id = 12 - id % 10 - 9".to_owned(),
        "UPDATE pins SET server = 'c' WHERE id = 1; UPDATE pins SET server = 'a', endpoint = 'https://a.example:443/mcp' WHERE id = 2".to_owned(),
        "UPDATE pins SET reviewed = 0 WHERE id = 1".to_owned(),
        "DELETE FROM pins WHERE id = 1; DELETE FROM pin_items WHERE pin = 1; UPDATE pins_of_all SET servers = 1".to_owned(),
    ] {
        is_found(&sql).await;
    }
}

#[tokio::test]
async fn other_tables_in_the_place_of_ours_are_found() {
    for sql in [
        "DROP TABLE pin_items",
        "ALTER TABLE pins RENAME TO elsewhere; CREATE VIEW pins AS SELECT * FROM elsewhere",
        "ALTER TABLE pin_items RENAME COLUMN definition TO text",
        "DROP TABLE pins_of_all; CREATE TABLE pins_of_all (id, servers, list, mac); INSERT INTO pins_of_all VALUES (1, 'many', 1, 2)",
        "CREATE TABLE loose AS SELECT * FROM pin_items; DROP TABLE pin_items; ALTER TABLE loose RENAME TO pin_items; INSERT INTO pin_items SELECT * FROM pin_items",
    ] {
        is_found(sql).await;
    }
}

#[tokio::test]
async fn a_trigger_of_somebody_else_never_runs() {
    let place = prepared().await;
    let store = place.open();
    place
        .sql()
        .execute_batch(
            "CREATE TRIGGER a BEFORE INSERT ON pin_items BEGIN SELECT RAISE(IGNORE); END;
            CREATE TRIGGER b AFTER UPDATE ON pins BEGIN DELETE FROM pin_items; END;",
        )
        .unwrap();
    let a = server("a");
    let after = tools(4, &["new"]);
    assert!(store.replace(&a, Some(3), &after).await.unwrap());
    assert_eq!(store.read(&a).await.unwrap(), Some(after));
}

/// What the whole of the pins is not read for does not stand in the way of new ones, which are whole.
#[tokio::test]
async fn nothing_is_built_on_forged_rows() {
    let a = server("a");
    for (sql, kept) in [
        ("UPDATE pins SET version = 4 WHERE id = 1", false),
        ("DELETE FROM pins WHERE id = 1", false),
        ("DELETE FROM pin_items WHERE name = 'a'", false),
        (
            "UPDATE pin_items SET definition = '{}' WHERE name = 'a'",
            true,
        ),
    ] {
        let place = prepared().await;
        let store = place.open();
        let other = place.sql();
        other
            .execute_batch(&format!("PRAGMA foreign_keys = OFF; {sql}"))
            .unwrap();
        let after = tools(4, &["x"]);
        for expected in [None, Some(4), Some(3)] {
            let replaced = store.replace(&a, expected, &after).await;
            let replaced = replaced.is_ok_and(|replaced| replaced);
            assert_eq!(replaced, kept && expected == Some(3), "{sql}");
        }
        let read = store.read(&a).await.ok();
        assert_eq!(read, kept.then_some(Some(after)), "{sql}");
    }
}

/// Rows of an earlier state are genuine, each by itself.
#[tokio::test]
async fn rows_put_back_to_an_earlier_state_are_found() {
    let save = "CREATE TABLE old_pins AS SELECT * FROM pins;
        CREATE TABLE old_items AS SELECT * FROM pin_items;
        CREATE TABLE old_all AS SELECT * FROM pins_of_all;";
    let items = "DELETE FROM pin_items WHERE pin = 1; INSERT INTO pin_items SELECT * FROM old_items WHERE pin = 1;";
    let head = "INSERT OR REPLACE INTO pins SELECT * FROM old_pins WHERE id = 1;";
    let all = "INSERT OR REPLACE INTO pins_of_all SELECT * FROM old_all;";
    let one = "INSERT OR REPLACE INTO pin_items SELECT * FROM old_items WHERE name = 'Zürich';";
    for restored in [
        items.to_owned(),
        head.to_owned(),
        all.to_owned(),
        one.to_owned(),
        format!("{items}{head}"),
        format!("{head}{all}"),
        format!("{items}{all}"),
    ] {
        let place = prepared().await;
        place.sql().execute_batch(save).unwrap();
        let store = place.open();
        let mut after = everything();
        after.version = 4;
        after.items[0].version = 4;
        assert!(store.replace(&server("a"), Some(3), &after).await.unwrap());
        // Another server's change keeps a whole earlier state of this one from being put back.
        let of_b = tools(6, &["x"]);
        assert!(store.replace(&server("b"), Some(5), &of_b).await.unwrap());
        drop(store);
        let result = found(&place, |sql| sql.execute_batch(&restored).unwrap());
        assert_eq!(result.await, [Found::Forged, Found::Forged], "{restored}");
    }
}

/// The limit of what marks can tell, as the documentation says it: all of an earlier state at once.
#[tokio::test]
async fn a_whole_earlier_database_is_taken_for_the_real_one() {
    let place = prepared().await;
    let earlier = fs::read(place.file()).unwrap();
    let store = place.open();
    assert!(
        store
            .replace(&server("a"), Some(3), &tools(4, &["x"]))
            .await
            .unwrap()
    );
    drop(store);
    fs::write(place.file(), earlier).unwrap();
    let read = place.open().read(&server("a")).await;
    assert_eq!(read.unwrap(), Some(everything()));
}

#[tokio::test]
async fn the_marks_of_another_keyring_do_not_hold() {
    let place = prepared().await;
    fs::remove_file(place.0.path().join("keyring")).unwrap();
    let before = fs::read(place.file()).unwrap();
    let error = place.refused();
    assert!(matches!(error, Error::Keyring { .. }), "{error}");
    assert_eq!(error.code().as_str(), "vault.key");
    assert_eq!(fs::read(place.file()).unwrap(), before);

    // Nor where nothing says whose it is but the marks.
    place.sql().execute("DELETE FROM vault_check", []).unwrap();
    let before = fs::read(place.file()).unwrap();
    let error = place.refused();
    assert!(matches!(error, Error::Forged { .. }), "{error}");
    assert_eq!(error.code().as_str(), "catalog.pins_unusable");
    assert_eq!(fs::read(place.file()).unwrap(), before);
}

/// Bits that flip in the file are found, or touch nothing that counts.
#[tokio::test]
async fn no_flipped_bit_makes_other_pins() {
    let place = prepared().await;
    let whole = fs::read(place.file()).unwrap();
    let a: ServerKey = server("a");
    let used: Vec<usize> = (0..whole.len()).filter(|at| whole[*at] != 0).collect();
    let (mut intact, mut refused) = (0, 0);
    for (round, at) in used.iter().step_by(used.len() / 500).enumerate() {
        let mut changed = whole.clone();
        changed[*at] ^= 1 << (round % 8);
        for beside in ["tollgate.db-wal", "tollgate.db-shm"] {
            drop(fs::remove_file(place.0.path().join(beside)));
        }
        fs::write(place.file(), changed).unwrap();
        let read = match open(place.0.path()) {
            Ok(store) => store.read(&a).await.ok(),
            Err(_) => None,
        };
        match read {
            Some(pinned) => {
                assert_eq!(pinned, Some(everything()), "byte {at}");
                intact += 1;
            }
            None => refused += 1,
        }
    }
    assert!(intact > 10 && refused > 100, "{intact} {refused}");
}
