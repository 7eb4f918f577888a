//! A call that is counted by swapping a state: read it, decide, write it back if it is still the
//! one that was read.
//!
//! If it is not, somebody else was faster, and all begins anew: a few times, after a pause that
//! grows and that chance shortens. Then the call is given up, uncounted. Calls of one node for one
//! client wait for each other here ([`crate::turns`]), so a node never loses against itself.
//! Waiting and pauses end well before a call must have its answer, so that whoever waited for
//! others is told so, and not that the server were silent.

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
use crate::turns::{TurnError, Turns};
use crate::undo::{DueAfter, NotRefunded, Undo};
use crate::value;
use anteroom_limit_store::clock::Now;

/// How long a refund may wait that nobody waits for.
const UNDO_PATIENCE: Duration = Duration::from_secs(2);

/// What all calls that are counted so have in common.
#[derive(Debug, Default)]
pub(crate) struct Swaps {
    lost: AtomicU64,
    gave_up: AtomicU64,
    stayed: NotRefunded,
}

/// A client's state at its server.
#[derive(Clone)]
pub(crate) struct StateAddress {
    pub(crate) link: Link,
    pub(crate) turns: Turns,
    pub(crate) name: ClientName,
    pub(crate) now: Now,
}

impl Swaps {
    pub(crate) fn new(stayed: &NotRefunded) -> Self {
        Self {
            stayed: stayed.clone(),
            ..Self::default()
        }
    }

    /// How often somebody else was faster.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }

    /// How many calls were given up for that.
    pub(crate) fn gave_up(&self) -> u64 {
        self.gave_up.load(Relaxed)
    }

    /// Charges a call, or says what would become of it. Nothing is begun after `until`.
    pub(crate) async fn charge(
        self: &Arc<Self>,
        place: StateAddress,
        charge: &SharedAcquire<'_>,
        is_charged: bool,
        until: Instant,
    ) -> Result<AcquireOutcome, Failure> {
        let SharedAcquire { policy, cost, .. } = *charge;
        let step = Step {
            policy,
            cost,
            is_charged,
        };
        let undo = || match cost {
            Cost::Take(back) => {
                let (swaps, place, policy) = (Arc::clone(self), place.clone(), *policy);
                let refund = async move { swaps.undo(&place, &policy, back).await };
                Some(Undo::new(DueAfter::Done, &self.stayed, refund))
            }
            Cost::Peek | Cost::Refund(_) => None,
        };
        self.swap(&place, &step, &undo, until).await
    }

    /// Gives back what was charged.
    async fn undo(
        &self,
        place: &StateAddress,
        policy: &Policy,
        back: NonZeroU32,
    ) -> Result<(), Failure> {
        let step = Step {
            policy,
            cost: Cost::Refund(back),
            is_charged: true,
        };
        let until = Instant::now() + UNDO_PATIENCE;
        self.swap(place, &step, &|| None, until).await.map(|_| ())
    }

    /// `undo` makes what takes a charge back that nobody keeps.
    async fn swap(
        &self,
        place: &StateAddress,
        step: &Step<'_>,
        undo: &(dyn Fn() -> Option<Undo> + Sync),
        until: Instant,
    ) -> Result<AcquireOutcome, Failure> {
        let turn = place.turns.take(place.name.digest, until).await;
        let turn = turn.map_err(|why| {
            let server = place.link.server().clone();
            match why {
                TurnError::Crowded => Failure::Crowded { server },
                TurnError::Silent => Failure::Silent { server },
            }
        })?;
        for tries in 1..=TRIES {
            let began = Instant::now();
            let swapped = place.swap(step, undo).await?;
            turn.note_answer();
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
        unreachable!("the last try is the end")
    }
}

/// What is to become of a state.
struct Step<'c> {
    policy: &'c Policy,
    cost: Cost,
    is_charged: bool,
}

impl StateAddress {
    /// One try; `None` if somebody else was faster.
    async fn swap(
        &self,
        step: &Step<'_>,
        undo: &(dyn Fn() -> Option<Undo> + Sync),
    ) -> Result<Option<AcquireOutcome>, Failure> {
        let Step {
            policy,
            cost,
            is_charged,
        } = *step;
        let (before, seen) = self.load().await?;
        let now = (self.now)();
        let without = policy.step(&mut before.clone(), now, Cost::Peek);
        let mut after = before.clone();
        let verdict = policy.step(&mut after, now, cost);
        let mut judged = AcquireOutcome {
            verdict,
            without,
            charged: None,
        };
        if is_charged && verdict.is_admitted() && after != before {
            let value = value::encode(&after);
            let put = Command::Put {
                key: &self.name.state,
                value: &value,
                expected: seen,
                exptime: exptime(matters_for(policy, &verdict), now),
            };
            let answer = self.link.charge(&[put], undo()).await?;
            match answer.replies.as_slice() {
                [Reply::Done] => judged.charged = answer.charged,
                // Nothing: what was read has been forgotten meanwhile.
                [Reply::Conflict | Reply::Nothing] => return Ok(None),
                _ => return Err(self.link.unasked()),
            }
        }
        Ok(Some(judged))
    }

    async fn load(&self) -> Result<(State, Parsed), Failure> {
        let key = &self.name.state;
        let replies = self.link.ask(&[Command::Get { key }]).await?;
        match replies.as_slice() {
            [Reply::Nothing] => Ok((State::New, Parsed::Nothing)),
            // To swap with it would overwrite whatever is there.
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
            _ => Err(self.link.unasked()),
        }
    }
}

impl fmt::Debug for StateAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Place({:?})", self.name)
    }
}

/// For how long a state matters that was just written: until all is free again, and with an initial
/// burst until a client would be taken for a new one.
fn matters_for(policy: &Policy, verdict: &Verdict) -> DurationUs {
    verdict.full_after.max(policy.newcomer_after())
}

/// How long to wait after so many tries, of which the last took so long.
fn pause(lost: u32, took: Duration) -> Duration {
    let took = DurationUs(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    let DurationUs(longest) = pause_longest(lost, took);
    // Without randomness nodes wait as long as each other, and find each other again.
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
