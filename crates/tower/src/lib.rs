//! Waiting rooms and limits as [`tower`] layers, ready to stand before any service.
//!
//! [`Layers::open`] starts the store, the node that runs the rooms, and the limiter. Then there are
//! three layers, the outermost first:
//!
//! 1. [`ClientLayer`] finds out the client: the address behind trusted proxies. It rejects
//!    malformed requests.
//! 2. [`RateLimitLayer`] enforces `[[limit]]`.
//! 3. [`WaitingRoomLayer`] enforces `[[room]]`. It serves the requests of waiting pages, so it goes
//!    in front of all routes.
//!
//! `examples/axum.rs` puts them in front of an axum router. In `[[room]]`, `origin` and its
//! settings have no effect: the service behind the layers is the origin. In `[server]`, `data_dir`,
//! `trusted_proxies` and the sizes of requests apply.

mod at_once;
mod clients;
mod counts;
mod kafka;
mod layers;
mod open_error;
mod rooms_host;
mod stores;
mod surroundings;

pub use anteroom_config::Config;
pub use anteroom_limit_http::RateLimitLayer;
pub use anteroom_room_http::layer::WaitingRoomLayer;
pub use at_once::{Decider, PassedAll};
pub use clients::{ClientLayer, KnownClientService};
pub use counts::local_counts;
pub use layers::{Layers, NextLayers};
pub use open_error::OpenError;
pub use stores::OpenedStores;
