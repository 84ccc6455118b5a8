//! The keyring of the settings, where there is one.

use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::vault::Keyring;

#[test]
fn a_keyring_that_would_keep_a_process_from_starting_is_a_fault() {
    let folder = tempfile::tempdir().expect("a folder");
    let state = folder.path().join("state");
    let settings = format!("state_dir = \"{}\"\n", state.display());
    let loader = loader(folder.path(), &[("tollgate.toml", &settings)]);
    let keyring = state.join("keyring");
    let told = || {
        load(&loader)
            .err()
            .map(|faults| listed(&faults, Styles::plain()))
    };
    assert_eq!(told(), None);
    assert!(!keyring.exists(), "nothing is made");
    fs::create_dir(&state).expect("a folder");
    Keyring::open(&keyring).expect("a keyring");
    assert_eq!(told(), None);
    fs::set_permissions(&keyring, fs::Permissions::from_mode(0o644)).expect("chmod");
    let loose = told().expect("a fault");
    let begins = format!("keyring: `{}` belongs to uid ", keyring.display());
    assert!(loose.starts_with(&begins), "{loose}");
    let ends = format!(
        "mode 0600; run `chmod 600 {}`\n1 fault\n",
        keyring.display()
    );
    assert!(loose.ends_with(&ends), "{loose}");
    fs::write(&keyring, "tollgate-keyring 1\n1 00").expect("written");
    fs::set_permissions(&keyring, fs::Permissions::from_mode(0o600)).expect("chmod");
    let damaged = told().expect("a fault");
    assert!(damaged.contains("does not read as a keyring"), "{damaged}");
}
