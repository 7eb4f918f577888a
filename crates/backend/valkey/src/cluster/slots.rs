//! Slot table of a cluster, and the slot of a key.
//!
//! Source: the cluster specification of Redis, "Key distribution model" and "Hash tags"; CRC16 in
//! its XMODEM form, whose check value is 0x31C3.

use anteroom_config::HostPort;
use redis::Value;

/// Number of slots of every cluster.
const SLOTS: u16 = 16_384;

/// Servers by slot.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct SlotTable {
    servers: Vec<HostPort>,
    /// Index of the server of each slot; 32 KB for a lookup without a search.
    server_of: Vec<Option<u16>>,
}

impl SlotTable {
    /// Decodes the reply to `CLUSTER SLOTS`; `None` if it is invalid. A server without a host in
    /// the table has the host `own_host`.
    pub(super) fn read(reply: &Value, own_host: &str) -> Option<Self> {
        let Value::Array(ranges) = reply else {
            return None;
        };
        let mut table = Self {
            servers: Vec::new(),
            server_of: vec![None; usize::from(SLOTS)],
        };
        for range in ranges {
            let Value::Array(parts) = range else {
                return None;
            };
            // Replicas follow; they are not used.
            let [
                Value::Int(first),
                Value::Int(last),
                Value::Array(master),
                ..,
            ] = parts.as_slice()
            else {
                return None;
            };
            let [host, Value::Int(port), ..] = master.as_slice() else {
                return None;
            };
            let server = HostPort {
                host: read_host(host, own_host)?,
                port: u16::try_from(*port).ok()?,
            };
            let first = usize::try_from(*first).ok()?;
            let last = usize::try_from(*last).ok()?;
            let index = table.index_of(&server);
            for slot in table.server_of.get_mut(first..=last)? {
                *slot = index;
            }
        }
        Some(table)
    }

    pub(super) fn server_of(&self, slot: u16) -> Option<&HostPort> {
        let index = (*self.server_of.get(usize::from(slot))?)?;
        self.servers.get(usize::from(index))
    }

    /// Records that a server has a slot.
    pub(super) fn move_to(&mut self, slot: u16, server: &HostPort) {
        let index = self.index_of(server);
        if let Some(entry) = self.server_of.get_mut(usize::from(slot)) {
            *entry = index;
        }
    }

    /// Returns all servers that have slots.
    pub(super) fn servers(&self) -> &[HostPort] {
        &self.servers
    }

    /// Returns the index of a server, adding it if it is new; `None` once there are more servers
    /// than slots.
    fn index_of(&mut self, server: &HostPort) -> Option<u16> {
        let found = self.servers.iter().position(|known| known == server);
        let index = found.unwrap_or_else(|| {
            self.servers.push(server.clone());
            self.servers.len() - 1
        });
        u16::try_from(index).ok().filter(|index| *index < SLOTS)
    }
}

/// Reads the host of a server in a table; an empty or unknown one means `own_host`.
fn read_host(host: &Value, own_host: &str) -> Option<String> {
    let host = match host {
        Value::Nil => "",
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok()?,
        Value::SimpleString(text) => text,
        _ => return None,
    };
    let host = if matches!(host, "" | "?") {
        own_host
    } else {
        host
    };
    Some(host.to_owned())
}

/// Parses `10.0.0.7:6379`, `::1:6379`, or `:6379` for another port of `own_host`.
pub(super) fn read_address(address: &str, own_host: &str) -> Option<HostPort> {
    let (host, port) = address.rsplit_once(':')?;
    let host = if host.is_empty() { own_host } else { host };
    Some(HostPort {
        host: host.to_owned(),
        port: port.parse().ok()?,
    })
}

/// Returns the slot of a key: that of the text between its first `{` and the next `}`, if there is
/// any.
pub(super) fn slot_of(key: &[u8]) -> u16 {
    let tag = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        let close = rest.iter().position(|byte| *byte == b'}')?;
        (close > 0).then(|| &rest[..close])
    });
    crc16(tag.unwrap_or(key)) % SLOTS
}

fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        let mut crc: u16 = crc ^ (u16::from(*byte) << 8);
        for _ in 0..8 {
            let carry = crc & 0x8000 != 0;
            crc <<= 1;
            if carry {
                crc ^= 0x1021;
            }
        }
        crc
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(host: &str, port: u16) -> HostPort {
        HostPort {
            host: host.to_owned(),
            port,
        }
    }

    fn range(first: i64, last: i64, host: Value, port: i64) -> Value {
        let master = vec![host, Value::Int(port), Value::BulkString(b"id".to_vec())];
        let replica = vec![Value::BulkString(b"replica".to_vec()), Value::Int(1)];
        Value::Array(vec![
            Value::Int(first),
            Value::Int(last),
            Value::Array(master),
            Value::Array(replica),
        ])
    }

    fn host(name: &str) -> Value {
        Value::BulkString(name.as_bytes().to_vec())
    }

    #[test]
    fn the_checksum_gives_the_values_of_the_specification() {
        assert_eq!(crc16(b"123456789"), 0x31C3);
        assert_eq!(slot_of(b"foo"), 12_182);
        assert_eq!(slot_of(b"bar"), 5_061);
    }

    #[test]
    fn only_the_part_in_braces_chooses_the_slot() {
        let check = |key: &str, same_as: &str| {
            assert_eq!(
                slot_of(key.as_bytes()),
                crc16(same_as.as_bytes()) % SLOTS,
                "{key}"
            );
        };
        check("{user1000}.following", "user1000");
        check("anteroom:{shop}#anywhere:7", "shop");
        check("foo{}{bar}", "foo{}{bar}");
        check("foo{{bar}}zap", "{bar");
        check("foo{bar}{zap}", "bar");
        check("foo{bar", "foo{bar");
        check("", "");
    }

    #[test]
    fn a_table_maps_slots_to_servers() {
        let reply = Value::Array(vec![
            range(0, 5_460, host("10.0.0.1"), 6379),
            range(5_461, 10_922, Value::Nil, 6380),
            range(10_923, 10_923, host(""), 6380),
            range(12_000, 16_383, host("10.0.0.3"), 6379),
        ]);
        let mut table = SlotTable::read(&reply, "10.0.0.9").unwrap();
        assert_eq!(table.server_of(0), Some(&server("10.0.0.1", 6379)));
        assert_eq!(table.server_of(5_461), Some(&server("10.0.0.9", 6380)));
        assert_eq!(table.server_of(10_923), Some(&server("10.0.0.9", 6380)));
        assert_eq!(table.server_of(10_924), None);
        assert_eq!(table.server_of(16_383), Some(&server("10.0.0.3", 6379)));
        assert_eq!(table.servers().len(), 3);
        table.move_to(0, &server("10.0.0.4", 1));
        assert_eq!(table.server_of(0), Some(&server("10.0.0.4", 1)));
        assert_eq!(table.server_of(1), Some(&server("10.0.0.1", 6379)));
    }

    #[test]
    fn invalid_tables_are_rejected() {
        let check = |reply: Value| assert_eq!(SlotTable::read(&reply, "own-host"), None);
        check(Value::Okay);
        check(Value::Array(vec![Value::Int(1)]));
        check(Value::Array(vec![Value::Array(vec![])]));
        check(Value::Array(vec![range(0, 16_384, host("a"), 1)]));
        check(Value::Array(vec![range(5, 3, host("a"), 1)]));
        check(Value::Array(vec![range(-1, 3, host("a"), 1)]));
        check(Value::Array(vec![range(0, 3, host("a"), 65_536)]));
        check(Value::Array(vec![range(0, 3, Value::Int(4), 1)]));
    }

    #[test]
    fn addresses_of_redirects_are_read() {
        let check = |text: &str, expected: Option<HostPort>| {
            assert_eq!(read_address(text, "own-host"), expected, "{text}");
        };
        check("10.0.0.7:6379", Some(server("10.0.0.7", 6379)));
        check("::1:6379", Some(server("::1", 6379)));
        check(":6379", Some(server("own-host", 6379)));
        check("host", None);
        check("host:", None);
        check("host:65536", None);
    }
}
