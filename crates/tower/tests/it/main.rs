//! Integration tests in one binary, because linking one per file takes longer.

mod axum;
mod gossip;
mod memcached;
