//! Tests of one room against its own ledger, with an immediate round trip where the room needs one.

mod announcements;
mod finding;
mod leaving;
mod losses;
mod movers;
mod order;
mod polls;
mod refresh_interval;
mod replays;
mod slow_refresh;
mod trouble;
mod turns;

mod too_frequent;

use alloc::vec::Vec;

use super::check_in::CheckInRequest;
use super::request_flow::{Intent, RequestFlow, Step, VisitorArrival};
use super::*;
use crate::id::Epoch;
use crate::ledger::{LeaseTerms, Ledger};
use crate::queue_position::QueueReason;
use crate::record_view::RecordView;
use crate::rules::{Limits, OnStoreFailure, SeatNeedsCookie};
use crate::sync::Reply;
use crate::ticket::{FirstSeat, Seat, Seats};
use crate::time::DurationMs;

/// 2023-09-11T11:45:00Z: the first millisecond of a minute.
const START: Timestamp = Timestamp(1_694_432_700_000);

struct Pair {
    room: Room,
    ledger: Ledger,
    view: RecordView,
    now: Timestamp,
    ids: u32,
}

impl Pair {
    fn new(rules: Rules) -> Self {
        let identity = RoomIdentity {
            node: NodeId(1),
            process: NodeId(1),
            is_alone: true,
            data_center: DataCenterId(1),
            lottery_key: LotteryKey([1; 16]),
        };
        Self {
            room: Room::new(
                identity,
                Predecessors::default(),
                rules,
                Capacity::default(),
                START,
            ),
            ledger: Ledger::new(),
            view: RecordView::default(),
            now: START,
            ids: 0,
        }
    }

    fn sync(&mut self) {
        let mut request = self.room.poll_sync(self.now);
        self.view.stamp(&mut request, self.now);
        let ledger = core::mem::take(&mut self.ledger);
        let (ledger, reply) = ledger.sync(&request, LeaseTerms::default(), self.now);
        self.ledger = ledger;
        self.view.handle_reply(&reply, self.now);
        self.room.handle_reply(reply, self.now);
    }

    fn change_rules(&mut self, rules: Rules) {
        self.room.handle_rules(rules, self.now);
    }

    fn wait(&mut self, ms: u64) {
        self.now = self.now + DurationMs(ms);
    }

    fn visit(&mut self, ticket: Option<Ticket>) -> Verdict {
        self.ids += 1;
        let mut id = [0; 16];
        id[..4].copy_from_slice(&self.ids.to_le_bytes());
        let mut visit = Visit {
            is_poll: false,
            visitor: ticket.map_or(VisitorId(id), |ticket| ticket.visitor),
            ticket,
            may_sync: true,
            turn_wait: TurnWait::No,
            gets_page: false,
        };
        match self.room.handle_visit(visit, self.now) {
            Verdict::SyncWithParent => {
                self.sync();
                visit.may_sync = false;
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

    fn queue(&mut self, ticket: Option<Ticket>) -> (Ticket, QueuePosition) {
        match self.visit(ticket) {
            Verdict::Queue(Some(ticket), position) => (ticket, position),
            other => panic!("expected to be queued, got {other:?}"),
        }
    }

    fn check_in(&mut self, ticket: Ticket) -> CheckIn {
        let mut visit = CheckInRequest {
            intent: Intent::Enter,
            ticket,
            is_navigation: true,
            may_sync: true,
        };
        match self.room.handle_check_in(visit, self.now) {
            // A second request, after a sync like one of the loop.
            CheckIn::SyncWithParent | CheckIn::Pass => {
                self.sync();
                visit.may_sync = false;
                self.room.handle_check_in(visit, self.now)
            }
            done => done,
        }
    }

    /// Runs a request to its end, with round trips as far as it needs them.
    fn run(&mut self, ticket: Ticket, intent: Intent) -> Step {
        self.ids += 1;
        let mut id = [0x77; 16];
        id[..4].copy_from_slice(&self.ids.to_le_bytes());
        let mut flow = RequestFlow::new(VisitorArrival {
            ticket: Some(ticket),
            fresh: VisitorId(id),
            is_navigation: intent == Intent::Enter,
            gets_page: intent == Intent::Enter,
            intent,
        });
        match self.decide(&mut flow) {
            Step::WaitForTurn => {
                // The next syncs bring no slot.
                flow.end_wait_for_turn();
                self.decide(&mut flow)
            }
            step => step,
        }
    }

    /// Decides up to the first step that is final or waits for a turn.
    fn decide(&mut self, flow: &mut RequestFlow) -> Step {
        loop {
            match flow.decide(&mut self.room, self.now) {
                Step::NotActive => {}
                Step::SyncWithParent => {
                    self.sync();
                    flow.set_may_sync(false);
                }
                step => return step,
            }
        }
    }

    fn renew(&mut self, ticket: Ticket) -> Ticket {
        match self.check_in(ticket) {
            CheckIn::Renewed(ticket) => ticket,
            other => panic!("expected a renewal, got {other:?}"),
        }
    }
}

#[track_caller]
fn queued(step: Step) -> (Ticket, QueuePosition) {
    match step {
        Step::Queue(Some(ticket), position) => (ticket, position),
        other => panic!("not queued: {other:?}"),
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
fn visitors_enter_up_to_the_number_of_seats_and_more_wait() {
    let mut pair = Pair::new(rules(3, 100));
    for _ in 0..3 {
        pair.admit();
    }
    let (_, position) = pair.queue(None);
    assert_eq!(position.reason, QueueReason::Full);
    assert_eq!(position.people_ahead, Some(0));
    assert!(!position.is_counted);
}

/// Returns the verdict about a newcomer who has not waited yet.
fn newcomer(pair: &mut Pair, id: u8) -> Verdict {
    let visit = Visit {
        is_poll: false,
        visitor: VisitorId([id; 16]),
        ticket: None,
        may_sync: true,
        turn_wait: TurnWait::No,
        gets_page: false,
    };
    pair.room.handle_visit(visit, pair.now)
}

#[test]
fn newcomers_wait_for_the_next_seconds_admissions_unless_they_are_a_queue() {
    let mut pair = Pair::new(rules(100, 60));
    (0..6).for_each(|_| {
        pair.admit();
    });
    pair.sync();
    assert!(pair.room.snapshot.is_second_used_up);
    for id in 1..=7 {
        assert_eq!(newcomer(&mut pair, id), Verdict::SyncWithParent, "{id}");
    }
    for id in 8..=9 {
        assert!(
            matches!(newcomer(&mut pair, id), Verdict::Queue(..)),
            "{id}"
        );
    }
}

#[test]
fn the_minutes_limit_holds_and_the_next_minute_brings_new_slots() {
    let mut pair = Pair::new(rules(100, 2));
    pair.admit();
    pair.admit();
    pair.queue(None);
    pair.wait(30_000);
    pair.queue(None);
    pair.wait(30_000);
    let ticket = pair.admit();
    assert_eq!(ticket.accepted_at, Some(pair.now));
}

#[test]
fn the_longest_waiting_visitor_enters_first_and_newcomers_last() {
    let mut pair = Pair::new(Rules {
        session_renewal: false,
        session_duration: DurationMs(5_000),
        ..rules(1, 1_000)
    });
    pair.admit();
    let (first, _) = pair.queue(None);
    pair.wait(1_000);
    let (second, _) = pair.queue(None);
    pair.wait(1_000);
    let (first, _) = pair.queue(Some(first));
    pair.wait(300);
    pair.sync();
    let (second, _) = pair.queue(Some(second));
    pair.wait(1_000);
    let (first, _) = pair.queue(Some(first));
    pair.wait(2_000);
    pair.sync();
    assert!(matches!(pair.visit(None), Verdict::Queue(..)));
    assert!(matches!(pair.visit(Some(second)), Verdict::Queue(..)));
    let Verdict::Admit(ticket) = pair.visit(Some(first)) else {
        panic!("the first one's turn has come")
    };
    assert_eq!(ticket.bucket, START);
}

#[test]
fn a_check_in_moves_the_seat_and_restarts_the_session() {
    let mut pair = Pair::new(rules(1, 100));
    let ticket = pair.admit();
    assert_eq!(pair.check_in(ticket), CheckIn::Pass, "not due yet");
    pair.wait(200_000);
    let renewed = pair.renew(ticket);
    let end = renewed.seats.ends_at().unwrap();
    assert!(end >= pair.now + DurationMs(300_000));
    pair.wait(250_000);
    pair.sync();
    assert_eq!(pair.ledger.active(), 1);
    pair.queue(None);
}

#[test]
fn a_changed_opening_time_keeps_waiting_visitors_in_order() {
    let mut pair = Pair::new(rules(1, 100));
    pair.admit();
    let (ticket, _) = pair.queue(None);
    pair.queue(Some(ticket));
    pair.change_rules(Rules {
        opens_at: Some(START + DurationMs(1)),
        ..rules(1, 100)
    });
    assert_eq!(pair.room.people_counted(pair.now), 1);
}

#[test]
fn newcomers_get_only_slots_that_waiting_visitors_leave() {
    let mut pair = Pair::new(rules(4, 1_000));
    let rules_queue_all = Rules {
        queue_all: true,
        ..rules(4, 1_000)
    };
    pair.change_rules(rules_queue_all);
    let waiting: Vec<_> = (0..3).map(|_| pair.queue(None).0).collect();
    let waiting: Vec<_> = waiting.into_iter().map(|t| pair.queue(Some(t)).0).collect();
    pair.change_rules(rules(4, 1_000));
    pair.sync();
    pair.admit();
    assert!(matches!(pair.visit(None), Verdict::Queue(..)));
    for ticket in waiting {
        assert!(matches!(pair.visit(Some(ticket)), Verdict::Admit(_)));
    }
}

#[test]
fn without_renewal_the_seat_ends_a_session_after_acceptance() {
    let mut pair = Pair::new(Rules {
        session_renewal: false,
        ..rules(1, 100)
    });
    let ticket = pair.admit();
    assert_eq!(ticket.seats.ends_at(), Some(START + DurationMs(300_000)));
    pair.wait(290_000);
    assert_eq!(pair.check_in(ticket), CheckIn::Pass);
    pair.wait(10_000);
    assert_eq!(pair.check_in(ticket), CheckIn::Over);
}

#[test]
fn a_queued_visitor_learns_the_reason() {
    let check = |rules: Rules, expected: QueueReason| {
        let mut pair = Pair::new(rules);
        match pair.visit(None) {
            Verdict::Queue(_, position) => assert_eq!(position.reason, expected),
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
    let opens_at = START + DurationMs(1);
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
fn visitors_are_held_only_from_the_prequeue_to_the_start() {
    let opens_at = START + DurationMs(30_000);
    let mut pair = Pair::new(Rules {
        opens_at: Some(opens_at),
        holds_from: START + DurationMs(10_000),
        ..rules(10, 100)
    });
    pair.admit();
    pair.wait(10_000);
    let (_, position) = pair.queue(None);
    assert_eq!(position.reason, QueueReason::NotOpenYet { opens_at });
    pair.wait(20_000);
    pair.sync();
    pair.admit();
}

#[test]
fn passthrough_admits_and_counts_all_visitors() {
    let mut pair = Pair::new(Rules {
        queueing_method: QueueingMethod::Passthrough,
        ..rules(1, 1)
    });
    for _ in 0..5 {
        pair.admit();
    }
    pair.sync();
    assert_eq!(pair.ledger.active(), 5);
    assert_eq!(pair.room.counters().admitted_outside_limits, 5);
}

#[test]
fn a_configured_refresh_interval_applies_to_all_visitors() {
    let mut pair = Pair::new(Rules {
        refresh_interval: Some(DurationMs(20_000)),
        ..rules(1, 100)
    });
    pair.admit();
    for _ in 0..20 {
        let (_, position) = pair.queue(None);
        assert_eq!(position.refresh_after.map(DurationMs::secs_ceil), Some(20));
    }
}

#[test]
fn the_refresh_comes_before_the_position_expires() {
    let mut pair = Pair::new(Rules {
        position_grace: DurationMs(10_000),
        opens_at: Some(START + DurationMs(86_400_000)),
        ..rules(1, 100)
    });
    let (ticket, position) = pair.queue(None);
    assert!(
        position.refresh_after <= Some(DurationMs(1_500)),
        "it counts from then on"
    );
    let (_, position) = pair.queue(Some(ticket));
    assert_eq!(position.refresh_after, Some(DurationMs(5_000)));
}

/// Otherwise each of them would read at the opening that it is next.
#[test]
fn those_who_gather_before_an_opening_are_counted_before_it() {
    let mut pair = Pair::new(Rules {
        opens_at: Some(START + DurationMs(30_000)),
        ..rules(1, 100)
    });
    let mut tickets = Vec::new();
    for _ in 0..5 {
        let (ticket, position) = pair.queue(None);
        tickets.push(ticket);
        pair.now = pair.now + position.refresh_after.unwrap();
        pair.queue(Some(ticket));
    }
    pair.sync();
    let (_, position) = pair.queue(Some(tickets[4]));
    assert_eq!(position.people_ahead, Some(4));
}

#[test]
fn a_look_returns_a_position_and_admits_nobody() {
    let mut pair = Pair::new(rules(1, 100));
    pair.sync();
    let visit = Visit {
        is_poll: false,
        visitor: VisitorId([9; 16]),
        ticket: None,
        may_sync: true,
        turn_wait: TurnWait::No,
        gets_page: false,
    };
    assert_eq!(
        pair.room.handle_look(visit, pair.now),
        None,
        "it would be admitted"
    );
    pair.admit();
    pair.sync();
    let look = pair.room.handle_look(visit, pair.now);
    assert!(matches!(look, Some(Verdict::Queue(Some(_), _))), "{look:?}");
    assert_eq!(pair.room.counters().admitted, 1);
}

#[test]
fn a_page_load_keeps_its_turn_until_the_page_reloads() {
    let mut pair = Pair::new(rules(1, 100));
    pair.admit();
    let (by_page, _) = pair.queue(None);
    let (by_script, _) = pair.queue(None);
    for (ticket, gets_page) in [(by_page, true), (by_script, false)] {
        let visit = Visit {
            is_poll: false,
            visitor: ticket.visitor,
            ticket: Some(ticket),
            may_sync: false,
            turn_wait: TurnWait::No,
            gets_page,
        };
        pair.room.handle_visit(visit, pair.now);
    }
    let mut count_at = |after: u64| pair.room.waiting.counts(START + DurationMs(after)).total();
    assert_eq!(
        (count_at(2_000), count_at(38_000), count_at(40_500)),
        (2, 1, 0)
    );
}

#[test]
fn a_random_room_has_no_positions() {
    let mut pair = Pair::new(Rules {
        queueing_method: QueueingMethod::Random,
        ..rules(1, 1)
    });
    pair.admit();
    let (_, position) = pair.queue(None);
    assert_eq!(position.people_ahead, None);
    assert!(position.refresh_after.unwrap() <= DurationMs(10_000));
}

#[test]
fn a_draw_keeps_its_order_secret_until_the_start() {
    let rules = Rules {
        opens_at: Some(START + DurationMs(30_000)),
        draw: true,
        ..rules(1, 100)
    };
    let mut pair = Pair::new(rules);
    let (ticket, position) = pair.queue(None);
    assert_eq!(position.people_ahead, None);
    let (ticket, position) = pair.queue(Some(ticket));
    assert_eq!(position.people_ahead, None);
    assert!(
        position.refresh_after.unwrap() >= DurationMs(30_000),
        "refresh when it opens"
    );
    pair.wait(31_500);
    assert!(matches!(pair.visit(Some(ticket)), Verdict::Admit(_)));
}
