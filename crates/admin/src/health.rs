//! Is this node well, and if not, what is the matter?
//!
//! Well means that every room has a live lease: from then on it admits and prolongs nobody on the
//! word of the ledger. Other reasons to admit less are told and do not fail: another node would
//! have them, too, and a restart heals none of them. For people and alerts; what decides about
//! restarts and where visitors are sent is in [`crate::probes`].

use std::collections::BTreeMap;

use anteroom_config::time_text::rfc3339_secs;
use anteroom_node::{Node, RoomFigures};
use anteroom_room::decision::QueueReason;

use crate::bodies::{ConnectionTrouble, Health, LimitTrouble, RoomTrouble};
use crate::clocks::Clocks;
use crate::extras::{ConnectionFigures, ExtraFigures, LimitFigures};

/// Most bytes that are told of why a config file was refused. A file may hold thousands of
/// mistakes; the log has all of them.
const RELOAD_ERROR_BYTES_MAX: usize = 4_096;

/// The reason of a room whose ledger lost its memory.
const RECOVERING: &str = "recovering";

/// The health of all rooms, and of what is beside them.
pub(crate) fn of(node: &Node, extras: ExtraFigures) -> Health {
    let clocks = Clocks::read(node.clock());
    let rooms = node.rooms();
    let troubles: Vec<RoomTrouble> = rooms
        .iter()
        .filter_map(|room| {
            let name = room.config().name.to_string();
            let mut trouble = trouble(&name, &room.figures(), clocks)?;
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
pub(crate) fn limits_away(limits: &BTreeMap<String, LimitFigures>) -> Vec<LimitTrouble> {
    let away = limits.iter().filter_map(|(name, figures)| {
        let ago = figures.store_failed_ago?;
        Some(LimitTrouble {
            limit: name.clone(),
            store: figures.store.to_owned(),
            last_failure_ms: u64::try_from(ago.as_millis()).unwrap_or(u64::MAX),
            detail: format!(
                "calls cannot be counted at {:?}, the last one {} s ago; on_store_failure says \
                 what becomes of them",
                figures.store,
                ago.as_secs()
            ),
        })
    });
    away.collect()
}

/// That connections run short, if they do.
pub(crate) fn connections_short(figures: &ConnectionFigures) -> Option<ConnectionTrouble> {
    // Without a limit nobody has said how many there are.
    if figures.limit == 0 || figures.open < figures.near {
        return None;
    }
    Some(ConnectionTrouble {
        open: figures.open,
        with_ticket: figures.with_ticket,
        limit: figures.limit,
        detail: format!(
            "{} of {} connections are open, {} of them with a ticket: those of waiting visitors \
             are closed with each \
             answer, and the longest idle ones make room",
            figures.open, figures.limit, figures.with_ticket
        ),
    })
}

fn trouble(room: &str, figures: &RoomFigures, clocks: Clocks) -> Option<RoomTrouble> {
    let failing = !figures.has_live_lease;
    let reason = match figures.degraded {
        Some(reason) => reason,
        None if failing => QueueReason::StoreAway,
        None => return None,
    };
    let detail = match reason {
        _ if failing && figures.syncs_total == 0 => "the store has not answered yet".to_owned(),
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
    use anteroom_room::room::Tally;
    use anteroom_room::sync::Outlook;
    use anteroom_room::time::{Millis, Span};

    use super::*;

    const NOW: Millis = Millis(1_694_432_754_000);

    fn figures(syncs_total: u64, degraded: Option<QueueReason>) -> RoomFigures {
        let has_live_lease = degraded != Some(QueueReason::StoreAway);
        RoomFigures {
            now: NOW,
            outlook: Outlook::default(),
            tally: Tally::default(),
            passed_total: 0,
            waited_passes_total: 0,
            strange_tickets_total: 0,
            syncs_total,
            failed_syncs_total: 0,
            world_syncs_total: 0,
            failed_world_syncs_total: 0,
            people_waiting: 0,
            has_live_lease,
            lease_left: Span::ZERO,
            degraded,
        }
    }

    fn check(figures: &RoomFigures, expected: Option<(&str, bool, &str)>) {
        let clocks = Clocks {
            room: NOW,
            wall: NOW + Span(60_000),
        };
        let found = trouble("shop", figures, clocks);
        let found = found
            .as_ref()
            .map(|it| (it.reason.as_str(), it.failing, it.detail.as_str()));
        assert_eq!(found, expected);
    }

    #[test]
    fn only_a_lease_that_is_not_live_fails() {
        check(&figures(1, None), None);
        check(
            &figures(0, Some(QueueReason::StoreAway)),
            Some(("store_away", true, "the store has not answered yet")),
        );
        check(
            &figures(1, Some(QueueReason::StoreAway)),
            Some((
                "store_away",
                true,
                "the lease has ended and the store does not answer",
            )),
        );
        check(
            &figures(1, Some(QueueReason::OriginDown)),
            Some((
                "origin_down",
                false,
                "the origin does not answer, or with errors",
            )),
        );
    }

    #[test]
    fn the_time_of_reopening_is_told_by_the_wall_clock() {
        let reopens_at = NOW + Span(6_000);
        check(
            &figures(1, Some(QueueReason::Recovering { reopens_at })),
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
