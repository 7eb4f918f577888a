//! Habits of simulated visitors.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::routes::NodeChoice;

/// Behaviour of visitors.
#[derive(Clone, Debug)]
pub struct Habits {
    /// Path of the pages that visitors open.
    pub path: &'static str,
    /// Choice of the node for each request.
    pub node_choice: NodeChoice,
    /// Percentage of visitors near the first data center; the others are near another one.
    pub first_data_center_percent: u32,
    /// Number of pages that a visitor opens before it leaves.
    pub pages: RangeInclusive<u32>,
    /// Time between two pages.
    pub think: RangeInclusive<Duration>,
    /// Time between two polls; shorter than the node requests, so that no visitor is overdue on a
    /// busy machine.
    pub refresh_interval: RangeInclusive<Duration>,
    /// Whether a waiting visitor polls when the page says so, whatever `refresh_interval` is.
    pub is_patient: bool,
    /// Parallel requests of a visitor with a ticket; at least 1.
    pub at_once: u32,
    /// Percentage of pages after which an old ticket of the same visitor is sent.
    pub replay_percent: u32,
    /// Number of times that a ticket is sent right after its logout, one after the other.
    pub replays_after_logout: u32,
    /// Percentage of visitors who log out when they leave.
    pub log_out_percent: u32,
    /// Whether a new visitor comes for each one who leaves.
    pub are_followed: bool,
}

impl Default for Habits {
    fn default() -> Self {
        Self {
            path: "/",
            node_choice: NodeChoice::Sticky,
            first_data_center_percent: 65,
            pages: 2..=6,
            think: Duration::from_millis(400)..=Duration::from_millis(1_600),
            refresh_interval: Duration::from_millis(600)..=Duration::from_millis(1_200),
            is_patient: false,
            at_once: 1,
            replay_percent: 0,
            replays_after_logout: 0,
            log_out_percent: 30,
            are_followed: true,
        }
    }
}
