//! Acquires by compare-and-swap: read a state, decide, write it back if it is still the one that
//! was read.
//!
//! If it is not, another node was faster, and the request tries again: a few times, after a growing
//! random pause. Then it gives up, uncounted. Requests of one node for one client wait for each
//! other here ([`crate::queues`]), so a node never competes with itself. Waits and pauses end well
//! before the timeout of a request, so a request that waited for others gets that error, and not
//! one of an unavailable server.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use anteroom_limit::algorithm::Algorithm as _;
use anteroom_limit::cost::Cost;
use anteroom_limit::policy::{Policy, State};
use anteroom_limit::swapping::{TRIES, pause_longest};
use anteroom_limit::time::DurationUs;
use anteroom_limit::verdict::Verdict;
use anteroom_limit_store::shared::SharedAcquire;
use tokio::time::{Instant, sleep_until};

use crate::counters::AcquireOutcome;
use crate::expiry::exptime;
use crate::failure::Failure;
use crate::keys::ClientName;
use crate::link::Link;
use crate::protocol::{Command, Parsed, Reply};
use crate::queues::{TurnError, Turns};
use crate::undo::{DueAfter, NotRefunded, Undo};
use crate::value;
use anteroom_limit_store::clock::Now;

/// Timeout of a refund without a waiting caller.
const UNDO_TIMEOUT: Duration = Duration::from_secs(2);

/// Shared state of all acquires by compare-and-swap.
#[derive(Debug, Default)]
pub(crate) struct Swaps {
    lost: AtomicU64,
    gave_up: AtomicU64,
    not_refunded: NotRefunded,
}

/// Address of a client's state.
#[derive(Clone)]
pub(crate) struct StateAddress {
    pub(crate) link: Link,
    pub(crate) turns: Turns,
    pub(crate) name: ClientName,
    pub(crate) now: Now,
}

impl Swaps {
    pub(crate) fn new(not_refunded: &NotRefunded) -> Self {
        Self {
            not_refunded: not_refunded.clone(),
            ..Self::default()
        }
    }

    /// Returns the number of lost compare-and-swaps.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }

    /// Returns the number of requests that gave up for that.
    pub(crate) fn gave_up(&self) -> u64 {
        self.gave_up.load(Relaxed)
    }

    /// Acquires, or computes the verdict only. Starts nothing after `until`.
    pub(crate) async fn acquire(
        self: &Arc<Self>,
        address: StateAddress,
        acquire: &SharedAcquire<'_>,
        is_acquired: bool,
        until: Instant,
    ) -> Result<AcquireOutcome, Failure> {
        let SharedAcquire { policy, cost, .. } = *acquire;
        let step = Step {
            policy,
            cost,
            is_acquired,
        };
        let undo = || match cost {
            Cost::Take(taken) => {
                let (swaps, address, policy) = (Arc::clone(self), address.clone(), *policy);
                let refund = async move { swaps.undo(&address, &policy, taken).await };
                Some(Undo::new(DueAfter::Done, &self.not_refunded, refund))
            }
            Cost::Peek | Cost::Refund(_) => None,
        };
        self.swap(&address, &step, &undo, until).await
    }

    /// Refunds what was acquired.
    async fn undo(
        &self,
        address: &StateAddress,
        policy: &Policy,
        taken: NonZeroU32,
    ) -> Result<(), Failure> {
        let step = Step {
            policy,
            cost: Cost::Refund(taken),
            is_acquired: true,
        };
        let until = Instant::now() + UNDO_TIMEOUT;
        self.swap(address, &step, &|| None, until).await.map(|_| ())
    }

    /// Tries until a swap succeeds. `undo` creates the undo of an acquire that no caller keeps.
    async fn swap(
        &self,
        address: &StateAddress,
        step: &Step<'_>,
        undo: &(dyn Fn() -> Option<Undo> + Sync),
        until: Instant,
    ) -> Result<AcquireOutcome, Failure> {
        let turn = address.turns.take(address.name.digest, until).await;
        let turn = turn.map_err(|reason| {
            let server = address.link.server().clone();
            match reason {
                TurnError::Busy => Failure::ClientBusy { server },
                TurnError::NoReply => Failure::NoReply { server },
            }
        })?;
        for tries in 1..=TRIES {
            let began = Instant::now();
            let swapped = address.swap(step, undo).await?;
            turn.note_reply();
            if let Some(swapped) = swapped {
                return Ok(swapped);
            }
            self.lost.fetch_add(1, Relaxed);
            let again_at = Instant::now() + pause(tries - 1, began.elapsed());
            if tries == TRIES || again_at >= until {
                drop(turn);
                self.gave_up.fetch_add(1, Relaxed);
                return Err(Failure::Contended { tries });
            }
            sleep_until(again_at).await;
        }
        unreachable!("the last try returns")
    }
}

/// Change of a state.
struct Step<'c> {
    policy: &'c Policy,
    cost: Cost,
    is_acquired: bool,
}

impl StateAddress {
    /// Tries once; returns `None` if another node was faster.
    async fn swap(
        &self,
        step: &Step<'_>,
        undo: &(dyn Fn() -> Option<Undo> + Sync),
    ) -> Result<Option<AcquireOutcome>, Failure> {
        let Step {
            policy,
            cost,
            is_acquired,
        } = *step;
        let (before, seen) = self.load().await?;
        let now = (self.now)();
        let without = policy.step(&mut before.clone(), now, Cost::Peek);
        let mut after = before.clone();
        let verdict = policy.step(&mut after, now, cost);
        let mut outcome = AcquireOutcome {
            verdict,
            without,
            acquired: None,
        };
        if is_acquired && verdict.is_allowed() && after != before {
            let value = value::encode(&after);
            let put = Command::Put {
                key: &self.name.state,
                value: &value,
                expected: seen,
                exptime: exptime(matters_for(policy, &verdict), now),
            };
            let response = self.link.acquire(&[put], undo()).await?;
            match response.replies.as_slice() {
                [Reply::Done] => outcome.acquired = response.acquired,
                // `Nothing`: the value that was read has expired meanwhile.
                [Reply::Conflict | Reply::Nothing] => return Ok(None),
                _ => return Err(self.link.unexpected_reply()),
            }
        }
        Ok(Some(outcome))
    }

    async fn load(&self) -> Result<(State, Parsed), Failure> {
        let key = &self.name.state;
        let replies = self.link.execute(&[Command::Get { key }]).await?;
        match replies.as_slice() {
            [Reply::Nothing] => Ok((State::New, Parsed::Nothing)),
            // A swap with it would overwrite any value.
            [
                Reply::Value {
                    unique: Some(0), ..
                },
            ] => Err(Failure::NoCas {
                server: self.link.server().clone(),
            }),
            [
                Reply::Value {
                    bytes,
                    unique: Some(unique),
                },
            ] => {
                let state = value::decode(bytes).ok_or_else(|| Failure::Foreign {
                    server: self.link.server().clone(),
                })?;
                Ok((state, Parsed::Value(*unique)))
            }
            _ => Err(self.link.unexpected_reply()),
        }
    }
}

impl fmt::Debug for StateAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StateAddress({:?})", self.name)
    }
}

/// Returns for how long a new state matters: until the limit is full again, and with an initial
/// burst until the client would count as new.
fn matters_for(policy: &Policy, verdict: &Verdict) -> DurationUs {
    verdict.full_after.max(policy.newcomer_after())
}

/// Returns a random pause after `lost` tries, of which the last one took `took`.
fn pause(lost: u32, took: Duration) -> Duration {
    let took = DurationUs(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    let DurationUs(longest) = pause_longest(lost, took);
    // Without randomness nodes would wait equally long and collide again.
    let random = u64::from(getrandom::u32().unwrap_or(u32::MAX));
    // At most a quarter of a second times 2^32 in microseconds: below 2^50.
    Duration::from_micros(longest.saturating_mul(random) >> 32)
}

#[cfg(test)]
mod tests {
    use anteroom_limit::rate::Rate;
    use anteroom_limit::token_bucket::{NEWCOMER_AFTER, TokenBucket};

    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let ms = Duration::from_millis;
        for (took, longest) in [
            (Duration::ZERO, [1, 2, 4, 8, 16, 32, 64, 128]),
            (ms(5), [5, 10, 20, 40, 80, 160, 250, 250]),
            (ms(900), [250; 8]),
        ] {
            for (lost, longest) in (0..TRIES).zip(longest) {
                let pauses: Vec<Duration> = (0..1_000).map(|_| pause(lost, took)).collect();
                assert!(pauses.iter().all(|pause| *pause <= ms(longest)), "{lost}");
                // One in 2^1000 times they are all in the lower half.
                let half = ms(longest) / 2;
                assert!(pauses.iter().any(|pause| *pause > half), "{lost}");
            }
        }
    }

    #[test]
    fn a_client_with_an_initial_burst_is_remembered_until_new_again() {
        let rate = Rate::new(10, DurationUs::from_secs(60)).unwrap();
        let check = |initial_burst, expected| {
            let policy = Policy::TokenBucket(TokenBucket::new(rate, 10, initial_burst).unwrap());
            let mut state = State::New;
            let now = anteroom_limit::time::TimestampUs(1);
            let verdict = policy.step(&mut state, now, Cost::take(10));
            assert_eq!(matters_for(&policy, &verdict), expected);
        };
        check(10, DurationUs::from_secs(60));
        check(20, NEWCOMER_AFTER);
    }
}
