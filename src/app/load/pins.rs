//! Pins files, held against what can be read: their text is understood where they are used.

use crate::{
    catalog::pins_file,
    policy::{Pin, Snapshot},
    table::Fault,
};

/// What is wrong with the pins files of the servers that have one.
pub(super) fn faults(policy: &Snapshot) -> Vec<Fault> {
    let servers = policy.servers.values();
    servers
        .filter_map(|server| match &server.pin {
            Pin::File(Some(text)) => {
                let file = format!("pins/{}.json", server.name);
                pins_file::read(&file, &server.name, text).err()
            }
            _ => None,
        })
        .flatten()
        .collect()
}
