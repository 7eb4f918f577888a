//! All integration tests in one program: linking one per file takes longer.

mod fuzz_messages;
mod kafka;
