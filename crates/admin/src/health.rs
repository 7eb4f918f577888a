//! Is this node well, and if not, what is the matter?
//!
//! Well means that every room has a live lease: from then on it admits and prolongs nobody on the
//! word of the ledger. Other reasons to admit less are told and do not fail: another node would
//! have them, too, and a restart heals none of them. For people and alerts; what decides about
//! restarts and where visitors are sent is in [`crate::probes`].

use std::collections::BTreeMap;

use anteroom_config::time_text::rfc3339_secs;
use anteroom_node::{Node, RoomStats};
use anteroom_room::decision::QueueReason;

use crate::bodies::{ConnectionTrouble, Health, LimitTrouble, RoomTrouble};
use crate::clocks::Clocks;
use crate::extras::{ConnectionStats, ExtraStats, LimitStats};

/// Most bytes that are told of why a config file was refused. A file may hold thousands of
/// mistakes; the log has all of them.
const RELOAD_ERROR_BYTES_MAX: usize = 4_096;

/// The reason of a room whose ledger lost its memory.
const RECOVERING: &str = "recovering";

/// The health of all rooms, and of what is beside them.
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
        limits: limits_away(&extras.limits),
        connections: connections_short(&extras.connections),
        last_reload_error: extras.last_reload_error.map(shortened),
    }
}

/// The limits of calls whose stores are away.
pub(crate) fn limits_away(limits: &BTreeMap<String, LimitStats>) -> Vec<LimitTrouble> {
    let away = limits.iter().filter_map(|(name, stats)| {
        let ago = stats.store_failed_ago?;
        Some(LimitTrouble {
            limit: name.clone(),
            store: stats.store.to_owned(),
            last_failure_ms: u64::try_from(ago.as_millis()).unwrap_or(u64::MAX),
            detail: format!(
                "calls cannot be counted at {:?}, the last one {} s ago; on_store_failure says \
                 what becomes of them",
                stats.store,
                ago.as_secs()
            ),
        })
    });
    away.collect()
}

/// That connections run short, if they do.
pub(crate) fn connections_short(stats: &ConnectionStats) -> Option<ConnectionTrouble> {
    // Without a limit nobody has said how many there are.
    if stats.limit == 0 || stats.open < stats.near {
        return None;
    }
    Some(ConnectionTrouble {
        open: stats.open,
        with_ticket: stats.with_ticket,
        limit: stats.limit,
        detail: format!(
            "{} of {} connections are open, {} of them with a ticket: those of waiting visitors \
             are closed with each \
             answer, and the longest idle ones make room",
            stats.open, stats.limit, stats.with_ticket
        ),
    })
}

fn trouble(room: &str, stats: &RoomStats, clocks: Clocks) -> Option<RoomTrouble> {
    let failing = !stats.has_live_lease;
    let reason = match stats.degraded {
        Some(reason) => reason,
        None if failing => QueueReason::StoreAway,
        None => return None,
    };
    let detail = match reason {
        _ if failing && stats.syncs_total == 0 => "the store has not answered yet".to_owned(),
        _ if failing => "the lease has ended and the store does not answer".to_owned(),
        QueueReason::Recovering { reopens_at } => format!(
            "the ledger lost its memory and lends nothing before {}; if nobody is inside, \
             `anteroom room {room} assume-empty` ends that",
            rfc3339_secs(clocks.to_wall(reopens_at))
        ),
        QueueReason::OriginDown => "the origin does not answer, or with errors".to_owned(),
        _ => "nobody new is admitted".to_owned(),
    };
    Some(RoomTrouble {
        room: room.to_owned(),
        reason: reason.name().to_owned(),
        failing,
        detail,
    })
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
        let has_live_lease = degraded != Some(QueueReason::StoreAway);
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
            &stats(0, Some(QueueReason::StoreAway)),
            Some(("store_unavailable", true, "the store has not answered yet")),
        );
        check(
            &stats(1, Some(QueueReason::StoreAway)),
            Some((
                "store_unavailable",
                true,
                "the lease has ended and the store does not answer",
            )),
        );
        check(
            &stats(1, Some(QueueReason::OriginDown)),
            Some((
                "origin_down",
                false,
                "the origin does not answer, or with errors",
            )),
        );
    }

    #[test]
    fn the_time_of_reopening_is_told_by_the_wall_clock() {
        let reopens_at = NOW + DurationMs(6_000);
        check(
            &stats(1, Some(QueueReason::Recovering { reopens_at })),
            Some((
                "recovering",
                false,
                "the ledger lost its memory and lends nothing before 2023-09-11T11:47:00Z; if \
                 nobody is inside, `anteroom room shop assume-empty` ends that",
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
