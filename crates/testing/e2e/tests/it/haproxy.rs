//! Real HAProxy with the files of `docs/how-to/haproxy-limits.md`, and what that page says about
//! them.
//!
//! Each test takes its file from that page. Where several HAProxies agree only after a while, a
//! test states the largest error until then.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod alone;
mod beside;
mod clients;
mod pair;
mod process;
mod recipe;
