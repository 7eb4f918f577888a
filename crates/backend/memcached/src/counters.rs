//! Acquires by adding to a counter.
//!
//! The counter of the current sub-window is added to first. Then all counters that matter are read,
//! on the same connection and in the same message. The server carries out both in that order, so
//! the last of all admitted requests has read what all others added ([`anteroom_limit::counters`]
//! proves that this is enough). A request that does not fit is undone. Until then it counts, so
//! another one may be rejected because of it; none is admitted because of it. A request whose
//! caller does not wait for the reply is undone, too ([`crate::undo`]).
//!
//! # Clocks
//!
//! A node whose clock is ahead adds to a sub-window that has not begun for another node. So each
//! node also reads the sub-windows that may have begun for any node before the reply, and its
//! request must fit there, too. That holds as long as clocks differ by no more than
//! [`CLOCKS_APART_MAX`].

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

/// Result of an acquire.
#[derive(Debug)]
pub(crate) struct AcquireOutcome {
    /// Verdict for the request.
    pub(crate) verdict: Verdict,
    /// State of the limit without the request.
    pub(crate) without: Verdict,
    /// Acquire, even of a rejected request.
    pub(crate) acquired: Option<Acquired>,
}

/// Request against one limit that is counted by adding.
pub(crate) struct CountedAcquire<'c> {
    pub(crate) link: &'c Link,
    pub(crate) name: &'c ClientName,
    pub(crate) counters: Counters,
    pub(crate) now: TimestampUs,
    /// Time after which the caller waits no more.
    pub(crate) timeout: Duration,
    pub(crate) not_refunded: &'c NotRefunded,
}

/// Counters as they were read.
struct Read {
    /// Counts, newest first.
    counts: Vec<u32>,
    /// Number of counts of later sub-windows than the current one.
    newer: usize,
    acquired: Option<Acquired>,
}

impl Read {
    /// Returns the counts of the current and the older sub-windows, newest first.
    fn known(&self) -> &[u32] {
        &self.counts[self.newer..]
    }
}

impl CountedAcquire<'_> {
    /// Acquires, or computes the verdict only. A refund may have a greatest age of the request that
    /// it refunds.
    pub(crate) async fn acquire(
        &self,
        acquire: &SharedAcquire<'_>,
        is_acquired: bool,
        age: Option<DurationUs>,
    ) -> Result<AcquireOutcome, Failure> {
        match acquire.cost {
            Cost::Take(taken) => self.take(taken.get(), is_acquired).await,
            Cost::Peek => {
                let read = self.read(None).await?;
                let verdict = self.judge_now(Cost::Peek, read.known());
                Ok(AcquireOutcome {
                    verdict,
                    without: verdict,
                    acquired: None,
                })
            }
            Cost::Refund(refunded) => self.refund(refunded.get(), is_acquired, age).await,
        }
    }

    async fn take(&self, taken: u32, is_acquired: bool) -> Result<AcquireOutcome, Failure> {
        let mut with = self.read(is_acquired.then_some(taken)).await?;
        let mut without = with.known().to_vec();
        // Beyond 32 bits it is over any limit with and without this request.
        if is_acquired {
            without[0] = without[0].saturating_sub(taken);
        } else {
            let own = with.newer;
            with.counts[own] = with.counts[own].saturating_add(taken);
        }
        let counters = &self.counters;
        let verdict =
            counters.decide_by_all_clocks(self.reading(), Cost::take(taken), &with.counts);
        let without = self.judge_now(Cost::Peek, &without);
        Ok(AcquireOutcome {
            verdict,
            without,
            acquired: with.acquired,
        })
    }

    /// Refunds from the newest counters on. If the age of the request is known, it refunds from the
    /// counters since then, the oldest first: the rest then counts for longer, and never for less
    /// time than it should. If other nodes refund meanwhile, less is found, and no counter goes
    /// below zero.
    async fn refund(
        &self,
        refunded: u32,
        is_acquired: bool,
        age: Option<DurationUs>,
    ) -> Result<AcquireOutcome, Failure> {
        let read = self.read(None).await?;
        let mut known = read.known().to_vec();
        let before = self.judge_now(Cost::Peek, &known);
        let mut left = refunded;
        let mut refunds = Vec::new();
        let mut available: Vec<_> = known.iter_mut().zip(self.known_indexes()).collect();
        if let Some(age) = age {
            let first = self.counters.index_at(self.now - age);
            available.retain(|(_, index)| *index >= first);
            available.reverse();
        }
        for (count, index) in available {
            let by = left.min(*count);
            if by > 0 {
                *count -= by;
                left -= by;
                refunds.push((self.name.counter(&self.counters, index), by));
            }
        }
        if is_acquired && !refunds.is_empty() {
            let commands = refunds
                .iter()
                .map(|(key, by)| Command::Subtract { key, by: *by });
            let commands: Vec<Command<'_>> = commands.collect();
            self.link.execute(&commands).await?;
        }
        Ok(AcquireOutcome {
            verdict: self.judge_now(Cost::refund(refunded), &known),
            without: before,
            acquired: None,
        })
    }

    /// Returns the undo of an addition to this counter; another one may be the newest by then.
    fn subtracting(&self, key: &str, by: u32) -> Undo {
        let (link, key) = (self.link.clone(), key.to_owned());
        Undo::new(DueAfter::Value, self.not_refunded, async move {
            let subtract = Command::Subtract { key: &key, by };
            link.execute(&[subtract]).await.map(drop)
        })
    }

    /// Adds, if there is something to add, and reads then. The result of the addition is the count
    /// of the current sub-window: of two simultaneous requests the first must not see the second,
    /// or both would be rejected.
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
        let response = self.link.acquire(&commands, undo).await?;
        let replies = response.replies;
        let Some((first, rest)) = replies.split_first() else {
            return Err(self.link.unexpected_reply());
        };
        let counts = rest.iter().map(|reply| self.count(reply));
        let mut counts: Vec<u32> = counts.collect::<Result<_, _>>()?;
        let newer = self.counters.not_begun(self.reading());
        counts.insert(newer, self.count(first)?);
        Ok(Read {
            counts,
            newer,
            acquired: response.acquired,
        })
    }

    /// Returns the count of a reply; a missing counter is zero.
    fn count(&self, reply: &Reply) -> Result<u32, Failure> {
        match reply {
            Reply::Nothing => Ok(0),
            Reply::Value { .. } => {
                let number = reply.number().ok_or_else(|| Failure::Foreign {
                    server: self.link.server().clone(),
                })?;
                Ok(u32::try_from(number).unwrap_or(u32::MAX))
            }
            _ => Err(self.link.unexpected_reply()),
        }
    }

    fn own(&self) -> String {
        let own = self.counters.index_at(self.now);
        self.name.counter(&self.counters, own)
    }

    fn known_indexes(&self) -> impl Iterator<Item = CounterIndex> + use<> {
        self.counters.to_read(AddThenRead::at_once(self.now))
    }

    /// Returns for how long from now a counter matters.
    fn matters_for(&self, index: CounterIndex) -> DurationUs {
        self.counters.ends_at(index).since(self.now)
    }

    /// Returns the counters to read: up to the latest time of the reply by any clock.
    fn reading(&self) -> AddThenRead {
        let timeout = u64::try_from(self.timeout.as_micros()).unwrap_or(u64::MAX);
        AddThenRead::ahead(self.now, CLOCKS_APART_MAX + DurationUs(timeout))
    }

    /// Decides by this node's own clock.
    fn judge_now(&self, cost: Cost, known: &[u32]) -> Verdict {
        self.counters.decide_now(self.now, cost, known)
    }
}
