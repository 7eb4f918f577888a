//! A reverse proxy: moves requests from clients to origins, and responses back.
//!
//! One HTTP stack (hyper, tower) from the socket to the origin. A request comes from a connection
//! of [`downstream`]; [`intake`] rejects what is malformed; [`proxy`] sends it to an origin of
//! [`upstream`] and returns the response. [`error_page`] writes what a client reads when a request
//! ends here, with a status from [`status`].
//!
//! Waiting rooms and rate limits stand between intake and proxy, as layers of other crates. This
//! one knows neither. It holds what both need to speak HTTP: [`cookies`], [`path`], [`route`],
//! [`forwarded`], [`language`], and in [`request_context`] what they tell each other.

pub mod body;
pub mod cookies;
pub mod downstream;
pub mod error_page;
pub mod forwarded;
#[doc(hidden)]
pub mod fuzz;
pub mod intake;
pub mod language;
mod loops;
pub mod path;
pub mod proxy;
pub mod request_context;
pub mod route;
pub mod status;
pub mod upstream;
