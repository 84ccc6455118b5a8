mod forms;
mod record;
mod rotation;

use std::{
    fs::{self, Permissions},
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
    sync::Barrier,
    thread,
};

use nix::{sys::stat::Mode, unistd::mkfifo};
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

/// A keyring whose key is the bytes 0 to 31.
const COUNTED: &str =
    "tollgate-keyring 1\n1 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n";

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("keyring");
    (folder, path)
}

fn write(path: &Path, text: &str, mode: u32) {
    fs::write(path, text).expect("written");
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("a mode");
}

fn counted() -> Keyring {
    let (_folder, path) = folder();
    write(&path, COUNTED, 0o600);
    Keyring::open(&path).expect("a keyring")
}

fn refused(path: &Path) -> Error {
    Keyring::open(path).err().expect("a refusal")
}

/// Whether what one seals opens with the other.
fn same(one: &Keyring, other: &Keyring) -> bool {
    let sealed = one.sealer("test").seal(b"text", b"");
    other.sealer("test").open(&sealed, b"").is_some()
}

#[test]
fn the_first_start_makes_a_keyring_and_later_ones_read_it() {
    let (folder, path) = folder();
    let first = Keyring::open(&path).expect("made");
    let found = fs::metadata(&path).expect("a file");
    assert_eq!((found.mode() & 0o7777, found.nlink()), (0o600, 1));
    let text = fs::read_to_string(&path).expect("text");
    assert!(
        text.starts_with("tollgate-keyring 2\ndeployment "),
        "{text}"
    );
    assert_eq!((text.len(), text.lines().count()), (228, 4));
    let later = Keyring::open(&path).expect("read");
    assert!(same(&first, &later));
    assert_eq!(fs::read_to_string(&path).expect("text"), text);
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);

    let (_folder, elsewhere) = self::folder();
    assert!(!same(&first, &Keyring::open(&elsewhere).expect("made")));
}

#[test]
fn all_who_start_at_once_get_the_same_key() {
    const STARTERS: usize = 8;
    for _ in 0..20 {
        let (folder, path) = folder();
        let barrier = Barrier::new(STARTERS);
        let open = || {
            barrier.wait();
            Keyring::open(&path).expect("a keyring")
        };
        let rings: Vec<Keyring> = thread::scope(|scope| {
            let starters: Vec<_> = (0..STARTERS).map(|_| scope.spawn(open)).collect();
            starters
                .into_iter()
                .map(|starter| starter.join().expect("an end"))
                .collect()
        });
        assert!(rings.iter().all(|ring| same(&rings[0], ring)));
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }
}

#[test]
fn a_keyring_that_others_may_use_is_refused_and_kept() {
    let (_folder, path) = folder();
    for mode in [0o640, 0o604, 0o620, 0o602, 0o660, 0o666, 0o610] {
        write(&path, COUNTED, mode);
        let error = refused(&path);
        assert!(
            matches!(error, Error::Loose(Loose { mode: found, .. }) if found == mode),
            "{mode:o}: {error}"
        );
        assert_eq!(error.code().as_str(), "vault.keyring");
        assert_eq!(fs::read_to_string(&path).expect("text"), COUNTED);
    }
    for mode in [0o600, 0o400] {
        write(&path, COUNTED, 0o600);
        fs::set_permissions(&path, Permissions::from_mode(mode)).expect("a mode");
        assert!(Keyring::open(&path).is_ok(), "{mode:o}");
    }
}

#[test]
fn what_is_no_file_is_refused_and_kept() {
    let (folder, path) = folder();
    let target = folder.path().join("elsewhere");
    write(&target, COUNTED, 0o600);
    symlink(&target, &path).expect("a link");
    assert!(matches!(refused(&path), Error::NotAFile { .. }));
    fs::remove_file(&target).expect("removed");
    assert!(
        matches!(refused(&path), Error::NotAFile { .. }),
        "a link to nowhere"
    );
    assert!(!target.exists());

    fs::remove_file(&path).expect("removed");
    fs::create_dir(&path).expect("a folder");
    assert!(matches!(refused(&path), Error::NotAFile { .. }));

    fs::remove_dir(&path).expect("removed");
    mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR).expect("a pipe");
    assert!(matches!(refused(&path), Error::NotAFile { .. }));

    fs::remove_file(&path).expect("removed");
    let socket = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
    assert!(matches!(refused(&path), Error::NotAFile { .. }));
    drop(socket);
}

#[test]
fn what_is_no_keyring_is_refused_and_kept() {
    let (folder, path) = folder();
    let cut = (0..COUNTED.len()).map(|length| COUNTED[..length].to_owned());
    let changed = [
        COUNTED.replace("keyring 1", "keyring 2"),
        COUNTED.replace("keyring 1", "keyring 3"),
        COUNTED.replace("\n1 ", "\n2 "),
        COUNTED.replace("0a0b", "0A0B"),
        COUNTED.replace("0a0b", "0g0b"),
        COUNTED.replace("1e1f", "1e1f20"),
        COUNTED.replace('\n', "\r\n"),
        format!("{COUNTED}\n"),
        format!("{COUNTED}2 {}\n", "00".repeat(32)),
        "x".repeat(5_000),
    ];
    for text in cut.chain(changed) {
        write(&path, &text, 0o600);
        assert!(matches!(refused(&path), Error::Form { .. }), "{text:?}");
        assert_eq!(fs::read_to_string(&path).expect("text"), text);
    }
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
}

#[test]
fn without_a_folder_there_is_no_keyring() {
    let (folder, _) = folder();
    let error = refused(&folder.path().join("nowhere/keyring"));
    assert!(matches!(error, Error::Unusable { .. }), "{error}");
}

/// What was sealed by one version opens in every later one. The expected bytes were computed with another
/// implementation of HKDF and AES-GCM.
#[test]
fn the_sealed_form_stays() {
    let sealer = counted().sealer("test");
    let sealed = sealer.seal_with(*b"twelve bytes", b"a secret", b"for ann");
    assert_eq!(crate::id::hex(&sealed), GOLDEN);
    assert_eq!(
        sealer.open(&sealed, b"for ann").as_deref(),
        Some(&b"a secret".to_vec())
    );
}

const GOLDEN: &str =
    "01000000017477656c7665206279746573fdf6251577de3f0918013737efff2925c6a1b1a99f6e18b8";

/// What was marked by one version holds in every later one. The expected bytes were computed with another
/// implementation of HKDF and HMAC.
#[test]
fn the_marked_form_stays() {
    let mark = counted().mac("test").sign(&[b"one", b"", b"two"]);
    assert_eq!(
        crate::id::hex(&mark),
        "291590a90d59c0eb4f71a3e6a365a603ecf837648d3daeda727a144ce491b7e8"
    );
}

#[test]
fn a_mark_holds_for_its_parts_purpose_and_keyring_only() {
    let ring = counted();
    let mac = ring.mac("test");
    let mark = mac.sign(&[b"ab", b"c"]);
    assert!(mac.verify(&[b"ab", b"c"], &mark));
    for other in [
        &[&b"a"[..], b"bc"][..],
        &[b"abc"],
        &[b"ab", b"c", b""],
        &[b"c", b"ab"],
        &[],
    ] {
        assert!(!mac.verify(other, &mark), "{other:?}");
    }
    let mut changed = mark;
    changed[31] ^= 1;
    assert!(!mac.verify(&[b"ab", b"c"], &changed));
    assert!(!ring.mac("tesu").verify(&[b"ab", b"c"], &mark));
    let (_folder, elsewhere) = folder();
    let elsewhere = Keyring::open(&elsewhere).expect("made").mac("test");
    assert!(!elsewhere.verify(&[b"ab", b"c"], &mark));
}

#[test]
fn every_seal_differs() {
    let sealer = counted().sealer("test");
    assert_ne!(sealer.seal(b"text", b""), sealer.seal(b"text", b""));
}

#[test]
fn other_versions_and_keys_do_not_open() {
    let sealer = counted().sealer("test");
    let sealed = sealer.seal(b"text", b"");
    for (at, value) in [(0, 0), (0, 2), (4, 2), (1, 1)] {
        let mut other = sealed.clone();
        other[at] = value;
        assert!(sealer.open(&other, b"").is_none(), "{at}");
    }
}

proptest! {
    #[test]
    fn what_is_sealed_opens(plain: Vec<u8>, aad: Vec<u8>) {
        let sealer = counted().sealer("test");
        let sealed = sealer.seal(&plain, &aad);
        prop_assert_eq!(sealed.len(), plain.len() + Sealer::OVERHEAD);
        let opened = counted().sealer("test").open(&sealed, &aad);
        prop_assert_eq!(opened.as_deref(), Some(&plain));
    }

    #[test]
    fn nothing_changed_opens(plain: Vec<u8>, aad: Vec<u8>, at: prop::sample::Index, bit in 0..8) {
        let ring = counted();
        let sealer = ring.sealer("test");
        let sealed = sealer.seal(&plain, &aad);
        let mut changed = sealed.clone();
        changed[at.index(sealed.len())] ^= 1u8 << bit;
        prop_assert!(sealer.open(&changed, &aad).is_none());
        prop_assert!(sealer.open(&sealed[..at.index(sealed.len())], &aad).is_none());
        prop_assert!(ring.sealer("tesu").open(&sealed, &aad).is_none());
        let mut longer = aad.clone();
        longer.push(0);
        prop_assert!(sealer.open(&sealed, &longer).is_none());
        if !aad.is_empty() {
            let mut other = aad.clone();
            other[at.index(aad.len())] ^= 1u8 << bit;
            prop_assert!(sealer.open(&sealed, &other).is_none());
        }
    }

    #[test]
    fn any_bytes_are_answered(bytes: Vec<u8>, aad: Vec<u8>) {
        prop_assert!(counted().sealer("test").open(&bytes, &aad).is_none());
    }
}
