//! The demonstration, as a newcomer runs it.

use std::process::Command;

#[test]
fn every_step_does_what_it_should() {
    let output = Command::new(env!("CARGO_BIN_EXE_tollgate"))
        .args(["demo", "--once"])
        .output()
        .unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    let complaints = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{shown}\n{complaints}");
    assert_eq!(complaints, "");
    assert!(
        !shown.contains('\u{1b}'),
        "colour without a terminal: {shown}"
    );
    assert!(!shown.contains('✘'), "{shown}");
    assert_eq!(shown.matches('✔').count(), 9, "{shown}");
    for line in [
        "→ /mcp/tools  tools/call  get_weather {\"city\":\"Lisbon\"}",
        "← counted 4 of 4",
        "← egress.address_blocked: ",
        "← approval.unavailable: ",
        "refused; the tool server has sent 0 messages",
    ] {
        assert!(shown.contains(line), "`{line}` is missing: {shown}");
    }
}
