//! The admin address from outside: a real socket, a node that runs, a store on disk.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod bench;
mod client;
mod exposition;
mod health;
mod limits;
mod metrics;
mod orders;
mod overrides;
mod probes;
mod state;
