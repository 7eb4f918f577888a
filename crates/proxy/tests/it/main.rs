//! All tests from outside in one program: linking one for each file takes longer.

mod connections;
mod fuzz_cookies;
mod fuzz_path;
mod fuzz_screen;
mod origin;
