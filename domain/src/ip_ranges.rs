//! IP addresses that a URL given by a user may lead to.
//!
//! A webhook URL or a media URL makes Fanfare's servers connect somewhere. Only addresses of the
//! public internet are allowed, and ranges that the operator adds.
//! Ranges: the IANA special-purpose address registries (RFC 6890 and successors).

use ipnet::IpNet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Non-public ranges that the operator allows.
#[derive(Clone, Debug, Default)]
pub struct AllowedRanges(Vec<IpNet>);

impl AllowedRanges {
    /// Parses a comma-separated list of CIDR ranges; an empty list allows none.
    pub fn parse(list: &str) -> Result<Self, ipnet::AddrParseError> {
        let ranges = list.split(',').map(str::trim).filter(|range| !range.is_empty());
        ranges.map(str::parse).collect::<Result<_, _>>().map(Self)
    }

    /// Returns the loopback ranges of IPv4 and IPv6.
    pub fn loopback() -> Self {
        Self::parse("127.0.0.0/8,::1/128").expect("loopback ranges are well-formed")
    }

    /// Returns the union with `other`.
    pub fn and(&self, other: &Self) -> Self {
        Self(self.0.iter().chain(&other.0).copied().collect())
    }

    /// Returns true if the operator allows this address.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = unmapped(address);
        self.0.iter().any(|range| range.contains(&address))
    }

    /// Returns true if a request may go to this address: it is public, or allowed by the operator.
    pub fn allows(&self, address: IpAddr) -> bool {
        is_public(address) || self.contains(address)
    }
}

/// Returns true if the address belongs to the public internet.
pub fn is_public(address: IpAddr) -> bool {
    match unmapped(address) {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => is_public_v6(v6),
    }
}

/// Converts an IPv4-mapped IPv6 address to IPv4.
fn unmapped(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || address.is_multicast()
        || a == 0
        || a >= 240
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && (18..20).contains(&b));
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    // Only 2000::/3 is assigned to the public internet; the exceptions inside it are tunnels that
    // may lead back (Teredo, 6to4), benchmarks and documentation.
    let special = segments[0] & 0xe000 != 0x2000
        || (segments[0] == 0x2001 && segments[1] < 0x200)
        || (segments[0] == 0x2001 && segments[1] == 0xdb8)
        || segments[0] == 0x2002
        || segments[0] == 0x3fff;
    !special
}

/// Returns true for a name below `localhost`, which is a loopback address without a resolver: some resolvers do not
/// know such names, and others send them to a DNS server, which may answer anything.
/// <https://www.rfc-editor.org/rfc/rfc6761#section-6.3>
pub fn is_below_localhost(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_are_public() {
        for address in ["8.8.8.8", "1.1.1.1", "198.20.0.1", "2606:4700:4700::1111", "::ffff:8.8.8.8"] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "255.255.255.255",
            "224.0.0.1",
            "192.0.0.1",
            "192.0.2.1",
            "198.18.0.1",
            "240.0.0.1",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "ff02::1",
            "fec0::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn an_added_range_is_allowed_also_when_mapped() {
        let added = AllowedRanges::parse("10.0.0.0/8, ::1/128").unwrap();
        assert!(added.allows("10.1.2.3".parse().unwrap()));
        assert!(added.allows("::ffff:10.1.2.3".parse().unwrap()));
        assert!(added.allows("::1".parse().unwrap()));
        assert!(!added.allows("127.0.0.1".parse().unwrap()));
        assert!(AllowedRanges::parse("10.0.0.0/33").is_err());
        assert!(AllowedRanges::parse("").is_ok());
    }
}
