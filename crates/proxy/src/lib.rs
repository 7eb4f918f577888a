//! A reverse proxy: moves requests from clients to origins, and responses back.
//!
//! One HTTP stack (hyper, tower) from the socket to the origin. The way of a request:
//!
//! 1. [`downstream`]: listeners, TLS, the connection, HTTP/1.1 and HTTP/2 with their limits;
//! 2. [`intake`] rejects what is malformed, and begins the [`request_context`];
//! 3. rate limits and waiting rooms, which are layers of other crates and stand between the two;
//! 4. [`reverse_proxy`] changes its headers and waits for the response;
//! 5. [`upstream`] chooses an origin and a connection.
//!
//! Plain requests may leave this way after the first step: [`fast_path`] forwards them without
//! hyper, and asks rooms and limits for a decision that needs no future.
//!
//! [`body`] is what streams in both directions. [`error_page`] writes what a client reads when a
//! request ends here, with a status from [`status`]. The crate knows neither rooms nor limits. It
//! holds what both need to speak HTTP: [`header_view`], [`cookies`], [`path`], [`route`],
//! [`forwarded`], [`language`] and [`access_log`].

pub mod access_log;
pub mod body;
pub mod cookies;
pub mod downstream;
pub mod error_page;
pub mod fast_path;
pub mod forwarded;
#[doc(hidden)]
pub mod fuzz;
pub mod header_view;
pub mod intake;
pub mod language;
mod loops;
pub mod path;
pub mod request_context;
pub mod request_view;
pub mod reverse_proxy;
pub mod route;
pub mod status;
pub mod striped_counts;
pub mod timeouts;
pub mod upstream;
