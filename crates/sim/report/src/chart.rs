//! Charts of the history, files that overwrite no others, and pages with charts.

pub mod files;
pub mod story;

pub use anteroom_history::chart::{
    Caption, Chart, MARK, axis, bars, escape, heat, line, number, palette,
};
