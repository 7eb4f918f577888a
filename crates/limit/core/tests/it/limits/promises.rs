//! Verdicts come true, to the microsecond.

use anteroom_limit::algorithm::Algorithm;
use anteroom_limit::cost::Cost;
use anteroom_limit::policy::{Policy, State};
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit::verdict::{Outcome, Verdict};
use proptest::prelude::*;

use crate::limits::moves::{Client, Move, moves, policies};

/// Number of requests above which `remaining` is not checked one by one.
const CHECKED_MAX: u32 = 40;

const ONE: DurationUs = DurationUs(1);

fn perform(client: &mut Client, next: Move) -> Result<(), TestCaseError> {
    match next {
        Move::Jump(jump) => client.jump(jump),
        Move::Step(cost) => {
            step(client, cost)?;
        }
        Move::Flood => while step(client, Cost::ONE)?.is_allowed() {},
        Move::Forget => {}
    }
    Ok(())
}

/// Runs one step and checks every promise about it.
fn step(client: &mut Client, cost: Cost) -> Result<Verdict, TestCaseError> {
    let before = client.clone();
    let verdict = client.step(cost);
    if cost == Cost::Peek || !verdict.is_allowed() {
        prop_assert_eq!(&before.state, &client.state, "{:?} changed the state", cost);
    }
    let peeked = client.would(client.now, Cost::Peek);
    prop_assert_eq!(peeked.remaining, verdict.remaining);
    prop_assert_eq!(peeked.full_after, verdict.full_after);
    prop_assert_eq!(peeked.outcome, client.would(client.now, Cost::ONE).outcome);
    prop_assert_eq!(peeked.is_allowed(), peeked.remaining > 0);
    remaining_requests_are_allowed(client, verdict.remaining)?;
    full_after_is_exact(client, verdict.full_after)?;
    match (verdict.outcome, cost) {
        (Outcome::Reject { retry_after }, Cost::Take(_)) => {
            retry_is_exact(client, cost, retry_after)?;
        }
        (Outcome::Reject { retry_after }, _) => {
            prop_assert!(cost == Cost::Peek, "a refund is always allowed");
            retry_is_exact(client, Cost::ONE, retry_after)?;
        }
        (Outcome::Allow { .. }, Cost::Take(taken)) => {
            let mut undone = client.clone();
            undone.step(Cost::refund(taken.get()));
            gets_the_same_verdicts(&before, &undone)?;
        }
        (Outcome::Allow { .. }, _) => {}
    }
    Ok(verdict)
}

fn remaining_requests_are_allowed(client: &Client, remaining: u32) -> Result<(), TestCaseError> {
    let mut copy = client.clone();
    for _ in 0..remaining.min(CHECKED_MAX) {
        prop_assert!(copy.step(Cost::ONE).is_allowed());
    }
    let is_more = remaining > CHECKED_MAX;
    prop_assert_eq!(copy.step(Cost::ONE).is_allowed(), is_more);
    Ok(())
}

fn retry_is_exact(
    client: &Client,
    cost: Cost,
    retry_after: Option<DurationUs>,
) -> Result<(), TestCaseError> {
    let is_admitted = |now: TimestampUs| client.would(now, cost).is_allowed();
    let Some(retry_after) = retry_after else {
        let window = client.policy.rate().window();
        for windows in [1, 2, 3, 100] {
            prop_assert!(!is_admitted(client.now + window.times(windows)));
        }
        return Ok(());
    };
    prop_assert!(retry_after > DurationUs::ZERO);
    let retry_at = client.now + retry_after;
    prop_assert!(is_admitted(retry_at), "{:?} is too early", retry_after);
    prop_assert!(
        !is_admitted(retry_at - ONE),
        "{:?} is too late",
        retry_after
    );
    Ok(())
}

/// Whether an idle client may not be forgotten at once, as it would get its initial burst again.
fn has_initial_burst(policy: &Policy) -> bool {
    matches!(policy, Policy::TokenBucket(bucket) if bucket.initial_burst() > bucket.capacity())
}

fn full_after_is_exact(client: &Client, full_after: DurationUs) -> Result<(), TestCaseError> {
    let full_at = client.now + full_after;
    let is_idle = |now: TimestampUs| client.policy.is_idle(&client.state, now);
    if let Policy::TokenBucket(bucket) = client.policy
        && has_initial_burst(&client.policy)
    {
        let is_closed = bucket.rate().requests() == 0;
        let remaining = |now| client.would(now, Cost::Peek).remaining;
        prop_assert!(is_closed || remaining(full_at) >= bucket.capacity());
        let is_less =
            full_after == DurationUs::ZERO || remaining(full_at - ONE) < bucket.capacity();
        prop_assert!(is_less);
        return Ok(());
    }
    prop_assert!(is_idle(full_at), "not full after {:?}", full_after);
    prop_assert!(full_after == DurationUs::ZERO || !is_idle(full_at - ONE));
    Ok(())
}

/// Checks that two clients get the same verdicts from now on.
fn gets_the_same_verdicts(one: &Client, other: &Client) -> Result<(), TestCaseError> {
    let window = one.policy.rate().window().0;
    for later in [0, 1, window / 7, window / 3, window - 1, window, 2 * window] {
        let now = one.now + DurationUs(later);
        for cost in [1, 2, 3, 7] {
            let cost = Cost::take(cost);
            prop_assert_eq!(one.would(now, cost), other.would(now, cost));
        }
    }
    Ok(())
}

/// Checks that a later time never allows less.
fn time_only_helps(client: &Client, cost: Cost, earlier: TimestampUs) -> Result<(), TestCaseError> {
    let (before, after) = (client.would(earlier, cost), client.would(client.now, cost));
    prop_assert!(after.is_allowed() || !before.is_allowed());
    if before.is_allowed() == after.is_allowed() {
        prop_assert!(after.remaining >= before.remaining);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn verdicts_come_true(
        policy in policies(),
        starts_at in prop_oneof![Just(0u64), Just(1_700_000_000_000_000)],
        next in prop::collection::vec(moves(), 1..30),
    ) {
        let mut client = Client::new(policy, starts_at);
        for next in next {
            perform(&mut client, next)?;
        }
    }

    #[test]
    fn a_clock_that_goes_back_allows_no_more_than_a_still_one(
        policy in policies(),
        next in prop::collection::vec(moves(), 1..30),
        back in 1u64..4_000,
        cost in 1u32..8,
    ) {
        let mut client = Client::new(policy, 1_700_000_000_000_000);
        for next in next {
            perform(&mut client, next)?;
            let window = policy.rate().window();
            for back in [1, window.0 / 1_000 * back, u64::MAX] {
                let earlier = client.now - DurationUs(back);
                time_only_helps(&client, Cost::take(cost), earlier)?;
                time_only_helps(&client, Cost::Peek, earlier)?;
            }
        }
    }

    #[test]
    fn a_forgotten_idle_client_gets_the_same_verdicts_ever_after(
        policy in policies(),
        next in prop::collection::vec(moves(), 1..60),
    ) {
        let mut client = Client::new(policy, 1_700_000_000_000_000);
        let mut forgotten: Option<Client> = None;
        for next in next {
            let other = forgotten.as_mut().unwrap_or(&mut client);
            match next {
                Move::Step(cost) => {
                    let verdict = other.step(cost);
                    if forgotten.is_some() {
                        prop_assert_eq!(client.step(cost), verdict);
                    }
                }
                Move::Jump(jump) => {
                    other.jump(jump);
                    let now = other.now;
                    client.now = now;
                }
                Move::Flood | Move::Forget => {}
            }
            let may_forget = forgotten.is_none()
                && !has_initial_burst(&policy)
                && client.policy.is_idle(&client.state, client.now);
            if may_forget && client.state != State::default() {
                let mut other = client.clone();
                other.state = State::default();
                forgotten = Some(other);
            }
        }
    }
}
