//! Does a real HAProxy do what `docs/how-to/haproxy-limits.md` says of the files that it gives to
//! paste?
//!
//! Each test takes its file from that page. Where HAProxies are eventually right, a test says how
//! far off they may be until then.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod alone;
mod beside;
mod calls;
mod pair;
mod process;
mod recipe;
