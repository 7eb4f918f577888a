//! What does the operator want? The config file, read in two steps: what was typed, then what it
//! means. Every mistake is reported, not only the first.

mod model;

pub use model::{
    BypassRule, Config, CookieSettings, Host, Origin, OriginCommands, RoomConfig, RoomName, Route,
    SameSite, Secure, ServerConfig, SizeLimits, TimeOuts,
};
