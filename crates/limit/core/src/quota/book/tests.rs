//! Limit of 160 requests a minute, and members with handmade reports.

use crate::algorithm::Algorithm as _;
use crate::cost::Cost;
use crate::fixed_window::{self, FixedWindow};

use super::*;

const A: MemberId = MemberId(1);
const B: MemberId = MemberId(2);

/// Owner of a ledger and its limit; the clock of both begins with a minute.
struct Owner {
    ledger: QuotaLedger,
    limit: FixedWindow,
    state: fixed_window::State,
}

const fn at(ms: u64) -> TimestampUs {
    TimestampUs(ms * 1_000)
}

impl Owner {
    fn new() -> Self {
        Self {
            ledger: QuotaLedger::default(),
            limit: fixed(160),
            state: fixed_window::State::default(),
        }
    }

    fn report(&mut self, ms: u64, member: MemberId, allowed: u64, denied: u64) {
        self.ledger.handle_report(member, allowed, denied, at(ms));
    }

    fn acquire(&mut self, ms: u64, cost: Cost) -> Verdict {
        self.limit.step(&mut self.state, at(ms), cost)
    }

    fn status(&mut self, ms: u64) -> LimitStatus {
        LimitStatus {
            requests: self.acquire(ms, Cost::Peek).remaining,
            limit: self.limit.rate(),
            ends_in: self.ends_in(ms),
        }
    }

    fn ends_in(&self, ms: u64) -> DurationUs {
        let window = self.limit.rate().window().0;
        DurationUs(window - at(ms).0 % window)
    }

    /// Runs a step if it is due and returns member, requests and seconds of each assignment.
    fn turn(&mut self, ms: u64) -> Vec<(MemberId, u32, u32)> {
        self.contested_turn(ms, 0)
    }

    /// Runs a step while others take `others` requests between the read and the plan.
    fn contested_turn(&mut self, ms: u64, others: u32) -> Vec<(MemberId, u32, u32)> {
        if !self.ledger.is_due(at(ms)) {
            return Vec::new();
        }
        let status = self.status(ms);
        let plan = self.ledger.plan(status, at(ms));
        for _ in 0..others {
            self.acquire(ms, Cost::ONE);
        }
        let assignments = if plan.requests() == 0 {
            self.ledger.handle_nothing(DurationUs::ZERO, at(ms))
        } else {
            let verdict = self.acquire(ms, Cost::take(plan.requests()));
            let policy = Policy::FixedWindow(self.limit);
            let times = (at(ms), at(ms));
            self.ledger
                .handle_verdict(&plan, (&policy, &verdict), times)
        };
        let assignments = assignments.into_iter();
        assignments
            .map(|one| (one.member, one.requests, one.seconds))
            .collect()
    }
}

fn fixed(calls: u32) -> FixedWindow {
    FixedWindow::new(Rate::new(calls, DurationUs::from_secs(60)).unwrap())
}

#[test]
fn a_new_member_gets_a_little_and_then_what_it_needs() {
    let mut owner = Owner::new();
    assert_eq!(owner.turn(0), []);
    owner.report(0, A, 0, 1);
    assert_eq!(owner.turn(0), [(A, 9, 59)]);
    assert_eq!(owner.turn(500), [], "it has an assignment");
    // Two a second, for 55 s, and a quarter more.
    owner.report(1_000, A, 1, 0);
    assert_eq!(owner.turn(1_000), []);
    owner.report(4_000, A, 6, 0);
    assert_eq!(owner.turn(4_000), [(A, 137, 55)]);
    assert_eq!(owner.status(4_000).requests, 160 - 9 - 137);
}

#[test]
fn two_members_that_want_everything_get_half_each() {
    let mut owner = Owner::new();
    for member in [A, B] {
        owner.report(0, member, 0, 1);
        owner.report(1_000, member, 0, 500);
    }
    assert_eq!(owner.turn(1_000), [(A, 80, 58), (B, 80, 58)]);
    for member in [A, B] {
        owner.report(2_000, member, 80, 500);
    }
    assert_eq!(
        owner.turn(2_000),
        [],
        "nothing is left, and their assignments are spent"
    );
    // Just before their assignments end they get empty ones.
    assert_eq!(owner.turn(58_700), [(A, 0, 60), (B, 0, 60)]);
    assert_eq!(owner.turn(60_000), [(A, 80, 59), (B, 80, 59)]);
}

#[test]
fn a_smaller_share_frees_nothing_before_the_window_ends() {
    let mut owner = Owner::new();
    owner.report(0, A, 0, 1);
    owner.report(1_000, A, 0, 500);
    assert_eq!(owner.turn(1_000), [(A, 160, 58)]);
    // It spends ten, and has no demand after that.
    owner.report(2_000, A, 10, 0);
    owner.report(2_000, B, 0, 1);
    owner.report(3_000, B, 0, 500);
    assert_eq!(owner.turn(3_000), [(B, 0, 60)]);
    for ms in (4_000..60_000).step_by(1_000) {
        owner.report(ms, A, 0, 0);
        owner.report(ms, B, 0, 500);
        let assignments = owner.turn(ms);
        assert!(
            assignments.iter().all(|(_, calls, _)| *calls == 0),
            "{ms} {assignments:?}"
        );
    }
    let assignments = owner.turn(60_000);
    assert_eq!(assignments, [(A, 4, 59), (B, 156, 59)]);
}

#[test]
fn a_member_that_got_much_still_gets_some() {
    for (much, little) in [(A, B), (B, A)] {
        let mut owner = Owner::new();
        owner.limit = fixed(1_000);
        owner.report(0, much, 0, 1);
        owner.report(1_000, much, 0, 7);
        assert_eq!(owner.turn(1_000), [(much, 580, 58)]);
        owner.report(2_000, little, 0, 1);
        owner.report(3_000, much, 580, 300);
        owner.report(3_000, little, 0, 500);
        let mut assignments = owner.turn(3_000);
        assignments.sort_by_key(|one| one.1);
        let expected = [(much, 105, 56), (little, 315, 56)];
        assert_eq!(assignments, expected, "of 420 that are left");
    }
}

#[test]
fn an_idle_member_keeps_a_little_when_its_assignment_ends() {
    let mut owner = Owner::new();
    let hour = DurationUs::from_secs(3_600);
    owner.limit = FixedWindow::new(Rate::new(16_000, hour).unwrap());
    owner.report(0, A, 0, 1);
    assert_eq!(owner.turn(0), [(A, 166, 600)]);
    owner.report(300_000, A, 1, 0);
    assert_eq!(owner.turn(300_000), []);
    assert_eq!(owner.turn(599_800), [(A, 166, 600)]);
}

#[test]
fn requests_without_an_assignment_are_taken_from_the_limit() {
    let mut owner = Owner::new();
    owner.report(0, A, 30, 0);
    assert_eq!(owner.turn(0), [(A, 9, 59)]);
    assert_eq!(owner.status(0).requests, 160 - 30 - 9);
    // More than there is: takes what is left.
    owner.report(1_000, A, 500, 0);
    owner.turn(1_000);
    assert_eq!(owner.status(1_000).requests, 0);
    // The rest is dropped.
    assert_eq!(owner.turn(60_000), [(A, 160, 59)]);
}

#[test]
fn nothing_is_taken_that_would_end_before_it_arrives() {
    let mut owner = Owner::new();
    owner.report(58_100, A, 0, 1);
    assert_eq!(owner.turn(58_100), [(A, 0, 60)]);
    assert_eq!(owner.status(58_100).requests, 160);
    assert_eq!(owner.turn(59_900), []);
    assert_eq!(owner.turn(60_000), [(A, 9, 59)]);
}

#[test]
fn a_late_verdict_assigns_nothing() {
    let mut owner = Owner::new();
    owner.report(50_000, A, 0, 1);
    let status = owner.status(50_000);
    let plan = owner.ledger.plan(status, at(50_000));
    let verdict = owner.acquire(50_000, Cost::take(plan.requests()));
    let policy = Policy::FixedWindow(owner.limit);
    let times = (at(50_000), at(58_001));
    let assignments = owner
        .ledger
        .handle_verdict(&plan, (&policy, &verdict), times);
    assert_eq!(assignments.len(), 1);
    assert_eq!(assignments[0].requests, 0);
}

#[test]
fn after_contention_half_of_the_rest_is_tried_for() {
    let mut owner = Owner::new();
    owner.report(0, A, 0, 1);
    owner.report(1_000, A, 0, 500);
    // Each time another client takes one request.
    assert_eq!(owner.contested_turn(1_000, 1), []);
    assert_eq!(owner.contested_turn(1_000, 1), [(A, 79, 58)]);
    assert_eq!(owner.status(1_000).requests, 160 - 2 - 79);
    // Others now take more than half of what is left, so a quarter is tried for. After a success,
    // all of it is tried for again.
    owner.report(2_000, A, 79, 500);
    assert_eq!(owner.contested_turn(2_000, 10), []);
    assert_eq!(owner.contested_turn(2_000, 40), []);
    assert_eq!(owner.contested_turn(2_000, 10), [(A, 7, 57)]);
    owner.report(3_000, A, 7, 500);
    assert_eq!(owner.turn(3_000), [(A, 160 - 2 - 79 - 60 - 7, 56)]);
}

#[test]
fn repeated_contention_leads_to_a_pause() {
    let mut owner = Owner::new();
    owner.limit = fixed(u32::MAX);
    owner.report(0, A, 0, 1);
    let policy = Policy::FixedWindow(owner.limit);
    let verdict = fixed(1).step(&mut Default::default(), at(0), Cost::take(2));
    for tries in 0..100 {
        assert_eq!(owner.ledger.is_due(at(0)), tries < 5, "{tries}");
        let status = owner.status(0);
        let plan = owner.ledger.plan(status, at(0));
        assert!(plan.requests() > 0);
        let decided = (&policy, &verdict);
        let assignments = owner.ledger.handle_verdict(&plan, decided, (at(0), at(0)));
        assert_eq!(assignments, []);
    }
    assert!(!owner.ledger.is_due(at(49)));
    assert!(owner.ledger.is_due(at(50)));
}

#[test]
fn under_contention_unassigned_requests_are_taken_in_parts() {
    let mut owner = Owner::new();
    owner.ledger.handle_unassigned(1_000);
    assert_eq!(owner.contested_turn(0, 1), []);
    assert_eq!(owner.contested_turn(0, 1), []);
    assert_eq!(owner.status(0).requests, 160 - 2 - 79);
    owner.turn(0);
    assert_eq!(owner.status(0).requests, 0);
    owner.turn(0);
    assert!(owner.ledger.is_empty());
}

#[test]
fn a_removed_member_gets_nothing_and_its_assignment_stays_taken() {
    let mut owner = Owner::new();
    owner.report(0, A, 0, 1);
    assert_eq!(owner.turn(0), [(A, 9, 59)]);
    owner.ledger.handle_departure(A);
    assert!(owner.ledger.is_empty());
    assert_eq!(owner.status(0).requests, 151);
    owner.report(0, B, 0, 1);
    let status = owner.status(0);
    let plan = owner.ledger.plan(status, at(0));
    owner.ledger.handle_departure(B);
    let verdict = owner.acquire(0, Cost::take(plan.requests()));
    let policy = Policy::FixedWindow(owner.limit);
    let assignments = owner
        .ledger
        .handle_verdict(&plan, (&policy, &verdict), (at(0), at(0)));
    assert_eq!(assignments, []);
}

#[test]
fn unassigned_requests_are_taken_as_far_as_they_fit() {
    let mut owner = Owner::new();
    owner.ledger.handle_unassigned(100);
    assert_eq!(owner.turn(0), []);
    assert_eq!(owner.status(0).requests, 60);
    assert!(owner.ledger.is_empty());
}
