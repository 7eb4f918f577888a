//! Tests of the admin address: a real socket, a running node, a store on disk.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod bench;
mod client;
mod commands;
mod deployment;
mod document;
mod exposition;
mod health;
mod history;
mod limits;
mod metrics;
mod overrides;
mod probes;
mod state;
