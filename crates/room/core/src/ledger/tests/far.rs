//! Tests of a data center below the root: its requests, and their times.

use super::*;
use crate::ledger_exchange::LedgerOperation;
use crate::sync::Snapshot;
use alloc::boxed::Box;

/// Time of the first admissions; the next minute begins five seconds later.
const LATE: Timestamp = Timestamp(START.0 + 55_000);
const NEXT_MINUTE: Timestamp = Timestamp(START.0 + 60_000);
const TRIP: DurationMs = DurationMs(140);

/// Ledger of a data center below the root's, and the clock of both.
struct Far {
    root: Ledger,
    here: Ledger,
    now: Timestamp,
    number: u64,
    reply: Option<LeaseReply>,
}

impl Far {
    fn new(now: Timestamp) -> Self {
        let mut far = Self {
            root: Ledger::first_start(Incarnation(0)),
            here: Ledger::below_root(Incarnation(7), DataCenterId(1)),
            now,
            number: 0,
            reply: None,
        };
        far.node(0, 0, |_| {});
        far.upstream_sync();
        // A child in another data center, without which all clocks are known.
        let mut other = request(9, 1, 0);
        other.data_center = DataCenterId(2);
        other.sent_at = far.now;
        other.settings = far.here.settings.expect("a node has synced");
        far.root.handle_sync(other, LeaseTerms::ROOT, far.now);
        far
    }

    /// Syncs the one node, which demands `slots`, and `ahead` admissions of the next minute.
    fn node(
        &mut self,
        slots: u32,
        ahead: u32,
        change: impl FnOnce(&mut SyncRequest),
    ) -> LeaseBalance {
        self.number += 1;
        let known = self.reply.as_ref();
        let mut sync_request = request(
            1,
            self.number,
            known.and_then(|known| known.generation).unwrap_or(0),
        );
        sync_request.parent = known.map(|_| Incarnation(7));
        sync_request.is_final = false;
        sync_request.demand.slots = slots;
        sync_request.demand.next_minute = ahead;
        sync_request.settings.limits.total_active_users = 1_000;
        sync_request.settings.limits.new_users_per_minute = 1_000;
        sync_request.closed_through = self.now;
        change(&mut sync_request);
        let here = core::mem::take(&mut self.here);
        let (here, reply) = grant(here, &sync_request, self.now);
        self.here = here;
        let granted = reply.granted;
        self.reply = Some(reply);
        granted
    }

    fn upstream_sync(&mut self) {
        let root_terms = LeaseTerms::ROOT;
        let sync_request = self
            .here
            .poll_upstream(self.now)
            .expect("a node has synced");
        self.now = self.now + TRIP;
        let reply = self.root.handle_sync(sync_request, root_terms, self.now);
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
        move |sync_request: &mut SyncRequest| {
            sync_request.longest_seat = longest_seat;
            sync_request.settings.longest_seat = longest_seat;
        }
    };
    far.node(0, 0, with_seats(DurationMs(62_000)));
    let reported = far.here.poll_upstream(far.now).expect("a node has synced");
    assert_eq!(reported.longest_seat, DurationMs(62_000));
    // The reply is lost, and the session is made longer again.
    far.node(0, 0, with_seats(DurationMs(62_000)));
    far.node(0, 0, |sync_request| {
        sync_request.longest_seat = DurationMs(62_000)
    });
    let reply = far.reply.as_ref().expect("it has a reply");
    assert_eq!(reply.longest_seat, DurationMs(62_000));
    far.upstream_sync();
    far.node(0, 0, |sync_request| {
        sync_request.longest_seat = DurationMs(62_000)
    });
    let reply = far.reply.as_ref().expect("it has a reply");
    assert!(reply.longest_seat > DurationMs(62_000));
}

#[test]
fn admissions_of_the_next_minute_are_granted_before_it_begins() {
    let mut far = Far::new(LATE);
    far.wait(2_000);
    far.node(10, 0, |_| {});
    far.upstream_sync();
    let granted = far.node(10, 10, |_| {});
    assert_eq!((granted.admissions, granted.next_minute), (10, 10));
    // The root counts all of them as leased, in the minute that they are for.
    let minute = NEXT_MINUTE.minute();
    let pool = far.here.upstream.as_deref().expect("below").lease.balance();
    let held = far.root.admissions_leased(minute);
    assert_eq!(held, u64::from(pool.next_minute + granted.next_minute));
    assert!(far.root.admissions_free(far.now, minute) < 1_000);
}

#[test]
fn unreported_admissions_of_the_next_minute_count_as_used() {
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
fn spare_slots_are_requested_for_growth_but_not_while_visitors_wait() {
    let mut far = Far::new(START);
    far.node(10, 0, |_| {});
    let demanded = |far: &mut Far| {
        let sync_request = far.here.poll_upstream(far.now).expect("a node has synced");
        sync_request.demand.slots
    };
    assert_eq!(
        demanded(&mut far),
        10 + 50,
        "and half of what a second allows"
    );
    far.snapshot().waiting = 3;
    far.snapshot().slots_to_spare = 0;
    assert_eq!(demanded(&mut far), 10, "only what is missing");
}

#[test]
fn missing_slots_that_the_root_has_are_requested_early() {
    let mut far = Far::new(START);
    far.upstream_sync();
    far.node(0, 0, |sync_request| sync_request.demand.movers_expected = 1);
    far.wait(200);
    assert!(!far.is_due(), "a visitor may come");
    far.node(20, 0, |_| {});
    assert!(far.is_due());
    far.snapshot().waiting = 3;
    assert!(!far.is_due(), "others wait for them");
}

#[test]
fn ended_seats_are_reported_to_the_root_at_once() {
    let mut far = Far::new(START);
    let end = START + DurationMs(5_000);
    far.node(0, 0, |sync_request| sync_request.row.add(end));
    far.upstream_sync();
    far.now = end + closing::CLOCKS_APART - DurationMs(400);
    far.node(0, 0, |sync_request| sync_request.row.add(end));
    far.upstream_sync();
    far.wait(200);
    assert!(!far.is_due(), "some clock may be behind");
    far.wait(60);
    far.node(0, 0, |sync_request| sync_request.row.add(end));
    assert!(far.is_due());
    far.upstream_sync();
    assert_eq!((far.root.active(), far.here.active()), (0, 0));
    far.wait(200);
    assert!(!far.is_due(), "it knows");
}

#[test]
fn logouts_are_reported_early_while_visitors_wait() {
    let mut far = Far::new(START);
    far.upstream_sync();
    far.node(0, 0, |sync_request| {
        sync_request.revocations = vec![Revocation {
            visitor: VisitorId([1; 16]),
            seat_ends_at: Some(START + DurationMs(9_000)),
            until: START + LONGEST,
        }];
    });
    far.wait(600);
    assert!(!far.is_due(), "no visitor waits");
    far.snapshot().waiting = 1;
    assert!(far.is_due());
}

#[test]
fn a_late_reply_of_another_node_is_polled_for() {
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

/// An old message that comes late has no sender that waits for the reply, whether the ledger knows
/// a newer one of the same sender or has begun again since.
#[test]
fn a_late_message_begins_no_request_to_the_root() {
    for age in ["new", "late", "of an earlier incarnation"] {
        let mut far = Far::new(LATE);
        far.now = far.now + DurationMs(2_000);
        let mut last = None;
        far.node(1, 0, |request| last = Some(request.clone()));
        let mut message = last.expect("it was sent");
        message.sent_at = far.now;
        if age != "late" {
            message.number += 1;
        }
        if age == "of an earlier incarnation" {
            message.parent = Some(Incarnation(12_345));
        }
        let operation = LedgerOperation::Sync {
            request: Box::new(message),
            root_reply: None,
            is_wanted: true,
        };
        let exchange = operation.perform(&mut far.here, LeaseTerms::default());
        let exchange = exchange.expect("a reply");
        let is_new = matches!(exchange.reply, Reply::Granted(_));
        assert_eq!(is_new, age == "new", "{age}");
        assert_eq!(exchange.upstream_sync.is_some(), is_new, "{age}");
    }
}

/// The root has counted it already, in a second that is over. If the sum fell when the node came
/// back, the root would miss the next admission.
#[test]
fn an_admission_that_a_killed_node_did_not_use_stays_counted() {
    let mut far = Far::new(START);
    far.node(1, 0, |_| {});
    far.upstream_sync();
    assert_eq!(far.node(1, 0, |_| {}).admissions, 1);
    far.wait(11_000);
    let newcomer = |child, sent_at| {
        move |request: &mut SyncRequest| {
            request.child = NodeId(child);
            request.process = NodeId(child);
            (request.parent, request.generation) = (None, None);
            request.sent_at = sent_at;
        }
    };
    let sum = |far: &mut Far| {
        let request = far.here.poll_upstream(far.now).expect("a node has synced");
        request
            .admitted
            .iter()
            .map(|(_, count)| *count)
            .sum::<u32>()
    };
    far.node(0, 0, newcomer(2, far.now));
    assert_eq!(sum(&mut far), 1, "it may have used it");
    far.wait(100);
    far.node(0, 0, newcomer(1, far.now));
    assert_eq!(sum(&mut far), 1, "and did not");
}
