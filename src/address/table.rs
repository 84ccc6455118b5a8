//! The table of special-purpose ranges, after the IANA registries, and what lies beside them.

use std::{
    net::{IpAddr, Ipv6Addr},
    sync::LazyLock,
};

use ipnet::IpNet;

use super::embedded::isatap;

/// What may open a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opens {
    /// Nothing.
    Never,
    /// An exact private grant.
    Grant,
    /// `fake_ip_ranges`, for names.
    FakeIp,
    /// Either of the two.
    GrantOrFakeIp,
    /// `nat64_prefixes`: then the IPv4 address inside is judged instead.
    Nat64,
}

/// A range that is refused.
#[derive(Debug)]
pub(super) struct Row {
    /// The range; of length 0 where the rule is not a prefix.
    pub(super) net: IpNet,
    /// The name of the rule.
    pub(super) name: &'static str,
    /// What the range is for, and the reference.
    pub(super) what: &'static str,
    /// What may open it.
    pub(super) opens: Opens,
}

/// The row that refuses `address`, if one does.
pub(super) fn row(address: IpAddr) -> Option<&'static Row> {
    match address {
        IpAddr::V4(_) => find(&V4, address),
        IpAddr::V6(v6) => find(&V6, address).or_else(|| {
            if v6.octets()[0] >> 5 != 0b001 {
                return Some(&UNALLOCATED);
            }
            let inner = IpAddr::V4(isatap(v6)?);
            metadata(inner).or_else(|| row(inner)).map(|_| &ISATAP)
        }),
    }
}

/// The metadata row of `address`, which nothing opens.
pub(super) fn metadata(address: IpAddr) -> Option<&'static Row> {
    match address {
        IpAddr::V4(_) => find(&METADATA_V4, address),
        IpAddr::V6(_) => find(&METADATA_V6, address),
    }
}

/// Every row that is a prefix.
#[cfg(test)]
pub(super) fn rows() -> impl Iterator<Item = &'static Row> {
    let metadata = METADATA_V4.iter().chain(METADATA_V6.iter());
    metadata.chain(V4.iter()).chain(V6.iter())
}

fn find(rows: &'static [Row], address: IpAddr) -> Option<&'static Row> {
    rows.iter().find(|row| row.net.contains(&address))
}

/// One row a line: range, what opens it, rule, purpose and reference.
macro_rules! rows {
    ($($net:literal $opens:ident $name:literal $what:literal;)*) => {
        LazyLock::new(|| {
            vec![$(Row {
                net: $net.parse().expect("the table holds valid prefixes"),
                name: $name,
                what: $what,
                opens: Opens::$opens,
            }),*]
        })
    };
}

static METADATA_V4: LazyLock<Vec<Row>> = rows! {
    "169.254.169.0/24"       Never "metadata" "cloud metadata, DNS and time services";
    "169.254.170.0/24"       Never "metadata" "AWS task and pod credentials";
    "169.254.42.42/32"       Never "metadata" "Scaleway metadata";
    "169.254.0.23/32"        Never "metadata" "Tencent metadata";
    "168.63.129.16/32"       Never "metadata" "Azure WireServer";
    "100.100.100.200/32"     Never "metadata" "Alibaba metadata";
    "100.96.0.96/32"         Never "metadata" "Volcano Engine metadata";
    "192.0.0.192/32"         Never "metadata" "Oracle metadata";
};

static METADATA_V6: LazyLock<Vec<Row>> = rows! {
    "fd00:ec2::/32"          Never "metadata" "AWS metadata, DNS and time services";
    "fd20:ce::254/128"       Never "metadata" "Google Cloud metadata";
    "fd00:c1::a9fe:a9fe/128" Never "metadata" "Oracle metadata";
    "fd00:42::42/128"        Never "metadata" "Scaleway metadata";
    "fd00:a9fe:a9fe::1/128"  Never "metadata" "Akamai metadata";
    "fd00:100::100:200/128"  Never "metadata" "Alibaba metadata";
    "fe80::a9fe:a9fe/128"    Never "metadata" "OpenStack metadata";
};

static V4: LazyLock<Vec<Row>> = rows! {
    "0.0.0.0/8"          Grant  "this-network"  "this network, RFC 1122";
    "10.0.0.0/8"         Grant  "private-use"   "private use, RFC 1918";
    "100.64.0.0/10"      Grant  "shared"        "shared address space, RFC 6598";
    "127.0.0.0/8"        Grant  "loopback"      "loopback, RFC 1122";
    "169.254.0.0/16"     Grant  "link-local"    "link-local, RFC 3927";
    "172.16.0.0/12"      Grant  "private-use"   "private use, RFC 1918";
    "192.0.0.0/24"       Never  "ietf-protocol" "IETF protocol assignments, RFC 6890";
    "192.0.2.0/24"       Never  "documentation" "documentation, RFC 5737";
    "192.31.196.0/24"    Never  "as112"         "AS112, RFC 7535";
    "192.52.193.0/24"    Never  "amt"           "automatic multicast tunnelling, RFC 7450";
    "192.88.99.0/24"     Never  "6to4-relay"    "6to4 relays, RFC 7526";
    "192.168.0.0/16"     Grant  "private-use"   "private use, RFC 1918";
    "192.175.48.0/24"    Never  "as112"         "AS112, RFC 7534";
    "198.18.0.0/15"      FakeIp "benchmarking"  "benchmarking, RFC 2544";
    "198.51.100.0/24"    Never  "documentation" "documentation, RFC 5737";
    "203.0.113.0/24"     Never  "documentation" "documentation, RFC 5737";
    "224.0.0.0/4"        Never  "multicast"     "multicast, RFC 5771";
    "255.255.255.255/32" Never  "broadcast"     "limited broadcast, RFC 919";
    "240.0.0.0/4"        Never  "reserved"      "reserved, RFC 1112";
};

/// The first that contains an address names it, so that the narrow comes before the wide.
static V6: LazyLock<Vec<Row>> = rows! {
    "::/128"            Never         "unspecified"     "the unspecified address, RFC 4291";
    "::1/128"           Grant         "loopback"        "loopback, RFC 4291";
    "::/96"             Never         "ipv4-compatible" "IPv4-compatible, RFC 4291";
    "::ffff:0:0/96"     Never         "ipv4-mapped"     "IPv4-mapped, RFC 4291";
    "::ffff:0:0:0/96"   Never         "ipv4-translated" "IPv4-translated, RFC 7915";
    "64:ff9b::/96"      Nat64         "nat64"           "NAT64, RFC 6052";
    "64:ff9b:1::/48"    Nat64         "nat64-local"     "local-use NAT64, RFC 8215";
    "100::/64"          Never         "discard"         "discard-only, RFC 6666";
    "100:0:0:1::/64"    Never         "dummy"           "dummy prefix, RFC 9780";
    "2001::/32"         Never         "teredo"          "Teredo, RFC 4380";
    "2001:1::1/128"     Never         "anycast"         "port control anycast, RFC 7723";
    "2001:1::2/128"     Never         "anycast"         "TURN anycast, RFC 8155";
    "2001:1::3/128"     Never         "anycast"         "service registration anycast, RFC 9665";
    "2001:2::/48"       Never         "benchmarking"    "benchmarking, RFC 5180";
    "2001:3::/32"       Never         "amt"             "automatic multicast tunnelling, RFC 7450";
    "2001:4:112::/48"   Never         "as112"           "AS112, RFC 7535";
    "2001:10::/28"      Never         "orchid"          "ORCHID, RFC 4843";
    "2001:20::/28"      Never         "orchidv2"        "ORCHIDv2, RFC 7343";
    "2001:30::/28"      Never         "det"             "drone remote identification, RFC 9374";
    "2001::/23"         Never         "ietf-protocol"   "IETF protocol assignments, RFC 2928";
    "2001:db8::/32"     Never         "documentation"   "documentation, RFC 3849";
    "2002::/16"         Never         "6to4"            "6to4, RFC 3056";
    "2620:4f:8000::/48" Never         "as112"           "AS112, RFC 7534";
    "3fff::/20"         Never         "documentation"   "documentation, RFC 9637";
    "5f00::/16"         Never         "srv6"            "segment routing identifiers, RFC 9602";
    "fc00::/7"          GrantOrFakeIp "unique-local"    "unique local, RFC 4193";
    "fe80::/10"         Never         "link-local"      "link-local, RFC 4291";
    "fec0::/10"         Never         "site-local"      "site-local, RFC 3879";
    "ff00::/8"          Never         "multicast"       "multicast, RFC 4291";
};

static UNALLOCATED: Row = special(
    "unallocated",
    "outside 2000::/3, not allocated for global unicast",
);

static ISATAP: Row = special(
    "isatap",
    "an ISATAP identifier over a refused IPv4 address, RFC 5214",
);

const fn special(name: &'static str, what: &'static str) -> Row {
    let net = IpNet::new_assert(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0);
    Row {
        net,
        name,
        what,
        opens: Opens::Never,
    }
}
