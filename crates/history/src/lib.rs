//! History of rooms: what happened in each minute, points over time, and reports of an event.
//!
//! Nothing here reads a clock, opens a file or knows a store. A node makes [`Row`]s and a store
//! keeps their bytes. Readers merge the rows of all nodes into [`points()`], and a
//! [`report::Report`] says what they mean.

pub mod chart;
mod csv_text;
mod figures;
pub mod fuzz;
mod points;
pub mod report;
mod row;

pub use csv_text::csv;
pub use figures::{
    AnnouncedWaits, Level, NodeFigures, OriginTotals, RoomFigures, Sample, StatusClass,
};
pub use points::{HistoryPoint, Point, Query, QueryError, points};
pub use row::{ROW_BYTES_MAX, Row, RowError};
