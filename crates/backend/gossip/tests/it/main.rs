//! All integration tests in one program: linking one per file takes longer.

mod fuzz_bodies;
mod gossip;
