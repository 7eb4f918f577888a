//! Admin API of a node: health, metrics, the state of rooms and their overrides, over HTTP on a
//! separate address.
//!
//! Every change needs a token, and the node decides whether it is allowed. Stats are read from the
//! node at each request, so that nothing is counted twice. Other parts of the program bring theirs
//! through [`Extras`]; this crate does not know the listeners of clients.

mod api_error;
pub mod api_rooms;
mod api_state;
mod bodies;
pub mod client;
mod client_v4;
mod clocks;
mod command;
mod control;
mod deadline;
mod extras;
mod found_visitors;
mod guard;
mod health;
pub mod history;
mod hosts;
mod limits;
mod metrics;
pub mod overrides;
mod probes;
mod room_commands;
mod serve;
mod tokens;

pub use bodies::{
    AssumedEmpty, ClientStanding, ClockTrouble, ConnectionTrouble, Health, LimitTrouble, Liveness,
    Readiness, RoomStates, RoomTrouble, SiteState,
};
pub use control::Control;
pub use extras::{
    ConnectionStats, ExtraStats, Extras, LimitStats, NoExtras, QuotaStats, RateLimitServiceStats,
};
pub use found_visitors::{FoundState, FoundVisitor, FoundVisitors};
pub use serve::serve;
pub use tokens::{Holder, Role, Token, TokenError, Tokens};
