//! Stats of a room, for metrics and the status page.

mod root_facts;

use std::sync::atomic::Ordering;

use anteroom_room::queue_position::QueueReason;
use anteroom_room::room::RoomTotals;
use anteroom_room::rules::Rules;
use anteroom_room::sync::Snapshot;
use anteroom_room::time::{DurationMs, Timestamp};
use anteroom_room::watermark::Watermark;
use anteroom_store::wire::state::{self, StateFacts};
pub use root_facts::DataCenterOfRoom;
pub(super) use root_facts::RootFactsCache;

use super::RoomHandle;

/// Stats of a room at a moment.
#[derive(Clone, Debug)]
pub struct RoomStats {
    /// Room time of the stats.
    pub now: Timestamp,
    /// Snapshot in the newest reply of the ledger.
    pub snapshot: Snapshot,
    /// Counters of the core, since the start.
    pub counters: RoomTotals,
    /// Requests of visitors who were active already, since the start.
    pub passed_total: u64,
    /// Requests among them that waited for the store, since the start.
    pub waited_passes_total: u64,
    /// Cookies without a valid ticket, since the start.
    pub strange_tickets_total: u64,
    /// Syncs with the store that succeeded, since the start.
    pub syncs_total: u64,
    /// Syncs with the store that failed, since the start.
    pub failed_syncs_total: u64,
    /// Syncs of this node with the root's ledger that succeeded, since the start.
    pub upstream_syncs_total: u64,
    /// Syncs with the root's ledger that failed, since the start.
    pub failed_upstream_syncs_total: u64,
    /// Number of waiting visitors, at all nodes.
    pub people_waiting: u32,
    /// Number of waiting visitors that this node counts; may be negative.
    pub people_counted: i64,
    /// Whether this node may admit visitors and extend sessions.
    pub has_live_lease: bool,
    /// Time until the lease ends.
    pub lease_left: DurationMs,
    /// Reason why the room admits fewer than its limits allow.
    pub degraded: Option<QueueReason>,
}

impl RoomHandle {
    /// Returns the stats for metrics and status.
    #[must_use]
    pub fn stats(&self) -> RoomStats {
        self.locked(|room, now| RoomStats {
            now,
            snapshot: room.snapshot().clone(),
            counters: room.counters(),
            passed_total: self.counts.passed.load(Ordering::Relaxed),
            waited_passes_total: self.counts.waited_passes.load(Ordering::Relaxed),
            strange_tickets_total: self.counts.invalid_tickets.load(Ordering::Relaxed),
            syncs_total: self.counts.syncs.load(Ordering::Relaxed),
            failed_syncs_total: self.counts.failed_syncs.load(Ordering::Relaxed),
            upstream_syncs_total: self.counts.global_syncs.load(Ordering::Relaxed),
            failed_upstream_syncs_total: self.counts.failed_global_syncs.load(Ordering::Relaxed),
            people_waiting: room.people_waiting(),
            people_counted: room.people_counted(now),
            has_live_lease: room.has_live_lease(now),
            lease_left: room.lease_ends_at().since(now),
            degraded: room.degraded(now),
        })
    }

    /// Returns the longest wait that is expected at present; `None` if nothing is known of it.
    #[must_use]
    pub fn longest_wait(&self) -> Option<DurationMs> {
        self.locked(|room, now| room.longest_wait(now))
    }

    /// Returns the facts for the state page. Admissions of other data centers are read from the
    /// root ledger, at most once a second. While that is unavailable they are missing.
    pub async fn state(&self) -> StateFacts {
        self.refresh_overrides().await;
        let traffic = self.traffic_of_all().await;
        let stats = self.stats();
        let settings = self.settings.load();
        let config = &settings.config;
        let mut rules = config.rules;
        // The times of an event that is near are not those of a closed room.
        rules.opens_at = rules
            .opens_at
            .filter(|_| rules.holds_from <= self.wall_now());
        let effective = &settings.evaluation.effective;
        let snapshot = &stats.snapshot;
        StateFacts {
            room: config.name.clone(),
            rules,
            suspended: config.suspended,
            shown: self.shown(),
            active_users: snapshot.active,
            queued_users: stats.people_waiting,
            admissions_this_minute: snapshot.admitted_in(stats.now.minute()),
            global_nodes: snapshot.nodes,
            data_center_nodes: snapshot.nodes_here,
            history: traffic.unwrap_or_else(|| self.own_traffic(snapshot)),
            watermark: match snapshot.watermark {
                Watermark::Nobody => state::Watermark::Closed,
                Watermark::UpTo(at) => state::Watermark::ArrivedBy(at),
                Watermark::Open => state::Watermark::Open,
            },
            // No fact can be older than the room itself at this node.
            age: stats.now.since(snapshot.root_as_of.max(self.opened_at)),
            epoch: snapshot.epoch,
            phantom_seats: snapshot.phantoms,
            reopens_at: snapshot.reopens_at,
            closed_by: snapshot.closed_by,
            degraded: stats.degraded,
            is_root_store_unavailable: self.is_root_store_unavailable(),
            is_draining: is_draining(&rules, &effective.config.rules, self.wall_now()),
            event: effective.event.clone(),
            next_event: effective.next.clone(),
        }
    }
}

/// Whether a room that `wanted` rules let everybody pass in has a queue only for those who wait.
fn is_draining(rules: &Rules, wanted: &Rules, now: Timestamp) -> bool {
    let is_held = wanted.queue_all || wanted.opening_ahead(now).is_some();
    rules.queueing_method != wanted.queueing_method && !is_held
}
