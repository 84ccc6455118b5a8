//! `[vault] key`, as far as files can be looked at.

use super::*;

#[test]
fn the_key_of_the_keyring_is_looked_at_where_it_is_a_file() {
    let folder = folder(&[("tollgate.toml", "[vault]\nkey = \"file:keyring.key\"\n")]);
    let file = folder.path().join("keyring.key").display().to_string();
    let begins = "tollgate.toml: vault.key: cannot use `file:keyring.key`, which names the key of the keyring: ";
    let missing = said(loader(folder.path()).load());
    assert!(missing.starts_with(begins), "{missing}");
    assert!(missing.contains(&file), "{missing}");
    write(folder.path(), "keyring.key", "short");
    assert_eq!(
        said(loader(folder.path()).load()),
        format!(
            "{begins}expected 32 random bytes, or their 64 lower-case hexadecimal digits; make one with `head -c 32 \
             /dev/urandom > FILE`"
        )
    );
    write(
        folder.path(),
        "keyring.key",
        "0123456789abcdef0123456789abcdef",
    );
    let loaded = loader(folder.path()).load().expect("a key");
    mode(&folder.path().join("keyring.key"), 0o644);
    let loose = said(loader(folder.path()).load());
    assert!(loose.contains("mode 0644"), "{loose}");
    // A running process keeps the key that it began with.
    assert!(loader(folder.path()).attempt(Some(&loaded)).result.is_ok());

    write(
        folder.path(),
        "tollgate.toml",
        "[vault]\nkey = \"env:PATH\"\n",
    );
    let said = said(loader(folder.path()).load());
    assert!(
        said.starts_with("tollgate.toml: vault.key: cannot use `env:PATH`, which names the key of the keyring: expected 32 random"),
        "{said}"
    );

    // Only the process itself sees these.
    for source in ["credential:key", "env:TOLLGATE_NO_SUCH_KEY"] {
        let settings = format!("[vault]\nkey = \"{source}\"\n");
        write(folder.path(), "tollgate.toml", &settings);
        loader(folder.path()).load().expect("left to the process");
    }
}
