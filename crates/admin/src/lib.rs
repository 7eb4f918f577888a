//! Admin API of a node: health, metrics, the state of rooms and their overrides, over HTTP on a
//! separate address.
//!
//! Every change needs a token, and the node decides whether it is allowed. Stats are read from the
//! node at each request, so that nothing is counted twice. Other parts of the program bring theirs
//! through [`Extras`]; this crate does not know the listeners of clients.

mod api_error;
pub mod api_rooms;
mod api_state;
mod api_v1;
mod bodies;
pub mod client;
mod client_v4;
mod clocks;
mod command;
mod control;
mod deadline;
mod duplicate_keys;
mod extras;
mod found_visitors;
mod guard;
mod health;
pub mod history;
mod hosts;
mod known_rooms;
mod metrics;
pub mod overrides;
mod probes;
mod reload;
mod serve;
mod tokens;

pub use api_v1::document as openapi_document;
pub use bodies::{
    AssumedEmpty, ClientStanding, ClockTrouble, ConnectionTrouble, Health, LimitTrouble, Liveness,
    Readiness, RoomStates, RoomTrouble, SiteState,
};
pub use control::Control;
pub use extras::{
    ConnectionStats, ExtraStats, Extras, LimitStats, NoExtras, QuotaStats, RateLimitServiceStats,
};
pub use found_visitors::{FoundState, FoundVisitor, FoundVisitors};
pub use reload::{ReloadRequest, Reloader};
pub use serve::serve;
pub use tokens::{Holder, Role, Token, TokenError, Tokens};
