//! What do the figures of a room mean? One table: name, help, how to read it.
//!
//! Figures of the ledger (seats, limits, epoch) are the same at every node that shares it, so a
//! sum over nodes counts them many times; the rest is what happened at this node.

use std::fmt;
use std::sync::Arc;

use anteroom_config::orders::Orders;
use anteroom_node::{Node, RoomFigures, RoomHandle};
use anteroom_room::decision::QueueReason;
use anteroom_room::rules::Limits;
use anteroom_room::time::{Millis, Span};

use super::writer::{Distribution, Families, Title};
use crate::clocks::{Clocks, seconds, timestamp};

/// A room at the moment of a scrape.
struct Reading {
    name: String,
    limits: Limits,
    is_suspended: bool,
    orders: Arc<Orders>,
    reads: u64,
    figures: RoomFigures,
    clocks: Clocks,
}

/// One family with a sample for every room.
struct RoomMetric {
    name: &'static str,
    help: &'static str,
    read: Read,
}

/// How a figure is read, and with it its type.
enum Read {
    /// Only rises.
    Total(fn(&Reading) -> u64),
    /// Rises and falls.
    Count(fn(&Reading) -> u64),
    /// A time in seconds; `None` = there is none, and no sample.
    Time(fn(&Reading) -> Option<f64>),
    /// Times in seconds, by class.
    Times(fn(&Reading) -> Distribution),
}

/// The reasons that [`RoomFigures::degraded`] may have, each with a sample of its own at all times,
/// so that an alert sees the 0 before the 1.
const DEGRADED_REASONS: [QueueReason; 3] = [
    QueueReason::StoreAway,
    QueueReason::Recovering {
        reopens_at: Millis::ZERO,
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
    write_overrides(families, &rooms)?;
    write_degraded(families, &rooms)
}

fn write_overrides(families: &mut Families<'_>, rooms: &[Reading]) -> fmt::Result {
    let title = Title {
        name: "overridden",
        help: "1 for each key of a room that an operator set while it runs; no sample for others.",
    };
    let samples = rooms.iter().flat_map(|room| {
        let keys = room.orders.values.keys();
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
        let present = room.figures.degraded.map(QueueReason::name);
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
            orders: room.orders(),
            reads: room.reads_of_orders(),
            figures: room.figures(),
            clocks,
        }
    }

    const fn labels(&self) -> [(&'static str, &str); 1] {
        [("room", self.name.as_str())]
    }

    fn inversions(&self) -> Distribution {
        let inversions = &self.figures.tally.inversions;
        let bound = |class: Option<Span>| class.map_or(f64::MAX, seconds);
        let classes = inversions.classes();
        Distribution {
            classes: classes
                .map(|(class, count)| (bound(class), count))
                .collect(),
            sum: seconds(Span(inversions.sum_ms)),
        }
    }

    /// How old what is known of the ledger is; `None` before it has answered.
    fn outlook_age(&self) -> Option<f64> {
        let as_of = self.figures.outlook.root_as_of;
        (as_of != Millis::ZERO).then(|| seconds(self.figures.now.since(as_of)))
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

/// A registry: one entry for each figure, in the order of a scrape.
static METRICS: &[RoomMetric] = &[
    RoomMetric {
        name: "seats_inside",
        help: "Visitors inside, as far as the room's ledger knows; the same at all its nodes.",
        read: Read::Count(|room| room.figures.outlook.inside.into()),
    },
    RoomMetric {
        name: "seats_phantom",
        help: "Seats counted as taken because of nodes that fell silent; the same at all nodes.",
        read: Read::Count(|room| room.figures.outlook.phantoms.into()),
    },
    RoomMetric {
        name: "seats_lent",
        help: "Seats lent to nodes and unused; the same at all nodes.",
        read: Read::Count(|room| room.figures.outlook.lent.into()),
    },
    RoomMetric {
        name: "seats_free",
        help: "Seats that nobody has; the same at all nodes.",
        read: Read::Count(|room| room.figures.outlook.seats_free.into()),
    },
    RoomMetric {
        name: "total_active_users_limit",
        help: "Most visitors inside at once, as it holds.",
        read: Read::Count(|room| room.limits.total_active_users.into()),
    },
    RoomMetric {
        name: "new_users_per_minute_limit",
        help: "Most visitors who may come in within a minute, as it holds.",
        read: Read::Count(|room| room.limits.new_users_per_minute.into()),
    },
    RoomMetric {
        name: "visitors_waiting",
        help: "Visitors who wait at this node.",
        read: Read::Count(|room| room.figures.people_waiting.into()),
    },
    RoomMetric {
        name: "admissions",
        help: "Visitors let in under the limits.",
        read: Read::Total(|room| room.figures.tally.admitted),
    },
    RoomMetric {
        name: "admissions_outside_limits",
        help: "Visitors let in outside the limits: passthrough, or the store was away.",
        read: Read::Total(|room| room.figures.tally.admitted_outside_limits),
    },
    RoomMetric {
        name: "queued_answers",
        help: "Answers that said wait; one visitor gets many.",
        read: Read::Total(|room| room.figures.tally.queued),
    },
    RoomMetric {
        name: "passes",
        help: "Requests of visitors who were inside already.",
        read: Read::Total(|room| room.figures.passed_total),
    },
    RoomMetric {
        name: "renewals",
        help: "Seats prolonged.",
        read: Read::Total(|room| room.figures.tally.renewed),
    },
    RoomMetric {
        name: "unrenewed_passes",
        help: "Requests that passed and whose seat was due to be prolonged, but could not be.",
        read: Read::Total(|room| room.figures.tally.passed_unrenewed),
    },
    RoomMetric {
        name: "waited_passes",
        help: "Requests of visitors who were inside already that waited for the store.",
        read: Read::Total(|room| room.figures.waited_passes_total),
    },
    RoomMetric {
        name: "older_tickets",
        help: "Tickets older than the newest one of the same visitor.",
        read: Read::Total(|room| room.figures.tally.older_tickets),
    },
    RoomMetric {
        name: "future_tickets",
        help: "Tickets from the future: a clock is wrong here or at another node.",
        read: Read::Total(|room| room.figures.tally.future_tickets),
    },
    RoomMetric {
        name: "strange_tickets",
        help: "Cookies of the room's name that are no tickets of this deployment.",
        read: Read::Total(|room| room.figures.strange_tickets_total),
    },
    RoomMetric {
        name: "revocations",
        help: "Sessions that the origin ended.",
        read: Read::Total(|room| room.figures.tally.revoked),
    },
    RoomMetric {
        name: "syncs",
        help: "Conversations with the store that brought an answer.",
        read: Read::Total(|room| room.figures.syncs_total),
    },
    RoomMetric {
        name: "failed_syncs",
        help: "Conversations with the store that failed.",
        read: Read::Total(|room| room.figures.failed_syncs_total),
    },
    RoomMetric {
        name: "world_syncs",
        help: "Errands of this node to the world's ledger that brought an answer.",
        read: Read::Total(|room| room.figures.world_syncs_total),
    },
    RoomMetric {
        name: "failed_world_syncs",
        help: "Errands of this node to the world's ledger that failed.",
        read: Read::Total(|room| room.figures.failed_world_syncs_total),
    },
    RoomMetric {
        name: "lease_live",
        help: "1 while this node may admit and prolong on the word of the ledger.",
        read: Read::Count(|room| room.figures.has_live_lease.into()),
    },
    RoomMetric {
        name: "lease_left",
        help: "How long the lease still runs; 0 once it has ended.",
        read: Read::Time(|room| Some(seconds(room.figures.lease_left))),
    },
    RoomMetric {
        name: "nodes",
        help: "Nodes with a live lease; the same at all nodes.",
        read: Read::Count(|room| room.figures.outlook.nodes.into()),
    },
    RoomMetric {
        name: "suspended",
        help: "1 while the room is switched off and everything passes.",
        read: Read::Count(|room| room.is_suspended.into()),
    },
    RoomMetric {
        name: "paused",
        help: "1 while an operator has paused the room; a node where nobody comes may not know \
               yet.",
        read: Read::Count(|room| room.orders.pause.is_some().into()),
    },
    RoomMetric {
        name: "settings_version",
        help: "How often operators said something about the room, as far as this node has heard.",
        read: Read::Count(|room| room.orders.version),
    },
    RoomMetric {
        name: "settings_reads",
        help: "How often this node asked the store what operators said.",
        read: Read::Total(|room| room.reads),
    },
    RoomMetric {
        name: "epoch",
        help: "How often the ledger has lost its memory; the same at all nodes.",
        read: Read::Count(|room| room.figures.outlook.epoch.0.into()),
    },
    RoomMetric {
        name: "reopens_timestamp",
        help: "When the ledger lends again, since the Unix epoch; no sample while it lends.",
        read: Read::Time(|room| {
            let reopens_at = room.figures.outlook.reopens_at?;
            Some(timestamp(room.clocks.to_wall(reopens_at)))
        }),
    },
    RoomMetric {
        name: "outlook_age",
        help: "How old what this node knows of the ledger is; no sample before its first answer.",
        read: Read::Time(Reading::outlook_age),
    },
    RoomMetric {
        name: "closing_lag",
        help: "How far the slowest node holds back the freeing of seats; the same at all nodes.",
        read: Read::Time(|room| Some(seconds(room.figures.outlook.closing_lag))),
    },
    RoomMetric {
        name: "order_inversion",
        help: "How much later those let in here had come than the first of those who still waited.",
        read: Read::Times(Reading::inversions),
    },
];
