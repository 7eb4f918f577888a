//! Response to a search for a visitor by its code: what the responding node knows.

use std::fmt::Write as _;

use anteroom_config::time_text::rfc3339_millis;
use anteroom_room::id::VisitorId;
use anteroom_room::room::find::Known;
use anteroom_room::visitor_code::VisitorCode;
use serde::{Deserialize, Serialize};

/// Body of `GET /api/v1/rooms/{name}/visitors/{code}`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FoundVisitors {
    /// Name of the room.
    pub room: String,
    /// Code, as the page shows it.
    pub code: String,
    /// Visitors with this code, as far as the node knows; seldom more than one.
    pub visitors: Vec<FoundVisitor>,
}

/// Visitor as the node knows it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FoundVisitor {
    /// Whole id, as in the header `Anteroom-Visitor`.
    pub visitor: String,
    /// State of the visitor.
    #[serde(flatten)]
    pub state: FoundState,
}

/// State of a visitor as the node knows it. Times are in RFC 3339.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, utoipa::ToSchema)]
#[serde(
    tag = "state",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub enum FoundState {
    /// The visitor waits.
    Waiting {
        /// Second of its arrival.
        arrived_at: String,
        /// Position, 1 = next; `null` in a queue without an order.
        position: Option<u32>,
        /// Time by which its next request is overdue.
        counted_until: String,
    },
    /// The visitor left the queue a short time ago.
    Left,
    /// The visitor has a seat that this node gave or extended.
    Active {
        /// Time of its admission.
        accepted_at: String,
        /// End of the seat, as far as this node knows.
        seat_ends_at: String,
    },
    /// The session of the visitor was ended.
    Revoked,
}

impl FoundVisitors {
    /// Makes the body from what a node knows.
    #[must_use]
    pub(crate) fn of(room: &str, code: VisitorCode, known: Vec<(VisitorId, Known)>) -> Self {
        let visitors = known.into_iter().map(|(visitor, known)| FoundVisitor {
            visitor: hex(visitor),
            state: FoundState::of(known),
        });
        Self {
            room: room.to_owned(),
            code: code.to_string(),
            visitors: visitors.collect(),
        }
    }
}

impl FoundState {
    fn of(known: Known) -> Self {
        match known {
            Known::Waiting {
                arrived_at,
                position,
                counted_until,
            } => Self::Waiting {
                arrived_at: rfc3339_millis(arrived_at),
                position,
                counted_until: rfc3339_millis(counted_until),
            },
            Known::Left => Self::Left,
            Known::Active {
                accepted_at,
                ends_at,
            } => Self::Active {
                accepted_at: rfc3339_millis(accepted_at),
                seat_ends_at: rfc3339_millis(ends_at),
            },
            Known::Revoked => Self::Revoked,
        }
    }
}

/// Returns the whole id of a visitor as text.
pub(crate) fn hex(visitor: VisitorId) -> String {
    visitor.0.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes every text");
        text
    })
}
