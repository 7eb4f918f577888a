//! Do those who are assigned calls ahead keep the limit, however they spend them, and does each get
//! its share?
//!
//! A small simulator: virtual time, seeds, Envoys that always spend all they may, as early or as
//! late as they may, messages that take as long as they may, and a judge who sees every call.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod draw;
mod envoy;
mod fair;
mod safe;
mod world;
