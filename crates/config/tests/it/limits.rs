//! `[[limit]]`: meaning of valid tables, and stores that count.

mod docs;
mod meaning;
mod stores;

use anteroom_config::{Config, Parsed};

const ROOM: &str = r#"
[[room]]
name = "shop"
host = "shop.example"
path = "/shop"
origin = "http://127.0.0.1:3000"
total_active_users = 200
new_users_per_minute = 200
bypass = []
"#;

fn parse(text: &str) -> Parsed {
    Config::parse("anteroom.toml", text).unwrap_or_else(|problems| panic!("{problems}"))
}
