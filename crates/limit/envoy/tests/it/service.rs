//! The service over real sockets: asked as Envoy asks, and as nobody should.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod doors;
mod hostile;
mod quota;
mod quota_client;
mod quota_shares;
mod reload;
mod rules;
mod store;
mod support;
