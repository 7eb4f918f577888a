//! Name of the ticket's cookie.
//!
//! The gateway decides the attributes and the contents of the cookie.

use super::model::{CookieSettings, RoomConfig, RoomId};

/// Common prefix of all cookies of Anteroom.
const PREFIX: &str = "__anteroom_";

impl RoomConfig {
    /// Returns the name of the cookie that carries this room's tickets; no two rooms on one host
    /// share it.
    #[must_use]
    pub fn cookie_name(&self) -> String {
        name(&self.cookie, &self.id)
    }
}

pub(super) fn name(settings: &CookieSettings, room: &RoomId) -> String {
    settings.suffix.as_ref().map_or_else(
        || format!("{PREFIX}{:08x}", fnv1a(room.as_str().as_bytes())),
        |suffix| format!("{PREFIX}{suffix}"),
    )
}

/// Hashes with FNV-1a, 32 bits. The hash distinguishes the rooms of one file, and is the same on
/// every node and in every version. Two rooms that collide on one host are an error of the config.
fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fnv_1a_with_its_published_values() {
        assert_eq!(fnv1a(b""), 0x811c_9dc5);
        assert_eq!(fnv1a(b"a"), 0xe40c_292c);
        assert_eq!(fnv1a(b"foobar"), 0xbf9c_f968);
    }
}
