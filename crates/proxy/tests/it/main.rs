//! Integration tests in one binary, because linking one per file takes longer.

mod connections;
mod fuzz_cookies;
mod fuzz_fast_path;
mod fuzz_path;
mod fuzz_screen;
mod origin;
