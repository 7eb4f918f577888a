//! Is the lab right: the article's numbers, each algorithm's bound, each way of sharing, and the
//! same figures for the same seed?

mod bounds;
mod common;
mod sharing;
mod vectors;
