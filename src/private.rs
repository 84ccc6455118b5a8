//! Owns: whether somebody else could use a file that is this process's own: as ssh does with keys, a loose one is refused.
//! Imports: no room.
//! Never: changes what it finds.
//! Fails as: [`Loose`].

use std::{
    fs::Metadata,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// What nobody but the owner may do.
const OTHERS: u32 = 0o077;

/// Others could read or change a file.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{path}` belongs to uid {uid} and has mode {mode:04o}, expected {owners} and at most mode 0600; {next}",
    path = path.display(), owners = owners(*expected_uid), next = self.next()
)]
pub struct Loose {
    /// The file.
    pub path: PathBuf,
    /// Its owner.
    pub uid: u32,
    /// Its permission bits.
    pub mode: u32,
    /// This process's user.
    pub expected_uid: u32,
}

impl Loose {
    /// What makes it private.
    fn next(&self) -> String {
        let path = self.path.display();
        let chown = format!("run `chown {} {path}`", self.expected_uid);
        match (
            is_owner(self.uid, self.expected_uid),
            self.mode & OTHERS == 0,
        ) {
            (true, _) => format!("run `chmod 600 {path}`"),
            (false, true) => chown,
            (false, false) => format!("{chown} and `chmod 600 {path}`"),
        }
    }
}

/// Refuses the file at `path`, which was `found` like this, where somebody else than this process's user and root could
/// have written it or may read it.
///
/// # Errors
///
/// [`Loose`].
pub fn check(path: &Path, found: &Metadata) -> Result<(), Loose> {
    check_for(path, found, nix::unistd::geteuid().as_raw())
}

/// As [`check`], for a process of the user `expected_uid`.
///
/// # Errors
///
/// [`Loose`].
pub fn check_for(path: &Path, found: &Metadata, expected_uid: u32) -> Result<(), Loose> {
    let (uid, mode) = (found.uid(), found.mode() & 0o7777);
    if is_private(uid, mode, expected_uid) {
        return Ok(());
    }
    Err(Loose {
        path: path.to_owned(),
        uid,
        mode,
        expected_uid,
    })
}

fn owners(expected_uid: u32) -> String {
    match expected_uid {
        0 => "uid 0".to_owned(),
        uid => format!("uid {uid} or 0"),
    }
}

fn is_private(uid: u32, mode: u32, expected_uid: u32) -> bool {
    is_owner(uid, expected_uid) && mode & OTHERS == 0
}

fn is_owner(uid: u32, expected_uid: u32) -> bool {
    [expected_uid, 0].contains(&uid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_this_user_and_root() {
        assert!(is_private(1000, 0o600, 1000));
        assert!(is_private(0, 0o600, 1000));
        assert!(!is_private(1001, 0o600, 1000));
        assert!(!is_private(1000, 0o600, 0));
        assert_eq!(
            (owners(1000), owners(0)),
            ("uid 1000 or 0".to_owned(), "uid 0".to_owned())
        );
    }
    #[test]
    fn only_what_is_wrong_is_to_be_changed() {
        let said = |uid, mode| {
            let loose = Loose {
                path: "/state/keyring".into(),
                uid,
                mode,
                expected_uid: 1000,
            };
            loose.to_string()
        };
        assert_eq!(
            said(1000, 0o644),
            "`/state/keyring` belongs to uid 1000 and has mode 0644, expected uid 1000 or 0 and at most mode 0600; run \
             `chmod 600 /state/keyring`"
        );
        assert!(said(1001, 0o600).ends_with("mode 0600; run `chown 1000 /state/keyring`"));
        assert!(said(1001, 0o644).ends_with(
            "mode 0600; run `chown 1000 /state/keyring` and `chmod 600 /state/keyring`"
        ));
    }
}
