//! Rotation: data keys follow one another while records stay open.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    sync::Barrier,
    thread,
};

use super::{super::*, COUNTED, folder, write};

fn bound(version: u64) -> Binding<'static> {
    Binding {
        purpose: Purpose::Secret,
        record: uuid::Uuid::nil(),
        tenant: "default",
        user: Some("ann"),
        server: Some("notes"),
        issuer: None,
        client: None,
        resource: None,
        grant: None,
        version,
    }
}

#[test]
fn a_rotation_is_taken_up_while_records_stay_open() {
    let (folder, path) = folder();
    write(&path, COUNTED, 0o600);
    let ring = Keyring::open(&path).unwrap();
    let (mark, vault) = (ring.mac("store").sign(&[b"row"]), ring.vault());
    let old = vault.seal(&bound(1), b"old");
    let kid = Keyring::rotate(&path, None).unwrap();
    assert_ne!(vault.primary(), kid, "nobody looked yet");
    let other = ring.vault();
    assert!(vault.follow());
    assert!(!vault.follow(), "once");
    assert_eq!(vault.primary(), kid);
    assert_eq!(other.primary(), kid, "all of one keyring follow together");
    assert!(vault.open(&bound(1), &old).is_ok());
    let new = vault.seal(&bound(1), b"new");
    assert_ne!(old[5..13], new[5..13]);

    // What is derived of the root key stays.
    let ring = Keyring::open(&path).unwrap();
    assert!(ring.mac("store").verify(&[b"row"], &mark));
    let states: Vec<KeyState> = ring
        .view()
        .keys
        .into_iter()
        .map(|(_, state)| state)
        .collect();
    assert_eq!(states, [KeyState::DecryptOnly, KeyState::Primary]);
    let found = fs::metadata(&path).unwrap();
    assert_eq!((found.mode() & 0o7777, found.nlink()), (0o600, 1));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_record_of_a_newer_key_makes_a_process_look_again() {
    let (_folder, path) = folder();
    let here = Keyring::open(&path).unwrap().vault();
    Keyring::rotate(&path, None).unwrap();
    let there = Keyring::open(&path).unwrap().vault();
    let sealed = there.seal(&bound(1), b"new");
    assert_eq!(here.open(&bound(1), &sealed).unwrap().expose(), b"new");
    assert_eq!(here.primary(), there.primary());
}

#[test]
fn keys_are_disabled_taken_back_and_destroyed() {
    let (_folder, path) = folder();
    let vault = Keyring::open(&path).unwrap().vault();
    let (first, old) = (vault.primary(), vault.seal(&bound(1), b"old"));
    for refused in [
        Keyring::disable(&path, None, first, true),
        Keyring::disable(&path, None, first, false),
        Keyring::destroy(&path, None, first),
        Keyring::disable(&path, None, Kid([0; 8]), true),
        Keyring::destroy(&path, None, Kid([0; 8])),
    ] {
        assert!(matches!(refused, Err(Error::Key { .. })));
    }
    Keyring::rotate(&path, None).unwrap();
    assert!(
        Keyring::destroy(&path, None, first).is_err(),
        "it may be in use"
    );
    Keyring::disable(&path, None, first, true).unwrap();
    assert!(vault.follow());
    let found = vault.open(&bound(1), &old).err();
    assert_eq!(found, Some(Unopened::UnknownKey(first)));
    Keyring::disable(&path, None, first, false).unwrap();
    // The failure to open makes it look.
    assert!(vault.open(&bound(1), &old).is_ok());
    Keyring::disable(&path, None, first, true).unwrap();
    Keyring::destroy(&path, None, first).unwrap();
    let view = Keyring::open(&path).unwrap().view();
    assert_eq!(view.keys.len(), 1);
    assert_ne!(view.keys[0].0, first);
}

#[test]
fn a_keyring_has_sixteen_keys_at_most_and_still_reads() {
    let (_folder, path) = folder();
    Keyring::init(&path, None).unwrap();
    for _ in 1..16 {
        Keyring::rotate(&path, None).unwrap();
    }
    assert!(matches!(Keyring::rotate(&path, None), Err(Error::Full)));
    assert_eq!(Keyring::open(&path).unwrap().view().keys.len(), 16);
}

#[test]
fn changes_at_once_come_one_after_the_other() {
    const ROTATORS: usize = 8;
    let (folder, path) = folder();
    Keyring::init(&path, None).unwrap();
    let barrier = Barrier::new(ROTATORS);
    let rotate = || {
        barrier.wait();
        Keyring::rotate(&path, None).unwrap()
    };
    let kids: Vec<Kid> = thread::scope(|scope| {
        let rotators: Vec<_> = (0..ROTATORS).map(|_| scope.spawn(rotate)).collect();
        rotators
            .into_iter()
            .map(|rotator| rotator.join().unwrap())
            .collect()
    });
    let keys = Keyring::open(&path).unwrap().view().keys;
    assert_eq!(keys.len(), ROTATORS + 1);
    assert!(
        kids.iter()
            .all(|kid| keys.iter().any(|(key, _)| key == kid))
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn another_keyring_in_its_place_is_not_taken_up() {
    let (_folder, path) = folder();
    let vault = Keyring::open(&path).unwrap().vault();
    let sealed = vault.seal(&bound(1), b"text");
    write(&path, COUNTED, 0o600);
    assert!(matches!(vault.renew(), Err(Error::OtherKeyring { .. })));
    assert!(!vault.follow());
    fs::write(&path, "nothing").unwrap();
    assert!(!vault.follow());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    assert!(!vault.follow());
    fs::remove_file(&path).unwrap();
    assert!(!vault.follow());
    assert!(vault.open(&bound(1), &sealed).is_ok());
}
