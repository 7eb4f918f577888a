//! Response to a visitor without a slot: a page, JSON or a status, with headers that keep it out of
//! every cache.
//!
//! Responses are built from a finished decision; [`page`](crate::page) has the words and the look.
//! Deliberately absent: decisions, tickets and their cookies (the caller adds `Set-Cookie`),
//! redirects to a waiting page, and any forwarding or replay of the request.

pub(crate) mod cookies_page;
mod gzip;
mod json;
mod kind;
pub(crate) mod language_form;
mod languages_page;
pub(crate) mod leave;
mod notice_page;
pub mod position_endpoint;
pub(crate) mod push;
mod response;

pub use crate::page::{TurnView, WaitingView};
pub use kind::RequestKind;
pub(crate) use kind::accepts_gzip;
pub(crate) use response::PATHS;
pub(crate) use response::prepare;
pub use response::{Answer, Brand, Look, respond};
