//! What does an operator see, and how does one change a room? Health, metrics, the state of rooms
//! and what operators say about them, over HTTP on an address of their own.
//!
//! Whoever changes something shows a token; what is allowed is judged by the node. Figures are read
//! from the node when somebody asks, so that nothing is counted twice. What other parts of the
//! program count comes in through [`Extras`]; the front doors themselves are not known here.

mod bodies;
pub mod client;
mod clocks;
mod command;
mod control;
mod doing;
mod extras;
mod guard;
mod health;
mod hosts;
mod inner;
mod limits;
mod metrics;
mod orders;
pub mod overrides;
mod probes;
mod refusal;
mod serve;
mod tokens;

pub use bodies::{
    AssumedEmpty, ClientStanding, ConnectionTrouble, Health, LimitTrouble, Liveness, Readiness,
    RoomStates, RoomTrouble,
};
pub use control::Control;
pub use extras::{
    ConnectionStats, ExtraStats, Extras, LimitStats, NoExtras, QuotaStats, RateLimitServiceStats,
};
pub use serve::serve;
pub use tokens::{Token, TokenError, Tokens};
