//! A data center and the world: what is fetched, and when.

use super::*;
use crate::sync::Snapshot;

/// The first admissions of its minute; the next one begins five seconds later.
const LATE: Timestamp = Timestamp(START.0 + 55_000);
const NEXT_MINUTE: Timestamp = Timestamp(START.0 + 60_000);
const TRIP: DurationMs = DurationMs(140);

/// The ledger of a data center below the root's, and the clock of both.
struct Far {
    root: Ledger,
    here: Ledger,
    now: Timestamp,
    number: u64,
    answer: Option<Answer>,
}

impl Far {
    fn new(now: Timestamp) -> Self {
        let mut far = Self {
            root: Ledger::first_start(Incarnation(0)),
            here: Ledger::below_root(Incarnation(7), DataCenterId(1)),
            now,
            number: 0,
            answer: None,
        };
        far.node(0, 0, |_| {});
        far.upstream_sync();
        // Where nobody else is, nobody's clock differs.
        let mut other = request(9, 1, 0);
        other.data_center = DataCenterId(2);
        other.sent_at = far.now;
        other.terms = far.here.terms.expect("a node has spoken");
        far.root.handle_sync(other, LeaseTerms::ROOT, far.now);
        far
    }

    /// The one node speaks: it wants so many slots, and as many of the next minute.
    fn node(
        &mut self,
        slots: u32,
        ahead: u32,
        change: impl FnOnce(&mut SyncRequest),
    ) -> LeaseBalance {
        self.number += 1;
        let known = self.answer.as_ref();
        let mut asks = request(
            1,
            self.number,
            known.and_then(|known| known.generation).unwrap_or(0),
        );
        asks.parent = known.map(|_| Incarnation(7));
        asks.is_final = false;
        asks.wants.slots = slots;
        asks.wants.ahead = ahead;
        asks.terms.limits.total_active_users = 1_000;
        asks.terms.limits.new_users_per_minute = 1_000;
        asks.closed_through = self.now;
        change(&mut asks);
        let here = core::mem::take(&mut self.here);
        let (here, answer) = lent(here, &asks, self.now);
        self.here = here;
        let granted = answer.granted;
        self.answer = Some(answer);
        granted
    }

    fn upstream_sync(&mut self) {
        let lending = LeaseTerms::ROOT;
        let asks = self
            .here
            .poll_upstream(self.now)
            .expect("a node has spoken");
        self.now = self.now + TRIP;
        let reply = self.root.handle_sync(asks, lending, self.now);
        assert!(self.here.handle_upstream(reply, self.now));
    }

    fn wait(&mut self, ms: u64) {
        self.now = self.now + DurationMs(ms);
    }

    fn snapshot(&mut self) -> &mut Snapshot {
        &mut self.here.upstream.as_deref_mut().expect("below").snapshot
    }

    fn is_due(&self) -> bool {
        self.here.is_upstream_due(false, self.now)
    }
}

#[test]
fn a_data_center_leases_no_longer_seats_than_the_root_knows() {
    let mut far = Far::new(LATE);
    let with_seats = |longest_seat| {
        move |asks: &mut SyncRequest| {
            asks.longest_seat = longest_seat;
            asks.terms.longest_seat = longest_seat;
        }
    };
    far.node(0, 0, with_seats(DurationMs(62_000)));
    let told = far.here.poll_upstream(far.now).expect("a node has spoken");
    assert_eq!(told.longest_seat, DurationMs(62_000));
    // The answer is lost, and the session is made longer again.
    far.node(0, 0, with_seats(DurationMs(62_000)));
    far.node(0, 0, |asks| asks.longest_seat = DurationMs(62_000));
    let answer = far.answer.as_ref().expect("it was answered");
    assert_eq!(answer.longest_seat, DurationMs(62_000));
    far.upstream_sync();
    far.node(0, 0, |asks| asks.longest_seat = DurationMs(62_000));
    let answer = far.answer.as_ref().expect("it was answered");
    assert!(answer.longest_seat > DurationMs(62_000));
}

#[test]
fn admissions_of_the_next_minute_are_at_hand_before_it_begins() {
    let mut far = Far::new(LATE);
    far.wait(2_000);
    far.node(10, 0, |_| {});
    far.upstream_sync();
    let granted = far.node(10, 10, |_| {});
    assert_eq!((granted.admissions, granted.ahead), (10, 10));
    // Lent is lent: the world counts them to the minute for which they are.
    let minute = NEXT_MINUTE.minute();
    let pool = far.here.upstream.as_deref().expect("below").lease.held();
    let held = far.root.admissions_lent(minute);
    assert_eq!(held, u64::from(pool.ahead + granted.ahead));
    assert!(far.root.admissions_free(far.now, minute) < 1_000);
}

#[test]
fn a_silent_nodes_share_of_the_next_minute_counts_as_used() {
    let mut far = Far::new(LATE);
    far.wait(2_000);
    far.node(10, 0, |_| {});
    far.upstream_sync();
    far.node(10, 10, |_| {});
    far.wait(LEASE_TTL.0 + 1);
    far.here.advance(far.now);
    for minute in [START.minute(), NEXT_MINUTE.minute()] {
        assert_eq!(far.here.admitted_in(minute), 10, "{minute:?}");
    }
}

#[test]
fn spare_slots_are_fetched_for_growth_and_never_where_people_wait() {
    let mut far = Far::new(START);
    far.node(10, 0, |_| {});
    let in_hand = |far: &mut Far| {
        let asks = far.here.poll_upstream(far.now).expect("a node has spoken");
        asks.wants.slots
    };
    assert_eq!(in_hand(&mut far), 10 + 250, "and a quarter of what is free");
    far.snapshot().waiting = 3;
    far.snapshot().slots_to_spare = 0;
    assert_eq!(in_hand(&mut far), 10, "what is missing and no more");
}

#[test]
fn the_root_is_hurried_for_slots_that_it_has() {
    let mut far = Far::new(START);
    far.upstream_sync();
    far.node(0, 0, |asks| asks.wants.later = 1);
    far.wait(200);
    assert!(!far.is_due(), "somebody may come");
    far.node(20, 0, |_| {});
    assert!(far.is_due());
    far.snapshot().waiting = 3;
    assert!(!far.is_due(), "others wait for them");
}

#[test]
fn the_root_hears_at_once_of_seats_that_have_ended() {
    let mut far = Far::new(START);
    let end = START + DurationMs(5_000);
    far.node(0, 0, |asks| asks.row.add(end));
    far.upstream_sync();
    far.now = end + closing::CLOCKS_APART - DurationMs(400);
    far.node(0, 0, |asks| asks.row.add(end));
    far.upstream_sync();
    far.wait(200);
    assert!(!far.is_due(), "some clock may be behind");
    far.wait(60);
    far.node(0, 0, |asks| asks.row.add(end));
    assert!(far.is_due());
    far.upstream_sync();
    assert_eq!((far.root.inside(), far.here.inside()), (0, 0));
    far.wait(200);
    assert!(!far.is_due(), "it knows");
}

#[test]
fn logouts_are_hurried_along_while_somebody_waits_for_their_seats() {
    let mut far = Far::new(START);
    far.upstream_sync();
    far.node(0, 0, |asks| {
        asks.revocations = vec![Revocation {
            visitor: VisitorId([1; 16]),
            seat_ends_at: Some(START + DurationMs(9_000)),
            until: START + LONGEST,
        }];
    });
    far.wait(600);
    assert!(!far.is_due(), "nobody waits");
    far.snapshot().waiting = 1;
    assert!(far.is_due());
}

#[test]
fn others_are_looked_for_when_due_and_then_again() {
    let mut far = Far::new(START);
    far.upstream_sync();
    far.here.poll_upstream(far.now);
    let back_after = |far: &Far| {
        let upstream = far.here.upstream.as_deref().expect("below");
        upstream.back_after(far.now)
    };
    assert_eq!(back_after(&far), Some(TRIP));
    far.wait(100);
    assert_eq!(back_after(&far), Some(DurationMs(40)));
    far.wait(500);
    assert_eq!(back_after(&far), Some(DurationMs(20)), "late");
}
