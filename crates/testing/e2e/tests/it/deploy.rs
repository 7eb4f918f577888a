//! Files in `deploy/` and the docs about them, checked against each other and the program.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod compose;
mod docker;
mod docs;
mod kubernetes;
mod prometheus;
mod systemd;
