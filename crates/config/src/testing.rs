//! Room of the unit tests.

use crate::{Config, RoomConfig};

/// Returns a room with the keys that every room needs, and `more` lines of the file.
pub(crate) fn room(more: &str) -> RoomConfig {
    let text = format!(
        "[[room]]\nname = \"shop\"\norigin = \"http://127.0.0.1:3000\"\n\
         total_active_users = 200\nnew_users_per_minute = 100\nbypass = []\n{more}"
    );
    let mut config = Config::parse("test.toml", &text).unwrap().config;
    config.rooms.remove(0)
}
