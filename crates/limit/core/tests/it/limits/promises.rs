//! What a verdict says comes true, to the microsecond.

use anteroom_limit::algorithm::Algorithm;
use anteroom_limit::cost::Cost;
use anteroom_limit::policy::{Policy, State};
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit::verdict::{Outcome, Verdict};
use proptest::prelude::*;

use crate::limits::moves::{Move, Place, moves, policies};

/// Above this, what remains is not called one by one.
const COUNTED_OUT: u32 = 40;

const ONE: DurationUs = DurationUs(1);

fn perform(place: &mut Place, todo: Move) -> Result<(), TestCaseError> {
    match todo {
        Move::Jump(jump) => place.jump(jump),
        Move::Step(cost) => {
            step(place, cost)?;
        }
        Move::Flood => while step(place, Cost::ONE)?.is_admitted() {},
        Move::Forget => {}
    }
    Ok(())
}

/// One step, with all that is promised about it.
fn step(place: &mut Place, cost: Cost) -> Result<Verdict, TestCaseError> {
    let before = place.clone();
    let verdict = place.step(cost);
    if cost == Cost::Peek || !verdict.is_admitted() {
        prop_assert_eq!(&before.state, &place.state, "{:?} changed something", cost);
    }
    let peeked = place.would(place.now, Cost::Peek);
    prop_assert_eq!(peeked.remaining, verdict.remaining);
    prop_assert_eq!(peeked.full_after, verdict.full_after);
    prop_assert_eq!(peeked.outcome, place.would(place.now, Cost::ONE).outcome);
    prop_assert_eq!(peeked.is_admitted(), peeked.remaining > 0);
    remaining_can_be_called(place, verdict.remaining)?;
    full_when_it_says(place, verdict.full_after)?;
    match (verdict.outcome, cost) {
        (Outcome::Reject { retry_after }, Cost::Take(_)) => {
            retry_is_exact(place, cost, retry_after)?;
        }
        (Outcome::Reject { retry_after }, _) => {
            prop_assert!(cost == Cost::Peek, "a refund is never refused");
            retry_is_exact(place, Cost::ONE, retry_after)?;
        }
        (Outcome::Admit { .. }, Cost::Take(taken)) => {
            let mut undone = place.clone();
            undone.step(Cost::refund(taken.get()));
            tells_the_same(&before, &undone)?;
        }
        (Outcome::Admit { .. }, _) => {}
    }
    Ok(verdict)
}

fn remaining_can_be_called(place: &Place, remaining: u32) -> Result<(), TestCaseError> {
    let mut caller = place.clone();
    for _ in 0..remaining.min(COUNTED_OUT) {
        prop_assert!(caller.step(Cost::ONE).is_admitted());
    }
    let is_more = remaining > COUNTED_OUT;
    prop_assert_eq!(caller.step(Cost::ONE).is_admitted(), is_more);
    Ok(())
}

fn retry_is_exact(
    place: &Place,
    cost: Cost,
    retry_after: Option<DurationUs>,
) -> Result<(), TestCaseError> {
    let is_admitted = |now: TimestampUs| place.would(now, cost).is_admitted();
    let Some(retry_after) = retry_after else {
        let window = place.policy.rate().window();
        for windows in [1, 2, 3, 100] {
            prop_assert!(!is_admitted(place.now + window.times(windows)));
        }
        return Ok(());
    };
    prop_assert!(retry_after > DurationUs::ZERO);
    let retry_at = place.now + retry_after;
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

fn full_when_it_says(place: &Place, full_after: DurationUs) -> Result<(), TestCaseError> {
    let full_at = place.now + full_after;
    let is_idle = |now: TimestampUs| place.policy.is_idle(&place.state, now);
    if let Policy::TokenBucket(bucket) = place.policy
        && has_initial_burst(&place.policy)
    {
        let is_closed = bucket.rate().calls() == 0;
        let remaining = |now| place.would(now, Cost::Peek).remaining;
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

/// Whether two clients are told the same from now on.
fn tells_the_same(one: &Place, other: &Place) -> Result<(), TestCaseError> {
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

/// A later moment never admits less.
fn time_only_helps(place: &Place, cost: Cost, earlier: TimestampUs) -> Result<(), TestCaseError> {
    let (before, after) = (place.would(earlier, cost), place.would(place.now, cost));
    prop_assert!(after.is_admitted() || !before.is_admitted());
    if before.is_admitted() == after.is_admitted() {
        prop_assert!(after.remaining >= before.remaining);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn what_a_verdict_says_comes_true(
        policy in policies(),
        starts_at in prop_oneof![Just(0u64), Just(1_700_000_000_000_000)],
        todo in prop::collection::vec(moves(), 1..30),
    ) {
        let mut place = Place::new(policy, starts_at);
        for todo in todo {
            perform(&mut place, todo)?;
        }
    }

    #[test]
    fn a_clock_that_goes_back_admits_no_more_than_a_still_one(
        policy in policies(),
        todo in prop::collection::vec(moves(), 1..30),
        back in 1u64..4_000,
        cost in 1u32..8,
    ) {
        let mut place = Place::new(policy, 1_700_000_000_000_000);
        for todo in todo {
            perform(&mut place, todo)?;
            let window = policy.rate().window();
            for back in [1, window.0 / 1_000 * back, u64::MAX] {
                let earlier = place.now - DurationUs(back);
                time_only_helps(&place, Cost::take(cost), earlier)?;
                time_only_helps(&place, Cost::Peek, earlier)?;
            }
        }
    }

    #[test]
    fn a_forgotten_idle_client_gets_the_same_verdicts_ever_after(
        policy in policies(),
        todo in prop::collection::vec(moves(), 1..60),
    ) {
        let mut place = Place::new(policy, 1_700_000_000_000_000);
        let mut forgotten: Option<Place> = None;
        for todo in todo {
            let other = forgotten.as_mut().unwrap_or(&mut place);
            match todo {
                Move::Step(cost) => {
                    let told = other.step(cost);
                    if forgotten.is_some() {
                        prop_assert_eq!(place.step(cost), told);
                    }
                }
                Move::Jump(jump) => {
                    other.jump(jump);
                    let now = other.now;
                    place.now = now;
                }
                Move::Flood | Move::Forget => {}
            }
            let may_forget = forgotten.is_none()
                && !has_initial_burst(&policy)
                && place.policy.is_idle(&place.state, place.now);
            if may_forget && place.state != State::default() {
                let mut other = place.clone();
                other.state = State::default();
                forgotten = Some(other);
            }
        }
    }
}
