//! The front door: what stands between a visitor's connection and the origin.
//!
//! One HTTP stack (hyper, tower) from the socket to the origin. This crate moves bytes and says
//! what was decided; it does not decide who goes in, and it holds no counts.
//!
//! Life of a request: it comes from a connection of `anteroom-front`; [`intake`] refuses what is malformed,
//! [`layer`] carries the question of who may pass to the node's rooms: [`path`] and [`route`] say which room it belongs to, [`bypass`] whether it may walk past, and
//! [`proxy`] takes it to the origin and its answer back. Who is not let in gets an answer from
//! [`waiting`]. Whatever fails is told by [`error_page`], with a status from [`status`].

pub mod body;
pub mod bypass;
pub mod cookies;
pub mod error_page;
pub mod forwarded;
#[doc(hidden)]
pub mod fuzz;
pub mod intake;
pub mod layer;
mod loops;
pub mod path;
pub mod proxy;
pub mod route;
pub mod status;
pub mod waiting;
