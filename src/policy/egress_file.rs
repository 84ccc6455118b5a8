//! `egress.toml`: the address rules of every leg.

use std::net::IpAddr;

use ipnet::IpNet;

use super::{File, proxy};
use crate::{
    address::{Host, Leg, Nat64Prefix, Port},
    table::{self, Fault, Item, Place, Table},
};

/// What the file says, before it is held against the servers.
#[derive(Default)]
pub(super) struct Egress {
    pub(super) private: Vec<Private>,
    pub(super) nat64: Vec<Nat64Prefix>,
    pub(super) fake_ip: Vec<IpNet>,
    pub(super) proxy: proxy::Drafts,
}

/// A `[[private]]` table.
pub(super) struct Private {
    pub(super) place: Place,
    /// Host and port, where both can be understood.
    pub(super) destination: Option<(Host, Port)>,
    pub(super) addresses: Vec<Item<IpNet>>,
    pub(super) address: Option<Item<IpAddr>>,
    /// What `for` names.
    pub(super) legs: Vec<Item<Leg>>,
}

/// Reads the file.
pub(super) fn read(file: &File, faults: &mut Vec<Fault>) -> Egress {
    let (egress, found) = table::read(&file.path, &file.text, |root| {
        let private = root.tables("private");
        Egress {
            private: private.iter().map(read_private).collect(),
            nat64: nat64(root),
            fake_ip: fake_ip(root),
            proxy: proxy::read(root),
        }
    });
    faults.extend(found);
    egress.unwrap_or_default()
}

fn read_private(table: &Table<'_>) -> Private {
    let host = table
        .required_text("host")
        .and_then(|item| exact_host(table, &item));
    let port = port(table, host.as_ref());
    let mut addresses = Vec::new();
    for item in table.texts("addresses").unwrap_or_default() {
        addresses.extend(network(table, &item).map(|value| Item {
            value,
            place: item.place,
        }));
    }
    if table.has("addresses") && table.has("address") {
        let message = "stands beside `addresses`, which would have no effect; keep one of the two";
        table.fault(table.place_of("address").fault(message));
    }
    let address = table.text("address").and_then(|item| {
        let value = item.value.parse().ok();
        if value.is_none() {
            table.fault(item.fault(format!(
                "found `{}`, expected one address such as \"10.20.1.5\"",
                item.value
            )));
        }
        value.map(|value| Item {
            value,
            place: item.place,
        })
    });
    let legs = legs(table);
    Private {
        place: table.place(),
        destination: host.zip(port),
        addresses,
        address,
        legs,
    }
}

fn exact_host(table: &Table<'_>, item: &Item<String>) -> Option<Host> {
    if item.value.contains('*') {
        let message =
            "a private grant opens one exact host, never a pattern; write the host's name";
        table.fault(item.fault(message));
        return None;
    }
    let host = Host::from_operator(&item.value);
    host.map_err(|error| {
        let message = format!("{error}; write a host name or address, without scheme and port");
        table.fault(item.fault(message));
    })
    .ok()
}

fn port(table: &Table<'_>, host: Option<&Host>) -> Option<Port> {
    if !table.has("port") {
        table.fault(
            table
                .place()
                .fault("`port` is missing; add the port that the server listens on"),
        );
        return None;
    }
    if !table.has_text("port") {
        let port = table.integer("port", 1..=65535)?;
        return u16::try_from(port).ok().map(Port::Exact);
    }
    let text = table.text("port")?;
    if text.value != "any" {
        table.fault(text.fault(format!(
            "found the string `{}`, expected a number such as 443, or \"any\" for loopback hosts",
            text.value
        )));
        return None;
    }
    if host.is_some_and(|host| !host.is_loopback()) {
        let message = "`any` is for loopback hosts only; name the port";
        table.fault(table.place_of("port").fault(message));
    }
    Some(Port::Any)
}

fn legs(table: &Table<'_>) -> Vec<Item<Leg>> {
    let Some(written) = table.texts("for") else {
        if !table.has("for") {
            let message = "`for` is missing; say for which server, as in for = [\"server:jira\"], or for the \"proxy\"";
            table.fault(table.place().fault(message));
        }
        return Vec::new();
    };
    if written.is_empty() {
        let message = "names nothing, so the grant opens nothing; write for = [\"server:NAME\"] or for = [\"proxy\"]";
        table.fault(table.place_of("for").fault(message));
    }
    let legs = written.into_iter().filter_map(|item| {
        let value = leg(table, &item)?;
        Some(Item {
            value,
            place: item.place,
        })
    });
    legs.collect()
}

fn leg(table: &Table<'_>, item: &Item<String>) -> Option<Leg> {
    let written = item.value.as_str();
    if let Some(name) = written.strip_prefix("server:") {
        return Some(Leg::Server(name.into()));
    }
    if let Some(name) = written.strip_prefix("oauth:") {
        return Some(Leg::OAuth(name.into()));
    }
    if written == "proxy" {
        return Some(Leg::Proxy);
    }
    let later = ["identity", "webhook"].contains(&written);
    table.fault(item.fault(if later {
        format!("`{written}` is not available in this version; remove it")
    } else {
        format!(
            "found `{written}`, expected \"server:NAME\", \"oauth:NAME\" or \"proxy\"; correct it"
        )
    }));
    None
}

fn nat64(root: &Table<'_>) -> Vec<Nat64Prefix> {
    let mut prefixes = Vec::new();
    for item in root.texts("nat64_prefixes").unwrap_or_default() {
        let Some(prefix) = network(root, &item) else {
            continue;
        };
        match Nat64Prefix::new(prefix) {
            Ok(prefix) => prefixes.push(prefix),
            Err(why) => root.fault(item.fault(why)),
        }
    }
    prefixes
}

fn fake_ip(root: &Table<'_>) -> Vec<IpNet> {
    let items = root.texts("fake_ip_ranges").unwrap_or_default();
    items
        .iter()
        .filter_map(|item| network(root, item))
        .collect()
}

/// A network; a single address is one of full length.
fn network(table: &Table<'_>, item: &Item<String>) -> Option<IpNet> {
    let net = item.value.parse::<IpNet>().ok();
    let net = net.or_else(|| item.value.parse::<IpAddr>().ok().map(IpNet::from));
    let Some(net) = net else {
        table.fault(item.fault(format!(
            "found `{}`, expected a network such as \"10.20.0.0/16\"",
            item.value
        )));
        return None;
    };
    if net.trunc() != net {
        table.fault(item.fault(format!(
            "found `{net}`, whose last bits are not zero; write `{}`",
            net.trunc()
        )));
    }
    Some(net)
}
