//! IPv4 addresses inside IPv6 addresses.

use std::net::{Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv6Net};

/// A declared NAT64 prefix (RFC 6052): addresses below it are judged as the IPv4 address that they carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nat64Prefix(pub IpNet);

impl Nat64Prefix {
    /// A prefix that an operator declared.
    ///
    /// # Errors
    ///
    /// Says what is wrong: not IPv6, a length that RFC 6052 section 2.2 does not know, or space that no translator serves.
    pub fn new(net: IpNet) -> Result<Self, String> {
        let IpNet::V6(prefix) = net else {
            return Err(format!(
                "`{net}` is not an IPv6 prefix; a NAT64 prefix looks like `64:ff9b::/96`"
            ));
        };
        if !matches!(prefix.prefix_len(), 32 | 40 | 48 | 56 | 64 | 96) {
            return Err(format!(
                "`{net}` has a length that NAT64 does not know; use /32, /40, /48, /56, /64 or /96"
            ));
        }
        if prefix.addr() != prefix.network() {
            return Err(format!(
                "`{net}` has bits set after its prefix; write `{}`",
                prefix.trunc()
            ));
        }
        let served = |parent: (Ipv6Addr, u8)| within(prefix.addr(), parent);
        if ![WELL_KNOWN, LOCAL_USE, GLOBAL, UNIQUE_LOCAL]
            .into_iter()
            .any(served)
        {
            return Err(format!(
                "`{net}` lies where no NAT64 prefix can; use one from 64:ff9b::/96, 64:ff9b:1::/48, 2000::/3 or fc00::/7"
            ));
        }
        Ok(Self(net))
    }

    /// What an address below this prefix carries: `None` outside the prefix, `Some(None)` where the address is not
    /// one that a translator serves.
    pub(super) fn decode(self, address: Ipv6Addr) -> Option<Option<Ipv4Addr>> {
        let IpNet::V6(prefix) = self.0 else {
            return None;
        };
        prefix
            .contains(&address)
            .then(|| translated(address, prefix.prefix_len()))
    }
}

const WELL_KNOWN: (Ipv6Addr, u8) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);
const LOCAL_USE: (Ipv6Addr, u8) = (Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, 0, 0), 48);
const GLOBAL: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);
const UNIQUE_LOCAL: (Ipv6Addr, u8) = (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7);
const TEREDO: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 32);
const SIX_TO_FOUR: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16);
/// IPv4-compatible, IPv4-mapped, IPv4-translated (SIIT) and well-known NAT64: the last 32 bits.
const IN_LOW_BITS: [(Ipv6Addr, u8); 4] = [
    (Ipv6Addr::UNSPECIFIED, 96),
    (Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96),
    (Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, 0, 0), 96),
    WELL_KNOWN,
];

/// Every IPv4 address that some mechanism would find inside `address`, whatever is declared.
pub(super) fn embedded(address: Ipv6Addr) -> impl Iterator<Item = Ipv4Addr> {
    let octets = address.octets();
    let mut found = [None; 5];
    if IN_LOW_BITS.into_iter().any(|form| within(address, form)) {
        found[0] = Some(quad(&octets, [12, 13, 14, 15]));
    } else if within(address, SIX_TO_FOUR) {
        found[0] = Some(quad(&octets, [2, 3, 4, 5]));
    } else if within(address, TEREDO) {
        // The server in the clear, the client with every bit inverted (RFC 4380 section 4).
        found[0] = Some(quad(&octets, [4, 5, 6, 7]));
        found[1] = Some(Ipv4Addr::from_bits(
            !quad(&octets, [12, 13, 14, 15]).to_bits(),
        ));
    } else if within(address, LOCAL_USE) {
        // The length below the /48 cannot be seen (RFC 8215), so each possible one counts.
        for (slot, length) in found.iter_mut().zip([48, 56, 64, 96]) {
            *slot = translated(address, length);
        }
    }
    found[4] = isatap(address);
    found.into_iter().flatten()
}

/// The IPv4 address of an ISATAP interface identifier (RFC 5214 section 6.1).
pub(super) fn isatap(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let octets = address.octets();
    matches!(octets[8..12], [0 | 2, 0, 0x5e, 0xfe]).then(|| quad(&octets, [12, 13, 14, 15]))
}

/// RFC 6052 section 2.2: four octets after the prefix, stepping over octet 8, which must be zero.
fn translated(address: Ipv6Addr, length: u8) -> Option<Ipv4Addr> {
    let octets = address.octets();
    let places = match length {
        32 => [4, 5, 6, 7],
        40 => [5, 6, 7, 9],
        48 => [6, 7, 9, 10],
        56 => [7, 9, 10, 11],
        64 => [9, 10, 11, 12],
        96 => return Some(quad(&octets, [12, 13, 14, 15])),
        _ => return None,
    };
    (octets[8] == 0).then(|| quad(&octets, places))
}

fn quad(octets: &[u8; 16], places: [usize; 4]) -> Ipv4Addr {
    places.map(|place| octets[place]).into()
}

fn within(address: Ipv6Addr, (prefix, length): (Ipv6Addr, u8)) -> bool {
    Ipv6Net::new_assert(prefix, length).contains(&address)
}
