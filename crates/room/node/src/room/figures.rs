//! What an operator sees of a room.

mod history;

use std::sync::atomic::Ordering;

use anteroom_room::decision::QueueReason;
use anteroom_room::room::Tally;
use anteroom_room::sync::Outlook;
use anteroom_room::time::{Millis, Span};
use anteroom_room::watermark::Watermark;
use anteroom_store::wire::state::{self, StateFacts};
pub(super) use history::History;

use super::RoomHandle;

/// Figures of a room at a moment.
#[derive(Clone, Debug)]
pub struct RoomFigures {
    /// When.
    pub now: Millis,
    /// The room as its ledger saw it last.
    pub outlook: Outlook,
    /// What happened since the start.
    pub tally: Tally,
    /// Requests of visitors who were inside already, since the start.
    pub passed_total: u64,
    /// Those of them that waited for the store, since the start.
    pub waited_passes_total: u64,
    /// Cookies that were no tickets, since the start.
    pub strange_tickets_total: u64,
    /// Conversations with the store that were answered, since the start.
    pub syncs_total: u64,
    /// Those that were not.
    pub failed_syncs_total: u64,
    /// Errands of this node to the world's ledger that were answered, since the start.
    pub world_syncs_total: u64,
    /// Those that were not.
    pub failed_world_syncs_total: u64,
    /// How many wait here.
    pub people_waiting: u32,
    /// Whether this node may admit and prolong.
    pub has_live_lease: bool,
    /// How long the lease still runs.
    pub lease_left: Span,
    /// Why the room admits less than its limits would allow.
    pub degraded: Option<QueueReason>,
}

impl RoomHandle {
    /// Figures for metrics and status.
    #[must_use]
    pub fn figures(&self) -> RoomFigures {
        self.locked(|room, now| RoomFigures {
            now,
            outlook: room.outlook().clone(),
            tally: room.tally(),
            passed_total: self.counts.passed.load(Ordering::Relaxed),
            waited_passes_total: self.counts.waited_passes.load(Ordering::Relaxed),
            strange_tickets_total: self.counts.strange_tickets.load(Ordering::Relaxed),
            syncs_total: self.counts.syncs.load(Ordering::Relaxed),
            failed_syncs_total: self.counts.failed_syncs.load(Ordering::Relaxed),
            world_syncs_total: self.counts.world_syncs.load(Ordering::Relaxed),
            failed_world_syncs_total: self.counts.failed_world_syncs.load(Ordering::Relaxed),
            people_waiting: room.people_waiting(now),
            has_live_lease: room.has_live_lease(now),
            lease_left: room.lease_ends_at().since(now),
            degraded: room.degraded(now),
        })
    }

    /// Facts for the state page. What other data centers admitted is read from the ledger behind
    /// them, at most once a second; while that is away only what this one knows is there.
    pub async fn state(&self) -> StateFacts {
        self.hear_orders().await;
        let history = self.history().await;
        let figures = self.figures();
        let config = self.config();
        let outlook = &figures.outlook;
        StateFacts {
            room: config.name.clone(),
            rules: config.rules,
            suspended: config.suspended,
            shown: self.shown(),
            active_users: outlook.inside,
            queued_users: figures.people_waiting,
            admissions_this_minute: outlook.admitted_in(figures.now.minute()),
            global_nodes: outlook.nodes,
            data_center_nodes: outlook.nodes_here,
            history: history.unwrap_or_else(|| self.own_history(outlook)),
            watermark: match outlook.watermark {
                Watermark::Nobody => state::Watermark::Closed,
                Watermark::UpTo(at) => state::Watermark::ArrivedBy(at),
                Watermark::Open => state::Watermark::Open,
            },
            // Nothing that is shown is older than this room's view of anything.
            age: figures.now.since(outlook.root_as_of.max(self.opened_at)),
            epoch: outlook.epoch,
            phantom_seats: outlook.phantoms,
            reopens_at: outlook.reopens_at,
            degraded: figures.degraded,
            is_root_store_unavailable: self.is_root_store_unavailable(),
        }
    }
}
