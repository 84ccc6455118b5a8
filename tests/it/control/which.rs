//! Which process a command speaks to: the one that the policy folder names, or none.

use std::os::unix::fs::symlink;

use super::*;

/// Runs `words` where the default state folder is the one of `place`.
fn from(place: &Place, words: &[&str]) -> Output {
    command(words)
        .env("STATE_DIRECTORY", place.state())
        .output()
        .expect("the program runs")
}

#[test]
fn a_policy_folder_that_cannot_be_read_leads_to_no_process() {
    let place = Place::new();
    let served = Served::start(&place);
    let folder = |name: &str| {
        let path = place.0.path().join(name);
        fs::create_dir(&path).expect("a folder");
        path
    };
    let broken = folder("broken");
    fs::write(broken.join("tollgate.toml"), "[listen\n").expect("a file");
    let mistyped = folder("mistyped");
    fs::write(mistyped.join("tollgate.toml"), "state_dir = 1\n").expect("a file");
    let dangling = folder("dangling");
    symlink("nowhere", dangling.join("tollgate.toml")).expect("a link");
    let missing = place.0.path().join("missing");

    for command in ["drain", "reload", "status"] {
        for (folder, told) in [
            (
                &missing,
                "missing: cannot be read: No such file or directory",
            ),
            (&broken, "tollgate.toml:1:"),
            (&mistyped, "tollgate.toml:1:13: state_dir: "),
            (&dangling, "dangling/tollgate.toml: cannot be read: "),
        ] {
            let output = from(
                &place,
                &[command, "--policy", folder.to_str().expect("text")],
            );
            let said = stderr(&output);
            assert_eq!(
                output.status.code(),
                Some(78),
                "{command} {folder:?}: {said}"
            );
            assert!(said.contains(told), "{command} {folder:?}: {said}");
        }
    }
    assert_eq!(place.run("drain").status.code(), Some(0));
    assert_eq!(served.end(), Some(0));
}

#[test]
fn a_folder_without_settings_means_the_default_and_other_faults_do_not_hide_the_socket() {
    let place = Place::new();
    let served = Served::start(&place);
    let empty = place.0.path().join("empty");
    fs::create_dir(&empty).expect("a folder");
    let status = from(
        &place,
        &["status", "--policy", empty.to_str().expect("text")],
    );
    assert_eq!(status.status.code(), Some(0), "{}", stderr(&status));

    place.settings("unknown = 1");
    assert_eq!(place.run("drain").status.code(), Some(0));
    assert_eq!(served.end(), Some(0));
}
