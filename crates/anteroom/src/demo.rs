//! Does it work? The main job in one command: an origin that slows down when too many are in it,
//! a gateway in front of it, and a crowd that outgrows the limits.
//!
//! Everything goes through sockets and cookies, and the count that matters is the origin's own.
//! How a gateway is started is not known here: whoever calls [`run`] brings one.

mod clock;
pub mod judge;
pub mod origin;
pub mod quantiles;
mod stop;
