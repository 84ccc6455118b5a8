//! What an operator sees on a terminal.

use std::io::Read as _;

use super::*;

/// Runs `tollgate pin notes --diff` on a terminal, and returns what is seen there.
fn on_a_terminal(folder: &Path, no_color: &str) -> String {
    let terminal = nix::pty::openpty(None, None).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command
        .args([
            "pin",
            "notes",
            "--diff",
            "--policy",
            folder.to_str().unwrap(),
        ])
        .stdin(Stdio::null())
        .stdout(terminal.slave)
        .env("NO_COLOR", no_color);
    let mut child = command.spawn().unwrap();
    // The other end closes with the program and this.
    drop(command);
    let mut seen = Vec::new();
    // A terminal whose other end is gone ends in an error.
    let _ = fs::File::from(terminal.master).read_to_end(&mut seen);
    assert_eq!(child.wait().unwrap().code(), Some(1));
    String::from_utf8(seen).unwrap().replace('\r', "")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_sees_colour_and_never_what_a_server_would_have_it_do() {
    let stage = Stage::new("", "").await;
    stage.pin(&[]).await;
    let other = r#"{"name":"new\u001b[31m","inputSchema":{}}"#;
    stage.says.tools(&format!("[{EVIL},{other}]"));
    let folder = stage.gate.folder();
    let seen = tokio::task::spawn_blocking(move || {
        ["", "1"].map(|no_color| on_a_terminal(&folder, no_color))
    });
    let [coloured, plain] = seen.await.unwrap();
    assert_eq!(plain, DIFF);
    assert!(coloured.contains("\u{1b}[7m\u{1b}[32m"), "{coloured}");
    let mut bare = coloured;
    for code in ["0", "1", "2", "7", "31", "32"] {
        bare = bare.replace(&format!("\u{1b}[{code}m"), "");
    }
    assert_eq!(bare, DIFF);
}
