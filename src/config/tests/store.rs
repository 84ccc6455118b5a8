use std::path::PathBuf;

use super::{faults, settings};

#[test]
fn a_database_is_a_file_at_an_absolute_path() {
    for path in ["tollgate.db", "", "/", "/var/lib/.."] {
        let text = format!("state_dir = \"/x\"\n[store]\nurl = \"sqlite:{path}\"\n");
        assert_eq!(
            faults(&text),
            "tollgate.toml:3:7: store.url: expected `sqlite:` and the absolute path of a file, such as \
             \"sqlite:/var/lib/tollgate/tollgate.db\"; correct it",
            "{path}"
        );
    }
    assert_eq!(
        faults("[store]\nurl = \"/var/lib/tollgate.db\"\npassword = \"file:x\"\n"),
        "\
tollgate.toml:2:7: store.url: expected `sqlite:` and the absolute path of a file, such as \"sqlite:/var/lib/tollgate/tollgate.db\"; correct it
tollgate.toml:3:12: store.password: this key is not available in this version; remove it"
    );
    let elsewhere = settings("state_dir = \"/x\"\n[store]\n");
    assert_eq!(elsewhere.store, PathBuf::from("/x/tollgate.db"));
}
