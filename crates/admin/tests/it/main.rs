//! Integration tests in one binary, because linking one per file takes longer.

mod assume_empty;
mod control;
mod nodes;
