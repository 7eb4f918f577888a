//! What an operator sees of a room.

mod history;

use std::sync::atomic::Ordering;

use anteroom_room::decision::QueueReason;
use anteroom_room::room::RoomTotals;
use anteroom_room::sync::Snapshot;
use anteroom_room::time::{DurationMs, Timestamp};
use anteroom_room::watermark::Watermark;
use anteroom_store::wire::state::{self, StateFacts};
pub(super) use history::History;

use super::RoomHandle;

/// Figures of a room at a moment.
#[derive(Clone, Debug)]
pub struct RoomStats {
    /// When.
    pub now: Timestamp,
    /// The room as its ledger saw it last.
    pub snapshot: Snapshot,
    /// What happened since the start.
    pub counters: RoomTotals,
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
    /// Errands of this node to the root's ledger that were answered, since the start.
    pub upstream_syncs_total: u64,
    /// Those that were not.
    pub failed_upstream_syncs_total: u64,
    /// How many wait here.
    pub people_waiting: u32,
    /// Whether this node may admit and prolong.
    pub has_live_lease: bool,
    /// How long the lease still runs.
    pub lease_left: DurationMs,
    /// Why the room admits less than its limits would allow.
    pub degraded: Option<QueueReason>,
}

impl RoomHandle {
    /// Figures for metrics and status.
    #[must_use]
    pub fn stats(&self) -> RoomStats {
        self.locked(|room, now| RoomStats {
            now,
            snapshot: room.snapshot().clone(),
            counters: room.counters(),
            passed_total: self.counts.passed.load(Ordering::Relaxed),
            waited_passes_total: self.counts.waited_passes.load(Ordering::Relaxed),
            strange_tickets_total: self.counts.strange_tickets.load(Ordering::Relaxed),
            syncs_total: self.counts.syncs.load(Ordering::Relaxed),
            failed_syncs_total: self.counts.failed_syncs.load(Ordering::Relaxed),
            upstream_syncs_total: self.counts.global_syncs.load(Ordering::Relaxed),
            failed_upstream_syncs_total: self.counts.failed_global_syncs.load(Ordering::Relaxed),
            people_waiting: room.people_waiting(now),
            has_live_lease: room.has_live_lease(now),
            lease_left: room.lease_ends_at().since(now),
            degraded: room.degraded(now),
        })
    }

    /// Facts for the state page. What other data centers admitted is read from the ledger behind
    /// them, at most once a second; while that is away only what this one knows is there.
    pub async fn state(&self) -> StateFacts {
        self.hear_overrides().await;
        let history = self.history().await;
        let stats = self.stats();
        let config = self.config();
        let snapshot = &stats.snapshot;
        StateFacts {
            room: config.name.clone(),
            rules: config.rules,
            suspended: config.suspended,
            shown: self.shown(),
            active_users: snapshot.inside,
            queued_users: stats.people_waiting,
            admissions_this_minute: snapshot.admitted_in(stats.now.minute()),
            global_nodes: snapshot.nodes,
            data_center_nodes: snapshot.nodes_here,
            history: history.unwrap_or_else(|| self.own_history(snapshot)),
            watermark: match snapshot.watermark {
                Watermark::Nobody => state::Watermark::Closed,
                Watermark::UpTo(at) => state::Watermark::ArrivedBy(at),
                Watermark::Open => state::Watermark::Open,
            },
            // Nothing that is shown is older than this room's view of anything.
            age: stats.now.since(snapshot.root_as_of.max(self.opened_at)),
            epoch: snapshot.epoch,
            phantom_seats: snapshot.phantoms,
            reopens_at: snapshot.reopens_at,
            degraded: stats.degraded,
            is_root_store_unavailable: self.is_root_store_unavailable(),
        }
    }
}
