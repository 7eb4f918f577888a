//! Identity of the client, and the headers that tell the origin.
//!
//! A connection has a peer address. A proxy in front may name another one, and is believed only if
//! it is trusted. `X-Forwarded-For` is read from the right: the right-most address that is not a
//! trusted proxy is the client, because everything to the left could be made up. `Forwarded` is
//! written for the origin and never believed: two sources of one fact would have to agree.

mod claims;
mod client;
mod headers;
mod names;
mod trust;

pub use client::{Client, Scheme};
pub(crate) use headers::{is_continued, strip_hearsay, strip_own, write, write_lines};
pub(crate) use names::is_odd;
pub use names::is_same;
pub use trust::TrustedProxies;

#[cfg(test)]
mod tests;
