//! What does an operator see? Health, metrics and the state of rooms, over HTTP on an address of
//! their own.
//!
//! Reads only: nothing here changes a room. Figures are read from the node when somebody asks, so
//! that nothing is counted twice. What other parts of the program count comes in through
//! [`Extras`]; the front doors themselves are not known here.

mod bodies;
mod clocks;
mod control;
mod extras;
mod guard;
mod health;
mod metrics;
mod refusal;
mod serve;

pub use bodies::{Health, RoomStates, RoomTrouble};
pub use control::Control;
pub use extras::{ExtraFigures, Extras, NoExtras};
pub use serve::serve;
