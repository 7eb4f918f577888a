//! One limit of 160 calls a minute, and members that are told by hand.

use crate::algorithm::Algorithm as _;
use crate::cost::Cost;
use crate::fixed_window::{self, FixedWindow};

use super::*;

const A: MemberId = MemberId(1);
const B: MemberId = MemberId(2);

/// A book with its limit; the clock of both begins with a minute.
struct Desk {
    book: QuotaLedger,
    limit: FixedWindow,
    state: fixed_window::State,
}

const fn at(ms: u64) -> TimestampUs {
    TimestampUs(ms * 1_000)
}

impl Desk {
    fn new() -> Self {
        Self {
            book: QuotaLedger::default(),
            limit: fixed(160),
            state: fixed_window::State::default(),
        }
    }

    fn report(&mut self, ms: u64, member: MemberId, allowed: u64, denied: u64) {
        self.book.handle_report(member, allowed, denied, at(ms));
    }

    fn charge(&mut self, ms: u64, cost: Cost) -> Verdict {
        self.limit.step(&mut self.state, at(ms), cost)
    }

    fn room(&mut self, ms: u64) -> Room {
        Room {
            calls: self.charge(ms, Cost::Peek).remaining,
            limit: self.limit.rate(),
            ends_in: self.ends_in(ms),
        }
    }

    fn ends_in(&self, ms: u64) -> DurationUs {
        let window = self.limit.rate().window().0;
        DurationUs(window - at(ms).0 % window)
    }

    /// What is told, if it is due: whom, how many calls, for how many seconds.
    fn turn(&mut self, ms: u64) -> Vec<(MemberId, u32, u32)> {
        self.turn_beside(ms, 0)
    }

    /// The same where others take so many calls between the look and the charge.
    fn turn_beside(&mut self, ms: u64, others: u32) -> Vec<(MemberId, u32, u32)> {
        if !self.book.is_due(at(ms)) {
            return Vec::new();
        }
        let room = self.room(ms);
        let plan = self.book.plan(room, at(ms));
        for _ in 0..others {
            self.charge(ms, Cost::ONE);
        }
        let told = if plan.calls() == 0 {
            self.book.handle_nothing(DurationUs::ZERO, at(ms))
        } else {
            let verdict = self.charge(ms, Cost::take(plan.calls()));
            let policy = Policy::FixedWindow(self.limit);
            let times = (at(ms), at(ms));
            self.book.handle_verdict(&plan, (&policy, &verdict), times)
        };
        let told = told.into_iter();
        told.map(|told| (told.member, told.calls, told.seconds))
            .collect()
    }
}

fn fixed(calls: u32) -> FixedWindow {
    FixedWindow::new(Rate::new(calls, DurationUs::from_secs(60)).unwrap())
}

#[test]
fn whoever_comes_is_assigned_a_little_and_then_what_it_asks_for() {
    let mut desk = Desk::new();
    assert_eq!(desk.turn(0), []);
    desk.report(0, A, 0, 1);
    assert_eq!(desk.turn(0), [(A, 9, 59)]);
    assert_eq!(desk.turn(500), [], "it holds something");
    // Two a second, for 55 s, and a quarter.
    desk.report(1_000, A, 1, 0);
    assert_eq!(desk.turn(1_000), []);
    desk.report(4_000, A, 6, 0);
    assert_eq!(desk.turn(4_000), [(A, 137, 55)]);
    assert_eq!(desk.room(4_000).calls, 160 - 9 - 137);
}

#[test]
fn two_who_want_everything_get_half_of_it_each() {
    let mut desk = Desk::new();
    for member in [A, B] {
        desk.report(0, member, 0, 1);
        desk.report(1_000, member, 0, 500);
    }
    assert_eq!(desk.turn(1_000), [(A, 80, 58), (B, 80, 58)]);
    for member in [A, B] {
        desk.report(2_000, member, 80, 500);
    }
    assert_eq!(
        desk.turn(2_000),
        [],
        "nothing is left, and what they hold is spent"
    );
    // Just before their time is over they are told to let nothing through.
    assert_eq!(desk.turn(58_700), [(A, 0, 60), (B, 0, 60)]);
    assert_eq!(desk.turn(60_000), [(A, 80, 59), (B, 80, 59)]);
}

#[test]
fn a_smaller_share_frees_nothing_before_the_window_is_over() {
    let mut desk = Desk::new();
    desk.report(0, A, 0, 1);
    desk.report(1_000, A, 0, 500);
    assert_eq!(desk.turn(1_000), [(A, 160, 58)]);
    // It spends ten, and asks for nothing any more.
    desk.report(2_000, A, 10, 0);
    desk.report(2_000, B, 0, 1);
    desk.report(3_000, B, 0, 500);
    assert_eq!(desk.turn(3_000), [(B, 0, 60)]);
    for ms in (4_000..60_000).step_by(1_000) {
        desk.report(ms, A, 0, 0);
        desk.report(ms, B, 0, 500);
        let told = desk.turn(ms);
        assert!(
            told.iter().all(|(_, calls, _)| *calls == 0),
            "{ms} {told:?}"
        );
    }
    let told = desk.turn(60_000);
    assert_eq!(told, [(A, 4, 59), (B, 156, 59)]);
}

#[test]
fn whoever_got_much_is_not_left_without_any_whoever_it_is() {
    for (much, little) in [(A, B), (B, A)] {
        let mut desk = Desk::new();
        desk.limit = fixed(1_000);
        desk.report(0, much, 0, 1);
        desk.report(1_000, much, 0, 7);
        assert_eq!(desk.turn(1_000), [(much, 580, 58)]);
        desk.report(2_000, little, 0, 1);
        desk.report(3_000, much, 580, 300);
        desk.report(3_000, little, 0, 500);
        let mut told = desk.turn(3_000);
        told.sort_by_key(|told| told.1);
        let expected = [(much, 105, 56), (little, 315, 56)];
        assert_eq!(told, expected, "of 420 that are left");
    }
}

#[test]
fn whoever_is_quiet_keeps_a_little_when_its_time_is_over() {
    let mut desk = Desk::new();
    let hour = DurationUs::from_secs(3_600);
    desk.limit = FixedWindow::new(Rate::new(16_000, hour).unwrap());
    desk.report(0, A, 0, 1);
    assert_eq!(desk.turn(0), [(A, 166, 600)]);
    desk.report(300_000, A, 1, 0);
    assert_eq!(desk.turn(300_000), []);
    assert_eq!(desk.turn(599_800), [(A, 166, 600)]);
}

#[test]
fn what_somebody_let_through_unasked_is_charged() {
    let mut desk = Desk::new();
    desk.report(0, A, 30, 0);
    assert_eq!(desk.turn(0), [(A, 9, 59)]);
    assert_eq!(desk.room(0).calls, 160 - 30 - 9);
    // More than there is: what is left.
    desk.report(1_000, A, 500, 0);
    desk.turn(1_000);
    assert_eq!(desk.room(1_000).calls, 0);
    // The rest is forgiven.
    assert_eq!(desk.turn(60_000), [(A, 160, 59)]);
}

#[test]
fn nothing_is_charged_that_would_be_over_before_it_arrives() {
    let mut desk = Desk::new();
    desk.report(58_100, A, 0, 1);
    assert_eq!(desk.turn(58_100), [(A, 0, 60)]);
    assert_eq!(desk.room(58_100).calls, 160);
    assert_eq!(desk.turn(59_900), []);
    assert_eq!(desk.turn(60_000), [(A, 9, 59)]);
}

#[test]
fn a_charge_that_came_late_is_lost_and_not_spent() {
    let mut desk = Desk::new();
    desk.report(50_000, A, 0, 1);
    let room = desk.room(50_000);
    let plan = desk.book.plan(room, at(50_000));
    let verdict = desk.charge(50_000, Cost::take(plan.calls()));
    let policy = Policy::FixedWindow(desk.limit);
    let times = (at(50_000), at(58_001));
    let told = desk.book.handle_verdict(&plan, (&policy, &verdict), times);
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].calls, 0);
}

#[test]
fn if_others_were_faster_half_of_what_is_left_is_tried_for() {
    let mut desk = Desk::new();
    desk.report(0, A, 0, 1);
    desk.report(1_000, A, 0, 500);
    // Each time one call goes to somebody else.
    assert_eq!(desk.turn_beside(1_000, 1), []);
    assert_eq!(desk.turn_beside(1_000, 1), [(A, 79, 58)]);
    assert_eq!(desk.room(1_000).calls, 160 - 2 - 79);
    // It takes more to be faster than half of it, and then a quarter; and all is tried for after
    // that was had.
    desk.report(2_000, A, 79, 500);
    assert_eq!(desk.turn_beside(2_000, 10), []);
    assert_eq!(desk.turn_beside(2_000, 40), []);
    assert_eq!(desk.turn_beside(2_000, 10), [(A, 7, 57)]);
    desk.report(3_000, A, 7, 500);
    assert_eq!(desk.turn(3_000), [(A, 160 - 2 - 79 - 60 - 7, 56)]);
}

#[test]
fn if_others_are_always_faster_it_is_looked_again_after_a_while() {
    let mut desk = Desk::new();
    desk.limit = fixed(u32::MAX);
    desk.report(0, A, 0, 1);
    let policy = Policy::FixedWindow(desk.limit);
    let verdict = fixed(1).step(&mut Default::default(), at(0), Cost::take(2));
    for tries in 0..100 {
        assert_eq!(desk.book.is_due(at(0)), tries < 5, "{tries}");
        let room = desk.room(0);
        let plan = desk.book.plan(room, at(0));
        assert!(plan.calls() > 0);
        let said = (&policy, &verdict);
        let told = desk.book.handle_verdict(&plan, said, (at(0), at(0)));
        assert_eq!(told, []);
    }
    assert!(!desk.book.is_due(at(49)));
    assert!(desk.book.is_due(at(50)));
}

#[test]
fn what_is_owed_is_charged_in_parts_where_others_are_faster() {
    let mut desk = Desk::new();
    desk.book.handle_unpaid(1_000);
    assert_eq!(desk.turn_beside(0, 1), []);
    assert_eq!(desk.turn_beside(0, 1), []);
    assert_eq!(desk.room(0).calls, 160 - 2 - 79);
    desk.turn(0);
    assert_eq!(desk.room(0).calls, 0);
    desk.turn(0);
    assert!(desk.book.is_empty());
}

#[test]
fn whoever_is_gone_is_told_nothing_and_what_it_holds_stays_charged() {
    let mut desk = Desk::new();
    desk.report(0, A, 0, 1);
    assert_eq!(desk.turn(0), [(A, 9, 59)]);
    desk.book.handle_gone(A);
    assert!(desk.book.is_empty());
    assert_eq!(desk.room(0).calls, 151);
    desk.report(0, B, 0, 1);
    let room = desk.room(0);
    let plan = desk.book.plan(room, at(0));
    desk.book.handle_gone(B);
    let verdict = desk.charge(0, Cost::take(plan.calls()));
    let policy = Policy::FixedWindow(desk.limit);
    let told = desk
        .book
        .handle_verdict(&plan, (&policy, &verdict), (at(0), at(0)));
    assert_eq!(told, []);
}

#[test]
fn what_is_only_counted_is_charged_as_far_as_it_fits() {
    let mut desk = Desk::new();
    desk.book.handle_unpaid(100);
    assert_eq!(desk.turn(0), []);
    assert_eq!(desk.room(0).calls, 60);
    assert!(desk.book.is_empty());
}
