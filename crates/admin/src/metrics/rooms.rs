//! Metrics of rooms. One table: name, help, how to read it.
//!
//! Metrics of the ledger (seats, limits, epoch) are the same at every node that shares it, so a sum
//! over nodes counts them many times. The others are per node.

use std::fmt;
use std::sync::Arc;

use anteroom_config::overrides::RoomOverrides;
use anteroom_node::{Node, RoomHandle, RoomStats};
use anteroom_room::queue_position::QueueReason;
use anteroom_room::room::PromiseCounts;
use anteroom_room::rules::Limits;
use anteroom_room::time::{DurationMs, Timestamp};

use super::writer::{Distribution, Families, Title};
use crate::clocks::{Clocks, seconds, timestamp};

/// Room at the moment of a scrape.
struct Reading {
    name: String,
    limits: Limits,
    is_suspended: bool,
    overrides: Arc<RoomOverrides>,
    reads: u64,
    event_phase: u64,
    next_event_at: Option<Timestamp>,
    stats: RoomStats,
    clocks: Clocks,
}

/// Family with a sample for every room.
struct RoomMetric {
    name: &'static str,
    help: &'static str,
    read: Read,
}

/// Function that reads a metric, and with it the metric's type.
enum Read {
    /// Counter.
    Total(fn(&Reading) -> u64),
    /// Gauge.
    Count(fn(&Reading) -> u64),
    /// Gauge that may be negative at one node.
    Part(fn(&Reading) -> i64),
    /// Time in seconds; `None` means no sample.
    Time(fn(&Reading) -> Option<f64>),
    /// Histogram of times in seconds.
    Times(fn(&Reading) -> Distribution),
}

/// Reasons that [`RoomStats::degraded`] may have. Each has a sample at all times, so that an alert
/// sees the 0 before the 1.
const DEGRADED_REASONS: [QueueReason; 3] = [
    QueueReason::StoreUnavailable,
    QueueReason::Recovering {
        reopens_at: Timestamp::ZERO,
    },
    QueueReason::OriginDown,
];

/// Writes all families of rooms.
pub(super) fn write(families: &mut Families<'_>, node: &Node, clocks: Clocks) -> fmt::Result {
    let rooms: Vec<Reading> = node
        .rooms()
        .iter()
        .map(|room| Reading::of(room, clocks))
        .collect();
    for metric in METRICS {
        metric.write(families, &rooms)?;
    }
    write_announced_waits(families, &rooms)?;
    write_overrides(families, &rooms)?;
    write_degraded(families, &rooms)
}

fn write_announced_waits(families: &mut Families<'_>, rooms: &[Reading]) -> fmt::Result {
    let title = Title {
        name: "announced_waits",
        help: "Admitted visitors with an announced wait, by how the first one came true.",
    };
    let samples = rooms.iter().flat_map(|room| {
        let PromiseCounts { right, early, late } = room.stats.counters.promises;
        let outcomes = [("right", right), ("early", early), ("late", late)];
        outcomes.map(|(outcome, count)| {
            let labels = [("room", room.name.as_str()), ("outcome", outcome)];
            (labels, count)
        })
    });
    families.totals(title, samples)
}

fn write_overrides(families: &mut Families<'_>, rooms: &[Reading]) -> fmt::Result {
    let title = Title {
        name: "override_active",
        help: "1 for each key of a room that an operator set while it runs; no sample for others.",
    };
    let samples = rooms.iter().flat_map(|room| {
        let keys = room.overrides.values.keys();
        keys.map(|key| ([("room", room.name.as_str()), ("key", key.as_str())], 1))
    });
    families.counts(title, samples)
}

fn write_degraded(families: &mut Families<'_>, rooms: &[Reading]) -> fmt::Result {
    let title = Title {
        name: "degraded",
        help: "1 while the room admits less than its limits would allow, for this reason.",
    };
    let samples = rooms.iter().flat_map(|room| {
        let present = room.stats.degraded.map(QueueReason::name);
        let known = DEGRADED_REASONS.map(QueueReason::name);
        let other = present.filter(|reason| !known.contains(reason));
        known.into_iter().chain(other).map(move |reason| {
            let labels = [("room", room.name.as_str()), ("reason", reason)];
            (labels, u64::from(present == Some(reason)))
        })
    });
    families.counts(title, samples)
}

impl Reading {
    fn of(room: &RoomHandle, clocks: Clocks) -> Self {
        let config = room.config();
        Self {
            name: config.name.to_string(),
            limits: config.rules.limits,
            is_suspended: config.suspended,
            overrides: room.overrides(),
            reads: room.override_reads(),
            event_phase: room.with_event(|event| event.phase as u64).unwrap_or(0),
            next_event_at: room.next_event_at(),
            stats: room.stats(),
            clocks,
        }
    }

    const fn labels(&self) -> [(&'static str, &str); 1] {
        [("room", self.name.as_str())]
    }

    fn inversions(&self) -> Distribution {
        let inversions = &self.stats.counters.inversions;
        let bound = |class: Option<DurationMs>| class.map_or(f64::INFINITY, seconds);
        let classes = inversions.classes();
        Distribution {
            classes: classes
                .map(|(class, count)| (bound(class), count))
                .collect(),
            sum: seconds(DurationMs(inversions.sum_ms)),
        }
    }

    /// Returns the age of the ledger's snapshot in seconds; `None` before the first reply.
    fn snapshot_age(&self) -> Option<f64> {
        let as_of = self.stats.snapshot.root_as_of;
        (as_of != Timestamp::ZERO).then(|| seconds(self.stats.now.since(as_of)))
    }
}

impl RoomMetric {
    fn write(&self, families: &mut Families<'_>, rooms: &[Reading]) -> fmt::Result {
        let title = Title {
            name: self.name,
            help: self.help,
        };
        match self.read {
            Read::Total(read) => {
                families.totals(title, rooms.iter().map(|room| (room.labels(), read(room))))
            }
            Read::Count(read) => {
                families.counts(title, rooms.iter().map(|room| (room.labels(), read(room))))
            }
            Read::Part(read) => {
                families.counts(title, rooms.iter().map(|room| (room.labels(), read(room))))
            }
            Read::Time(read) => {
                let timed = |room| Some((Reading::labels(room), read(room)?));
                families.times(title, rooms.iter().filter_map(timed))
            }
            Read::Times(read) => {
                let samples = rooms.iter().map(|room| (room.labels(), read(room)));
                families.distributions(title, samples)
            }
        }
    }
}

/// Registry: one entry per metric, in the order of a scrape.
static METRICS: &[RoomMetric] = &[
    RoomMetric {
        name: "seats_active",
        help: "Active visitors as the ledger of the room counts them; the same at all nodes.",
        read: Read::Count(|room| room.stats.snapshot.active.into()),
    },
    RoomMetric {
        name: "seats_phantom",
        help: "Seats counted as taken because a node stopped syncing; the same at all nodes.",
        read: Read::Count(|room| room.stats.snapshot.phantoms.into()),
    },
    RoomMetric {
        name: "seats_leased",
        help: "Seats leased to nodes and unused; the same at all nodes.",
        read: Read::Count(|room| room.stats.snapshot.leased.into()),
    },
    RoomMetric {
        name: "seats_free",
        help: "Free seats; the same at all nodes.",
        read: Read::Count(|room| room.stats.snapshot.seats_free.into()),
    },
    RoomMetric {
        name: "total_active_users_limit",
        help: "Active visitors that the room allows at once, in force.",
        read: Read::Count(|room| room.limits.total_active_users.into()),
    },
    RoomMetric {
        name: "new_users_per_minute_limit",
        help: "Visitors that the room admits within a minute at most, in force.",
        read: Read::Count(|room| room.limits.new_users_per_minute.into()),
    },
    RoomMetric {
        name: "visitors_waiting",
        help: "Waiting visitors that this node counts; the sum over all nodes is the queue. One \
               node may be negative: it admitted visitors that another one still counts.",
        read: Read::Part(|room| room.stats.people_counted),
    },
    RoomMetric {
        name: "admissions",
        help: "Visitors admitted under the limits.",
        read: Read::Total(|room| room.stats.counters.admitted),
    },
    RoomMetric {
        name: "admissions_outside_limits",
        help: "Visitors admitted outside the limits: passthrough, or the store was unavailable.",
        read: Read::Total(|room| room.stats.counters.admitted_outside_limits),
    },
    RoomMetric {
        name: "queued_responses",
        help: "Responses to waiting visitors; one visitor gets many.",
        read: Read::Total(|room| room.stats.counters.queued),
    },
    RoomMetric {
        name: "active_requests",
        help: "Requests of active visitors.",
        read: Read::Total(|room| room.stats.passed_total),
    },
    RoomMetric {
        name: "renewals",
        help: "Sessions extended.",
        read: Read::Total(|room| room.stats.counters.renewed),
    },
    RoomMetric {
        name: "unrenewed_requests",
        help: "Requests of active visitors whose session was due to be extended and was not.",
        read: Read::Total(|room| room.stats.counters.passed_unrenewed),
    },
    RoomMetric {
        name: "delayed_requests",
        help: "Requests of active visitors that waited for the store.",
        read: Read::Total(|room| room.stats.waited_passes_total),
    },
    RoomMetric {
        name: "missed_turns",
        help: "Visitors who came back after the time for which a seat was held for them.",
        read: Read::Total(|room| room.stats.counters.missed_turns),
    },
    RoomMetric {
        name: "extended_turns",
        help: "Turns that visitors extended.",
        read: Read::Total(|room| room.stats.counters.extended_turns),
    },
    RoomMetric {
        name: "outdated_tickets",
        help: "Tickets older than the newest one of the same visitor.",
        read: Read::Total(|room| room.stats.counters.outdated_tickets),
    },
    RoomMetric {
        name: "future_tickets",
        help: "Tickets from the future: a clock is wrong here or at another node.",
        read: Read::Total(|room| room.stats.counters.future_tickets),
    },
    RoomMetric {
        name: "invalid_tickets",
        help: "Cookies with the name of the room that are no tickets of this deployment.",
        read: Read::Total(|room| room.stats.strange_tickets_total),
    },
    RoomMetric {
        name: "revocations",
        help: "Sessions that the origin ended.",
        read: Read::Total(|room| room.stats.counters.revoked),
    },
    RoomMetric {
        name: "syncs",
        help: "Syncs with the store that got a reply.",
        read: Read::Total(|room| room.stats.syncs_total),
    },
    RoomMetric {
        name: "sync_failures",
        help: "Syncs with the store that failed.",
        read: Read::Total(|room| room.stats.failed_syncs_total),
    },
    RoomMetric {
        name: "upstream_syncs",
        help: "Syncs of this node with the root that got a reply.",
        read: Read::Total(|room| room.stats.upstream_syncs_total),
    },
    RoomMetric {
        name: "upstream_sync_failures",
        help: "Syncs of this node with the root that failed.",
        read: Read::Total(|room| room.stats.failed_upstream_syncs_total),
    },
    RoomMetric {
        name: "lease_live",
        help: "1 while the lease of this node allows it to admit and to extend sessions.",
        read: Read::Count(|room| room.stats.has_live_lease.into()),
    },
    RoomMetric {
        name: "lease_remaining",
        help: "Time until the lease expires; 0 once it has expired.",
        read: Read::Time(|room| Some(seconds(room.stats.lease_left))),
    },
    RoomMetric {
        name: "nodes",
        help: "Nodes with a live lease; the same at all nodes.",
        read: Read::Count(|room| room.stats.snapshot.nodes.into()),
    },
    RoomMetric {
        name: "suspended",
        help: "1 while the room is suspended and every request passes.",
        read: Read::Count(|room| room.is_suspended.into()),
    },
    RoomMetric {
        name: "paused",
        help: "1 while an operator has paused the room; a node without traffic may learn it late.",
        read: Read::Count(|room| room.overrides.pause.is_some().into()),
    },
    RoomMetric {
        name: "event_phase",
        help: "Phase of the active event: 1 prequeue, 2 running; 0 without one.",
        read: Read::Count(|room| room.event_phase),
    },
    RoomMetric {
        name: "next_event_timestamp",
        help: "When the next event begins, since the Unix epoch; no sample without one.",
        read: Read::Time(|room| room.next_event_at.map(timestamp)),
    },
    RoomMetric {
        name: "override_version",
        help: "Version of the overrides of the room, as far as this node knows.",
        read: Read::Count(|room| room.overrides.version),
    },
    RoomMetric {
        name: "override_reads",
        help: "How often this node read the overrides from the store.",
        read: Read::Total(|room| room.reads),
    },
    RoomMetric {
        name: "epoch",
        help: "Epoch of the ledger, which changes when the ledger was lost; the same at all nodes.",
        read: Read::Count(|room| room.stats.snapshot.epoch.0.into()),
    },
    RoomMetric {
        name: "reopens_timestamp",
        help: "When the ledger grants leases again, since the Unix epoch; no sample while it does.",
        read: Read::Time(|room| {
            let reopens_at = room.stats.snapshot.reopens_at?;
            Some(timestamp(room.clocks.to_wall(reopens_at)))
        }),
    },
    RoomMetric {
        name: "snapshot_age",
        help: "Age of what this node knows of the ledger; no sample before the first reply.",
        read: Read::Time(Reading::snapshot_age),
    },
    RoomMetric {
        name: "closing_lag",
        help: "How far the slowest node delays the freeing of seats; the same at all nodes.",
        read: Read::Time(|room| Some(seconds(room.stats.snapshot.closing_lag))),
    },
    RoomMetric {
        name: "order_inversion",
        help: "Time by which an admitted visitor came after the first who still waits.",
        read: Read::Times(Reading::inversions),
    },
];
