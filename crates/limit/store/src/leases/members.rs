//! This node as a member of a store, and what it reports when the store comes back as another
//! server: [`anteroom_limit::leases::members`].

use std::collections::VecDeque;
use std::sync::Arc;

use crate::ClientKey;
use crate::lease_store::record::RecordError;
use crate::lease_store::{LeaseKey, Loaded, Partition, Swapped, Token, Write};
use anteroom_limit::leases::epoch::{Epoch, EpochId, StoreIdentity};
use anteroom_limit::leases::members::{Members, Membership, Phase};
use anteroom_limit::leases::parent::{self, Granted};
use anteroom_limit::leases::widened::LeasedLimit;
use anteroom_limit::time::{DurationUs, TimestampUs};
use futures_util::stream::{self, TryStreamExt as _};

use crate::leases::error::LeaseError;
use crate::leases::inner::Inner;
use crate::leases::lease_request::{Observed, SeenMembers, Settled};
use crate::leases::record;

/// Grants that a node remembers, at most, so that memory is bounded: 60,000 a second for the usual
/// longest loss. A node that has more requests no leases for a moment.
const GRANTS_MAX: usize = 250_000;

/// Grants that are reported at once.
const REPORTS_IN_FLIGHT: usize = 64;

/// Reads of a partition in one turn: to join, to report, and to see that all have.
const READS_MAX: u32 = 4;

/// Tries of a report while other nodes write first.
const TRIES_MAX: u32 = 64;

/// Time for which the record of members is kept: as long as a store can.
const KEPT_FOR: DurationUs = DurationUs(u64::MAX >> 16);

/// Grant of this node that the store may still forget.
#[derive(Clone, Debug)]
pub(crate) struct GrantEntry {
    pub(crate) limit: String,
    pub(crate) key: ClientKey,
    pub(crate) leased_limit: Arc<LeasedLimit>,
    pub(crate) granted: Granted,
    /// Token of the write.
    pub(crate) token: Token,
    pub(crate) epoch: EpochId,
}

/// Part of a node in a partition.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) membership: Membership,
    store: Option<SeenStore>,
    /// Grants, oldest first, with the time at which the store last confirmed each.
    grants: VecDeque<(TimestampUs, GrantEntry)>,
    /// Store to which all of them were reported.
    reported_to: Option<StoreIdentity>,
    /// Time until which a new epoch grants nothing to anybody.
    pub(crate) opens_at: TimestampUs,
    has_left: bool,
}

/// Partition as it was read.
struct Look {
    loaded: Loaded,
    members: Members,
    epoch: Settled,
}

#[derive(Clone, Copy, Debug)]
struct SeenStore {
    identity: StoreIdentity,
    /// Time at which the first request to it was sent.
    since: TimestampUs,
}

impl Part {
    pub(crate) fn new(node: u64) -> Self {
        Self {
            membership: Membership::new(node),
            store: None,
            grants: VecDeque::new(),
            reported_to: None,
            opens_at: TimestampUs(0),
            has_left: false,
        }
    }

    /// Learns the identity of the store from a reply to a request that was sent at `sent_at`.
    /// Returns whether the reply is of the current store: a late one may be of the one before.
    pub(crate) fn handle_store(&mut self, identity: StoreIdentity, sent_at: TimestampUs) -> bool {
        match self.store {
            Some(store) if sent_at < store.since => false,
            Some(store) if store.identity == identity => true,
            known => {
                let since = known.map_or(TimestampUs(0), |_| sent_at);
                self.store = Some(SeenStore { identity, since });
                self.reported_to = None;
                true
            }
        }
    }

    /// Whether leases may be requested from a store with this promise.
    pub(crate) fn check(
        &self,
        longest_loss: DurationUs,
        now: TimestampUs,
    ) -> Result<(), LeaseError> {
        if self.has_left || !self.membership.is_safe(longest_loss, now) {
            return Err(LeaseError::Joining);
        }
        if self.grants.len() >= GRANTS_MAX {
            return Err(LeaseError::TooManyInFlight);
        }
        Ok(())
    }

    /// Remembers a grant of the current store.
    pub(crate) fn handle_grant(&mut self, now: TimestampUs, entry: GrantEntry) {
        self.grants.push_back((now, entry));
    }

    /// Forgets grants that the store cannot forget any more: it replied to a request that was sent
    /// at `sent_at`. Whatever their epoch: the reply may be older than the newest one.
    fn forget(&mut self, longest_loss: DurationUs, sent_at: TimestampUs) {
        let is_kept = |confirmed_at| sent_at.since(confirmed_at) > longest_loss;
        while self.grants.front().is_some_and(|(at, _)| is_kept(*at)) {
            self.grants.pop_front();
        }
        if self.grants.capacity() / 4 > self.grants.len() {
            self.grants.shrink_to(self.grants.len() * 2);
        }
    }
}

impl Inner {
    /// Reads a partition, and does what is due there: begins an epoch, joins, renews, reports.
    pub(crate) async fn look(&self, partition: Partition) -> Result<(), LeaseError> {
        for _ in 0..READS_MAX {
            if self.look_once(partition).await? {
                break;
            }
        }
        Ok(())
    }

    /// Reads the epoch and the members of a partition, and begins an epoch if one is due.
    async fn read_members(&self, partition: Partition) -> Result<Look, LeaseError> {
        let sent_at = self.clock.now();
        let loaded = self.load(partition, Some(LeaseKey::MEMBERS)).await?;
        let members = self.members(&loaded)?;
        let now = self.clock.now();
        {
            let mut state = self.state(partition).lock();
            if !state.part.handle_store(loaded.identity, sent_at) {
                return Err(LeaseError::Unavailable);
            }
            let seen = members.clone().unwrap_or_default();
            let membership = &mut state.part.membership;
            membership.handle_read(&seen, loaded.identity, now);
        }
        let observed = Observed {
            loaded: &loaded,
            sent_at,
            members: members
                .as_ref()
                .map_or(SeenMembers::Damaged, SeenMembers::Read),
        };
        let epoch = self.settle(partition, observed).await?;
        if let Settled::InForce(epoch) = epoch {
            let mut state = self.state(partition).lock();
            state.part.opens_at = now + epoch.closed_for(loaded.now);
            if let Some(longest_loss) = epoch.longest_loss {
                state.part.forget(longest_loss, sent_at);
            }
        }
        Ok(Look {
            loaded,
            members: members.unwrap_or_default(),
            epoch,
        })
    }

    /// Returns whether nothing is left to do now.
    async fn look_once(&self, partition: Partition) -> Result<bool, LeaseError> {
        let Look {
            loaded,
            members,
            epoch,
        } = self.read_members(partition).await?;
        let (longest_loss, phase) = match epoch {
            Settled::Written => return Ok(false),
            Settled::InForce(epoch) => match epoch.longest_loss {
                None => return Ok(true),
                Some(longest_loss) => (longest_loss, Phase::InForce),
            },
            Settled::Reporting(epoch, longest_loss) => {
                self.report(partition, &loaded, &epoch, longest_loss)
                    .await?;
                (longest_loss, Phase::Reported)
            }
        };
        let now = self.clock.now();
        let due = {
            let state = self.state(partition).lock();
            let part = Some(&state.part).filter(|part| !part.has_left);
            part.and_then(|part| {
                part.membership
                    .poll_write(&members, longest_loss, phase, now)
            })
        };
        let Some(next) = due else {
            return Ok(true);
        };
        let sent_at = self.clock.now();
        let is_written = self.write_members(partition, &loaded, &next).await?;
        if is_written {
            let mut state = self.state(partition).lock();
            let membership = &mut state.part.membership;
            membership.handle_written(sent_at, self.clock.now());
        }
        // After a report the epoch may go on at once.
        Ok(is_written && phase == Phase::InForce)
    }

    /// Leaves all partitions, in good order: after a comeback nobody waits for this node.
    pub(crate) async fn leave(&self) {
        for partition in self.watched_partitions() {
            self.state(partition).lock().part.has_left = true;
            // A member that cannot leave is given up by others.
            let _ = self.leave_one(partition).await;
        }
    }

    async fn leave_one(&self, partition: Partition) -> Result<(), LeaseError> {
        for _ in 0..READS_MAX {
            let look = self.read_members(partition).await?;
            match look.epoch {
                Settled::Written => continue,
                Settled::InForce(_) => {}
                // Nobody waits for the report of a node that has left.
                Settled::Reporting(epoch, longest_loss) => {
                    self.report(partition, &look.loaded, &epoch, longest_loss)
                        .await?;
                }
            }
            let Some(next) = look.members.without(self.incarnation) else {
                return Ok(());
            };
            if self.write_members(partition, &look.loaded, &next).await? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Decodes the members; `None` if their record is damaged.
    fn members(&self, loaded: &Loaded) -> Result<Option<Members>, LeaseError> {
        let Some(kept) = &loaded.client else {
            return Ok(Some(Members::default()));
        };
        match record::decode_members(&kept.value) {
            Ok(members) => Ok(Some(members)),
            Err(RecordError::Version { found, known }) if found > known => {
                Err(LeaseError::NewerRecord)
            }
            Err(error) => {
                let store = self.store.store_name();
                tracing::error!(%error, store, "members record unreadable");
                Ok(None)
            }
        }
    }

    async fn write_members(
        &self,
        partition: Partition,
        loaded: &Loaded,
        members: &Members,
    ) -> Result<bool, LeaseError> {
        let write = Write {
            expected: loaded.expected(),
            token: Token(self.draws.token()),
            value: &record::encode_members(members),
        };
        let swap = self
            .store
            .swap(partition, LeaseKey::MEMBERS, write, KEPT_FOR);
        Ok(self.within(swap).await? == Swapped::Written)
    }

    /// Reports to a store that came back what it may lack, once.
    async fn report(
        &self,
        partition: Partition,
        loaded: &Loaded,
        epoch: &Epoch,
        longest_loss: DurationUs,
    ) -> Result<(), LeaseError> {
        let grants: Vec<GrantEntry> = {
            let state = self.state(partition).lock();
            if state.part.reported_to == Some(loaded.identity) {
                return Ok(());
            }
            let grants = state.part.grants.iter().map(|(_, entry)| entry);
            let grants = grants.filter(|entry| entry.epoch == epoch.id);
            grants.cloned().collect()
        };
        let restored = stream::iter(grants.iter().map(Ok))
            .try_for_each_concurrent(REPORTS_IN_FLIGHT, |entry| {
                self.restore(partition, loaded, epoch, longest_loss, entry)
            });
        restored.await?;
        tracing::info!(
            store = self.store.store_name(),
            grants = grants.len(),
            "store came back as another server: reported what it may lack"
        );
        let now = self.clock.now();
        let mut state = self.state(partition).lock();
        for (confirmed_at, _) in &mut state.part.grants {
            *confirmed_at = now;
        }
        state.part.reported_to = Some(loaded.identity);
        Ok(())
    }

    /// Restores a grant, if the store lacks it.
    async fn restore(
        &self,
        partition: Partition,
        came_back: &Loaded,
        epoch: &Epoch,
        longest_loss: DurationUs,
        entry: &GrantEntry,
    ) -> Result<(), LeaseError> {
        let client = LeaseKey {
            limit: &entry.limit,
            key: entry.key,
        };
        for _ in 0..TRIES_MAX {
            let loaded = self.load(partition, Some(client)).await?;
            let (expected, was) = (loaded.expected(), came_back.expected());
            if (expected.identity, expected.epoch) != (was.identity, was.epoch) {
                // Another node was faster, or the store went away again.
                return Err(LeaseError::Unavailable);
            }
            if expected.client == entry.token {
                return Ok(());
            }
            let kept = loaded.client.as_ref().map(|kept| kept.value.as_slice());
            let record = self.read(&entry.limit, &entry.leased_limit, epoch, kept)?;
            let write = parent::restore(
                &entry.leased_limit,
                epoch,
                record.as_ref(),
                entry.granted,
                loaded.now,
            );
            let Some(parent::Write {
                record,
                forget_after,
            }) = write
            else {
                return Ok(());
            };
            if longest_loss == DurationUs::ZERO {
                self.lose(partition, came_back, epoch).await?;
                return Err(LeaseError::Unavailable);
            }
            let write = Write {
                expected,
                token: Token(self.draws.token()),
                value: &crate::lease_store::record::encode(&record),
            };
            let swap = self.store.swap(partition, client, write, forget_after);
            if self.within(swap).await? == Swapped::Written {
                self.counters.restored.add(entry.granted.requests);
                return Ok(());
            }
        }
        Err(LeaseError::Contended { times: TRIES_MAX })
    }
}

#[cfg(test)]
mod tests {
    use anteroom_limit::policy::Policy;
    use anteroom_limit::rate::Rate;
    use anteroom_limit::sliding_log::SlidingLog;

    use super::*;

    const LOSS: DurationUs = DurationUs(100);
    const ID: EpochId = EpochId {
        number: 1,
        random: 1,
    };

    fn entry() -> GrantEntry {
        let rate = Rate::new(10, DurationUs::from_secs(60)).unwrap();
        let policy = Policy::SlidingLog(SlidingLog::new(rate).unwrap());
        GrantEntry {
            limit: "api".to_owned(),
            key: ClientKey(1),
            leased_limit: Arc::new(LeasedLimit::new(policy).unwrap()),
            granted: Granted {
                requests: 1,
                as_of: TimestampUs(0),
            },
            token: Token(1),
            epoch: ID,
        }
    }

    /// Otherwise a node would use a grant that it did not report.
    #[test]
    fn a_late_reply_of_an_earlier_store_does_not_count() {
        let mut part = Part::new(1);
        let mut check = |identity, sent_at, expected| {
            let is_current = part.handle_store(StoreIdentity(identity), TimestampUs(sent_at));
            assert_eq!(is_current, expected, "{identity} at {sent_at}");
        };
        check(1, 20, true);
        check(1, 10, true);
        check(2, 30, true);
        check(1, 29, false);
        check(2, 29, false);
        check(2, 31, true);
        // The first one is back, as after two failovers.
        check(1, 40, true);
        check(1, 39, false);
        check(2, 39, false);
    }

    #[test]
    fn a_grant_is_forgotten_when_the_store_cannot_forget_it_any_more() {
        let mut part = Part::new(1);
        part.handle_grant(TimestampUs(1_000), entry());
        part.handle_grant(TimestampUs(1_010), entry());
        part.forget(LOSS, TimestampUs(1_100));
        assert_eq!(part.grants.len(), 2);
        part.forget(LOSS, TimestampUs(1_101));
        assert_eq!(part.grants.len(), 1);
        // A reply to an earlier request confirms nothing.
        part.forget(LOSS, TimestampUs(900));
        assert_eq!(part.grants.len(), 1);
    }
}
