//! Rows, histograms and points against naive models, and rows as fuzzers see them.

mod fuzz_rows;
mod models;
