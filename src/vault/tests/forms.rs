//! The second form of the keyring, plain and sealed, and how the first becomes it.

use super::{super::*, COUNTED, counted, folder, write};

/// The keyring of the bytes 0 to 31 in form 2, and sealed for the key of the bytes 100 to 131. Computed with another
/// implementation of HKDF and AES-GCM.
const SECOND: &str = "tollgate-keyring 2\n\
    deployment c842c1137e832ca5e16e62c841d77b15\n\
    root 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n\
    data f5526df39562884a primary 267485a51422891e94e46b4b17d5ea721beacc5e965bfe3aac2df7a008445ab0\n";
const SEALED: &str = "tollgate-keyring 2 sealed\n\
    key d72c90f81cbc1d23 01000000017477656c7665206279746573864da07932ce6bb6ce8019d8f1bcf6ad2086a92800d6aa3760e5cf23\
    35e4375ba1b4b3789c43f66978d34948dc7137d9\n\
    0100000001313220627974657320746f6f41750bafccc2169c516c2ac05138ecbc4436dcecd6071e81bc267da8d54125ce7fa7de53d7ff3b\
    df7cdff8082ec2dafc3460fa53928a04aef43af69f05c260e9d6b905d54b0e704921f81a8f96b02b461e80911f88ec3004e038d481e78c2e\
    30da635af33547c834450e78aa5e4a5c9a3a707718a4aa2ff158a78ff3bc729141cd2cba223d06de4828d2614ec75aa299b6fd3687dfb436\
    50db106a57f989813e76c055804ea95c2e456e73a6a5f5c971cc86a458cb36b369e300a3b8de1c0a9ae6185a55f8933afc162076df5d6e27\
    b3d9eff79cecae7b5609c6fddc7ba509e37d\n";

fn kek(first: u8) -> Kek {
    let mut key = zeroize::Zeroizing::new([0; 32]);
    for (byte, value) in key.iter_mut().zip(first..) {
        *byte = value;
    }
    Kek::new(key)
}

fn bound() -> Binding<'static> {
    Binding {
        purpose: Purpose::Grant,
        record: uuid::Uuid::nil(),
        tenant: "default",
        user: Some("ann"),
        server: Some("notes"),
        issuer: None,
        client: None,
        resource: None,
        grant: None,
        version: 1,
    }
}

/// Whether all that one made opens with, or is known to, the other.
fn same(one: &Keyring, other: &Keyring) -> bool {
    let sealed = one.vault().seal(&bound(), b"text");
    let round = one.sealer("test").seal(b"text", b"");
    other.vault().open(&bound(), &sealed).is_ok()
        && other.sealer("test").open(&round, b"").is_some()
        && one.mac("test").sign(&[b"x"]) == other.mac("test").sign(&[b"x"])
}

#[test]
fn both_forms_stay_and_are_the_same_keyring() {
    let (_folder, path) = folder();
    write(&path, SECOND, 0o600);
    let second = Keyring::open(&path).expect("form 2");
    assert!(same(&second, &counted()) && same(&counted(), &second));
    write(&path, SEALED, 0o600);
    let sealed = Keyring::open_with(&path, Some(&kek(100))).expect("sealed");
    assert!(same(&sealed, &second));
    let view = sealed.view();
    assert!(view.current && !counted().view().current);
    assert_eq!(view.sealed_for, [kek(100).id()]);
    assert_eq!(view.keys, [(sealed.vault().primary(), KeyState::Primary)]);
}

#[test]
fn what_was_changed_is_no_keyring() {
    let (_folder, path) = folder();
    let key = SECOND.lines().last().unwrap();
    for text in [
        SECOND.replace("deployment c8", "deployment C8"),
        SECOND.replace("primary", "decrypt_only"),
        SECOND.replace("primary", "disabled"),
        SECOND.replace("primary", "secondary"),
        SECOND.replace("data f5", "data f6"),
        SECOND.replace("45ab0", "45ab1"),
        SECOND.replace("45ab0", "45ab0 x"),
        SECOND.replace("root", "roots"),
        SECOND.replace('\n', "\r\n"),
        format!("{SECOND}\n"),
        format!("{SECOND}{key}\n"),
        SECOND
            .lines()
            .take(3)
            .map(|line| format!("{line}\n"))
            .collect(),
    ] {
        write(&path, &text, 0o600);
        let error = Keyring::open(&path).err().expect("a refusal");
        assert!(matches!(error, Error::Form { .. }), "{text}: {error}");
    }
    let lines: Vec<&str> = SEALED.lines().collect();
    let wrap = lines[1];
    for text in [
        SEALED.replace("01000000017477", "01000000017478"),
        SEALED.replace("c7ba509e37d", "c7ba509e37e"),
        SEALED.replace("c7ba509e37d\n", "c7ba509e37\n"),
        SEALED.replace(wrap, &format!("{wrap}\n{wrap}\n{wrap}")),
        SEALED.replace(&format!("{wrap}\n"), ""),
        SEALED.trim_end().to_owned(),
    ] {
        write(&path, &text, 0o600);
        let error = Keyring::open_with(&path, Some(&kek(100))).err();
        assert!(matches!(error, Some(Error::Form { .. })), "{text}");
    }
}

#[test]
fn a_wrong_key_says_so_and_changes_nothing() {
    let (_folder, path) = folder();
    write(&path, SEALED, 0o600);
    let error = Keyring::open_with(&path, Some(&kek(101))).err().unwrap();
    assert_eq!(error.code().as_str(), "vault.keyring");
    assert_eq!(
        error.to_string(),
        format!(
            "`{}` is sealed for the key d72c90f81cbc1d23, found the key {} in [vault] key; put that one there, \
             nothing was changed",
            path.display(),
            kek(101).id()
        )
    );
    let error = Keyring::open(&path).err().unwrap();
    assert!(matches!(error, Error::NoKek { .. }), "{error}");
    for change in [
        Keyring::rotate(&path, Some(&kek(101))).err(),
        Keyring::init(&path, None).err(),
        Keyring::share(&path, &kek(101), &kek(102)).err(),
        Keyring::keep_only(&path, &kek(101)).err(),
    ] {
        assert!(change.is_some());
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), SEALED);
}

#[test]
fn a_first_start_seals_what_it_makes() {
    let (_folder, path) = folder();
    let made = Keyring::open_with(&path, Some(&kek(1))).expect("made");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(
        text.starts_with("tollgate-keyring 2 sealed\nkey "),
        "{text}"
    );
    let again = Keyring::open_with(&path, Some(&kek(1))).expect("read");
    assert!(same(&made, &again));
    assert!(Keyring::open(&path).is_err());
}

#[test]
fn init_makes_upgrades_seals_and_loses_nothing() {
    let (_folder, path) = folder();
    assert_eq!(Keyring::init(&path, None).unwrap(), Init::Made);
    assert_eq!(Keyring::init(&path, None).unwrap(), Init::Unchanged);
    let made = Keyring::open(&path).unwrap();
    assert_eq!(Keyring::init(&path, Some(&kek(1))).unwrap(), Init::Sealed);
    let sealed = Keyring::open_with(&path, Some(&kek(1))).unwrap();
    assert!(same(&made, &sealed));

    write(&path, COUNTED, 0o600);
    assert_eq!(Keyring::init(&path, None).unwrap(), Init::Upgraded);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), SECOND);

    write(&path, COUNTED, 0o600);
    assert_eq!(Keyring::init(&path, Some(&kek(1))).unwrap(), Init::Upgraded);
    let upgraded = Keyring::open_with(&path, Some(&kek(1))).unwrap();
    assert!(same(&upgraded, &counted()) && same(&counted(), &upgraded));
}

#[test]
fn two_keys_open_it_while_one_follows_the_other() {
    let (_folder, path) = folder();
    let (old, new, third) = (kek(1), kek(50), kek(90));
    let made = Keyring::open_with(&path, Some(&old)).unwrap();
    Keyring::share(&path, &old, &new).unwrap();
    // Once more is no other.
    Keyring::share(&path, &old, &new).unwrap();
    for either in [&old, &new] {
        let ring = Keyring::open_with(&path, Some(either)).unwrap();
        assert!(same(&made, &ring));
        assert_eq!(ring.view().sealed_for, [old.id(), new.id()]);
    }
    let error = Keyring::share(&path, &new, &third).err().unwrap();
    assert!(matches!(error, Error::Keks { .. }), "{error}");
    // A rotation meanwhile keeps both.
    Keyring::rotate(&path, Some(&new)).unwrap();
    let ring = Keyring::open_with(&path, Some(&old)).unwrap();
    assert_eq!(ring.view().keys.len(), 2);

    // The key that was to follow is not dropped by mistake.
    let before = std::fs::read(&path).unwrap();
    let error = Keyring::keep_only(&path, &old).err().unwrap();
    assert!(
        matches!(error, Error::Older { found, newest, .. } if found == old.id() && newest == new.id()),
        "{error}"
    );
    assert_eq!(std::fs::read(&path).unwrap(), before);
    Keyring::keep_only(&path, &new).unwrap();
    let ring = Keyring::open_with(&path, Some(&new)).unwrap();
    assert_eq!(ring.view().sealed_for, [new.id()]);
    let error = Keyring::open_with(&path, Some(&old)).err().unwrap();
    assert!(matches!(error, Error::OtherKek { .. }), "{error}");
}

#[test]
fn a_key_that_was_to_follow_is_given_up_by_naming_the_one_before_again() {
    let (_folder, path) = folder();
    let (old, new) = (kek(1), kek(50));
    Keyring::open_with(&path, Some(&old)).unwrap();
    Keyring::share(&path, &old, &new).unwrap();
    Keyring::share(&path, &old, &old).unwrap();
    let ring = Keyring::open_with(&path, Some(&new)).unwrap();
    assert_eq!(ring.view().sealed_for, [new.id(), old.id()]);
    Keyring::keep_only(&path, &old).unwrap();
    let ring = Keyring::open_with(&path, Some(&old)).unwrap();
    assert_eq!(ring.view().sealed_for, [old.id()]);
}
