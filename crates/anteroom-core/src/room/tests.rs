//! One room against its own ledger, with an immediate round trip where it asks for one.

use alloc::vec::Vec;

use super::check_in::Return;
use super::*;
use crate::decision::QueueReason;
use crate::id::Epoch;
use crate::ledger::{Ledger, LendingTerms};
use crate::rules::{Limits, OnStoreFailure, SeatNeedsCookie};
use crate::sync::Reply;
use crate::ticket::{Seat, Seats};
use crate::time::Span;

/// 2023-09-11T11:45:00Z: the first millisecond of a minute.
const START: Millis = Millis(1_694_432_700_000);

struct Pair {
    room: Room,
    ledger: Ledger,
    now: Millis,
    ids: u32,
}

impl Pair {
    fn new(rules: Rules) -> Self {
        let identity = RoomIdentity {
            node: NodeId(1),
            data_center: DataCenterId(1),
            lottery_key: LotteryKey([1; 16]),
        };
        Self {
            room: Room::new(identity, rules, Capacity::default()),
            ledger: Ledger::new(),
            now: START,
            ids: 0,
        }
    }

    fn sync(&mut self) {
        let request = self.room.poll_sync(self.now);
        let ledger = core::mem::take(&mut self.ledger);
        let (ledger, reply) = ledger.sync(&request, LendingTerms::default(), self.now);
        self.ledger = ledger;
        self.room.handle_reply(reply, self.now);
    }

    fn wait(&mut self, ms: u64) {
        self.now = self.now + Span(ms);
    }

    fn visit(&mut self, ticket: Option<Ticket>) -> Verdict {
        self.ids += 1;
        let mut id = [0; 16];
        id[..4].copy_from_slice(&self.ids.to_le_bytes());
        let mut visit = Visit {
            visitor: ticket.map_or(VisitorId(id), |ticket| ticket.visitor),
            ticket,
            may_ask_parent: true,
        };
        match self.room.handle_visit(visit, self.now) {
            Verdict::AskParent => {
                self.sync();
                visit.may_ask_parent = false;
                self.room.handle_visit(visit, self.now)
            }
            verdict => verdict,
        }
    }

    fn admit(&mut self) -> Ticket {
        match self.visit(None) {
            Verdict::Admit(ticket) => ticket,
            other => panic!("expected an admission, got {other:?}"),
        }
    }

    fn queue(&mut self, ticket: Option<Ticket>) -> (Ticket, Place) {
        match self.visit(ticket) {
            Verdict::Queue(Some(ticket), place) => (ticket, place),
            other => panic!("expected to be queued, got {other:?}"),
        }
    }

    fn check_in(&mut self, ticket: Ticket) -> CheckIn {
        let mut visit = Return {
            ticket,
            is_navigation: true,
            may_ask_parent: true,
        };
        match self.room.handle_check_in(visit, self.now) {
            CheckIn::AskParent => {
                self.sync();
                visit.may_ask_parent = false;
                self.room.handle_check_in(visit, self.now)
            }
            done => done,
        }
    }

    fn renew(&mut self, ticket: Ticket) -> Ticket {
        match self.check_in(ticket) {
            CheckIn::Renewed(ticket) => ticket,
            other => panic!("expected a renewal, got {other:?}"),
        }
    }
}

fn rules(total: u32, rate: u32) -> Rules {
    Rules {
        limits: Limits {
            total_active_users: total,
            new_users_per_minute: rate,
        },
        ..Rules::default()
    }
}

#[test]
fn as_many_go_in_as_there_are_seats_and_the_next_one_waits() {
    let mut pair = Pair::new(rules(3, 100));
    for _ in 0..3 {
        pair.admit();
    }
    let (_, place) = pair.queue(None);
    assert_eq!(place.reason, QueueReason::Full);
    assert_eq!(place.people_ahead, Some(0));
    assert_eq!(place.wait, None, "unknown rather than invented");
}

#[test]
fn the_minutes_limit_holds_and_the_next_minute_brings_new_slots() {
    let mut pair = Pair::new(rules(100, 2));
    pair.admit();
    pair.admit();
    pair.queue(None);
    pair.wait(60_000);
    let ticket = pair.admit();
    assert_eq!(ticket.accepted_at, Some(pair.now));
}

#[test]
fn who_waits_longest_goes_in_first_and_newcomers_after_all_who_wait() {
    let mut pair = Pair::new(Rules {
        session_renewal: false,
        session_duration: Span(5_000),
        ..rules(1, 1_000)
    });
    pair.admit();
    let (first, _) = pair.queue(None);
    pair.wait(1_000);
    let (second, _) = pair.queue(None);
    pair.wait(1_000);
    let (first, _) = pair.queue(Some(first));
    pair.wait(300);
    let (second, place) = pair.queue(Some(second));
    assert_eq!(place.people_ahead, Some(1));
    pair.wait(3_000);
    pair.sync();
    assert!(matches!(pair.visit(None), Verdict::Queue(..)));
    assert!(matches!(pair.visit(Some(second)), Verdict::Queue(..)));
    let Verdict::Admit(ticket) = pair.visit(Some(first)) else {
        panic!("the first one's turn has come")
    };
    assert_eq!(ticket.bucket, START);
}

#[test]
fn a_check_in_moves_the_seat_and_gives_the_whole_session_again() {
    let mut pair = Pair::new(rules(1, 100));
    let ticket = pair.admit();
    assert_eq!(pair.check_in(ticket), CheckIn::Pass, "not due yet");
    pair.wait(200_000);
    let renewed = pair.renew(ticket);
    let end = renewed.seats.ends_at().unwrap();
    assert!(end >= pair.now + Span(300_000));
    pair.wait(250_000);
    pair.sync();
    assert_eq!(pair.ledger.inside(), 1);
    pair.queue(None);
}

#[test]
fn six_parallel_requests_with_one_old_ticket_move_its_seat_once() {
    let mut pair = Pair::new(rules(5, 100));
    let ticket = pair.admit();
    pair.wait(100_000);
    let newest = pair.renew(ticket);
    for _ in 0..5 {
        let handed = pair.renew(ticket);
        assert_eq!(handed.seats.ends_at(), newest.seats.ends_at());
    }
    pair.wait(220_000);
    pair.sync();
    assert_eq!(pair.ledger.inside(), 1, "the first end has passed");
    assert_eq!(pair.room.tally().renewed, 1);
}

#[test]
fn a_waiting_ticket_is_exchanged_for_one_seat_however_often_it_is_shown() {
    let mut pair = Pair::new(rules(5, 100));
    pair.room.handle_rules(Rules {
        queue_all: true,
        ..rules(5, 100)
    });
    let (waiting, _) = pair.queue(None);
    pair.room.handle_rules(rules(5, 100));
    let mut ends = Vec::new();
    for _ in 0..10 {
        match pair.visit(Some(waiting)) {
            Verdict::Admit(ticket) => ends.push((ticket.seats.ends_at(), ticket.accepted_at)),
            other => panic!("{other:?}"),
        }
    }
    ends.dedup();
    assert_eq!(ends.len(), 1);
    pair.sync();
    assert_eq!(pair.ledger.inside(), 1);
}

#[test]
fn a_ticket_with_a_seat_elsewhere_takes_one_seat_here_however_often_it_is_shown() {
    let mut pair = Pair::new(rules(5, 100));
    let mut ticket = pair.admit();
    pair.sync();
    let elsewhere = Seat {
        data_center: DataCenterId(9),
        ends_at: pair.now + Span(300_000),
        epoch: Epoch(0),
    };
    ticket.visitor = VisitorId([77; 16]);
    ticket.seats = Seats::default();
    ticket.seats.put(elsewhere);
    pair.wait(60_000);
    for _ in 0..10 {
        let renewed = pair.renew(ticket);
        assert!(renewed.seats.of(DataCenterId(1)).is_some());
    }
    pair.sync();
    assert_eq!(pair.ledger.inside(), 2);
}

#[test]
fn an_answer_under_way_when_limits_are_lowered_is_void() {
    let mut pair = Pair::new(rules(10, 100));
    pair.visit(None);
    pair.room.demand.note_missing_slot();
    let request = pair.room.poll_sync(pair.now);
    let ledger = core::mem::take(&mut pair.ledger);
    let (ledger, reply) = ledger.sync(&request, LendingTerms::default(), pair.now);
    pair.ledger = ledger;
    pair.room.handle_rules(rules(1, 100));
    assert!(!pair.room.handle_reply(reply, pair.now));
    pair.queue(None);
}

#[test]
fn a_time_of_opening_that_changes_forgets_nobody_who_waits_in_order() {
    let mut pair = Pair::new(rules(1, 100));
    pair.admit();
    let (ticket, _) = pair.queue(None);
    pair.queue(Some(ticket));
    pair.room.handle_rules(Rules {
        opens_at: Some(START + Span(1)),
        ..rules(1, 100)
    });
    assert_eq!(pair.room.waiting.eligible_total(), 1);
}

#[test]
fn newcomers_get_no_more_than_what_those_who_wait_leave() {
    let mut pair = Pair::new(rules(4, 1_000));
    let rules_held = Rules {
        queue_all: true,
        ..rules(4, 1_000)
    };
    pair.room.handle_rules(rules_held);
    let waiting: Vec<_> = (0..3).map(|_| pair.queue(None).0).collect();
    let waiting: Vec<_> = waiting.into_iter().map(|t| pair.queue(Some(t)).0).collect();
    pair.room.handle_rules(rules(4, 1_000));
    pair.sync();
    pair.admit();
    assert!(matches!(pair.visit(None), Verdict::Queue(..)));
    for ticket in waiting {
        assert!(matches!(pair.visit(Some(ticket)), Verdict::Admit(_)));
    }
}

#[test]
fn after_its_goodbye_a_room_asks_nobody_and_lets_those_inside_pass() {
    let mut pair = Pair::new(rules(5, 100));
    let ticket = pair.admit();
    let request = pair.room.poll_goodbye(pair.now);
    let ledger = core::mem::take(&mut pair.ledger);
    let (_, reply) = ledger.sync(&request, LendingTerms::default(), pair.now);
    pair.room.handle_reply(reply, pair.now);
    pair.wait(60_000);
    let back = Return {
        ticket,
        is_navigation: true,
        may_ask_parent: true,
    };
    assert_eq!(pair.room.handle_check_in(back, pair.now), CheckIn::Pass);
    let visit = Visit {
        visitor: VisitorId([9; 16]),
        ticket: None,
        may_ask_parent: true,
    };
    let verdict = pair.room.handle_visit(visit, pair.now);
    assert!(matches!(verdict, Verdict::Queue(..)), "{verdict:?}");
}

#[test]
fn without_renewal_the_seat_ends_a_session_after_acceptance() {
    let mut pair = Pair::new(Rules {
        session_renewal: false,
        ..rules(1, 100)
    });
    let ticket = pair.admit();
    assert_eq!(ticket.seats.ends_at(), Some(START + Span(300_000)));
    pair.wait(290_000);
    assert_eq!(pair.check_in(ticket), CheckIn::Pass);
    pair.wait(10_000);
    assert_eq!(pair.check_in(ticket), CheckIn::Over);
}

#[test]
fn a_logout_frees_one_seat_once_and_its_ticket_is_refused_from_then_on() {
    let mut pair = Pair::new(rules(2, 100));
    let ticket = pair.admit();
    pair.admit();
    assert!(pair.room.handle_revoke(ticket, pair.now));
    assert!(!pair.room.handle_revoke(ticket, pair.now), "replayed");
    assert_eq!(pair.check_in(ticket), CheckIn::Over);
    pair.sync();
    assert!(!pair.room.handle_revoke(ticket, pair.now), "replayed later");
    pair.sync();
    assert_eq!(pair.ledger.inside(), 1);
    pair.admit();
    pair.queue(None);
    assert_eq!(pair.check_in(ticket), CheckIn::Over);
}

#[test]
fn near_the_limit_a_first_seat_is_short_until_its_ticket_comes_back() {
    let mut pair = Pair::new(Rules {
        seat_needs_cookie: SeatNeedsCookie::Always,
        ..rules(10, 100)
    });
    let ticket = pair.admit();
    assert!(ticket.is_provisional);
    assert!(ticket.seats.ends_at().unwrap() <= START + Span(70_000));
    pair.wait(1_000);
    let full = pair.renew(ticket);
    assert!(!full.is_provisional);
    assert!(full.seats.ends_at().unwrap() >= pair.now + Span(300_000));
}

#[test]
fn holds_say_why() {
    let check = |rules: Rules, expected: QueueReason| {
        let mut pair = Pair::new(rules);
        match pair.visit(None) {
            Verdict::Queue(_, place) => assert_eq!(place.reason, expected),
            other => panic!("{other:?}"),
        }
    };
    let open = rules(10, 10);
    check(
        Rules {
            queue_all: true,
            ..open
        },
        QueueReason::QueueAll,
    );
    let opens_at = START + Span(1);
    check(
        Rules {
            opens_at: Some(opens_at),
            ..open
        },
        QueueReason::NotOpenYet { opens_at },
    );
    check(
        Rules {
            queueing_method: QueueingMethod::Reject,
            ..open
        },
        QueueReason::Rejecting,
    );
}

#[test]
fn passthrough_lets_everybody_in_and_counts_them() {
    let mut pair = Pair::new(Rules {
        queueing_method: QueueingMethod::Passthrough,
        ..rules(1, 1)
    });
    for _ in 0..5 {
        pair.admit();
    }
    pair.sync();
    assert_eq!(pair.ledger.inside(), 5);
    assert_eq!(pair.room.tally().admitted_outside_limits, 5);
}

#[test]
fn without_a_parent_nobody_is_admitted_or_prolonged_but_tickets_run_on() {
    let mut pair = Pair::new(rules(10, 100));
    let ticket = pair.admit();
    pair.wait(10_000);
    let visit = Visit {
        visitor: VisitorId([9; 16]),
        ticket: None,
        may_ask_parent: false,
    };
    let Verdict::Queue(_, place) = pair.room.handle_visit(visit, pair.now) else {
        panic!("the lease has ended")
    };
    assert_eq!(place.reason, QueueReason::StoreAway);
    let back = Return {
        ticket,
        is_navigation: true,
        may_ask_parent: false,
    };
    assert_eq!(pair.room.handle_check_in(back, pair.now), CheckIn::Pass);
    assert_eq!(pair.room.tally().passed_unrenewed, 1);
    assert_eq!(pair.room.degraded(pair.now), Some(QueueReason::StoreAway));
}

#[test]
fn on_store_failure_admit_lets_everybody_in_and_says_so() {
    let mut pair = Pair::new(Rules {
        on_store_failure: OnStoreFailure::Admit,
        ..rules(1, 1)
    });
    let visit = Visit {
        visitor: VisitorId([9; 16]),
        ticket: None,
        may_ask_parent: false,
    };
    let verdict = pair.room.handle_visit(visit, pair.now);
    assert!(matches!(verdict, Verdict::Admit(_)));
    assert_eq!(pair.room.tally().admitted_outside_limits, 1);
}

#[test]
fn lowered_limits_act_at_once_and_nobody_inside_is_thrown_out() {
    let mut pair = Pair::new(rules(10, 100));
    let tickets: Vec<_> = (0..6).map(|_| pair.admit()).collect();
    pair.room.handle_rules(rules(3, 100));
    pair.queue(None);
    assert!(tickets.iter().all(|t| pair.check_in(*t) == CheckIn::Pass));
    pair.room.handle_rules(rules(7, 100));
    pair.admit();
    pair.queue(None);
}

#[test]
fn a_longer_session_is_given_only_after_the_parent_knows() {
    let mut pair = Pair::new(rules(10, 100));
    pair.sync();
    pair.room.handle_rules(Rules {
        session_duration: Span(600_000),
        ..rules(10, 100)
    });
    assert_eq!(pair.room.seat_terms.session, Span(300_000));
    pair.sync();
    assert_eq!(pair.room.seat_terms.session, Span(600_000));
    pair.room.handle_rules(rules(10, 100));
    assert_eq!(pair.room.seat_terms.session, Span(300_000));
}

#[test]
fn a_node_that_slept_past_its_lease_reports_once_more_and_keeps_its_visitors() {
    let mut pair = Pair::new(rules(10, 100));
    let ticket = pair.admit();
    pair.wait(60_000);
    pair.sync();
    assert_eq!(pair.ledger.phantoms(), 0, "what it did is known");
    assert_eq!(pair.ledger.inside(), 1);
    pair.renew(ticket);
    assert_eq!(pair.room.lease.generation(), 2);
}

#[test]
fn a_lost_answer_costs_nothing() {
    let mut pair = Pair::new(rules(2, 100));
    for _ in 0..3 {
        let request = pair.room.poll_sync(pair.now);
        let ledger = core::mem::take(&mut pair.ledger);
        pair.ledger = ledger.sync(&request, LendingTerms::default(), pair.now).0;
    }
    pair.admit();
    pair.admit();
    pair.queue(None);
}

#[test]
fn an_answer_that_comes_late_is_not_applied() {
    let mut pair = Pair::new(rules(2, 100));
    pair.visit(None);
    let request = pair.room.poll_sync(pair.now);
    let ledger = core::mem::take(&mut pair.ledger);
    let (ledger, late) = ledger.sync(&request, LendingTerms::default(), pair.now);
    pair.ledger = ledger;
    pair.sync();
    assert!(!pair.room.handle_reply(late, pair.now));
    assert!(!pair.room.handle_reply(Reply::Stale, pair.now));
}

#[test]
fn a_random_room_tells_no_position() {
    let mut pair = Pair::new(Rules {
        queueing_method: QueueingMethod::Random,
        ..rules(1, 1)
    });
    pair.admit();
    let (_, place) = pair.queue(None);
    assert_eq!(place.people_ahead, None);
    assert!(place.ask_after.unwrap() <= Span(10_000));
}

#[test]
fn a_draw_keeps_its_order_secret_until_the_start() {
    let rules = Rules {
        opens_at: Some(START + Span(30_000)),
        draw: true,
        ..rules(1, 100)
    };
    let mut pair = Pair::new(rules);
    let (ticket, place) = pair.queue(None);
    assert_eq!(place.people_ahead, None);
    assert!(
        place.ask_after.unwrap() >= Span(30_000),
        "ask when it opens"
    );
    pair.wait(31_500);
    assert!(matches!(pair.visit(Some(ticket)), Verdict::Admit(_)));
}
