//! A process that has not seen a change of the keyring yet goes on with the key before.

use super::*;

#[test]
fn a_key_that_another_process_went_on_with_is_not_destroyed() {
    let place = Place::new();
    end(Served::start(&place));
    let other = Keyring::open(&place.state().join("keyring")).expect("a keyring");
    let old = other.vault().primary().to_string();
    json(&place, &["keys", "rotate"]);
    json(&place, &["keys", "rotate", "--disable", &old]);
    connect_under(&place, "ann", &other.vault());
    let said = refused(&place, &["keys", "rotate", "--destroy", &old], 1);
    let told = format!("1 row is sealed under the key {old}, and would never open again");
    assert!(said.contains(&told), "{said}");
    json(&place, &["keys", "rotate", "--enable", &old]);
    let mut served = Served::start(&place);
    served.until("rows were sealed under the primary key");
    for option in ["--disable", "--destroy"] {
        json(&place, &["keys", "rotate", option, &old]);
    }
    end(served);
}
