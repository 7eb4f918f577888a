//! Request counts on real memcached servers.

mod clocks;
mod conformance;
mod contention;
mod expiry;
mod failures;
mod support;
mod turns;
mod undone;
