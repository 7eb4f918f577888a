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

use anteroom_wire::orders::Orders;
use anteroom_wire::place::reason_name;
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
    /// Whether it is a pause that holds everybody.
    pub is_paused: bool,
    /// What the operator says; plain text that anybody may have written.
    pub message: Option<&'a str>,
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
            is_paused: false,
            message: None,
            place_grace: rules.place_grace,
            now,
        }
    }

    /// The same with what operators said while the room runs.
    #[must_use]
    pub fn with_orders(mut self, orders: &'a Orders) -> Self {
        self.is_paused = orders.pause.is_some();
        self.message = orders.message();
        self
    }

    /// Stable word for why this visitor waits.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        reason_name(self.place.reason, self.is_paused)
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
