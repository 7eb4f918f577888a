//! The shared store on real servers: what every store must do, what survives what, and what is said
//! when it does not work.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod circuit;
mod cluster;
mod conformance;
mod counts;
mod lent;
mod refusals;
mod restarts;
mod support;
mod tls;
