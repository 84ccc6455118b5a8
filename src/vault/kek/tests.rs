use std::{
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt, symlink},
};

use tempfile::TempDir;

use super::*;

const DIGITS: &str = "6465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f80818283";

fn folder(bytes: &[u8], mode: u32) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    fs::write(&path, bytes).unwrap();
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    folder
}

fn read(bytes: &[u8], mode: u32) -> Result<Kek, Error> {
    let folder = folder(bytes, mode);
    Kek::read(&Source::File("key".to_owned()), folder.path())
}

fn why(bytes: &[u8], mode: u32) -> String {
    read(bytes, mode).err().unwrap().to_string()
}

#[test]
fn bytes_and_digits_are_the_same_key() {
    let bytes: Vec<u8> = (100..132).collect();
    for text in [
        bytes,
        DIGITS.as_bytes().to_vec(),
        format!("{DIGITS}\n").into_bytes(),
    ] {
        let kek = read(&text, 0o600).unwrap();
        assert_eq!(kek.id().to_string(), "d72c90f81cbc1d23");
    }
}

#[test]
fn what_others_may_read_is_refused() {
    for mode in [0o640, 0o604, 0o620, 0o660, 0o644] {
        let why = why(DIGITS.as_bytes(), mode);
        assert!(
            why.starts_with("cannot use `file:key`, which names the key of the keyring: `/"),
            "{why}"
        );
        assert!(
            why.contains(&format!("has mode {mode:04o}, expected uid")),
            "{why}"
        );
    }
}

#[test]
fn what_is_no_key_is_refused() {
    let expected = "expected 32 random bytes, or their 64 lower-case hexadecimal digits";
    for bytes in [
        &b""[..],
        &[7; 31],
        &[7; 33],
        &DIGITS.as_bytes()[1..],
        DIGITS.to_uppercase().as_bytes(),
        format!("{DIGITS}\n\n").as_bytes(),
        format!("{DIGITS}00").as_bytes(),
    ] {
        assert!(why(bytes, 0o600).contains(expected), "{bytes:?}");
    }
    for bytes in [&[7; 32][..], "00".repeat(32).as_bytes()] {
        assert!(why(bytes, 0o600).contains("all bytes are the same"));
    }
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| {
        Kek::read(&Source::File(name.to_owned()), folder.path())
            .err()
            .unwrap()
            .to_string()
    };
    assert!(file(".").contains("not a regular file"));
    let whole = folder.path().join("nowhere");
    let expected = format!("`{}` cannot be read: No such file", whole.display());
    assert!(file("nowhere").contains(&expected));
}

#[test]
fn a_variable_is_a_key_too() {
    let found = from_variable(Some(DIGITS.into())).unwrap();
    assert!(key(&found).is_ok());
    assert!(from_variable(None).is_err());
    assert!(from_variable(Some("".into())).is_err());
}

/// systemd lets a user in by an access list, which shows as a mode for the group, and may use links.
#[test]
fn a_credential_is_found_in_the_folder_of_systemd() {
    let folder = folder(DIGITS.as_bytes(), 0o440);
    symlink(folder.path().join("key"), folder.path().join("link")).unwrap();
    for name in ["key", "link"] {
        let found = from_credentials(Some(folder.path().into()), name).unwrap();
        assert!(key(&found).is_ok());
    }
    assert!(from_credentials(Some(folder.path().into()), "other").is_err());
    let why = from_credentials(None, "key").err().unwrap();
    assert!(why.starts_with("systemd passed no credentials"), "{why}");
}
