//! Conformance list of counts by leases: they never admit more than the algorithm, and reject
//! nothing that the limit behind the leases would admit.
//!
//! That limit is [`LeasedLimit::widened`]: a single node whose first request got the whole balance
//! admits exactly as much. Several nodes admit no more, and may admit less, as one node cannot use
//! another's balance.

use anteroom_limit::algorithm::Algorithm as _;
use anteroom_limit::cost::Cost;
use anteroom_limit::leases::widened::LeasedLimit;
use anteroom_limit::policy::{Policy, State};
use anteroom_limit::registry::LeaseRule;
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit::verdict::{Outcome, Verdict};
use futures_util::future::join_all;

use super::{Harness, MINUTE, NODES, START, acquire, are_admitted, fixed, policies};
use crate::key::ClientKey;
use crate::shared::{CountsError, SharedAcquire, SharedCounts, UnfitError};

/// Requests that each limit of these tests allows in a minute.
const REQUESTS: u32 = 40;

/// Runs the whole list. Each [`Harness::node`] is a node of its own, and time does not go back. The
/// store grants at once, after an operator's `assume-empty`.
///
/// # Errors
///
/// [`CountsError`] if the store fails where it should work.
///
/// # Panics
///
/// If the counts fail a check: this is a test.
pub async fn check(stage: &dyn Harness) -> Result<(), CountsError> {
    limits_that_cannot_be_leased_are_rejected_with_limit_and_store(&*stage.node());
    let leasable = policies(REQUESTS).into_iter();
    let leasable =
        leasable.filter_map(|(name, policy)| Some((name, LeasedLimit::new(policy).ok()?)));
    for (at, (name, leased_limit)) in (0..).zip(leasable) {
        let run = Run {
            stage,
            name,
            leased_limit,
            now: START + MINUTE.times(10 * at),
        };
        stage.set_time(run.now);
        run.one_node_admits_the_whole_leased_limit().await?;
        run.costs_and_refunds_count().await?;
        run.keys_and_limits_do_not_disturb_each_other().await?;
        run.concurrent_nodes_admit_no_more_than_one().await?;
        run.changed_limits_keep_what_was_spent().await?;
        run.idle_clients_are_forgotten_but_not_too_early().await?;
        run.a_client_that_waits_for_retry_after_is_admitted()
            .await?;
    }
    stage.set_time(START + MINUTE.times(1_000));
    several_limits_are_acquired_together_or_not_at_all(stage).await?;
    one_client_listed_twice_is_acquired_twice_or_not_at_all(stage).await?;
    immediate_verdicts_are_the_same(stage).await
}

fn limits_that_cannot_be_leased_are_rejected_with_limit_and_store(node: &dyn SharedCounts) {
    for (name, policy) in policies(REQUESTS) {
        let checked = node.check(name, &policy);
        let is_never_leased = policy.row().lease_rule == LeaseRule::Never;
        assert_eq!(checked.is_err(), is_never_leased, "{name}: {checked:?}");
        if let Err(error) = checked {
            assert!(matches!(error, UnfitError::NotLeasable { .. }));
            let text = error.to_string();
            assert!(text.contains(name) && text.contains(node.kind()), "{text}");
        }
    }
}

/// Run of one algorithm.
struct Run<'s> {
    stage: &'s dyn Harness,
    name: &'static str,
    leased_limit: LeasedLimit,
    now: TimestampUs,
}

impl Run<'_> {
    fn fresh(&self) -> u32 {
        let mut state = State::default();
        let widened = self.leased_limit.widened();
        widened.step(&mut state, self.now, Cost::Peek).remaining
    }

    async fn acquire(
        &self,
        node: &dyn SharedCounts,
        key: u128,
        cost: Cost,
    ) -> Result<Verdict, CountsError> {
        self.acquire_from(node, self.name, self.leased_limit.promised(), key, cost)
            .await
    }

    async fn acquire_from(
        &self,
        node: &dyn SharedCounts,
        limit: &str,
        policy: &Policy,
        key: u128,
        cost: Cost,
    ) -> Result<Verdict, CountsError> {
        let key = ClientKey(key);
        let acquires = [SharedAcquire {
            limit,
            policy,
            key,
            cost,
        }];
        Ok(acquire(node, &acquires).await?[0])
    }

    /// Acquires a cost of one until a request is rejected. Returns how many were admitted.
    async fn exhaust(&self, node: &dyn SharedCounts, key: u128) -> Result<u32, CountsError> {
        let mut admitted = 0;
        while self.acquire(node, key, Cost::ONE).await?.is_allowed() {
            admitted += 1;
            assert!(admitted <= REQUESTS, "{}: more than promised", self.name);
        }
        Ok(admitted)
    }

    async fn one_node_admits_the_whole_leased_limit(&self) -> Result<(), CountsError> {
        let node = self.stage.node();
        let admitted = self.exhaust(&*node, 1).await?;
        assert_eq!(admitted, self.fresh(), "{}", self.name);
        let other = self.exhaust(&*self.stage.node(), 1).await?;
        assert_eq!(other, 0, "{}: another node", self.name);
        Ok(())
    }

    async fn costs_and_refunds_count(&self) -> Result<(), CountsError> {
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
            let verdict = self.acquire(&*node, 2, cost).await?;
            let actual = (verdict.is_allowed(), verdict.remaining);
            assert_eq!(actual, (is_admitted, remaining), "{name}: {cost:?}");
        }
        let never = self
            .acquire(&*node, 9, Cost::take(REQUESTS + 1))
            .await?
            .outcome;
        let retry_after = None;
        assert_eq!(never, Outcome::Reject { retry_after }, "{name}");
        Ok(())
    }

    async fn keys_and_limits_do_not_disturb_each_other(&self) -> Result<(), CountsError> {
        let policy = self.leased_limit.promised();
        let node = self.stage.node();
        let other = format!("{}-2", self.name);
        let clients = [3, 4, 3 << 64, u128::MAX].map(|key| (self.name, key));
        let clients = clients.into_iter().chain([(other.as_str(), 3)]);
        for (at, (limit, key)) in (1..).zip(clients) {
            let cost = Cost::take(at);
            let verdict = self.acquire_from(&*node, limit, policy, key, cost).await?;
            assert_eq!(verdict.remaining, self.fresh() - at, "{limit} {key:x}");
        }
        let left = self.acquire(&*node, 3, Cost::Peek).await?.remaining;
        assert_eq!(left, self.fresh() - 1, "{}", self.name);
        Ok(())
    }

    async fn concurrent_nodes_admit_no_more_than_one(&self) -> Result<(), CountsError> {
        let nodes = (0..NODES).map(|_| async {
            let node = self.stage.node();
            let mut admitted = 0;
            for _ in 0..REQUESTS {
                let verdict = self.acquire(&*node, 5, Cost::ONE).await?;
                admitted += u32::from(verdict.is_allowed());
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

    async fn changed_limits_keep_what_was_spent(&self) -> Result<(), CountsError> {
        let node = self.stage.node();
        let mut spent = 0;
        for requests in [REQUESTS, REQUESTS / 2, REQUESTS * 2, REQUESTS] {
            let changed = policies(requests);
            let changed = changed.iter().find(|(name, _)| *name == self.name);
            let (_, policy) = changed.expect("the list is the same for all limits");
            for _ in 0..REQUESTS * 3 {
                let verdict = self
                    .acquire_from(&*node, self.name, policy, 6, Cost::ONE)
                    .await?;
                spent += u32::from(verdict.is_allowed());
            }
            assert!(spent <= requests.max(REQUESTS), "{}: {spent}", self.name);
            if requests > REQUESTS {
                return Ok(());
            }
        }
        Ok(())
    }

    async fn idle_clients_are_forgotten_but_not_too_early(&self) -> Result<(), CountsError> {
        self.acquire(&*self.stage.node(), 7, Cost::take(4)).await?;
        let kept = self.stage.forgets_after(self.name, ClientKey(7)).await;
        if let Some(kept) = kept {
            let least = MINUTE + self.leased_limit.ttl();
            let name = self.name;
            assert!(kept >= least, "{name}: {kept} < {least}");
            assert!(kept.0 <= 3 * MINUTE.0, "{name}: {kept}");
        }
        Ok(())
    }

    /// Runs last, as it moves the clock.
    async fn a_client_that_waits_for_retry_after_is_admitted(&self) -> Result<(), CountsError> {
        let (name, node) = (self.name, self.stage.node());
        self.exhaust(&*node, 8).await?;
        let rejected = self.acquire(&*node, 8, Cost::ONE).await?.outcome;
        let Outcome::Reject {
            retry_after: Some(retry_after),
        } = rejected
        else {
            panic!("{name}: {rejected:?}");
        };
        self.stage
            .set_time((self.now + retry_after) - DurationUs(1));
        let early = self.acquire(&*node, 8, Cost::ONE).await?;
        assert!(!early.is_allowed(), "{name}");
        self.stage.set_time(self.now + retry_after);
        let then = self.acquire(&*node, 8, Cost::ONE).await?;
        assert!(then.is_allowed(), "{name}: {then:?}");
        Ok(())
    }
}

async fn several_limits_are_acquired_together_or_not_at_all(
    stage: &dyn Harness,
) -> Result<(), CountsError> {
    let node = stage.node();
    let (few, many) = (fixed(3), fixed(10));
    let limits = [("many", &many), ("few", &few), ("most", &many)];
    let acquires = limits.map(|(limit, policy)| SharedAcquire {
        limit,
        policy,
        key: ClientKey(1),
        cost: Cost::ONE,
    });
    for left in [9, 8, 7] {
        let verdicts = acquire(&*node, &acquires).await?;
        assert!(are_admitted(&verdicts), "{left}");
        let remaining: Vec<u32> = verdicts.iter().map(|verdict| verdict.remaining).collect();
        assert_eq!(remaining, [left, left - 7, left]);
    }
    // Refunds stay in the node's balance, where requests that another limit rejects find them.
    for costs in [&[][..], &[Cost::take(2), Cost::refund(2)]] {
        for cost in costs {
            let cost = *cost;
            let alone = [SharedAcquire {
                cost,
                ..acquires[0]
            }];
            assert!(are_admitted(&acquire(&*node, &alone).await?));
        }
        for _ in 0..5 {
            let verdicts = acquire(&*node, &acquires).await?;
            let admitted: Vec<bool> = verdicts.iter().map(Verdict::is_allowed).collect();
            assert_eq!(admitted, [true, false, true]);
            // The state without this request.
            let remaining: Vec<u32> = verdicts.iter().map(|verdict| verdict.remaining).collect();
            assert_eq!(remaining, [7, 0, 7]);
        }
    }
    // Requests that were rejected took nothing from the other limits.
    for alone in [acquires[0], acquires[2]] {
        for left in (0..7).rev() {
            let verdict = acquire(&*node, &[alone]).await?[0];
            assert_eq!((verdict.is_allowed(), verdict.remaining), (true, left));
        }
        assert!(!acquire(&*node, &[alone]).await?[0].is_allowed());
    }
    assert_eq!(acquire(&*node, &[]).await?, []);
    Ok(())
}

async fn one_client_listed_twice_is_acquired_twice_or_not_at_all(
    stage: &dyn Harness,
) -> Result<(), CountsError> {
    let node = stage.node();
    let policy = fixed(3);
    let one = SharedAcquire {
        limit: "twice",
        policy: &policy,
        key: ClientKey(1),
        cost: Cost::ONE,
    };
    assert!(are_admitted(&acquire(&*node, &[one, one]).await?));
    assert!(!are_admitted(&acquire(&*node, &[one, one]).await?));
    assert_eq!(acquire(&*node, &[one]).await?[0].remaining, 0);
    assert!(!are_admitted(&acquire(&*node, &[one]).await?));
    Ok(())
}

async fn immediate_verdicts_are_the_same(stage: &dyn Harness) -> Result<(), CountsError> {
    let node = stage.node();
    let policy = fixed(6);
    let one = SharedAcquire {
        limit: "at-once",
        policy: &policy,
        key: ClientKey(1),
        cost: Cost::ONE,
    };
    let mut verdicts = Vec::new();
    assert!(node.try_acquire_now(&[one], &mut verdicts).is_none());
    let mut admitted = 0;
    for _ in 0..20 {
        verdicts.clear();
        match node.try_acquire_now(&[one], &mut verdicts) {
            Some(decided) => decided?,
            None => verdicts = acquire(&*node, &[one]).await?,
        }
        assert_eq!(verdicts.len(), 1);
        admitted += u32::from(verdicts[0].is_allowed());
    }
    assert_eq!(admitted, 6);
    verdicts.clear();
    node.try_acquire_now(&[one, one], &mut verdicts)
        .expect("the node knows that nothing is left")?;
    assert!(!are_admitted(&verdicts));
    Ok(())
}
