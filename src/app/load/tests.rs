mod vault_key;

use std::{
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt, symlink},
};

use tempfile::TempDir;

use super::{
    guard::{Facts, looseness},
    *,
};
use crate::policy::Pin;

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (path, text) in files {
        write(folder.path(), path, text);
    }
    folder
}

fn write(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().expect("has a parent")).expect("a folder");
    fs::write(&path, text).expect("written");
    mode(&path, 0o600);
    mode(path.parent().expect("has a parent"), 0o700);
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("chmod");
}

fn loader(folder: &Path) -> Loader {
    let environment = Environment {
        state_directory: Some("/nonexistent/state".into()),
        ..Environment::default()
    };
    Loader::new(folder, environment)
}

fn said(result: Result<Loaded, Vec<Fault>>) -> String {
    let faults = result.expect_err("faults");
    let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

const SERVER: &str = "url = \"https://mcp.example.com/\"\n";

#[test]
fn files_are_read_from_the_folder_and_from_servers_and_nowhere_else() {
    let folder = folder(&[
        ("servers/a.toml", SERVER),
        ("server.b.toml", SERVER),
        ("servers/_draft.toml", "not = toml = at all"),
        (".hidden.toml", "not = toml = at all"),
        ("README.md", "# hello"),
        ("_deeper/x.toml", "not = toml = at all"),
        ("certs/ca.pem", "hello"),
        ("certs/_draft.toml", "not = toml = at all"),
    ]);
    let loaded = loader(folder.path()).load().expect("no faults");
    let mut names: Vec<_> = loaded.policy.servers.keys().map(|name| &**name).collect();
    names.sort_unstable();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(loaded.policy.generation, 1);
    assert_eq!(loaded.policy.admins.users, [Arc::from("local")]);
}

#[test]
fn subfolders_that_look_like_policy_are_not_overlooked() {
    let folder = folder(&[
        ("server/docs.toml", SERVER),
        ("server/other.toml", SERVER),
        ("servers/old/x.toml", SERVER),
        ("pins/a.toml", SERVER),
    ]);
    assert_eq!(
        said(loader(folder.path()).load()),
        "\
pins/a.toml: not a name that is read; expected tollgate.toml, keys.toml, egress.toml, servers/NAME.toml, server.NAME.toml or pins/NAME.json; rename it, or begin its name with `_` to leave it out
server/docs.toml: in a folder that is not read; move it to servers/docs.toml if it describes a server, or begin the folder's name with `_` to leave it out
servers/old/x.toml: in a folder that is not read; move it to servers/x.toml if it describes a server, or begin the folder's name with `_` to leave it out"
    );
}

const PINNED: &str = "url = \"https://mcp.example.com/\"\npin = \"file\"\n";
const PINS: &str = "{\n  \"server\": \"a\",\n  \"version\": 1,\n  \"items\": [\n    {\n      \"kind\": \"instructions\",\n      \
     \"name\": \"\",\n      \"sha256\": \
     \"b49177e05868b7af8e82a644c1ce20e521af46497adeaffe861d294d9b4bb75e\",\n      \"version\": 1,\n      \
     \"definition\": \"hi\"\n    }\n  ]\n}\n";

#[test]
fn pins_files_are_read_for_servers_that_keep_pins_there() {
    let folder = folder(&[
        ("servers/a.toml", PINNED),
        ("server.b.toml", PINNED),
        ("pins/a.json", PINS),
        ("pins/_b.json", "{"),
        ("pins/README.md", "# pins"),
    ]);
    let loader = loader(folder.path());
    let loaded = loader.load().expect("no faults");
    assert_eq!(loaded.policy.servers["a"].pin, Pin::File(Some(PINS.into())));
    assert_eq!(loaded.policy.servers["b"].pin, Pin::File(None));
    let before = loader.digest(&[]);
    write(folder.path(), "pins/a.json", &PINS.replace("1", "2"));
    assert_ne!(loader.digest(&[]), before);
}

#[test]
fn forged_and_idle_pins_files_are_faults() {
    let folder = folder(&[
        ("servers/a.toml", PINNED),
        ("servers/b.toml", SERVER),
        ("servers/d.toml", &format!("{SERVER}pin = \"first-use\"\n")),
        ("pins/a.json", &PINS.replace("\"hi\"", "\"ho\"")),
        ("pins/b.json", PINS),
        ("pins/c.json", PINS),
        ("pins/d.json", PINS),
    ]);
    assert_eq!(
        said(loader(folder.path()).load()),
        "\
pins/c.json: there is no server `c`; add servers/c.toml, or remove the file
servers/b.toml:1:1: pin: `pins/b.json` is not read, since the server's pins are in the store; set pin = \"file\", or remove the file
servers/d.toml:2:7: pin: `pins/d.json` is not read, since the server's pins are in the store; set pin = \"file\", or remove the file"
    );
    for name in ["b", "c", "d"] {
        fs::remove_file(folder.path().join(format!("pins/{name}.json"))).expect("removed");
    }
    assert_eq!(
        said(loader(folder.path()).load()),
        "\
pins/a.json:10:21: items[0].definition: its digest is \
b3f41b62fe343798c4786f1180ccf45e97dcdb68f2cc67b423c1f63fd35a6fd5, and `sha256` says \
`b49177e05868b7af8e82a644c1ce20e521af46497adeaffe861d294d9b4bb75e`: one of them was changed by hand; restore the file \
from version control, or remove it and write it with `tollgate pin`"
    );
}

#[test]
fn pins_files_may_be_as_large_as_catalogues() {
    let folder = folder(&[("servers/a.toml", PINNED)]);
    let padded = format!("{PINS}{}", " ".repeat((32 << 20) - PINS.len()));
    write(folder.path(), "pins/a.json", &padded);
    assert!(loader(folder.path()).load().is_ok());
    write(folder.path(), "pins/a.json", &format!("{padded} "));
    assert_eq!(
        said(loader(folder.path()).load()),
        "pins/a.json: larger than 33554432 bytes; policy files are smaller, so this is none"
    );
}

#[test]
fn a_loose_folder_hides_no_other_fault() {
    let folder = folder(&[("servers/a.toml", "url = 5\n"), ("keys.toml", "x = 1\n")]);
    mode(folder.path(), 0o775);
    let (root, real) = (
        folder.path().display(),
        fs::canonicalize(folder.path()).expect("there"),
    );
    assert_eq!(
        said(loader(folder.path()).load()),
        format!(
            "\
{root}/: `{}` is writable by group or others (mode 0775); run `chmod -R go-w {root}`
keys.toml:1:1: x: unknown key; expected `key`
servers/a.toml:1:7: url: found the integer 5, expected a string",
            real.display()
        )
    );
}

#[test]
fn faults_of_settings_and_policy_come_together_in_order() {
    let folder = folder(&[
        ("tollgate.toml", "naming = 5\n"),
        ("servers/a.toml", "url = 5\n"),
        ("egress.toml", "x = 1\n"),
    ]);
    fs::write(folder.path().join("keys.toml"), [0xff, 0xfe]).expect("written");
    assert_eq!(
        said(loader(folder.path()).load()),
        "\
egress.toml:1:1: x: unknown key; expected one of `private`, `nat64_prefixes`, `fake_ip_ranges`, `allow`, `deny`, `report_until`, `tunnels`
keys.toml: not UTF-8 text; save it as UTF-8
servers/a.toml:1:7: url: found the integer 5, expected a string
tollgate.toml:1:10: naming: found the integer 5, expected a string"
    );
}

#[test]
fn loose_modes_are_refused_through_links_too() {
    let outside = folder(&[("real.toml", SERVER)]);
    let folder = folder(&[("servers/a.toml", SERVER)]);
    let real = outside.path().join("real.toml");
    symlink(&real, folder.path().join("servers/b.toml")).expect("linked");
    assert!(loader(folder.path()).load().is_ok());

    mode(&real, 0o664);
    let real_path = fs::canonicalize(&real).expect("there");
    assert_eq!(
        said(loader(folder.path()).load()),
        format!(
            "servers/b.toml: `{0}` is writable by group or others (mode 0664); run `chmod go-w {0}`",
            real_path.display()
        )
    );
    mode(&real, 0o600);
    mode(outside.path(), 0o770);
    assert!(said(loader(folder.path()).load()).contains("(mode 0770)"));
    mode(outside.path(), 0o700);

    mode(&folder.path().join("servers"), 0o702);
    assert!(
        said(loader(folder.path()).load())
            .contains("servers` is writable by group or others (mode 0702)")
    );
    mode(&folder.path().join("servers"), 0o700);
    mode(folder.path(), 0o720);
    assert!(said(loader(folder.path()).load()).contains("(mode 0720)"));
}

#[test]
fn owner_and_mode_decide_who_could_have_written() {
    let file = |uid, mode| Facts {
        uid,
        mode,
        folder: false,
        read_only: false,
    };
    let looseness = |facts, own_uid| looseness(facts, own_uid, "chmod go-w x");
    assert_eq!(looseness(file(1000, 0o644), 1000), None);
    assert_eq!(looseness(file(0, 0o644), 1000), None);
    assert_eq!(
        looseness(file(1001, 0o600), 1000).as_deref(),
        Some(
            "owned by uid 1001, expected 1000 or 0; `chown` it to the user that runs tollgate, or to root"
        )
    );
    assert_eq!(
        looseness(file(1001, 0o600), 0).as_deref(),
        Some(
            "owned by uid 1001, expected 0; `chown` it to the user that runs tollgate, or to root"
        )
    );
    assert!(looseness(file(1000, 0o620), 1000).is_some());
    assert!(looseness(file(1000, 0o602), 1000).is_some());
    assert!(
        looseness(file(1000, 0o1622), 1000).is_some(),
        "sticky means nothing on a file"
    );
    let sticky_folder = Facts {
        folder: true,
        ..file(0, 0o1777)
    };
    assert_eq!(looseness(sticky_folder, 1000), None);
    let config_map = Facts {
        folder: true,
        read_only: true,
        ..file(0, 0o777)
    };
    assert_eq!(looseness(config_map, 1000), None);
}

#[test]
fn sizes_and_kinds_of_files_are_bounded() {
    let folder = folder(&[("servers/a.toml", &"#".repeat((1 << 20) + 1))]);
    assert_eq!(
        said(loader(folder.path()).load()),
        "servers/a.toml: larger than 1048576 bytes; policy files are smaller, so this is none"
    );
    fs::remove_file(folder.path().join("servers/a.toml")).expect("removed");
    fs::create_dir(folder.path().join("keys.toml")).expect("made");
    assert_eq!(
        said(loader(folder.path()).load()),
        "keys.toml: not a regular file; put one in its place"
    );
    fs::remove_dir(folder.path().join("keys.toml")).expect("removed");
    symlink("/nonexistent", folder.path().join("keys.toml")).expect("linked");
    assert_eq!(
        said(loader(folder.path()).load()),
        "keys.toml: cannot be read: No such file or directory (os error 2); put it there, or correct the path"
    );
}

#[test]
fn a_folder_of_too_many_files_is_refused() {
    let folder = folder(&[]);
    for number in 0..1001 {
        write(folder.path(), &format!("servers/s{number}.toml"), SERVER);
    }
    assert!(said(loader(folder.path()).load()).contains("expected at most 1000 files"));
}

#[test]
fn a_folder_that_is_too_large_is_not_read_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let servers = folder.path().join("servers");
    std::fs::create_dir(&servers).unwrap();
    for number in 0..40 {
        std::fs::write(servers.join(format!("s{number}.toml")), "#".repeat(1 << 20)).unwrap();
    }
    let contents = Contents::read(folder.path());
    assert_eq!(contents.files.len(), 17);
    assert!(
        contents.faults[0]
            .to_string()
            .contains("holds at least 17 files")
    );
}

#[test]
fn certificate_and_key_have_to_fit() {
    let pair = || {
        let key = rcgen::KeyPair::generate().expect("a key");
        let params = rcgen::CertificateParams::new(vec!["localhost".into()]).expect("names");
        let cert = params.self_signed(&key).expect("a certificate");
        (cert.pem(), key.serialize_pem())
    };
    let ((cert, key), (_, other)) = (pair(), pair());
    let settings = "[listen]\ntls = { cert = \"file:tls.crt\", key = \"file:tls.key\" }\n";
    let folder = folder(&[
        ("tollgate.toml", settings),
        ("tls.crt", &cert),
        ("tls.key", &key),
    ]);
    let loaded = loader(folder.path()).load().expect("no faults");
    let tls = loaded.tls.expect("configured");
    assert_eq!(tls.key.expose(), key.as_bytes());
    assert_eq!(format!("{tls:?}"), "TlsMaterial(…)");

    write(folder.path(), "tls.key", &other);
    assert!(
        said(loader(folder.path()).load())
            .starts_with("tollgate.toml: listen.tls: cert and key cannot be used together")
    );
    write(folder.path(), "tls.key", "hello");
    assert_eq!(
        said(loader(folder.path()).load()),
        "tollgate.toml: listen.tls: key holds no private key in PEM form; export it again, without a passphrase"
    );
    mode(&folder.path().join("tls.key"), 0o666);
    let file = folder.path().join("tls.key").display().to_string();
    assert!(said(loader(folder.path()).load()).contains(&format!("listen.tls.key: `{file}`: `")));
    fs::remove_file(folder.path().join("tls.key")).expect("removed");
    assert_eq!(
        said(loader(folder.path()).load()),
        format!(
            "tollgate.toml: listen.tls.key: `{file}`: cannot be read: No such file or directory (os error 2); put it there, or correct the path"
        )
    );
    write(
        folder.path(),
        "tollgate.toml",
        "[listen]\ntls = { cert = \"env:TOLLGATE_TEST_UNSET\", key = \"file:tls.key\" }\n",
    );
    assert_eq!(
        said(loader(folder.path()).load()),
        "tollgate.toml: listen.tls.cert: the variable `TOLLGATE_TEST_UNSET` is not set; set it, or name another source"
    );
}

#[test]
fn a_folder_that_is_named_is_taken_as_it_is() {
    assert_eq!(
        find_folder(Some(Path::new("/some/where"))),
        Ok("/some/where".into())
    );
    let missing = loader(Path::new("/nonexistent/policy")).load();
    assert_eq!(
        said(missing),
        "/nonexistent/policy: there is no such folder; make it, or name another with --policy DIR"
    );
}

#[test]
fn the_digest_covers_files_and_what_they_name() {
    let key = rcgen::KeyPair::generate().expect("a key");
    let ca = |name: &str| {
        let mut params = rcgen::CertificateParams::default();
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, name);
        params.self_signed(&key).expect("a certificate").pem()
    };
    let server = format!("{SERVER}ca = [\"ca.pem\"]\n");
    let folder = folder(&[("servers/a.toml", &server), ("servers/ca.pem", &ca("one"))]);
    let loader = loader(folder.path());
    let first = loader.attempt(None);
    assert_eq!(first.references, ["servers/ca.pem"]);
    assert_eq!(loader.digest(&first.references), first.digest);
    write(folder.path(), "servers/ca.pem", &ca("two"));
    assert_ne!(loader.digest(&first.references), first.digest);
}
