//! Content of a ticket, and its standing at a moment.
//!
//! The ticket crate seals tickets and proves that they are authentic.

use core::num::NonZeroU32;

use crate::id::{DataCenterId, Epoch, VisitorId};
use crate::queue_position::{HeldTurn, Loss, Rise};
use crate::rules::Rules;
use crate::seats::SHORTEST_INTERVAL;
use crate::time::{DurationMs, Timestamp};

/// Most data centers whose seats a ticket records; the seat that ends first is dropped.
pub const SEATS_MAX: usize = 4;

/// Farthest that a ticket may lie in the future before our own clock is suspect.
///
/// It is the tolerance between nodes' clocks. If it were larger, a ticket that a wrong clock wrote
/// would be valid for longer than a session.
pub const CLOCK_TOLERANCE: DurationMs = DurationMs(500);

/// State that a visitor carries, waiting or accepted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Ticket {
    /// Visitor that carries it.
    pub visitor: VisitorId,
    /// Second of the visitor's arrival; it decides the position in the queue.
    pub bucket: Timestamp,
    /// Time of the last refresh (waiting) or check-in (accepted).
    pub last_check_in_at: Timestamp,
    /// Time of admission; `None` while the visitor waits.
    pub accepted_at: Option<Timestamp>,
    /// Kind of the seat if it is a first, short one; `None` once the full one is given.
    pub first_seat: Option<FirstSeat>,
    /// Whether the visitor let a turn pass. It gets one more.
    pub has_missed_turn: bool,
    /// Time until which some node counts it as waiting; `None` if none does.
    pub counted_until: Option<Timestamp>,
    /// Announcement to the visitor while it waited.
    pub announced: Announced,
    /// Loss that no page has mentioned yet, because only scripts have asked since.
    pub unseen_loss: Option<Loss>,
    /// Seats in the data centers that the visitor used lately.
    pub seats: Seats,
}

/// Short first seat. The full one is given when a request for the site brings this ticket back.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FirstSeat {
    /// The visitor had no ticket before, and may have no cookies.
    Newcomer,
    /// The visitor's page polled when its turn came, and the visitor may be away.
    Turn,
    /// The visitor has extended its turn, which is possible once.
    ExtendedTurn,
}

/// Last announcement to a waiting visitor, so that the next response agrees with it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Announced {
    /// Position, 1 = next; `None` before all who came earlier were counted.
    pub position: Option<NonZeroU32>,
    /// Time of its admission; `None` while it is not known.
    pub admission: Option<AfterArrival>,
    /// First of these times, to see how it comes true.
    pub first: Option<Promise>,
    /// Reason of the last one that was worse.
    pub rise: Option<Rise>,
}

/// Time of admission as a response announced it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Promise {
    /// Time of the response.
    pub at: AfterArrival,
    /// Time of admission.
    pub admission: AfterArrival,
}

/// Point in time in whole seconds after a visitor's arrival, at least one: small, because each
/// ticket has three of them.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct AfterArrival(pub NonZeroU32);

impl AfterArrival {
    /// Returns a point in time after the arrival; `None` if it is less than a second after it.
    #[must_use]
    pub fn of(at: Timestamp, arrived_at: Timestamp) -> Option<Self> {
        let secs = at.since(arrived_at).0 / 1_000;
        NonZeroU32::new(u32::try_from(secs).unwrap_or(u32::MAX)).map(Self)
    }

    /// Returns the point in time of a visitor who arrived then.
    #[must_use]
    pub fn time(self, arrived_at: Timestamp) -> Timestamp {
        arrived_at + DurationMs::from_secs(self.0.get().into())
    }
}

/// Seat as a ticket records it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Seat {
    /// Data center that counts it.
    pub data_center: DataCenterId,
    /// End of the seat; an edge of the interval grid in force when it was given.
    pub ends_at: Timestamp,
    /// Epoch of the ledger that counts it.
    pub epoch: Epoch,
}

/// Seats of a ticket: at most [`SEATS_MAX`], one for each data center.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Seats {
    held: [Option<Seat>; SEATS_MAX],
}

impl Seats {
    /// Iterates over the seats, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = Seat> + '_ {
        self.held.iter().copied().flatten()
    }

    /// Returns the seat in this data center.
    #[must_use]
    pub fn of(&self, data_center: DataCenterId) -> Option<Seat> {
        self.iter().find(|seat| seat.data_center == data_center)
    }

    /// Returns the latest end: until then the ticket is valid.
    #[must_use]
    pub fn ends_at(&self) -> Option<Timestamp> {
        self.iter().map(|seat| seat.ends_at).max()
    }

    /// Records a seat. It replaces the one in the same data center, else takes a free entry, else
    /// replaces the one that ends first.
    pub fn put(&mut self, seat: Seat) {
        let index = self
            .position(|held| held.is_some_and(|held| held.data_center == seat.data_center))
            .or_else(|| self.position(|held| held.is_none()))
            .or_else(|| {
                (0..SEATS_MAX)
                    .min_by_key(|&at| self.held[at].map_or(Timestamp::ZERO, |s| s.ends_at))
            });
        if let Some(at) = index {
            self.held[at] = Some(seat);
        }
    }

    fn position(&self, wanted: impl Fn(&Option<Seat>) -> bool) -> Option<usize> {
        self.held.iter().position(wanted)
    }
}

/// Standing of a ticket at a moment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Standing {
    /// Active until `ends_at`.
    Active {
        /// End of the session as of now.
        ends_at: Timestamp,
    },
    /// Waiting, at the position of the ticket's bucket.
    Waiting,
    /// Expired: the visitor counts as new.
    Over,
}

impl Ticket {
    /// Returns the standing of this ticket at `now`.
    ///
    /// Intervals up to `closed_through` are free again, so tickets that end by then are over even
    /// if a slower clock has not reached their end.
    #[must_use]
    pub fn standing(&self, now: Timestamp, closed_through: Timestamp, rules: &Rules) -> Standing {
        if self.accepted_at.is_none() {
            let good_until = self.last_check_in_at + rules.position_grace;
            return if now <= good_until {
                Standing::Waiting
            } else {
                Standing::Over
            };
        }
        let Some(mut ends_at) = self.seats.ends_at() else {
            return Standing::Over;
        };
        if self.is_from_the_future(now) {
            ends_at = ends_at.min(now + rules.longest_seat());
        }
        if ends_at > now.max(closed_through) {
            Standing::Active { ends_at }
        } else {
            Standing::Over
        }
    }

    /// Returns the interval of the rules under which its seat was given: seats are 61 to 62 long.
    fn own_interval(&self) -> DurationMs {
        let ends_at = self.seats.ends_at().unwrap_or_default();
        let seat = ends_at.since(self.last_check_in_at);
        DurationMs(seat.0 / 61).max(SHORTEST_INTERVAL)
    }

    /// Returns the visitor's turn, while it has not entered.
    #[must_use]
    pub fn held_turn(&self) -> Option<HeldTurn> {
        let can_extend = match self.first_seat? {
            FirstSeat::Newcomer => return None,
            FirstSeat::Turn => true,
            FirstSeat::ExtendedTurn => false,
        };
        Some(HeldTurn {
            ends_at: self.seats.ends_at()?,
            can_extend,
        })
    }

    /// Returns the waiting ticket of a visitor whose turn has passed: it keeps its arrival.
    #[must_use]
    pub fn after_missed_turn(&self, now: Timestamp) -> Self {
        Self {
            last_check_in_at: now,
            accepted_at: None,
            first_seat: None,
            has_missed_turn: true,
            counted_until: None,
            announced: Announced::default(),
            unseen_loss: None,
            seats: Seats::default(),
            ..*self
        }
    }

    /// Whether this ticket was written later than `now`, which only a wrong clock can explain.
    #[must_use]
    pub fn is_from_the_future(&self, now: Timestamp) -> bool {
        self.last_check_in_at > now + CLOCK_TOLERANCE
    }

    /// Whether a request should extend the seat now.
    ///
    /// A navigation does so when the ticket is older than an interval. A resource of the page does
    /// so only when the ticket is older than two. The interval is that of the present rules or that
    /// of the ticket's seat, whichever is shorter. After `session_duration` was raised, a short
    /// seat would end before the longer interval is over.
    #[must_use]
    pub fn is_check_in_due(&self, now: Timestamp, grid: DurationMs, is_navigation: bool) -> bool {
        let interval = grid.min(self.own_interval());
        let due_after = if is_navigation {
            interval
        } else {
            interval.times(2)
        };
        self.first_seat.is_some() || now >= self.last_check_in_at + due_after
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(last_check_in_at: u64, ends_at: u64) -> Ticket {
        let mut seats = Seats::default();
        seats.put(Seat {
            data_center: DataCenterId(1),
            ends_at: Timestamp(ends_at),
            epoch: Epoch(0),
        });
        Ticket {
            visitor: VisitorId([7; 16]),
            bucket: Timestamp(0),
            last_check_in_at: Timestamp(last_check_in_at),
            accepted_at: Some(Timestamp(last_check_in_at)),
            first_seat: None,
            has_missed_turn: false,
            counted_until: None,
            announced: Announced::default(),
            unseen_loss: None,
            seats,
        }
    }

    #[test]
    fn a_tickets_own_end_decides_not_the_config() {
        let short = Rules {
            session_duration: DurationMs(1_000),
            ..Rules::default()
        };
        let ticket = accepted(0, 300_000);
        let inside = Standing::Active {
            ends_at: Timestamp(300_000),
        };
        assert_eq!(
            ticket.standing(Timestamp(299_999), Timestamp(0), &short),
            inside
        );
        assert_eq!(
            ticket.standing(Timestamp(300_000), Timestamp(0), &short),
            Standing::Over
        );
    }

    #[test]
    fn a_closed_intervals_ticket_is_over_even_on_a_slow_clock() {
        let ticket = accepted(0, 300_000);
        let standing = ticket.standing(Timestamp(299_000), Timestamp(300_000), &Rules::default());
        assert_eq!(standing, Standing::Over);
    }

    #[test]
    fn a_ticket_from_the_future_is_valid_for_the_longest_seat() {
        let ticket = accepted(3_600_000, 4_000_000);
        let standing = ticket.standing(Timestamp(1_000), Timestamp(0), &Rules::default());
        assert_eq!(
            standing,
            Standing::Active {
                ends_at: Timestamp(311_000)
            }
        );
    }

    #[test]
    fn a_waiting_ticket_is_good_for_the_grace_after_its_last_refresh() {
        let mut ticket = accepted(1_000, 2_000);
        ticket.accepted_at = None;
        let rules = Rules::default();
        assert_eq!(
            ticket.standing(Timestamp(301_000), Timestamp(0), &rules),
            Standing::Waiting
        );
        assert_eq!(
            ticket.standing(Timestamp(301_001), Timestamp(0), &rules),
            Standing::Over
        );
    }

    #[test]
    fn the_fifth_data_center_drops_the_seat_that_ends_first() {
        let mut seats = Seats::default();
        for (data_center, ends_at) in [(1, 50), (2, 20), (3, 40), (4, 30), (5, 60)] {
            seats.put(Seat {
                data_center: DataCenterId(data_center),
                ends_at: Timestamp(ends_at),
                epoch: Epoch(0),
            });
        }
        assert_eq!(seats.of(DataCenterId(2)), None);
        assert_eq!(seats.iter().count(), SEATS_MAX);
        assert_eq!(seats.ends_at(), Some(Timestamp(60)));
    }

    #[test]
    fn resources_of_a_page_check_in_one_interval_later_than_the_page() {
        let ticket = accepted(0, 305_000);
        let grid = DurationMs(5_000);
        assert!(!ticket.is_check_in_due(Timestamp(4_999), grid, true));
        assert!(ticket.is_check_in_due(Timestamp(5_000), grid, true));
        assert!(!ticket.is_check_in_due(Timestamp(9_999), grid, false));
        assert!(ticket.is_check_in_due(Timestamp(10_000), grid, false));
    }

    #[test]
    fn a_ticket_is_due_by_its_own_shorter_seat() {
        let minute = accepted(0, 62_000);
        let grid_of_an_hour = DurationMs(60_000);
        assert!(minute.is_check_in_due(Timestamp(1_100), grid_of_an_hour, true));
        assert!(minute.is_check_in_due(Timestamp(2_200), grid_of_an_hour, false));
        let hour = accepted(0, 3_720_000);
        let grid_of_a_minute = DurationMs(1_000);
        assert!(hour.is_check_in_due(Timestamp(1_000), grid_of_a_minute, true));
    }
}
