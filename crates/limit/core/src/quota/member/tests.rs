//! Demand and assignments of one member, report by report.

use alloc::vec::Vec;

use super::*;

const fn at(ms: u64) -> TimestampUs {
    TimestampUs(ms * 1_000)
}

fn after(reports: &[(u64, u64, u64)]) -> Member {
    let mut member = Member::new(at(0));
    for &(ms, allowed, denied) in reports {
        member.handle_report(allowed, denied, at(ms));
    }
    member
}

#[test]
fn demand_raises_what_a_member_wants_and_idle_ones_keep_little() {
    let minute = |requests| Rate::new(requests, DurationUs::from_secs(60)).unwrap();
    let twenty = DurationUs::from_secs(20);
    let wants = |reports: &[_]| after(reports).wants(twenty, minute(1_000), 2);
    // A third of a sixteenth for two.
    assert_eq!(wants(&[(0, 1, 0)]), 10);
    // Ten a second for twenty seconds, and a quarter more.
    assert_eq!(wants(&[(0, 1, 0), (1_000, 4, 5)]), 250);
    assert_eq!(wants(&[(0, 1, 0), (1_000, 900, 0)]), 1_000);
    // The pace falls slowly.
    assert_eq!(wants(&[(0, 0, 0), (1_000, 40, 0), (2_000, 0, 0)]), 500);
    assert_eq!(Member::new(at(0)).wants(DurationUs(9), minute(1), 500), 1);
}

#[test]
fn two_reports_at_once_are_merged() {
    let member = after(&[(0, 1, 0), (1, 3, 0), (1_000, 6, 0)]);
    assert_eq!(member.pace, 10_000);
}

#[test]
fn a_member_that_may_run_out_before_its_next_report_is_short() {
    let mut member = after(&[(0, 0, 0), (1_000, 0, 10)]);
    assert!(member.is_short(at(1_000)), "no assignment");
    member.handle_assigned(25, at(1_000), at(9_000));
    assert!(!member.is_short(at(1_000)));
    member.handle_report(10, 0, at(2_000));
    assert!(!member.is_short(at(2_000)));
    member.handle_report(10, 0, at(3_000));
    assert!(member.is_short(at(3_000)), "5 left, 10 a second");
    member.handle_assigned(5, at(3_800), at(9_000));
    member.handle_report(1, 9, at(4_000));
    assert!(
        !member.is_short(at(4_000)),
        "the report describes the time before"
    );
    assert!(!member.is_short(at(8_999)));
    assert!(member.is_short(at(9_000)), "the assignment has ended");
    member.handle_assigned(5, at(9_000), at(19_000));
    member.handle_report(5, 0, at(9_001));
    assert!(member.is_short(at(9_001)), "the assignment is spent");
}

#[test]
fn requests_beyond_the_assignment_are_returned() {
    let mut member = Member::new(at(0));
    assert_eq!(member.handle_report(3, 1, at(0)), 3);
    member.handle_assigned(10, at(0), at(5_000));
    assert_eq!(member.handle_report(8, 0, at(1_000)), 0);
    assert_eq!(member.handle_report(8, 0, at(2_000)), 6);
    assert_eq!(
        member.handle_report(u64::MAX, u64::MAX, at(3_000)),
        u64::MAX
    );
}

#[test]
fn unspent_requests_expire_soon_after_their_window() {
    let mut member = Member::new(at(0));
    member.handle_assigned(100, at(0), at(59_000));
    assert_eq!(member.handle_report(10, 0, at(5_000)), 0);
    // A report may be this late, and no later.
    let late = 59_000 + 10_000;
    let report = |ms| member.clone().handle_report(90, 0, at(ms));
    assert_eq!(report(late - 1), 0);
    assert_eq!(report(late), 90);
    // Unspent requests of many windows do not add up.
    for minute in 1..50 {
        let (begins, ends) = (minute * 60_000, minute * 60_000 + 59_000);
        member.handle_assigned(100, at(begins), at(ends));
    }
    assert_eq!(
        member.handle_report(1_000, 0, at(49 * 60_000 + 30_000)),
        900
    );
}

#[test]
fn a_replaced_assignment_expires_soon_after() {
    let mut member = Member::new(at(0));
    member.handle_assigned(100, at(0), at(600_000));
    member.handle_assigned(0, at(20_000), at(80_000));
    assert_eq!(member.clone().handle_report(100, 0, at(29_999)), 0);
    assert_eq!(member.handle_report(100, 0, at(30_000)), 100);
}

/// Draws numbers below an end (SplitMix64).
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}

/// Naive model: all assignments of a member, as unreported requests and the time until which they
/// may be reported.
#[derive(Default)]
struct Naive(Vec<(u64, u64)>);

impl Naive {
    fn assign(&mut self, requests: u64, ms: u64, ends_at: u64) {
        for (_, until) in &mut self.0 {
            *until = (*until).min(ms + 10_000);
        }
        self.0.push((requests, ends_at + 10_000));
    }

    fn report(&mut self, mut allowed: u64, ms: u64) -> u64 {
        for (requests, until) in &mut self.0 {
            let assigned = if ms < *until {
                allowed.min(*requests)
            } else {
                0
            };
            *requests -= assigned;
            allowed -= assigned;
        }
        allowed
    }

    /// Returns how many assignments may still be reported.
    fn live(&self, ms: u64) -> usize {
        self.0.iter().filter(|(_, until)| ms < *until).count()
    }
}

#[test]
fn any_sequence_returns_no_less_than_the_naive_model() {
    let (mut hidden, mut returned) = (0, 0);
    for seed in 0..2_000 {
        let mut draw = Draw(seed);
        let (mut member, mut naive) = (Member::new(at(0)), Naive::default());
        let (mut ms, mut is_exact) = (0, true);
        for _ in 0..60 {
            ms += 1 + draw.below(7_000);
            if draw.below(3) == 0 {
                let requests = draw.below(50);
                let ends_at = ms + draw.below(60_000);
                member.handle_assigned(u32::try_from(requests).unwrap(), at(ms), at(ends_at));
                naive.assign(requests, ms, ends_at);
                is_exact &= naive.live(ms) <= SPARES;
            } else {
                let allowed = draw.below(40);
                let (unassigned, expected) = (
                    member.handle_report(allowed, 0, at(ms)),
                    naive.report(allowed, ms),
                );
                assert!(
                    unassigned >= expected,
                    "seed {seed} at {ms}: {unassigned} {expected}"
                );
                assert!(
                    unassigned == expected || !is_exact,
                    "seed {seed} at {ms}: {unassigned} {expected}"
                );
                hidden += allowed - unassigned;
                returned += unassigned;
            }
        }
    }
    assert!(
        hidden > 100_000 && returned > 100_000,
        "{hidden} {returned}"
    );
}

#[test]
fn a_member_that_keeps_to_its_assignments_has_none_unassigned() {
    for seed in 0..2_000 {
        let mut draw = Draw(seed);
        let mut member = Member::new(at(0));
        // What the member may spend, until when, and what it did not report yet.
        let (mut holds, mut until, mut unreported) = (0, 0, 0);
        for ms in (0..300_000).step_by(500) {
            if ms < until {
                let spent = draw.below(holds + 1);
                holds -= spent;
                unreported += spent;
            }
            if ms % 5_000 == 0 {
                assert_eq!(
                    member.handle_report(unreported, 0, at(ms)),
                    0,
                    "seed {seed} at {ms}"
                );
                unreported = 0;
                // Like a ledger: after reports, and when the assignment ends.
                if ms >= until || draw.below(3) == 0 {
                    (holds, until) = (draw.below(100), ms + 1_000 + draw.below(59) * 1_000);
                    let requests = u32::try_from(holds).unwrap();
                    member.handle_assigned(requests, at(ms), at(until));
                }
            }
        }
    }
}
