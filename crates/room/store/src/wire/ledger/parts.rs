//! Parts that the records of a ledger, of its children and of its parent share.

use std::iter::repeat_n;

use anteroom_room::id::VisitorId;
use anteroom_room::rules::Limits;
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
    longest_seat: u64,
    pacing: bool,
    needs_traffic: bool,
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

/// Waiting visitors as a child reported them: counts at the times of a forecast by rank, each with
/// the number of times in a row at which it is so. Zeros at the end are left out.
#[derive(Serialize, Deserialize)]
pub(super) struct ReportedWaitingRecord {
    from: u64,
    late: u64,
    forecast: Vec<(u64, Vec<(u8, i64)>)>,
    sent_at: u64,
    ahead_ms: i64,
    counted_at: u64,
}

impl From<&ReportedWaiting> for ReportedWaitingRecord {
    fn from(reported: &ReportedWaiting) -> Self {
        let forecast = reported.forecast.iter().map(|(rank, counts)| {
            let runs = counts.chunk_by(|one, other| one == other);
            let runs = runs.map(|run| (u8::try_from(run.len()).unwrap_or(u8::MAX), run[0]));
            let mut runs: Vec<(u8, i64)> = runs.collect();
            runs.pop_if(|(_, count)| *count == 0);
            (rank.0, runs)
        });
        Self {
            from: reported.forecast.from().0,
            late: reported.forecast.late().0,
            forecast: forecast.collect(),
            sent_at: reported.sent_at.0,
            ahead_ms: reported.ahead_ms,
            counted_at: reported.counted_at.0,
        }
    }
}

impl From<ReportedWaitingRecord> for ReportedWaiting {
    fn from(record: ReportedWaitingRecord) -> Self {
        let begin = (Timestamp(record.from), DurationMs(record.late));
        let forecast = record.forecast.into_iter().map(|(rank, runs)| {
            let runs = runs.into_iter();
            let known = runs.flat_map(|(length, count)| repeat_n(count, length.into()));
            let mut counts = NOBODY;
            for (count, known) in counts.iter_mut().zip(known) {
                *count = known;
            }
            (Timestamp(rank), counts)
        });
        Self {
            forecast: WaitingForecast::from_parts(begin, forecast),
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
            longest_seat: DurationMs(record.longest_seat),
            pacing: record.pacing,
            needs_traffic: record.needs_traffic,
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
