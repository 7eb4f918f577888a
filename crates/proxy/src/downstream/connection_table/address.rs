//! Networks that count as one client address.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bits of an IPv6 address that a provider leaves to one customer, who may use all of them.
const CUSTOMER_BITS: u32 = 64;

/// Client address: an IPv4 address, or the /64 network of an IPv6 address.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) enum Network {
    V4(Ipv4Addr),
    V6(u64),
}

impl Network {
    /// Returns the network of an address; the caller has mapped IPv4-mapped addresses to IPv4.
    pub(super) const fn of(ip: IpAddr) -> Self {
        match ip {
            IpAddr::V4(ip) => Self::V4(ip),
            IpAddr::V6(ip) => {
                let [a, b, c, d, ..] = ip.segments();
                let high = [a as u64, b as u64, c as u64, d as u64];
                Self::V6(high[0] << 48 | high[1] << 32 | high[2] << 16 | high[3])
            }
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V4(ip) => ip.fmt(f),
            Self::V6(high) => {
                let ip = Ipv6Addr::from_bits(u128::from(*high) << CUSTOMER_BITS);
                write!(f, "{ip}/{CUSTOMER_BITS}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_customer_of_a_provider_is_one_address() {
        let check = |ip: &str, expected: &str| {
            let ip: IpAddr = ip.parse().unwrap();
            assert_eq!(Network::of(ip.to_canonical()).to_string(), expected);
        };
        check("192.0.2.7", "192.0.2.7");
        check("::ffff:192.0.2.7", "192.0.2.7");
        check("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64");
        check("2001:db8:1:2::", "2001:db8:1:2::/64");
        check("2001:db8:1:3::1", "2001:db8:1:3::/64");
    }
}
