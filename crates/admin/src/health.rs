//! Health of a node for people and alerts: the body of `GET /healthz`.
//!
//! A node is healthy if every room has a live lease. Without one it admits nobody and extends no
//! session. Other problems are reported and do not fail: other nodes have them as well, and a
//! restart does not help. [`crate::probes`] decides about restarts and routing.

use std::collections::BTreeMap;

use anteroom_config::time_text::rfc3339_secs;
use anteroom_node::{Node, RoomStats};
use anteroom_room::queue_position::QueueReason;
use anteroom_room::sync::ClosedBy;

use crate::bodies::{ClockTrouble, ConnectionTrouble, Health, LimitTrouble, RoomTrouble};
use crate::clocks::Clocks;
use crate::extras::{ConnectionStats, ExtraStats, LimitStats};

/// Maximum bytes of the error of a config file, which may have thousands of mistakes. The log has
/// all of them.
const RELOAD_ERROR_BYTES_MAX: usize = 4_096;

/// Reason of a room whose ledger lost its memory.
const RECOVERING: &str = "recovering";

/// Returns the health of all rooms, of limits and of connections.
pub(crate) fn of(node: &Node, extras: ExtraStats) -> Health {
    let clocks = Clocks::read(node.clock());
    let rooms = node.rooms();
    let troubles: Vec<RoomTrouble> = rooms
        .iter()
        .filter_map(|room| {
            let name = room.config().name.to_string();
            let mut trouble = trouble(&name, &room.stats(), clocks)?;
            if let Some(loss) = extras
                .journal_loss
                .as_deref()
                .filter(|_| trouble.reason == RECOVERING)
            {
                trouble.detail = format!("{loss}; {}", trouble.detail);
            }
            Some(trouble)
        })
        .collect();
    Health {
        healthy: !troubles.iter().any(|trouble| trouble.failing),
        rooms: troubles,
        limits: unavailable_limits(&extras.limits),
        connections: connection_shortage(&extras.connections),
        clocks: clock_troubles(node),
        last_reload_error: extras.last_reload_error.map(shortened),
    }
}

/// Lists the rate limits whose stores are unavailable.
pub(crate) fn unavailable_limits(limits: &BTreeMap<String, LimitStats>) -> Vec<LimitTrouble> {
    let unavailable = limits.iter().filter_map(|(name, stats)| {
        let ago = stats.store_failed_ago?;
        Some(LimitTrouble {
            limit: name.clone(),
            store: stats.store.to_owned(),
            last_failure_ms: u64::try_from(ago.as_millis()).unwrap_or(u64::MAX),
            detail: format!(
                "requests cannot be counted at {:?}, the last one {} s ago{}; on_store_failure \
                 decides about them",
                stats.store,
                ago.as_secs(),
                stats
                    .store_cause
                    .as_ref()
                    .map_or_else(String::new, |cause| format!(": {cause}"))
            ),
        })
    });
    unavailable.collect()
}

/// Lists the clocks that differ from that of this node by more than clocks may differ.
pub(crate) fn clock_troubles(node: &Node) -> Vec<ClockTrouble> {
    let large = node.clock_watch().large();
    let this = node.process().0;
    let troubles = large.into_iter().map(|difference| {
        let (owner, ahead_ms) = (difference.owner.to_string(), difference.ahead_ms);
        let side = if ahead_ms > 0 { "ahead of" } else { "behind" };
        let seconds = ahead_ms.unsigned_abs() as f64 / 1_000.0;
        ClockTrouble {
            detail: format!(
                "the clock of {owner} is {seconds:.1} s {side} the clock of this node, \
                 {this:016x}; run NTP on both machines"
            ),
            owner,
            ahead_ms,
        }
    });
    troubles.collect()
}

/// Returns the shortage of client connections, if there is one.
pub(crate) fn connection_shortage(stats: &ConnectionStats) -> Option<ConnectionTrouble> {
    // Without a limit there is no source of connection stats.
    if stats.limit == 0 || stats.open < stats.near {
        return None;
    }
    Some(ConnectionTrouble {
        open: stats.open,
        with_ticket: stats.with_ticket,
        limit: stats.limit,
        detail: format!(
            "{} of {} connections are open, {} of them with a ticket; waiting visitors get a new \
             connection with each response, and the longest idle connections are closed",
            stats.open, stats.limit, stats.with_ticket
        ),
    })
}

fn trouble(room: &str, stats: &RoomStats, clocks: Clocks) -> Option<RoomTrouble> {
    let failing = !stats.has_live_lease;
    let reason = match stats.degraded {
        Some(reason) => reason,
        None if failing => QueueReason::StoreUnavailable,
        None => return None,
    };
    let detail = match reason {
        _ if failing && stats.syncs_total == 0 => "the store has not replied yet".to_owned(),
        _ if failing => "the lease has ended and the store does not reply".to_owned(),
        QueueReason::Recovering { reopens_at } => {
            let at = rfc3339_secs(clocks.to_wall(reopens_at));
            closed(room, stats.snapshot.closed_by, &at)
        }
        QueueReason::OriginDown => "the origin does not respond, or with errors".to_owned(),
        _ => "nobody new is admitted".to_owned(),
    };
    Some(RoomTrouble {
        room: room.to_owned(),
        reason: reason.name().to_owned(),
        failing,
        detail,
    })
}

/// Explains why a ledger grants nothing before `at`, and what ends that.
fn closed(room: &str, by: Option<ClosedBy>, at: &str) -> String {
    let command = format!("`anteroom room assume-empty {room}`");
    match by {
        Some(ClosedBy::MissingReports(missing)) => format!(
            "the store came back as another server; nodes or data centers that have not reported \
             to it: {missing}; nothing is granted until they have; {at} is the end of the leases \
             of those that are gone, and without store.durable their sessions are waited for as \
             well; if nobody is active, {command} shortens that"
        ),
        Some(ClosedBy::UnsafeName) => format!(
            "this node has just joined, and its store could still forget it; it is granted nothing \
             before {at}"
        ),
        Some(ClosedBy::LostRecordWithoutVisitors) => format!(
            "the ledger lost its memory; it grants nothing before {at}, when all earlier leases \
             and their minute have ended"
        ),
        Some(ClosedBy::MaybeFirstStart) => format!(
            "the ledger is new and may have replaced a lost one; it grants nothing before {at}; if \
             nobody is active, {command} ends that"
        ),
        Some(ClosedBy::LostRecord) | None => format!(
            "the ledger lost its memory and grants nothing before {at}; if nobody is active, \
             {command} shortens that"
        ),
    }
}

fn shortened(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(RELOAD_ERROR_BYTES_MAX));
    text
}

#[cfg(test)]
mod tests {
    use anteroom_room::room::RoomTotals;
    use anteroom_room::sync::Snapshot;
    use anteroom_room::time::{DurationMs, Timestamp};

    use super::*;

    const NOW: Timestamp = Timestamp(1_694_432_754_000);

    fn stats(syncs_total: u64, degraded: Option<QueueReason>) -> RoomStats {
        let has_live_lease = degraded != Some(QueueReason::StoreUnavailable);
        RoomStats {
            now: NOW,
            snapshot: Snapshot::default(),
            counters: RoomTotals::default(),
            passed_total: 0,
            waited_passes_total: 0,
            strange_tickets_total: 0,
            syncs_total,
            failed_syncs_total: 0,
            upstream_syncs_total: 0,
            failed_upstream_syncs_total: 0,
            people_waiting: 0,
            people_counted: 0,
            has_live_lease,
            lease_left: DurationMs::ZERO,
            degraded,
        }
    }

    fn check(stats: &RoomStats, expected: Option<(&str, bool, &str)>) {
        let clocks = Clocks {
            room: NOW,
            wall: NOW + DurationMs(60_000),
        };
        let found = trouble("shop", stats, clocks);
        let found = found
            .as_ref()
            .map(|it| (it.reason.as_str(), it.failing, it.detail.as_str()));
        assert_eq!(found, expected);
    }

    #[test]
    fn only_a_lease_that_is_not_live_fails() {
        check(&stats(1, None), None);
        check(
            &stats(0, Some(QueueReason::StoreUnavailable)),
            Some(("store_unavailable", true, "the store has not replied yet")),
        );
        check(
            &stats(1, Some(QueueReason::StoreUnavailable)),
            Some((
                "store_unavailable",
                true,
                "the lease has ended and the store does not reply",
            )),
        );
        check(
            &stats(1, Some(QueueReason::OriginDown)),
            Some((
                "origin_down",
                false,
                "the origin does not respond, or with errors",
            )),
        );
    }

    #[test]
    fn the_time_of_reopening_is_in_wall_clock_time() {
        let reopens_at = NOW + DurationMs(6_000);
        check(
            &stats(1, Some(QueueReason::Recovering { reopens_at })),
            Some((
                "recovering",
                false,
                "the ledger lost its memory and grants nothing before 2023-09-11T11:47:00Z; if \
                 nobody is active, `anteroom room assume-empty shop` shortens that",
            )),
        );
    }

    #[test]
    fn a_long_error_is_cut_between_characters() {
        assert_eq!(shortened("short".to_owned()), "short");
        let long = format!("a{}", "é".repeat(RELOAD_ERROR_BYTES_MAX));
        assert_eq!(shortened(long).len(), RELOAD_ERROR_BYTES_MAX - 1);
    }
}
