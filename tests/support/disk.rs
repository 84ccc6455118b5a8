//! Disks that are full soon.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

/// A disk, mounted for as long as the value lives.
pub(crate) struct Disk<'a>(&'a Path);

impl<'a> Disk<'a> {
    /// One of `size`, as `mount` takes it, in a new folder; `None` on machines that do not let us.
    pub(crate) fn mount(at: &'a Path, size: &str) -> Option<Self> {
        fs::create_dir(at).expect("ours");
        let options = format!("size={size},mode=0700");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(at)
            .stderr(Stdio::null())
            .status();
        mounted
            .is_ok_and(|status| status.success())
            .then_some(Self(at))
    }
}

impl Drop for Disk<'_> {
    fn drop(&mut self) {
        // Lazily, since a child may still be ending.
        drop(Command::new("umount").arg("-l").arg(self.0).status());
    }
}
