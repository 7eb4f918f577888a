//! All tests from outside in one program: linking one for each file takes longer.

mod assume_empty;
mod control;
mod nodes;
