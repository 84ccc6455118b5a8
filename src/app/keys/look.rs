//! Whether a keyring would keep a process from starting, told without one.

use std::{os::unix::fs::MetadataExt, path::Path};

use nix::unistd::geteuid;

use crate::{
    app::vault::Place,
    config::Settings,
    private,
    vault::{self, Keyring},
};

/// Looks whether a process could use the keyring that is there, without making one. What only its owner may read nobody else
/// can judge, nor what only the process itself gets as its key.
///
/// # Errors
///
/// What would keep a process from starting.
pub fn look(settings: &Settings, folder: &Path) -> Result<(), vault::Error> {
    let path = settings.keyring();
    let Ok(found) = path.symlink_metadata() else {
        return Ok(());
    };
    if found.uid() != geteuid().as_raw() {
        return Ok(private::check_for(&path, &found, found.uid())?);
    }
    let Ok(place) = Place::new(settings, folder) else {
        return Ok(());
    };
    Keyring::look(&path, place.kek.as_ref())
}
