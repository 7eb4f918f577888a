//! Conformance list of all stores of counts. A new store runs it and adds one line.
//!
//! Stores that grant leases have a list of their own ([`lease_store`]), and so have counts that
//! decide from leases ([`leases`]): these never admit more than this list demands, and may admit
//! less. In stores whose nodes decide alone and exchange counts later, one node passes this list,
//! and several pass that of [`distributed`].

pub mod distributed;
pub mod lease_store;
pub mod leases;

use std::sync::Arc;

use anteroom_limit::algorithm::Algorithm as _;
use anteroom_limit::cost::Cost;
use anteroom_limit::fixed_window::FixedWindow;
use anteroom_limit::policy::Policy;
use anteroom_limit::rate::Rate;
use anteroom_limit::registry::AlgorithmKind;
use anteroom_limit::settings::Settings;
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit::verdict::{Outcome, Verdict};
use futures_util::future::join_all;

use crate::key::ClientKey;
use crate::shared::{BoxFuture, CountsError, SharedAcquire, SharedCounts, TestTime};

/// Empty store under test, whose clock the test sets.
pub trait Harness: Sync {
    /// Connects a node to the store. Each call makes a separate connection, as another process
    /// would.
    fn node(&self) -> Arc<dyn SharedCounts>;

    /// Returns the clock of the store.
    fn time(&self) -> &TestTime;

    /// Sets the clock of the store.
    fn set_time(&self, now: TimestampUs) {
        self.time().set(now);
    }

    /// Returns the time after which the store forgets a client of a limit; `None` if no clock
    /// decides that.
    fn forgets_after(
        &self,
        limit: &'static str,
        key: ClientKey,
    ) -> BoxFuture<'_, Option<DurationUs>>;
}

/// Start of a minute, and of a day.
const START: TimestampUs = TimestampUs(1_767_225_600_000_000);
const MINUTE: DurationUs = DurationUs::from_secs(60);
/// Number of nodes that acquire at once. More would find nothing that these do not.
const NODES: u32 = 4;
/// Longest time that a client may be kept beyond need.
const KEPT_LONGER_MAX: DurationUs = DurationUs::from_secs(2 * 3_600);

/// Runs the whole list.
///
/// # Errors
///
/// [`CountsError`] if the store fails where it should work.
///
/// # Panics
///
/// If the store fails a check: this is a test.
pub async fn check(stage: &dyn Harness) -> Result<(), CountsError> {
    let store = stage.node();
    let fitting = policies(10).into_iter();
    let fitting = fitting.filter(|(name, policy)| store.check(name, policy).is_ok());
    for (name, policy) in fitting {
        let run = Run {
            stage,
            name,
            policy,
        };
        run.costs_and_refunds().await?;
        run.keys_and_limits_do_not_disturb_each_other().await?;
        run.changed_limits_keep_what_was_spent().await?;
        run.concurrent_nodes_admit_as_many_as_one().await?;
        run.idle_clients_are_forgotten_but_not_too_early().await?;
    }
    several_limits_are_acquired_together_or_not_at_all(stage).await?;
    one_client_listed_twice_is_acquired_twice_or_not_at_all(stage).await?;
    concurrent_nodes_with_two_limits_stay_within_both(stage).await
}

/// Returns a policy of each algorithm that allows `requests` a minute, all of them at once.
fn policies(requests: u32) -> Vec<(&'static str, Policy)> {
    let settings = Settings {
        sub_windows: Some(4),
        burst: Some(requests),
        initial_burst: Some(requests),
        // One is admitted at once, and the others are delayed.
        queue: Some(requests - 1),
    };
    let all = AlgorithmKind::ALL.iter();
    all.map(|kind| {
        let policy = kind.build(rate(requests), &settings);
        (kind.name(), policy.expect("the settings are in range"))
    })
    .collect()
}

fn rate(requests: u32) -> Rate {
    Rate::new(requests, MINUTE).expect("a minute is in range")
}

fn fixed(requests: u32) -> Policy {
    Policy::FixedWindow(FixedWindow::new(rate(requests)))
}

async fn acquire(
    node: &dyn SharedCounts,
    acquires: &[SharedAcquire<'_>],
) -> Result<Vec<Verdict>, CountsError> {
    let verdicts = node.acquire(acquires).await?;
    assert_eq!(verdicts.len(), acquires.len());
    Ok(verdicts)
}

fn are_admitted(verdicts: &[Verdict]) -> bool {
    verdicts.iter().all(Verdict::is_allowed)
}

/// Run of one algorithm on the store.
struct Run<'s> {
    stage: &'s dyn Harness,
    name: &'static str,
    policy: Policy,
}

impl Run<'_> {
    /// Acquires for a client of this limit.
    async fn acquire(&self, key: u128, cost: Cost) -> Result<Verdict, CountsError> {
        self.acquire_from(self.name, &self.policy, key, cost).await
    }

    async fn acquire_from(
        &self,
        limit: &str,
        policy: &Policy,
        key: u128,
        cost: Cost,
    ) -> Result<Verdict, CountsError> {
        let node = self.stage.node();
        let key = ClientKey(key);
        let acquires = [SharedAcquire {
            limit,
            policy,
            key,
            cost,
        }];
        Ok(acquire(&*node, &acquires).await?[0])
    }

    async fn costs_and_refunds(&self) -> Result<(), CountsError> {
        let Self { name, policy, .. } = self;
        self.stage.set_time(START);
        let fresh = self.acquire(1, Cost::Peek).await?;
        assert!(fresh.is_allowed(), "{name}");
        assert_eq!(
            (fresh.remaining, fresh.full_after),
            (10, DurationUs::ZERO),
            "{name}"
        );
        // Expected verdicts come from the core, step by step.
        let mut state = Default::default();
        let steps = [
            Cost::take(3),
            Cost::Peek,
            Cost::take(11),
            Cost::take(7),
            Cost::ONE,
            Cost::Peek,
            Cost::refund(2),
            Cost::take(3),
            Cost::take(2),
            Cost::refund(100),
            Cost::take(10),
        ];
        for cost in steps {
            let expected = policy.step(&mut state, START, cost);
            let verdict = self.acquire(1, cost).await?;
            assert_eq!(verdict, expected, "{name}: {cost:?}");
        }
        // A client that retries after exactly `retry_after` is admitted, and not a microsecond
        // earlier.
        let rejected = self.acquire(1, Cost::ONE).await?.outcome;
        let Outcome::Reject {
            retry_after: Some(retry_after),
        } = rejected
        else {
            panic!("{name}: {rejected:?}");
        };
        self.stage.set_time((START + retry_after) - DurationUs(1));
        assert!(!self.acquire(1, Cost::ONE).await?.is_allowed(), "{name}");
        self.stage.set_time(START + retry_after);
        assert!(self.acquire(1, Cost::ONE).await?.is_allowed(), "{name}");
        Ok(())
    }

    async fn keys_and_limits_do_not_disturb_each_other(&self) -> Result<(), CountsError> {
        let Self { name, policy, .. } = self;
        self.stage.set_time(START);
        let other = format!("{name}-2");
        // Keys that share most of their bits.
        let clients = [2, 3, 2 << 64, u128::MAX].map(|key| (*name, key));
        let clients = clients.into_iter().chain([(other.as_str(), 2)]);
        for (at, (limit, key)) in (1..).zip(clients) {
            for _ in 0..at {
                self.acquire_from(limit, policy, key, Cost::ONE).await?;
            }
            let peeked = self.acquire_from(limit, policy, key, Cost::Peek).await?;
            assert_eq!(peeked.remaining, 10 - at, "{limit} {key:x}");
        }
        assert_eq!(self.acquire(2, Cost::Peek).await?.remaining, 9, "{name}");
        Ok(())
    }

    async fn changed_limits_keep_what_was_spent(&self) -> Result<(), CountsError> {
        let name = self.name;
        self.stage.set_time(START);
        let mut state = Default::default();
        let mut now = START;
        for requests in [10, 20, 5, 40, 10] {
            let changed = policies(requests);
            let changed = changed.iter().find(|(other, _)| *other == name);
            let (_, policy) = changed.expect("the list is the same for all limits");
            for cost in [Cost::Peek, Cost::take(4), Cost::ONE] {
                let expected = policy.step(&mut state, now, cost);
                let verdict = self.acquire_from(name, policy, 5, cost).await?;
                assert_eq!(verdict, expected, "{name} {requests} {cost:?}");
            }
            now = now + DurationUs::from_secs(1);
            self.stage.set_time(now);
        }
        Ok(())
    }

    async fn concurrent_nodes_admit_as_many_as_one(&self) -> Result<(), CountsError> {
        let Self { name, policy, .. } = self;
        self.stage.set_time(START);
        let nodes = (0..NODES).map(|_| async move {
            let node = self.stage.node();
            let key = ClientKey(6);
            let acquires = [SharedAcquire {
                limit: name,
                policy,
                key,
                cost: Cost::ONE,
            }];
            let mut admitted = 0;
            for _ in 0..10 {
                let verdicts = acquire(&*node, &acquires).await?;
                admitted += u32::from(are_admitted(&verdicts));
            }
            Ok(admitted)
        });
        let admitted: Result<Vec<u32>, CountsError> = join_all(nodes).await.into_iter().collect();
        assert_eq!(admitted?.iter().sum::<u32>(), 10, "{name}");
        Ok(())
    }

    async fn idle_clients_are_forgotten_but_not_too_early(&self) -> Result<(), CountsError> {
        let Self { name, stage, .. } = self;
        // In the middle of a sub-window.
        let now = START + DurationUs(7_654_321);
        stage.set_time(now);
        let full_after = self.acquire(7, Cost::take(4)).await?.full_after;
        let kept = stage.forgets_after(self.name, ClientKey(7)).await;
        if let Some(kept) = kept {
            assert!(kept >= full_after, "{name}: {kept} < {full_after}");
            let longest = full_after.0 + KEPT_LONGER_MAX.0;
            assert!(kept.0 <= longest, "{name}: {kept} > {full_after}");
        }
        stage.set_time((now + full_after) - DurationUs(1));
        let full_after_still = self.acquire(7, Cost::Peek).await?.full_after;
        assert_eq!(full_after_still, DurationUs(1), "{name}");
        stage.set_time(now + full_after);
        let full = self.acquire(7, Cost::Peek).await?;
        assert_eq!(
            (full.remaining, full.full_after),
            (10, DurationUs::ZERO),
            "{name}"
        );
        Ok(())
    }
}

async fn several_limits_are_acquired_together_or_not_at_all(
    stage: &dyn Harness,
) -> Result<(), CountsError> {
    stage.set_time(START);
    let node = stage.node();
    let (few, many) = (fixed(3), fixed(10));
    let acquires = |cost| {
        [("many", &many), ("few", &few), ("most", &many)].map(|(limit, policy)| SharedAcquire {
            limit,
            policy,
            key: ClientKey(1),
            cost,
        })
    };
    for left in [9, 8, 7] {
        let verdicts = acquire(&*node, &acquires(Cost::ONE)).await?;
        assert!(are_admitted(&verdicts), "{left}");
        let remaining: Vec<u32> = verdicts.iter().map(|verdict| verdict.remaining).collect();
        assert_eq!(remaining, [left, left - 7, left]);
    }
    for _ in 0..5 {
        let verdicts = acquire(&*node, &acquires(Cost::ONE)).await?;
        let admitted: Vec<bool> = verdicts.iter().map(Verdict::is_allowed).collect();
        assert_eq!(admitted, [true, false, true]);
        // The state without this request.
        let remaining: Vec<u32> = verdicts.iter().map(|verdict| verdict.remaining).collect();
        assert_eq!(remaining, [7, 0, 7]);
    }
    let verdicts = acquire(&*node, &acquires(Cost::refund(2))).await?;
    assert!(are_admitted(&verdicts));
    assert_eq!(verdicts[1].remaining, 2);
    let verdicts = acquire(&*node, &acquires(Cost::Peek)).await?;
    assert_eq!((verdicts[0].remaining, verdicts[2].remaining), (9, 9));
    assert_eq!(acquire(&*node, &[]).await?, []);
    Ok(())
}

async fn one_client_listed_twice_is_acquired_twice_or_not_at_all(
    stage: &dyn Harness,
) -> Result<(), CountsError> {
    stage.set_time(START);
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
    Ok(())
}

/// A store that acquires one key after the other may reject some requests because of others that it
/// refunds. But nothing is lost for good, and no limit admits more than it allows.
async fn concurrent_nodes_with_two_limits_stay_within_both(
    stage: &dyn Harness,
) -> Result<(), CountsError> {
    stage.set_time(START);
    let (few, many) = (fixed(20), fixed(50));
    let nodes = (0..NODES).map(|at| {
        let (few, many) = (&few, &many);
        async move {
            let node = stage.node();
            let mut acquires =
                [("both-few", few), ("both-many", many)].map(|(limit, policy)| SharedAcquire {
                    limit,
                    policy,
                    key: ClientKey(1),
                    cost: Cost::ONE,
                });
            if at % 2 == 1 {
                acquires.reverse();
            }
            let mut admitted = 0;
            for _ in 0..20 {
                admitted += u32::from(are_admitted(&acquire(&*node, &acquires).await?));
            }
            Ok(admitted)
        }
    });
    let admitted: Result<Vec<u32>, CountsError> = join_all(nodes).await.into_iter().collect();
    let admitted: u32 = admitted?.iter().sum();
    assert!(admitted <= 20, "{admitted}");
    let node = stage.node();
    for (limit, policy, requests) in [("both-few", &few, 20), ("both-many", &many, 50)] {
        let peek = [SharedAcquire {
            limit,
            policy,
            key: ClientKey(1),
            cost: Cost::Peek,
        }];
        let left = acquire(&*node, &peek).await?[0].remaining;
        assert_eq!(left, requests - admitted, "{limit}");
    }
    Ok(())
}
