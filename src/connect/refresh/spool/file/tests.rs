use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::vault::Keyring;

fn vault() -> Vault {
    let folder = tempfile::tempdir().unwrap();
    let keyring = Keyring::open(&folder.path().join("keyring")).unwrap();
    keyring.vault()
}

fn row(vault: &Vault, record: u128) -> GrantRow {
    let mut row = GrantRow {
        record: Uuid::from_u128(record),
        key: GrantKey {
            owner: Owner {
                tenant: "default".into(),
                user: "Zoë".into(),
            },
            server: "demo".into(),
        },
        grant: [7; 16],
        version: 3,
        issuer: "https://as.example".into(),
        client: "gateway".into(),
        resource: Some("https://tools.example/mcp".into()),
        state: GrantState::Active,
        expires_at: Some(1_800_003_600),
        next_try: None,
        lease: None,
        kid: vault.primary(),
        sealed: Vec::new(),
        created_at: 1_800_000_000,
    };
    row.sealed = vault.seal(&row.binding(), b"what is sealed");
    row
}

fn found(folder: &Path, vault: &Vault) -> Vec<(GrantRow, [u8; 32])> {
    let mut found = read_all(folder, vault, 8).unwrap();
    found.sort_by_key(|(row, _)| row.record);
    found
}

#[test]
fn what_is_written_comes_back_until_it_is_removed() {
    let (place, vault) = (tempfile::tempdir().unwrap(), vault());
    let folder = place.path().join("spool");
    assert_eq!(found(&folder, &vault), []);
    let (one, other) = (row(&vault, 1), row(&vault, 2));
    for row in [&one, &other, &one] {
        write(&folder, row.record, &sealed(&vault, row, &[5; 32])).unwrap();
    }
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(&folder), 0o700);
    assert_eq!(mode(&super::place(&folder, one.record)), 0o600);
    assert_eq!(
        found(&folder, &vault),
        [(one.clone(), [5; 32]), (other.clone(), [5; 32])]
    );
    remove(&folder, one.record).unwrap();
    remove(&folder, one.record).unwrap();
    assert_eq!(found(&folder, &vault), [(other, [5; 32])]);
}

#[test]
fn a_file_that_is_not_as_it_was_written_is_left_where_it_is() {
    let (folder, vault) = (tempfile::tempdir().unwrap(), vault());
    let folder = folder.path();
    let row = row(&vault, 1);
    let right = sealed(&vault, &row, &[5; 32]);
    let at = |number| super::place(folder, Uuid::from_u128(number));
    let put = |path: &Path, bytes: &[u8]| {
        fs::write(path, bytes).unwrap();
        fs::set_permissions(path, PermissionsExt::from_mode(0o600)).unwrap();
    };
    put(&at(2), &right);
    put(&at(3), &right[..right.len() - 1]);
    put(&at(4), b"");
    put(&folder.join("note.txt"), &right);
    put(&at(1).with_extension("new"), &right);
    write(folder, row.record, &right).unwrap();
    assert_eq!(found(folder, &vault).len(), 1, "the one under its own name");
    fs::set_permissions(at(1), PermissionsExt::from_mode(0o644)).unwrap();
    assert_eq!(found(folder, &vault), [], "others can read it");
    assert_eq!(found(folder, &self::vault()), [], "another keyring's");
    assert_eq!(fs::read_dir(folder).unwrap().count(), 5, "nothing is lost");
}

#[test]
fn files_are_counted_by_each_key_that_they_need() {
    let place = tempfile::tempdir().unwrap();
    let ring = place.path().join("keyring");
    let vault = Keyring::open(&ring).unwrap().vault();
    let folder = place.path().join("spool");
    let counts = |vault: &Vault| {
        let keys = keys(&folder, vault, 8).unwrap();
        keys.into_iter().collect::<Vec<_>>()
    };
    assert_eq!(counts(&vault), []);
    let (one, other) = (row(&vault, 1), row(&vault, 2));
    write(&folder, one.record, &sealed(&vault, &one, &[5; 32])).unwrap();
    let before = vault.primary();
    assert_eq!(counts(&vault), [(before, 1)]);
    Keyring::rotate(&ring, None).unwrap();
    assert!(vault.follow());
    // Its file is of the new key, and the tokens in it of the one before.
    write(&folder, other.record, &sealed(&vault, &other, &[5; 32])).unwrap();
    fs::write(folder.join("no-uuid.sealed"), b"x").unwrap();
    let mut expected = [(before, 2), (vault.primary(), 1)];
    expected.sort();
    assert_eq!(counts(&vault), expected);
}
