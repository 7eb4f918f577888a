//! Tests of the service over real sockets: requests like Envoy's, and hostile ones.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod endpoints;
mod hostile;
mod quota;
mod quota_client;
mod quota_shares;
mod reload;
mod rules;
mod store;
mod support;
