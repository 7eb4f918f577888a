//! Tests of the lab: the article's numbers, each algorithm's bound, each way of sharing, and equal
//! numbers for equal seeds.

mod bounds;
mod common;
mod sharing;
mod vectors;
