//! Holds the layer table of `src/lib.rs` against the real paths of the sources, and the habits that no lint knows.
//!
//! Every path counts: in `use`, in expressions and types, in attributes, and inside macros.

mod paths;
mod proofs;
mod sockets;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use self::paths::{Source, Used};

/// What a layer-2 room may take from a neighbour: (room, neighbour, items).
const NEIGHBOURS: &[(&str, &str, &[&str])] = &[(
    "egress",
    "audit",
    &["Recorded", "Intent", "Verdict", "Outcome"],
)];

/// Layer-1 rooms that another of them may import.
const PURE_NEIGHBOURS: &[(&str, &str)] = &[("policy", "address")];

/// What a pure room (layer 1) never names, so that it can be tested and fuzzed without a world around it.
const IMPURE: &[&[&str]] = &[
    &["tokio"],
    &["hyper"],
    &["hyper_util"],
    &["hickory_resolver"],
    &["socket2"],
    &["nix"],
    &["std", "fs"],
    &["std", "env"],
    &["std", "process"],
    &["std", "thread"],
    &["std", "net", "TcpStream"],
    &["std", "net", "TcpListener"],
    &["std", "net", "UdpSocket"],
    &["std", "time", "Instant"],
];

/// The longest that a file of `src/` may be.
const LINES: usize = 400;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Every file of `src/`, parsed.
fn sources() -> Vec<Source> {
    fn collect(folder: &Path, found: &mut Vec<Source>) {
        for entry in fs::read_dir(folder).expect("a folder of sources") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                collect(&path, found);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                found.push(Source::read(&root(), &path));
            }
        }
    }
    let mut found = Vec::new();
    collect(&root(), &mut found);
    found.sort_by(|left, right| left.file.cmp(&right.file));
    found
}

/// The table in the documentation of `src/lib.rs`: the layer of each room.
fn layers() -> BTreeMap<String, u8> {
    let map = fs::read_to_string(root().join("lib.rs")).expect("the map of the code");
    let mut layers = BTreeMap::new();
    for row in map.lines().filter_map(|line| line.strip_prefix("//! | ")) {
        let mut cells = row.split('|').map(str::trim);
        let Some(Ok(layer)) = cells.next().map(str::parse) else {
            continue;
        };
        for room in cells.next().expect("the rooms").split(',') {
            let room = room.trim().trim_matches('`').to_owned();
            let twice = layers.insert(room.clone(), layer);
            assert_eq!(twice, None, "`{room}` stands twice in the table");
        }
    }
    layers
}

/// Why `used` may not stand in `source`, if it may not. A test may also use neighbours, to have real ones to work with.
fn wrong(layers: &BTreeMap<String, u8>, source: &Source, used: &Used) -> Option<String> {
    let from = source.room();
    if used.path[0] != "crate" || from == "lib" {
        return None;
    }
    let part = |place| used.path.get(place).map_or("", String::as_str);
    let (room, item) = (part(1), part(2));
    if room == from {
        return None;
    }
    let (Some(&own), Some(&other)) = (layers.get(from), layers.get(room)) else {
        return Some(format!(
            "`{room}` is not a room: name the room that owns the item"
        ));
    };
    let allowed = match own {
        6 => true,
        3..=5 => other < own,
        2 => {
            other < own
                || NEIGHBOURS
                    .iter()
                    .any(|(a, b, items)| (*a, *b) == (from, room) && items.contains(&item))
        }
        1 => other == 0 || PURE_NEIGHBOURS.contains(&(from, room)),
        _ => false,
    };
    let allowed = allowed || (used.test && other <= own);
    (!allowed).then(|| format!("`{from}` (layer {own}) may not import `{room}` (layer {other})"))
}

#[test]
fn every_room_stands_in_the_table_once() {
    let layers = layers();
    let rooms = sources().into_iter().map(|source| source.room().to_owned());
    let mut rooms: Vec<_> = rooms.filter(|room| room != "lib").collect();
    rooms.sort();
    rooms.dedup();
    assert_eq!(rooms, layers.into_keys().collect::<Vec<_>>());
}

#[test]
fn every_room_that_logs_has_a_level() {
    let silent = |room: &str, layer| layer == 0 || room == "main";
    for (room, layer) in layers() {
        let known = tollgate::telemetry::ROOMS.contains(&&*room);
        assert!(
            known || silent(&room, layer),
            "`{room}` is not in telemetry::ROOMS"
        );
    }
}

#[test]
fn imports_point_down() {
    let layers = layers();
    let mut faults = Vec::new();
    for source in sources() {
        for used in source.used() {
            let fault = wrong(&layers, &source, &used);
            faults.extend(fault.map(|fault| format!("src/{}:{}: {fault}", source.file, used.line)));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn pure_rooms_do_nothing_but_compute() {
    let layers = layers();
    let mut faults = Vec::new();
    for source in sources() {
        if layers.get(source.room()) != Some(&1) {
            continue;
        }
        for used in source.used().into_iter().filter(|used| !used.test) {
            let begins = |banned: &&&[&str]| {
                used.path.len() >= banned.len() && banned.iter().eq(&used.path[..banned.len()])
            };
            if let Some(banned) = IMPURE.iter().find(begins) {
                let name = banned.join("::");
                faults.push(format!(
                    "src/{}:{}: `{name}` has no place in a pure room",
                    source.file, used.line
                ));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn files_are_short_and_named_by_their_module() {
    let mut faults = Vec::new();
    for source in sources() {
        let lines = source.text.lines().count();
        if lines > LINES {
            faults.push(format!(
                "src/{}: {lines} lines, expected at most {LINES}",
                source.file
            ));
        }
        if source.file.ends_with("mod.rs") {
            faults.push(format!("src/{}: name it by its module", source.file));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_room_opens_with_what_it_owns_imports_never_does_and_how_it_fails() {
    let mut faults = Vec::new();
    for source in sources() {
        if source.file.contains('/') || ["lib.rs", "main.rs"].contains(&&*source.file) {
            continue;
        }
        let header = source
            .text
            .lines()
            .take_while(|line| line.starts_with("//!"));
        let words = [
            "//! Owns: ",
            "//! Imports: ",
            "//! Never: ",
            "//! Fails as: ",
        ];
        let found: Vec<_> = header
            .filter_map(|line| words.iter().find(|word| line.starts_with(**word)))
            .collect();
        if found != words.iter().collect::<Vec<_>>() {
            faults.push(format!(
                "src/{}: the four lines are not all there, in order",
                source.file
            ));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// A dependency that turns `preserve_order` on would change every digest of JSON.
#[test]
fn json_objects_have_one_order() {
    let read = |text| {
        serde_json::from_str::<serde_json::Value>(text)
            .expect("JSON")
            .to_string()
    };
    assert_eq!(read(r#"{"b":1,"a":2}"#), r#"{"a":2,"b":1}"#);
    assert_eq!(read(r#"{"a":2,"b":1}"#), r#"{"a":2,"b":1}"#);
}

/// The test tests itself: each of these is found.
#[test]
fn wrong_paths_are_found_wherever_they_stand() {
    let layers = layers();
    for text in [
        "use crate::gateway::call;",
        "use crate::{id, gateway};",
        "use super::super::gateway as other;",
        "fn f() { crate::gateway::call() }",
        "fn f(_: &crate::gateway::Call) {}",
        "fn f() { tracing::info!(x = crate::gateway::NAME) }",
        "mod inner { fn f() { super::super::super::gateway::call() } }",
        "use crate::audit::Journal;",
        "use crate::*;",
        "use crate as root;",
        "#[derive(crate::gateway::Derive)] struct S;",
        "impl crate::gateway::Call for () {}",
        "#[cfg(test)] mod tests { use crate::gateway::call; }",
        "#[cfg(unix)] mod tests { use crate::audit::Journal; }",
        "type T = <() as crate::gateway::Call>::Item;",
    ] {
        let source = Source::parse("egress/dial.rs", text);
        let found = source
            .used()
            .iter()
            .any(|used| wrong(&layers, &source, used).is_some());
        assert!(found, "`{text}` passed");
    }
    for text in [
        "use crate::{policy::Permit, audit::{Recorded, Intent}, id};",
        "use super::pool::Pool;",
        "use super::super::egress::Pool;",
        "mod tests { use super::*; use crate::egress::Pool; }",
        "#[cfg(test)] mod tests { use crate::audit::Journal; }",
    ] {
        let source = Source::parse("egress/dial.rs", text);
        let faults: Vec<_> = source
            .used()
            .iter()
            .filter_map(|used| wrong(&layers, &source, used))
            .collect();
        assert!(faults.is_empty(), "`{text}`: {faults:?}");
    }
}
