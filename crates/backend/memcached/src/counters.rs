//! A call that is counted by adding to a number.
//!
//! The number of this stretch of time is added to first; behind that, on the same connection and in
//! the same message, the numbers are read that matter. The server carries out both in that order,
//! so whoever adds last of all that are admitted has read what all others added
//! ([`anteroom_limit::counters`] says why that is enough). A call that does not fit is taken back.
//! Until then it counts, so another may be rejected for it; none is admitted for it. So is one
//! whose caller does not wait for the answer ([`crate::undo`]).
//!
//! # Clocks
//!
//! A node whose clock is ahead adds to a stretch that has not begun for another one. So each node
//! also reads the stretches that may have begun for anybody before it has its answer, and its call
//! must fit there, too. That holds as far as clocks are apart by no more than [`CLOCKS_APART_MAX`].

use std::time::Duration;

use anteroom_limit::cost::Cost;
use anteroom_limit::counters::{AddThenRead, CounterIndex, Counters};
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit::verdict::Verdict;
use anteroom_limit_store::shared::SharedAcquire;

use crate::expiry::exptime;
use crate::failure::Failure;
use crate::keys::ClientName;
use crate::link::Link;
use crate::protocol::{Command, Reply};
use crate::undo::{Acquired, DueAfter, NotRefunded, Undo};
use anteroom_limit_store::clock::CLOCKS_APART_MAX;

/// What became of a call.
#[derive(Debug)]
pub(crate) struct AcquireOutcome {
    /// What it is told.
    pub(crate) verdict: Verdict,
    /// How the limit stands without it.
    pub(crate) without: Verdict,
    /// What it was charged, even if it is rejected.
    pub(crate) charged: Option<Acquired>,
}

/// One call against one limit that is counted so.
pub(crate) struct CountedAcquire<'c> {
    pub(crate) link: &'c Link,
    pub(crate) name: &'c ClientName,
    pub(crate) counters: Counters,
    pub(crate) now: TimestampUs,
    /// After that nobody waits for an answer.
    pub(crate) timeout: Duration,
    pub(crate) stayed: &'c NotRefunded,
}

/// Numbers as they were read.
struct Read {
    /// Newest first.
    counts: Vec<u32>,
    /// How many of them began later than ours.
    newer: usize,
    charged: Option<Acquired>,
}

impl Read {
    /// Of ours and the older ones, newest first.
    fn known(&self) -> &[u32] {
        &self.counts[self.newer..]
    }
}

impl CountedAcquire<'_> {
    /// Charges a call, or says what would become of it. A refund may say how old at most is what it
    /// gives back.
    pub(crate) async fn charge(
        &self,
        charge: &SharedAcquire<'_>,
        is_charged: bool,
        age: Option<DurationUs>,
    ) -> Result<AcquireOutcome, Failure> {
        match charge.cost {
            Cost::Take(taken) => self.take(taken.get(), is_charged).await,
            Cost::Peek => {
                let read = self.read(None).await?;
                let verdict = self.judge_now(Cost::Peek, read.known());
                Ok(AcquireOutcome {
                    verdict,
                    without: verdict,
                    charged: None,
                })
            }
            Cost::Refund(back) => self.refund(back.get(), is_charged, age).await,
        }
    }

    async fn take(&self, taken: u32, is_charged: bool) -> Result<AcquireOutcome, Failure> {
        let mut with = self.read(is_charged.then_some(taken)).await?;
        let mut without = with.known().to_vec();
        // Beyond 32 bits it is over any limit with and without this call.
        if is_charged {
            without[0] = without[0].saturating_sub(taken);
        } else {
            let own = with.newer;
            with.counts[own] = with.counts[own].saturating_add(taken);
        }
        let counters = &self.counters;
        let verdict = counters.judge_by_all_clocks(self.reading(), Cost::take(taken), &with.counts);
        let without = self.judge_now(Cost::Peek, &without);
        Ok(AcquireOutcome {
            verdict,
            without,
            charged: with.charged,
        })
    }

    /// Takes from the newest counters on; or, where it is known since when it may have been
    /// charged, from those of that time, the oldest first: what is left counts for longer then, and
    /// never for less long than it should. Others may take as well meanwhile: then less is found,
    /// and nothing goes below zero.
    async fn refund(
        &self,
        back: u32,
        is_charged: bool,
        age: Option<DurationUs>,
    ) -> Result<AcquireOutcome, Failure> {
        let read = self.read(None).await?;
        let mut known = read.known().to_vec();
        let before = self.judge_now(Cost::Peek, &known);
        let mut left = back;
        let mut taken = Vec::new();
        let mut places: Vec<_> = known.iter_mut().zip(self.known_indexes()).collect();
        if let Some(age) = age {
            let first = self.counters.index_at(self.now - age);
            places.retain(|(_, index)| *index >= first);
            places.reverse();
        }
        for (count, index) in places {
            let by = left.min(*count);
            if by > 0 {
                *count -= by;
                left -= by;
                taken.push((self.name.counter(&self.counters, index), by));
            }
        }
        if is_charged && !taken.is_empty() {
            let commands = taken
                .iter()
                .map(|(key, by)| Command::Subtract { key, by: *by });
            let commands: Vec<Command<'_>> = commands.collect();
            self.link.ask(&commands).await?;
        }
        Ok(AcquireOutcome {
            verdict: self.judge_now(Cost::refund(back), &known),
            without: before,
            charged: None,
        })
    }

    /// Takes an addition back, from the very counter to which was added: another may be the newest
    /// by then.
    fn subtracting(&self, key: &str, by: u32) -> Undo {
        let (link, key) = (self.link.clone(), key.to_owned());
        Undo::new(DueAfter::Value, self.stayed, async move {
            let subtract = Command::Subtract { key: &key, by };
            link.ask(&[subtract]).await.map(drop)
        })
    }

    /// Adds, if there is something to add, and reads behind that. What an addition came to is what
    /// counts of its own stretch: of two calls that come at once, the first must not see the
    /// second, or both would be rejected.
    async fn read(&self, add: Option<u32>) -> Result<Read, Failure> {
        let own = self.counters.index_at(self.now);
        let own_name = self.own();
        let others = self.counters.to_read(self.reading());
        let others: Vec<CounterIndex> = others.filter(|index| *index != own).collect();
        let names: Vec<String> = others
            .iter()
            .map(|index| self.name.counter(&self.counters, *index))
            .collect();
        let first = match add {
            Some(by) => Command::Add {
                key: &own_name,
                by,
                exptime: exptime(self.matters_for(own), self.now),
            },
            None => Command::Get { key: &own_name },
        };
        let gets = names.iter().map(|key| Command::Get { key });
        let commands: Vec<Command<'_>> = [first].into_iter().chain(gets).collect();
        let undo = add.map(|by| self.subtracting(&own_name, by));
        let answer = self.link.charge(&commands, undo).await?;
        let replies = answer.replies;
        let Some((first, rest)) = replies.split_first() else {
            return Err(self.link.unasked());
        };
        let counts = rest.iter().map(|reply| self.count(reply));
        let mut counts: Vec<u32> = counts.collect::<Result<_, _>>()?;
        let newer = self.counters.not_begun(self.reading());
        counts.insert(newer, self.count(first)?);
        Ok(Read {
            counts,
            newer,
            charged: answer.charged,
        })
    }

    /// A number that is not there is zero.
    fn count(&self, reply: &Reply) -> Result<u32, Failure> {
        match reply {
            Reply::Nothing => Ok(0),
            Reply::Value { .. } => {
                let number = reply.number().ok_or_else(|| Failure::Foreign {
                    server: self.link.server().clone(),
                })?;
                Ok(u32::try_from(number).unwrap_or(u32::MAX))
            }
            _ => Err(self.link.unasked()),
        }
    }

    fn own(&self) -> String {
        let own = self.counters.index_at(self.now);
        self.name.counter(&self.counters, own)
    }

    fn known_indexes(&self) -> impl Iterator<Item = CounterIndex> + use<> {
        self.counters.to_read(AddThenRead::at_once(self.now))
    }

    /// For how long from now a counter matters.
    fn matters_for(&self, index: CounterIndex) -> DurationUs {
        self.counters.ends_at(index).since(self.now)
    }

    /// Until then the answer is there, by any clock.
    fn reading(&self) -> AddThenRead {
        let timeout = u64::try_from(self.timeout.as_micros()).unwrap_or(u64::MAX);
        AddThenRead::ahead(self.now, CLOCKS_APART_MAX + DurationUs(timeout))
    }

    /// By this node's own clock.
    fn judge_now(&self, cost: Cost, known: &[u32]) -> Verdict {
        self.counters.judge_now(self.now, cost, known)
    }
}
