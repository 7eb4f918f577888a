//! What counts by leases must do: never admit more than the algorithm, and refuse nobody whom the
//! limit by which they lend would let through.
//!
//! The limit by which they lend is [`LeasedLimit::widened`]: one node alone, which has asked once,
//! admits what that does. Several admit no more, and may admit less, for what lies at one cannot be
//! had by another.

use anteroom_limit::algorithm::Algorithm as _;
use anteroom_limit::cost::Cost;
use anteroom_limit::lending::widened::LeasedLimit;
use anteroom_limit::policy::{Policy, State};
use anteroom_limit::registry::LeaseRule;
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit::verdict::{Outcome, Verdict};
use futures_util::future::join_all;

use super::{MINUTE, NODES, START, Stage, are_admitted, charge, fixed, policies};
use crate::key::CallKey;
use crate::shared::{CountsError, SharedAcquire, SharedCounts, UnfitError};

/// How many calls each limit of these tests allows in a minute.
const CALLS: u32 = 40;

/// Runs the whole list. Each [`Stage::node`] is a node of its own, and time does not go back. The
/// store lends at once: somebody has said that nothing was spent before.
///
/// # Errors
///
/// [`CountsError`] if the store fails where it should work.
///
/// # Panics
///
/// If the counts do not do what they must: this is a test.
pub async fn check(stage: &dyn Stage) -> Result<(), CountsError> {
    what_cannot_be_lent_is_refused_with_limit_and_store(&*stage.node());
    let lent = policies(CALLS).into_iter();
    let lent = lent.filter_map(|(name, policy)| Some((name, LeasedLimit::new(policy).ok()?)));
    for (at, (name, lending)) in (0..).zip(lent) {
        let run = Run {
            stage,
            name,
            lending,
            now: START + MINUTE.times(10 * at),
        };
        stage.set_time(run.now);
        run.one_node_admits_all_that_is_lent().await?;
        run.costs_count_and_refunds_give_back().await?;
        run.keys_and_limits_do_not_disturb_each_other().await?;
        run.nodes_at_once_admit_no_more_than_one_would().await?;
        run.what_was_spent_stays_spent_when_the_limit_changes()
            .await?;
        run.who_stops_is_forgotten_and_not_too_early().await?;
        run.who_comes_when_told_is_admitted().await?;
    }
    stage.set_time(START + MINUTE.times(1_000));
    several_limits_are_charged_together_or_not_at_all(stage).await?;
    one_client_twice_in_a_call_is_charged_twice_or_not_at_all(stage).await?;
    what_can_be_said_at_once_is_the_same(stage).await
}

fn what_cannot_be_lent_is_refused_with_limit_and_store(node: &dyn SharedCounts) {
    for (name, policy) in policies(CALLS) {
        let checked = node.check(name, &policy);
        let is_never_lent = policy.row().lent == LeaseRule::Never;
        assert_eq!(checked.is_err(), is_never_lent, "{name}: {checked:?}");
        if let Err(error) = checked {
            assert!(matches!(error, UnfitError::CannotBeLent { .. }));
            let text = error.to_string();
            assert!(text.contains(name) && text.contains(node.kind()), "{text}");
        }
    }
}

/// One algorithm.
struct Run<'s> {
    stage: &'s dyn Stage,
    name: &'static str,
    lending: LeasedLimit,
    now: TimestampUs,
}

impl Run<'_> {
    fn fresh(&self) -> u32 {
        let mut state = State::default();
        let widened = self.lending.widened();
        widened.step(&mut state, self.now, Cost::Peek).remaining
    }

    async fn call(
        &self,
        node: &dyn SharedCounts,
        key: u128,
        cost: Cost,
    ) -> Result<Verdict, CountsError> {
        self.call_of(node, self.name, self.lending.promised(), key, cost)
            .await
    }

    async fn call_of(
        &self,
        node: &dyn SharedCounts,
        limit: &str,
        policy: &Policy,
        key: u128,
        cost: Cost,
    ) -> Result<Verdict, CountsError> {
        let key = CallKey(key);
        let charges = [SharedAcquire {
            limit,
            policy,
            key,
            cost,
        }];
        Ok(charge(node, &charges).await?[0])
    }

    /// Calls that count one until one is rejected. How many were admitted?
    async fn exhaust(&self, node: &dyn SharedCounts, key: u128) -> Result<u32, CountsError> {
        let mut admitted = 0;
        while self.call(node, key, Cost::ONE).await?.is_admitted() {
            admitted += 1;
            assert!(admitted <= CALLS, "{}: more than promised", self.name);
        }
        Ok(admitted)
    }

    async fn one_node_admits_all_that_is_lent(&self) -> Result<(), CountsError> {
        let node = self.stage.node();
        let admitted = self.exhaust(&*node, 1).await?;
        assert_eq!(admitted, self.fresh(), "{}", self.name);
        let other = self.exhaust(&*self.stage.node(), 1).await?;
        assert_eq!(other, 0, "{}: another node", self.name);
        Ok(())
    }

    async fn costs_count_and_refunds_give_back(&self) -> Result<(), CountsError> {
        let (name, fresh) = (self.name, self.fresh());
        let node = self.stage.node();
        let steps = [
            (Cost::Peek, true, fresh),
            (Cost::take(3), true, fresh - 3),
            (Cost::Peek, true, fresh - 3),
            (Cost::take(fresh - 2), false, fresh - 3),
            (Cost::take(fresh - 5), true, 2),
            (Cost::take(2), true, 0),
            (Cost::Peek, false, 0),
            (Cost::ONE, false, 0),
            (Cost::refund(2), true, 2),
            (Cost::take(3), false, 2),
            (Cost::take(2), true, 0),
        ];
        for (cost, is_admitted, remaining) in steps {
            let verdict = self.call(&*node, 2, cost).await?;
            let told = (verdict.is_admitted(), verdict.remaining);
            assert_eq!(told, (is_admitted, remaining), "{name}: {cost:?}");
        }
        let never = self.call(&*node, 9, Cost::take(CALLS + 1)).await?.outcome;
        let retry_after = None;
        assert_eq!(never, Outcome::Reject { retry_after }, "{name}");
        Ok(())
    }

    async fn keys_and_limits_do_not_disturb_each_other(&self) -> Result<(), CountsError> {
        let policy = self.lending.promised();
        let node = self.stage.node();
        let other = format!("{}-2", self.name);
        let clients = [3, 4, 3 << 64, u128::MAX].map(|key| (self.name, key));
        let clients = clients.into_iter().chain([(other.as_str(), 3)]);
        for (at, (limit, key)) in (1..).zip(clients) {
            let cost = Cost::take(at);
            let verdict = self.call_of(&*node, limit, policy, key, cost).await?;
            assert_eq!(verdict.remaining, self.fresh() - at, "{limit} {key:x}");
        }
        let left = self.call(&*node, 3, Cost::Peek).await?.remaining;
        assert_eq!(left, self.fresh() - 1, "{}", self.name);
        Ok(())
    }

    async fn nodes_at_once_admit_no_more_than_one_would(&self) -> Result<(), CountsError> {
        let nodes = (0..NODES).map(|_| async {
            let node = self.stage.node();
            let mut admitted = 0;
            for _ in 0..CALLS {
                let verdict = self.call(&*node, 5, Cost::ONE).await?;
                admitted += u32::from(verdict.is_admitted());
            }
            Ok(admitted)
        });
        let admitted: Result<Vec<u32>, CountsError> = join_all(nodes).await.into_iter().collect();
        let admitted: u32 = admitted?.iter().sum();
        let (name, fresh) = (self.name, self.fresh());
        assert!(admitted <= fresh, "{name}: {admitted} of {fresh}");
        assert!(admitted * 2 >= fresh, "{name}: {admitted} of {fresh}");
        Ok(())
    }

    async fn what_was_spent_stays_spent_when_the_limit_changes(&self) -> Result<(), CountsError> {
        let node = self.stage.node();
        let mut spent = 0;
        for calls in [CALLS, CALLS / 2, CALLS * 2, CALLS] {
            let changed = policies(calls);
            let changed = changed.iter().find(|(name, _)| *name == self.name);
            let (_, policy) = changed.expect("the list is the same for all limits");
            for _ in 0..CALLS * 3 {
                let verdict = self
                    .call_of(&*node, self.name, policy, 6, Cost::ONE)
                    .await?;
                spent += u32::from(verdict.is_admitted());
            }
            assert!(spent <= calls.max(CALLS), "{}: {spent}", self.name);
            if calls > CALLS {
                return Ok(());
            }
        }
        Ok(())
    }

    async fn who_stops_is_forgotten_and_not_too_early(&self) -> Result<(), CountsError> {
        self.call(&*self.stage.node(), 7, Cost::take(4)).await?;
        let kept = self.stage.forgets_after(self.name, CallKey(7)).await;
        if let Some(kept) = kept {
            let least = MINUTE + self.lending.ttl();
            let name = self.name;
            assert!(kept >= least, "{name}: {kept} < {least}");
            assert!(kept.0 <= 3 * MINUTE.0, "{name}: {kept}");
        }
        Ok(())
    }

    /// The last of these, for it moves the clock.
    async fn who_comes_when_told_is_admitted(&self) -> Result<(), CountsError> {
        let (name, node) = (self.name, self.stage.node());
        self.exhaust(&*node, 8).await?;
        let rejected = self.call(&*node, 8, Cost::ONE).await?.outcome;
        let Outcome::Reject {
            retry_after: Some(retry_after),
        } = rejected
        else {
            panic!("{name}: {rejected:?}");
        };
        self.stage
            .set_time((self.now + retry_after) - DurationUs(1));
        let early = self.call(&*node, 8, Cost::ONE).await?;
        assert!(!early.is_admitted(), "{name}");
        self.stage.set_time(self.now + retry_after);
        let then = self.call(&*node, 8, Cost::ONE).await?;
        assert!(then.is_admitted(), "{name}: {then:?}");
        Ok(())
    }
}

async fn several_limits_are_charged_together_or_not_at_all(
    stage: &dyn Stage,
) -> Result<(), CountsError> {
    let node = stage.node();
    let (few, many) = (fixed(3), fixed(10));
    let limits = [("many", &many), ("few", &few), ("most", &many)];
    let charges = limits.map(|(limit, policy)| SharedAcquire {
        limit,
        policy,
        key: CallKey(1),
        cost: Cost::ONE,
    });
    for left in [9, 8, 7] {
        let verdicts = charge(&*node, &charges).await?;
        assert!(are_admitted(&verdicts), "{left}");
        let remaining: Vec<u32> = verdicts.iter().map(|verdict| verdict.remaining).collect();
        assert_eq!(remaining, [left, left - 7, left]);
    }
    // What was refunded lies at the node, and calls that another limit rejects find it there.
    for costs in [&[][..], &[Cost::take(2), Cost::refund(2)]] {
        for cost in costs {
            let cost = *cost;
            let alone = [SharedAcquire { cost, ..charges[0] }];
            assert!(are_admitted(&charge(&*node, &alone).await?));
        }
        for _ in 0..5 {
            let verdicts = charge(&*node, &charges).await?;
            let admitted: Vec<bool> = verdicts.iter().map(Verdict::is_admitted).collect();
            assert_eq!(admitted, [true, false, true]);
            // As it stands without this call.
            let remaining: Vec<u32> = verdicts.iter().map(|verdict| verdict.remaining).collect();
            assert_eq!(remaining, [7, 0, 7]);
        }
    }
    // Nothing of the calls that were rejected was charged to the others.
    for alone in [charges[0], charges[2]] {
        for left in (0..7).rev() {
            let verdict = charge(&*node, &[alone]).await?[0];
            assert_eq!((verdict.is_admitted(), verdict.remaining), (true, left));
        }
        assert!(!charge(&*node, &[alone]).await?[0].is_admitted());
    }
    assert_eq!(charge(&*node, &[]).await?, []);
    Ok(())
}

async fn one_client_twice_in_a_call_is_charged_twice_or_not_at_all(
    stage: &dyn Stage,
) -> Result<(), CountsError> {
    let node = stage.node();
    let policy = fixed(3);
    let one = SharedAcquire {
        limit: "twice",
        policy: &policy,
        key: CallKey(1),
        cost: Cost::ONE,
    };
    assert!(are_admitted(&charge(&*node, &[one, one]).await?));
    assert!(!are_admitted(&charge(&*node, &[one, one]).await?));
    assert_eq!(charge(&*node, &[one]).await?[0].remaining, 0);
    assert!(!are_admitted(&charge(&*node, &[one]).await?));
    Ok(())
}

async fn what_can_be_said_at_once_is_the_same(stage: &dyn Stage) -> Result<(), CountsError> {
    let node = stage.node();
    let policy = fixed(6);
    let one = SharedAcquire {
        limit: "at-once",
        policy: &policy,
        key: CallKey(1),
        cost: Cost::ONE,
    };
    let mut verdicts = Vec::new();
    assert!(node.charge_now(&[one], &mut verdicts).is_none());
    let mut admitted = 0;
    for _ in 0..20 {
        verdicts.clear();
        match node.charge_now(&[one], &mut verdicts) {
            Some(said) => said?,
            None => verdicts = charge(&*node, &[one]).await?,
        }
        assert_eq!(verdicts.len(), 1);
        admitted += u32::from(verdicts[0].is_admitted());
    }
    assert_eq!(admitted, 6);
    verdicts.clear();
    node.charge_now(&[one, one], &mut verdicts)
        .expect("that all is spent is known here")?;
    assert!(!are_admitted(&verdicts));
    Ok(())
}
