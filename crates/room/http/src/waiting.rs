//! What does a visitor without a slot get? A page, JSON or a refusal, with honest content and
//! headers that keep it out of every cache.
//!
//! Built from a finished decision; what the page says and looks like is `anteroom-room-http`'s.
//! Deliberately absent: deciding, tickets and their cookies (the caller adds `Set-Cookie`), and any
//! redirect to a page of waiting, forwarding or replay of what was sent.

mod json;
mod kind;
pub(crate) mod language_form;
pub mod position_endpoint;
pub(crate) mod push;
mod response;

pub use crate::page::WaitingView;
pub use kind::RequestKind;
pub(crate) use response::prepare;
pub use response::{Answer, Look, respond};
