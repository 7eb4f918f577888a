//! Simulation of quotas: members with assignments keep the limit, however they spend them, and each
//! gets its share.
//!
//! A small simulator with virtual time and seeds. Envoys always spend everything, as early or as
//! late as possible. Messages take as long as possible, and a checker sees every request.
#![expect(clippy::unwrap_used, reason = "a test that cannot continue fails")]

mod draw;
mod envoy;
mod fair;
mod safe;
mod simulation;
