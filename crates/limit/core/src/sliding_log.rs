//! Sliding log: counts the requests of the last window exactly.
//!
//! Remembers each request for a window. Exact, and the most expensive: memory grows with the limit.
//! Source: Muscat, "Distributed Rate-Limiting Algorithms", 2022.
//!
//! Requests of one microsecond are one entry. Expired entries are dropped when the next request is
//! counted, so a client that stops keeps its log until it is idle.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::algorithm::Algorithm;
use crate::cost::Cost;
use crate::exact::saturate_u32;
use crate::rate::Rate;
use crate::settings::{Settings, SettingsError};
use crate::time::TimestampUs;
use crate::verdict::{Standing, Verdict};

/// Largest limit of a log. That many entries are 1.6 MB for a single client; for more, strict
/// sub-windows are cheaper and no less strict.
pub const LOG_LONGEST: u32 = 100_000;

/// Sliding log of a rate.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SlidingLog {
    rate: Rate,
}

/// State of one client: its requests, oldest first.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct State {
    entries: VecDeque<Entry>,
    /// Sum over all entries, including expired ones.
    sum: u64,
}

/// Requests that were counted at one point in time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Entry {
    /// Time of the requests.
    pub at: TimestampUs,
    /// Cost of the requests.
    pub requests: u32,
}

/// Part of a log that counts at one point in time.
struct Live {
    /// First entry that has not expired.
    from: usize,
    sum: u64,
}

impl SlidingLog {
    /// Creates a log for this rate.
    ///
    /// # Errors
    ///
    /// [`SettingsError::LogTooLong`] for more than [`LOG_LONGEST`] requests.
    pub const fn new(rate: Rate) -> Result<Self, SettingsError> {
        if rate.requests() > LOG_LONGEST {
            return Err(SettingsError::LogTooLong {
                calls: rate.requests(),
                most: LOG_LONGEST,
            });
        }
        Ok(Self { rate })
    }

    /// Returns the rate.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings::default()
    }

    fn live(&self, state: &State, now: TimestampUs) -> Live {
        let now = state.not_before_newest(now);
        let mut live = Live {
            from: 0,
            sum: state.sum,
        };
        for entry in &state.entries {
            if now.since(entry.at) < self.rate.window() {
                break;
            }
            live.from += 1;
            live.sum = live.sum.saturating_sub(u64::from(entry.requests));
        }
        live
    }

    fn standing(&self, state: &State, live: &Live, now: TimestampUs) -> Standing {
        let left = u64::from(self.rate.requests()).saturating_sub(live.sum);
        let newest = state.entries.back().filter(|_| live.sum > 0);
        Standing {
            now,
            remaining: saturate_u32(left),
            full_at: newest.map_or(now, |newest| newest.at + self.rate.window()),
        }
    }

    fn take(&self, state: &mut State, now: TimestampUs, taken: Option<u32>) -> Verdict {
        let mut live = self.live(state, now);
        let wanted = u64::from(taken.unwrap_or(1));
        let standing = self.standing(state, &live, now);
        if wanted > u64::from(standing.remaining) {
            return standing.reject(self.fits_at(state, &live, wanted));
        }
        let Some(taken) = taken else {
            return standing.admit();
        };
        state.drop_oldest(&live);
        state.push(now, taken);
        live = Live {
            from: 0,
            sum: state.sum,
        };
        self.standing(state, &live, now).admit()
    }

    /// Returns when enough of the counted requests expire.
    fn fits_at(&self, state: &State, live: &Live, wanted: u64) -> Option<TimestampUs> {
        let allowed = u64::from(self.rate.requests()).checked_sub(wanted)?;
        let mut left = live.sum;
        for entry in state.entries.iter().skip(live.from) {
            left = left.saturating_sub(u64::from(entry.requests));
            if left <= allowed {
                return Some(entry.at + self.rate.window());
            }
        }
        None
    }

    fn refund(&self, state: &mut State, now: TimestampUs, back: u32) -> Verdict {
        let live = self.live(state, now);
        state.drop_oldest(&live);
        state.pop(back);
        let live = Live {
            from: 0,
            sum: state.sum,
        };
        self.standing(state, &live, now).admit()
    }
}

impl State {
    /// Creates a state from entries in any order, as a store wrote them.
    #[must_use]
    pub fn from_entries(entries: impl IntoIterator<Item = Entry>) -> Self {
        let mut entries: VecDeque<Entry> = entries.into_iter().collect();
        entries.retain(|entry| entry.requests > 0);
        entries.make_contiguous().sort_by_key(|entry| entry.at);
        let sum = entries.iter().map(|entry| u64::from(entry.requests)).sum();
        Self { entries, sum }
    }

    /// Returns the remembered requests, oldest first, including expired ones.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = Entry> + '_ {
        self.entries.iter().copied()
    }

    /// Writes for each entry the time since the one before, and its requests.
    pub(crate) fn write_numbers(&self, put: &mut dyn FnMut(u64)) {
        let mut before = TimestampUs(0);
        for entry in self.entries() {
            put(entry.at.since(before).0);
            put(entry.requests.into());
            before = entry.at;
        }
    }

    pub(crate) fn from_numbers(numbers: &[u64]) -> Option<Self> {
        if numbers.is_empty() {
            return None;
        }
        let mut at = TimestampUs(0);
        let entries = numbers.chunks(2).map(|entry| {
            let [after, calls] = *entry else {
                return None;
            };
            at = TimestampUs(at.0.checked_add(after)?);
            let requests = u32::try_from(calls).ok().filter(|calls| *calls > 0)?;
            Some(Entry { at, requests })
        });
        let entries: Vec<Entry> = entries.collect::<Option<_>>()?;
        Some(Self::from_entries(entries))
    }

    /// Stops a clock that went back at the newest entry until it has caught up.
    fn not_before_newest(&self, now: TimestampUs) -> TimestampUs {
        self.entries.back().map_or(now, |newest| now.max(newest.at))
    }

    fn drop_oldest(&mut self, live: &Live) {
        self.entries.drain(..live.from);
        self.sum = live.sum;
    }

    fn push(&mut self, now: TimestampUs, taken: u32) {
        let at = self.not_before_newest(now);
        self.sum += u64::from(taken);
        if let Some(newest) = self.entries.back_mut()
            && newest.at == at
            && let Some(calls) = newest.requests.checked_add(taken)
        {
            newest.requests = calls;
            return;
        }
        self.entries.push_back(Entry {
            at,
            requests: taken,
        });
    }

    fn pop(&mut self, back: u32) {
        let mut left = back;
        while let Some(newest) = self.entries.back_mut() {
            let undone = newest.requests.min(left);
            newest.requests -= undone;
            left -= undone;
            self.sum = self.sum.saturating_sub(u64::from(undone));
            if newest.requests > 0 {
                break;
            }
            self.entries.pop_back();
        }
    }
}

impl Algorithm for SlidingLog {
    type State = State;

    fn step(&self, state: &mut State, now: TimestampUs, cost: Cost) -> Verdict {
        match cost {
            Cost::Take(taken) => self.take(state, now, Some(taken.get())),
            Cost::Peek => self.take(state, now, None),
            Cost::Refund(back) => self.refund(state, now, back.get()),
        }
    }

    fn is_idle(&self, state: &State, now: TimestampUs) -> bool {
        self.live(state, now).sum == 0
    }

    /// `calls`: all requests that a window allows are in the log when its last one comes.
    fn window_cost_max(&self, _cost_max: u32) -> u64 {
        u64::from(self.rate.requests())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Client, a_minute, at};

    fn client(calls: u32) -> Client<SlidingLog> {
        Client::new(SlidingLog::new(a_minute(calls)).unwrap())
    }

    // Muscat, "Distributed Rate-Limiting Algorithms", 2022.
    #[test]
    fn no_more_than_the_limit_passes_around_the_edge_of_a_minute() {
        let mut client = client(100);
        let calls = client.send("07:09:59", 100) + client.send("07:10:00", 100);
        assert_eq!(calls, 100);
    }

    #[test]
    fn each_request_expires_a_window_later() {
        let mut client = client(3);
        for time in ["07:10:00", "07:10:10", "07:10:20"] {
            assert_eq!(client.send(time, 1), 1);
        }
        assert_eq!(client.retry_at("07:10:30", 1), Some(at("07:11:00")));
        assert_eq!(client.retry_at("07:10:30", 2), Some(at("07:11:10")));
        assert_eq!(client.retry_at("07:10:30", 3), Some(at("07:11:20")));
        assert_eq!(client.retry_at("07:10:30", 4), None);
        assert_eq!(client.full_at("07:10:30"), at("07:11:20"));
        assert_eq!(client.send("07:10:59.999999", 1), 0);
        assert_eq!(client.send("07:11:00", 2), 1);
    }

    #[test]
    fn requests_of_one_moment_are_one_entry_and_old_ones_are_dropped() {
        let mut client = client(100);
        client.send("07:10:00", 60);
        client.send("07:10:01", 30);
        assert_eq!(client.state.entries().len(), 2);
        client.send("07:11:00", 1);
        assert_eq!(client.state.entries().len(), 2);
        let again = State::from_entries(client.state.entries().rev_sorted());
        assert_eq!(again, client.state);
    }

    trait RevSorted: Iterator<Item = Entry> + Sized {
        fn rev_sorted(self) -> Vec<Entry> {
            let mut entries: Vec<_> = self.collect();
            entries.reverse();
            entries
        }
    }

    impl<I: Iterator<Item = Entry>> RevSorted for I {}

    #[test]
    fn a_clock_that_goes_back_stops_at_the_newest_request() {
        let mut client = client(2);
        client.send("07:10:00", 1);
        client.send("07:10:30", 1);
        assert_eq!(client.send("07:09:00", 1), 0);
        assert_eq!(client.send("07:11:00", 1), 1);
        assert_eq!(client.send("07:10:31", 1), 0);
        assert_eq!(client.retry_at("07:10:31", 1), Some(at("07:11:30")));
        let mut set_back = Client::new(client.limit);
        set_back.send("07:10:30", 1);
        set_back.send("07:10:00", 1);
        assert_eq!(set_back.full_at("07:10:31"), at("07:11:30"));
    }

    #[test]
    fn a_refund_undoes_the_newest_requests_first() {
        let mut client = client(10);
        client.send("07:10:00", 4);
        client.send("07:10:30", 4);
        client.step("07:10:40", Cost::refund(5));
        assert_eq!(client.remaining("07:10:40"), 7);
        assert_eq!(client.full_at("07:10:40"), at("07:11:00"));
        client.step("07:10:40", Cost::refund(50));
        assert_eq!(client.state, State::default());
    }

    #[test]
    fn what_was_spent_stays_spent_when_the_limit_changes() {
        let mut client = client(100);
        client.send("07:10:00", 60);
        for (calls, left) in [(50, 0), (61, 1), (200, 140), (0, 0)] {
            client.limit = SlidingLog::new(a_minute(calls)).unwrap();
            assert_eq!(client.remaining("07:10:01"), left, "{calls}");
        }
    }

    #[test]
    fn a_log_that_would_be_too_long_is_invalid() {
        assert!(SlidingLog::new(a_minute(100_000)).is_ok());
        let error = SettingsError::LogTooLong {
            calls: 100_001,
            most: 100_000,
        };
        assert_eq!(SlidingLog::new(a_minute(100_001)), Err(error));
    }
}
