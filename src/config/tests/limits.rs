//! `[limits]`: how much at once.

use super::*;

#[test]
fn bounds_of_calls_are_kept_within_bounds() {
    let limits = |text: &str| settings(&format!("[limits]\n{text}")).limits;
    let least = limits("running = 1\nwaiting = 0\nturn_bytes = 65536\n");
    assert_eq!(
        (least.running, least.waiting, least.turn_bytes),
        (1, 0, 65_536)
    );
    let most = limits("running = 8\nwaiting = 8\nturn_bytes = 1099511627776\n");
    assert_eq!(
        (most.running, most.waiting, most.turn_bytes),
        (8, 8, 1 << 40)
    );
    assert_eq!(
        faults(
            "[limits]\nrunning = 0\nwaiting = 9\nturn_bytes = 65535\nwaitin = 4\nturns = \"x\"\n"
        ),
        "\
tollgate.toml:2:11: limits.running: found 0, expected 1 to 8
tollgate.toml:3:11: limits.waiting: found 9, expected 0 to 8
tollgate.toml:4:14: limits.turn_bytes: found 65535, expected 65536 to 1099511627776
tollgate.toml:5:1: limits.waitin: unknown key; did you mean `waiting`?
tollgate.toml:6:1: limits.turns: unknown key; expected one of `request_bytes`, `response_bytes`, `connect`, \
`first_byte`, `idle`, `call`, `running`, `waiting`, `turn_bytes`"
    );
    assert_eq!(
        faults("[limits]\nrunning = \"serial\"\n"),
        "tollgate.toml:2:11: limits.running: found the string `serial`, expected an integer"
    );
}
