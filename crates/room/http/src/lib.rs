//! Waiting rooms over HTTP.
//!
//! [`layer`] is the `tower` layer that asks a node's rooms about each request. [`bypass`] says
//! which requests pass without being asked about. [`page`] is the waiting page in every language,
//! and [`waiting`] sends it, or the same facts as JSON or as a stream of events.
//!
//! Deliberately absent: who is admitted (the node's rooms decide) and how a request reaches its
//! origin (`anteroom-proxy`).

pub mod bypass;
pub mod layer;
pub mod page;
pub mod waiting;
