//! Parts that the records of a ledger, of its children and of its parent share.

use anteroom_room::id::VisitorId;
use anteroom_room::ledger::RecentAdmissions;
use anteroom_room::rules::{Limits, NewUsersWindow};
use anteroom_room::seats::SeatRow;
use anteroom_room::sync::{Revocation, RoomFacts};
use anteroom_room::time::{DurationMs, Minute, Timestamp};
use anteroom_room::waiting::{NOBODY, ReportedWaiting, WaitingForecast};
use anteroom_room::watermark::WaitingCounts;
use serde::{Deserialize, Serialize};

/// Stands in a record for `None` in fields that were not optional in an older format.
pub(super) const NONE: u64 = 0;

#[derive(Serialize, Deserialize)]
pub(super) struct RoomFactsRecord {
    total_active_users: u32,
    new_users_per_minute: u32,
    is_window_sliding: bool,
    longest_seat: u64,
    pacing: bool,
    needs_traffic: bool,
}

/// Admissions of the last seconds. Each slot is written by its distance to the one before, since a
/// busy room has sixty.
#[derive(Serialize, Deserialize)]
pub(super) struct RecentAdmissionsRecord {
    slots: Vec<(u64, u32)>,
    second_from: u64,
    held: Vec<(u64, u32)>,
    open_from: u64,
}

#[derive(Serialize, Deserialize)]
pub(super) struct RevocationRecord {
    visitor: [u8; 16],
    seat_ends_at: u64,
    until: u64,
}

pub(super) fn row_out(row: &SeatRow) -> Vec<(u64, i64)> {
    row.iter().map(|(end, count)| (end.0, count)).collect()
}

pub(super) fn row_in(row: Vec<(u64, i64)>) -> SeatRow {
    row.into_iter()
        .map(|(end, count)| (Timestamp(end), count))
        .collect()
}

pub(super) fn waiting_out(counts: &WaitingCounts) -> Vec<(u64, i64)> {
    counts.iter().map(|(rank, count)| (rank.0, count)).collect()
}

pub(super) fn waiting_in(counts: Vec<(u64, i64)>) -> WaitingCounts {
    counts
        .into_iter()
        .map(|(rank, count)| (Timestamp(rank), count))
        .collect()
}

/// Waiting visitors by rank: counts at the times of a forecast, as differences from the count
/// before, without the zeros at the end. Most differences are zero.
#[derive(Serialize, Deserialize)]
pub(super) struct WaitingForecastRecord {
    from: u64,
    late: u64,
    ranks: Vec<(u64, Vec<i64>)>,
}

impl From<&WaitingForecast> for WaitingForecastRecord {
    fn from(forecast: &WaitingForecast) -> Self {
        let ranks = forecast.iter().map(|(rank, counts)| {
            let mut before = 0i64;
            let changes = counts
                .iter()
                .map(|&count| count.wrapping_sub(core::mem::replace(&mut before, count)));
            let mut changes: Vec<i64> = changes.collect();
            let end = changes.iter().rposition(|change| *change != 0);
            changes.truncate(end.map_or(0, |end| end + 1));
            (rank.0, changes)
        });
        Self {
            from: forecast.from().0,
            late: forecast.late().0,
            ranks: ranks.collect(),
        }
    }
}

impl From<WaitingForecastRecord> for WaitingForecast {
    fn from(record: WaitingForecastRecord) -> Self {
        let begin = (Timestamp(record.from), DurationMs(record.late));
        let ranks = record.ranks.into_iter().map(|(rank, changes)| {
            let mut counts = NOBODY;
            let mut changes = changes.into_iter();
            let mut count = 0i64;
            for known in &mut counts {
                count = count.wrapping_add(changes.next().unwrap_or(0));
                *known = count;
            }
            (Timestamp(rank), counts)
        });
        Self::from_parts(begin, ranks)
    }
}

/// Waiting visitors as a child reported them.
#[derive(Serialize, Deserialize)]
pub(super) struct ReportedWaitingRecord {
    forecast: WaitingForecastRecord,
    sent_at: u64,
    ahead_ms: i64,
    counted_at: u64,
}

impl From<&ReportedWaiting> for ReportedWaitingRecord {
    fn from(reported: &ReportedWaiting) -> Self {
        Self {
            forecast: (&reported.forecast).into(),
            sent_at: reported.sent_at.0,
            ahead_ms: reported.ahead_ms,
            counted_at: reported.counted_at.0,
        }
    }
}

impl From<ReportedWaitingRecord> for ReportedWaiting {
    fn from(record: ReportedWaitingRecord) -> Self {
        Self {
            forecast: record.forecast.into(),
            sent_at: Timestamp(record.sent_at),
            ahead_ms: record.ahead_ms,
            counted_at: Timestamp(record.counted_at),
        }
    }
}

pub(super) fn minutes_out(minutes: &[(Minute, u32)]) -> Vec<(u64, u32)> {
    minutes
        .iter()
        .map(|&(minute, count)| (minute.0, count))
        .collect()
}

pub(super) fn minutes_in(minutes: Vec<(u64, u32)>) -> Vec<(Minute, u32)> {
    minutes
        .into_iter()
        .map(|(minute, count)| (Minute(minute), count))
        .collect()
}

impl From<RoomFacts> for RoomFactsRecord {
    fn from(terms: RoomFacts) -> Self {
        Self {
            total_active_users: terms.limits.total_active_users,
            new_users_per_minute: terms.limits.new_users_per_minute,
            is_window_sliding: terms.window == NewUsersWindow::Sliding,
            longest_seat: terms.longest_seat.0,
            pacing: terms.pacing,
            needs_traffic: terms.needs_traffic,
        }
    }
}

impl From<RoomFactsRecord> for RoomFacts {
    fn from(record: RoomFactsRecord) -> Self {
        Self {
            limits: Limits {
                total_active_users: record.total_active_users,
                new_users_per_minute: record.new_users_per_minute,
            },
            window: if record.is_window_sliding {
                NewUsersWindow::Sliding
            } else {
                NewUsersWindow::Minute
            },
            longest_seat: DurationMs(record.longest_seat),
            pacing: record.pacing,
            needs_traffic: record.needs_traffic,
        }
    }
}

impl From<&RecentAdmissions> for RecentAdmissionsRecord {
    fn from(recent: &RecentAdmissions) -> Self {
        let mut before = 0;
        let slots = recent.slots.iter().map(|&(at, count)| {
            let apart = at.0 - before;
            before = at.0;
            (apart, count)
        });
        Self {
            slots: slots.collect(),
            second_from: recent.second_from.0,
            held: recent
                .held
                .iter()
                .map(|&(at, count)| (at.0, count))
                .collect(),
            open_from: recent.open_from.0,
        }
    }
}

impl From<RecentAdmissionsRecord> for RecentAdmissions {
    fn from(record: RecentAdmissionsRecord) -> Self {
        let mut at = 0u64;
        let slots = record.slots.into_iter().map(|(apart, count)| {
            at = at.saturating_add(apart);
            (Timestamp(at), count)
        });
        let held = record.held.into_iter();
        Self {
            slots: slots.collect(),
            second_from: Timestamp(record.second_from),
            held: held.map(|(at, count)| (Timestamp(at), count)).collect(),
            open_from: Minute(record.open_from),
        }
    }
}

impl From<Revocation> for RevocationRecord {
    fn from(entry: Revocation) -> Self {
        Self {
            visitor: entry.visitor.0,
            seat_ends_at: entry.seat_ends_at.unwrap_or(Timestamp(NONE)).0,
            until: entry.until.0,
        }
    }
}

impl From<RevocationRecord> for Revocation {
    fn from(record: RevocationRecord) -> Self {
        Self {
            visitor: VisitorId(record.visitor),
            seat_ends_at: Some(Timestamp(record.seat_ends_at))
                .filter(|end| *end != Timestamp(NONE)),
            until: Timestamp(record.until),
        }
    }
}
