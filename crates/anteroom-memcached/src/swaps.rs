//! A call that is counted by swapping a state: read it, decide, write it back if it is still the one that was read.
//!
//! If it is not, somebody else was faster, and all begins anew: a few times, after a pause that grows and that chance
//! shortens. Then the call is given up, uncounted. Calls of one node for one client wait for each other here, so a node
//! never loses against itself.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use anteroom_counts::shared::SharedCharge;
use anteroom_limits::algorithm::Algorithm as _;
use anteroom_limits::cost::Cost;
use anteroom_limits::policy::{Policy, State};
use anteroom_limits::time::MicroSpan;
use anteroom_limits::token_bucket::NEWCOMER_AFTER;
use anteroom_limits::verdict::Verdict;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use crate::counters::Judged;
use crate::counts::Now;
use crate::expiry::exptime;
use crate::failure::Failure;
use crate::keys::ClientName;
use crate::link::Link;
use crate::protocol::{Command, Reply, Seen};
use crate::value;

/// How often is tried. Pauses double, so the last ones are longer than a few nodes need for some calls each; fewer
/// tries give up there, and more hold a call for longer than counting it is worth.
pub(crate) const TRIES: u32 = 8;
/// The first pause is up to what the try took, and at least up to this, which is what timers can tell apart. Where
/// messages are slow, a pause that is not as long as they take would lead into the next conflict.
const PAUSE_FIRST: Duration = Duration::from_millis(1);
/// No pause is longer: a call waits for a second and a half in all.
const PAUSE_LONGEST: Duration = Duration::from_millis(250);
/// How many clients have a turn of their own; more than there are calls at once on a node that are for states.
const TURNS: usize = 64;

/// What all calls that are counted so have in common.
#[derive(Debug)]
pub(crate) struct Swaps {
    turns: Vec<Mutex<()>>,
    lost: AtomicU64,
    gave_up: AtomicU64,
}

/// A client's state at its server.
pub(crate) struct Place<'c> {
    pub(crate) link: &'c Link,
    pub(crate) name: &'c ClientName,
    pub(crate) now: &'c Now,
}

impl Swaps {
    pub(crate) fn new() -> Self {
        Self {
            turns: (0..TURNS).map(|_| Mutex::default()).collect(),
            lost: AtomicU64::new(0),
            gave_up: AtomicU64::new(0),
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

    /// Charges a call, or says what would become of it.
    pub(crate) async fn charge(
        &self,
        place: &Place<'_>,
        charge: &SharedCharge<'_>,
        is_charged: bool,
    ) -> Result<Judged, Failure> {
        let turn = self.turns[place.name.spread(TURNS)].lock().await;
        for lost in 0..TRIES {
            let began = Instant::now();
            let swapped = place.swap(charge, is_charged).await?;
            if let Some(judged) = swapped {
                return Ok(judged);
            }
            self.lost.fetch_add(1, Relaxed);
            if lost + 1 < TRIES {
                sleep(pause(lost, began.elapsed())).await;
            }
        }
        drop(turn);
        self.gave_up.fetch_add(1, Relaxed);
        Err(Failure::Contended { tries: TRIES })
    }
}

impl Place<'_> {
    /// One try; `None` if somebody else was faster.
    async fn swap(
        &self,
        charge: &SharedCharge<'_>,
        is_charged: bool,
    ) -> Result<Option<Judged>, Failure> {
        let (before, seen) = self.load().await?;
        let now = (self.now)();
        let SharedCharge { policy, cost, .. } = charge;
        let without = policy.step(&mut before.clone(), now, Cost::Peek);
        let mut after = before.clone();
        let verdict = policy.step(&mut after, now, *cost);
        let is_written = is_charged && verdict.is_admitted() && after != before;
        if is_written {
            let value = value::encode(&after);
            let put = Command::Put {
                key: &self.name.state,
                value: &value,
                expected: seen,
                exptime: exptime(matters_for(policy, &verdict), now),
            };
            match self.link.ask(&[put]).await?.as_slice() {
                [Reply::Done] => {}
                // Nothing: what was read has been forgotten meanwhile.
                [Reply::Conflict | Reply::Nothing] => return Ok(None),
                _ => return Err(self.link.unasked()),
            }
        }
        Ok(Some(Judged {
            verdict,
            without,
            added_to: None,
        }))
    }

    async fn load(&self) -> Result<(State, Seen), Failure> {
        let key = &self.name.state;
        let replies = self.link.ask(&[Command::Get { key }]).await?;
        match replies.as_slice() {
            [Reply::Nothing] => Ok((State::New, Seen::Nothing)),
            [
                Reply::Value {
                    bytes,
                    unique: Some(unique),
                },
            ] => {
                let state = value::decode(bytes).ok_or_else(|| Failure::Foreign {
                    server: self.link.server().clone(),
                })?;
                Ok((state, Seen::Value(*unique)))
            }
            _ => Err(self.link.unasked()),
        }
    }
}

/// For how long a state matters that was just written: until all is free again, and with an initial burst until a
/// client would be taken for a new one.
fn matters_for(policy: &Policy, verdict: &Verdict) -> MicroSpan {
    match policy {
        Policy::TokenBucket(bucket) if bucket.initial_burst() > bucket.capacity() => {
            let newcomer = NEWCOMER_AFTER.max(bucket.rate().window());
            verdict.full_after.max(newcomer)
        }
        _ => verdict.full_after,
    }
}

/// How long to wait after so many tries, of which the last took so long.
fn pause(lost: u32, took: Duration) -> Duration {
    let first = PAUSE_FIRST.max(took);
    let longest = first.saturating_mul(1 << lost.min(16)).min(PAUSE_LONGEST);
    // Without randomness nodes wait as long as each other, and find each other again.
    let random = u64::from(getrandom::u32().unwrap_or(u32::MAX));
    // At most a quarter of a second times 2^32 in microseconds: below 2^50.
    let longest = u64::try_from(longest.as_micros()).unwrap_or(u64::MAX);
    Duration::from_micros(longest.saturating_mul(random) >> 32)
}

#[cfg(test)]
mod tests {
    use anteroom_limits::rate::Rate;
    use anteroom_limits::token_bucket::TokenBucket;

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
    fn a_client_with_an_initial_burst_is_remembered_until_it_would_be_new() {
        let rate = Rate::new(10, MicroSpan::from_secs(60)).unwrap();
        let check = |initial_burst, expected| {
            let policy = Policy::TokenBucket(TokenBucket::new(rate, 10, initial_burst).unwrap());
            let mut state = State::New;
            let now = anteroom_limits::time::Micros(1);
            let verdict = policy.step(&mut state, now, Cost::take(10));
            assert_eq!(matters_for(&policy, &verdict), expected);
        };
        check(10, MicroSpan::from_secs(60));
        check(20, NEWCOMER_AFTER);
    }
}
