//! What does a visitor without a slot get? A page, JSON or a refusal, with honest content and
//! headers that keep it out of every cache.
//!
//! Built from a finished decision. Deliberately absent: deciding, tickets and cookies (the caller
//! adds `Set-Cookie`), and any redirect, forwarding or replay of what was sent.

mod english;
mod kind;
mod page;
pub mod place_endpoint;
mod response;
#[cfg(test)]
mod samples;
mod words;

use anteroom_core::decision::{Place, QueueReason, WaitRange};
use anteroom_core::rules::{QueueingMethod, Rules};
use anteroom_core::time::{Millis, Span};

pub use kind::RequestKind;
pub use response::{Answer, respond};

/// Everything that the answer to a waiting visitor is made from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WaitingView<'a> {
    /// The room's name, for the page and for the address that it asks.
    pub room: &'a str,
    /// Where the visitor stands, and why.
    pub place: Place,
    /// In which order people go in.
    pub method: QueueingMethod,
    /// Whether the operator holds everybody.
    pub queue_all: bool,
    /// Whether those who came before the opening go in by lot.
    pub draw: bool,
    /// How long a place is kept after the last ask.
    pub place_grace: Span,
    /// The time of the decision; room clock.
    pub now: Millis,
}

impl<'a> WaitingView<'a> {
    /// The view of somebody who was given `place` at `now` under the rules of `room`.
    #[must_use]
    pub const fn new(room: &'a str, rules: &Rules, place: Place, now: Millis) -> Self {
        Self {
            room,
            place,
            method: rules.queueing_method,
            queue_all: rules.queue_all,
            draw: rules.draw,
            place_grace: rules.place_grace,
            now,
        }
    }

    /// The estimate, but only while people are let in: it is made from the recent rate, which says
    /// nothing about how long a standstill lasts.
    const fn wait(&self) -> Option<WaitRange> {
        match self.place.reason {
            QueueReason::Full | QueueReason::NotYourTurn => self.place.wait,
            _ => None,
        }
    }
}
