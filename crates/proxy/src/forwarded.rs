//! Who is the client, and what is the origin told about it?
//!
//! A connection tells an address; a proxy in front may tell another one, and is believed only if
//! it is trusted. `X-Forwarded-For` is read from the right: the right-most address that is not a
//! trusted proxy is the client, because everything to the left of it could be made up. `Forwarded`
//! is written for the origin, and never believed; two sources of one fact would have to agree.

mod claims;
mod client;
mod headers;
mod names;
mod trust;

pub use client::{Client, Scheme};
pub(crate) use headers::{strip_hearsay, strip_own, write};
pub use names::is_same;
pub use trust::TrustedProxies;

#[cfg(test)]
mod tests;
