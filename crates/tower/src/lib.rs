//! Waiting rooms and limits as [`tower`] layers, ready to stand before any service.
//!
//! [`Layers::open`] starts what a configuration says: the store, the node that runs the rooms, and
//! what counts calls. Then there are three layers, the outermost first:
//!
//! 1. [`ClientLayer`] finds out who asks: the address behind trusted proxies. It refuses what no
//!    client should send.
//! 2. [`RateLimitLayer`] lets calls through as often as `[[limit]]` says.
//! 3. [`WaitingRoomLayer`] lets visitors in as `[[room]]` says. What a waiting page asks is
//!    answered here, so the layer stands before all routes.
//!
//! `examples/axum.rs` has them before an axum router. Of a `[[room]]`, `origin` and what concerns
//! it mean nothing here: what is behind the layers is the origin. Of `[server]`, `data_dir`,
//! `trusted_proxies` and the sizes of requests count.

mod around;
mod clients;
mod counts;
mod kafka;
mod layers;
mod open_error;
mod stores;

pub use anteroom_config::Config;
pub use anteroom_limit_http::RateLimitLayer;
pub use anteroom_room_http::layer::WaitingRoomLayer;
pub use clients::{ClientLayer, OfKnown};
pub use counts::near_counts;
pub use layers::{Layers, NextLayers};
pub use open_error::OpenError;
pub use stores::Opened;
