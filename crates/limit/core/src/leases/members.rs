//! Members of a store: the nodes that may have leases from it.
//!
//! A store that comes back as another server may lack its newest writes. What it lacks are grants
//! to members. So each member reports what it was granted of late, and when all have reported, the
//! records are complete again ([`crate::leases::parent::restore`]). Until then nothing is granted.
//!
//! # Who is a member
//!
//! The members are in a record of the store. Nobody has leases whose entry the store could still
//! forget: a new member is granted nothing until its entry is older than the longest loss. A member
//! renews its entry, and is granted nothing while the last renewal is old. If an entry is not
//! renewed for long, others remove it. By then all grants to that member are older than the longest
//! loss, so a comeback does not need its report.
//!
//! # A member that does not report
//!
//! It may have died, and nobody knows what it was granted within the longest loss. Then the store
//! counts as having lost everything ([`crate::leases::epoch::Before::Lost`]), unless it keeps all
//! acknowledged writes.
//!
//! All times are those of one monotonic clock of the node. Only its own reads count towards the
//! silence of others: while the store is away, nobody can renew.

use alloc::vec::Vec;

use crate::leases::epoch::StoreIdentity;
use crate::time::{DurationUs, TimestampUs};

/// Time after which a member renews its entry.
pub const RENEW_AFTER: DurationUs = DurationUs::from_secs(3);

/// Time for which a renewal allows grants, from when it was sent.
pub const SAFE_FOR: DurationUs = DurationUs::from_secs(8);

/// Time without a renewal, or without a report, after which a member is given up. It is longer than
/// [`SAFE_FOR`] by more than a grant can be under way.
pub const SILENT_AFTER: DurationUs = DurationUs::from_secs(12);

/// Reads without a renewal or a report after which a member is given up. Nodes read once a second.
pub const SILENT_READS: u32 = 8;

/// Members at most. Nodes beyond are granted nothing.
pub const MEMBERS_MAX: usize = 1_000;

/// Entry of a member.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Member {
    /// Random number of the process.
    pub node: u64,
    /// Counter that rises with each renewal.
    pub renewals: u32,
    /// Store to which it has reported.
    pub reported_to: StoreIdentity,
}

/// Record of all members, in no order.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Members(pub Vec<Member>);

/// State of the reports to a store that came back as another server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reports {
    /// All members have reported.
    Complete,
    /// Some may still report.
    Missing,
    /// One will not report.
    Lost,
}

/// State of the epoch, as far as the node is concerned.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Phase {
    /// The epoch is in force.
    InForce,
    /// The store came back, and the node has not reported yet.
    Reporting,
    /// The store came back, and the node has reported.
    Reported,
}

/// Knowledge of a node about the members of one store, and its own part.
#[derive(Clone, Debug)]
pub struct Membership {
    node: u64,
    store: Option<SeenStore>,
    /// Time since which the store has its entry.
    listed_since: Option<TimestampUs>,
    /// Time at which the last renewal was sent.
    renewed_at: Option<TimestampUs>,
    others: Vec<SeenMember>,
}

/// Store as this node has seen it.
#[derive(Clone, Copy, Debug)]
struct SeenStore {
    identity: StoreIdentity,
    since: TimestampUs,
    reads: u32,
}

/// Entry of another member, and how long it has been the same.
#[derive(Clone, Copy, Debug)]
struct SeenMember {
    member: Member,
    since: TimestampUs,
    reads: u32,
}

impl Membership {
    /// Creates the knowledge of a node that has read nothing yet.
    #[must_use]
    pub fn new(node: u64) -> Self {
        Self {
            node,
            store: None,
            listed_since: None,
            renewed_at: None,
            others: Vec::new(),
        }
    }

    /// Learns the members as the node read them just now.
    pub fn handle_read(&mut self, members: &Members, identity: StoreIdentity, now: TimestampUs) {
        let known = self.store.filter(|store| store.identity == identity);
        let is_another = known.is_none();
        let mut store = known.unwrap_or(SeenStore {
            identity,
            since: now,
            reads: 0,
        });
        store.reads = store.reads.saturating_add(1);
        self.store = Some(store);
        if members.entry(self.node).is_none() {
            self.listed_since = None;
        }
        if self.listed_since.is_none() || is_another {
            self.renewed_at = None;
        }
        let before = core::mem::take(&mut self.others);
        let others = members.0.iter().filter(|member| member.node != self.node);
        self.others = others
            .map(|member| {
                let seen = before.iter().find(|seen| seen.member == *member);
                let seen = seen.filter(|_| !is_another).copied();
                let mut seen = seen.unwrap_or(SeenMember {
                    member: *member,
                    since: now,
                    reads: 0,
                });
                seen.reads = seen.reads.saturating_add(1);
                seen
            })
            .collect();
    }

    /// Returns the record to write over the one that was read last, if a write is due.
    #[must_use]
    pub fn poll_write(
        &self,
        members: &Members,
        longest_loss: DurationUs,
        phase: Phase,
        now: TimestampUs,
    ) -> Option<Members> {
        let identity = self.store?.identity;
        let own = members.entry(self.node);
        let can_vouch = phase != Phase::Reporting;
        let is_renewed = self
            .renewed_at
            .is_some_and(|renewed_at| now.since(renewed_at) < RENEW_AFTER);
        let is_due = match own {
            // It joins when it has reported.
            None => can_vouch && members.0.len() < MEMBERS_MAX,
            Some(own) => !is_renewed || (can_vouch && own.reported_to != identity),
        };
        if !is_due {
            return None;
        }
        let gone_after = SILENT_AFTER + longest_loss;
        let is_gone = |member: &Member| {
            // Before the reports are complete, nobody knows what a silent member was granted.
            let seen = self.others.iter().find(|seen| seen.member == *member);
            let is_silent = |seen: &SeenMember| {
                seen.reads >= SILENT_READS && now.since(seen.since) >= gone_after
            };
            phase == Phase::InForce && seen.is_some_and(is_silent)
        };
        let others = members.0.iter().filter(|member| member.node != self.node);
        let mut next: Vec<Member> = others.filter(|one| !is_gone(one)).copied().collect();
        let reported_to = own.map_or(identity, |own| own.reported_to);
        next.push(Member {
            node: self.node,
            renewals: own.map_or(0, |own| own.renewals.wrapping_add(1)),
            reported_to: if can_vouch { identity } else { reported_to },
        });
        Some(Members(next))
    }

    /// Records that a write of [`Self::poll_write`] succeeded. It was sent at `sent_at`.
    pub fn handle_written(&mut self, sent_at: TimestampUs, now: TimestampUs) {
        self.renewed_at = Some(sent_at);
        self.listed_since = self.listed_since.or(Some(now));
    }

    /// Whether the node may request leases.
    #[must_use]
    pub fn is_safe(&self, longest_loss: DurationUs, now: TimestampUs) -> bool {
        let is_kept = |since| now.since(since) > longest_loss;
        let is_fresh = |renewed_at| now.since(renewed_at) < SAFE_FOR;
        self.listed_since.is_some_and(is_kept) && self.renewed_at.is_some_and(is_fresh)
    }

    /// Whether the node waits until the store cannot forget its entry any more.
    #[must_use]
    pub fn is_joining(&self, longest_loss: DurationUs, now: TimestampUs) -> bool {
        let listed_since = self.listed_since;
        listed_since.is_some_and(|since| now.since(since) <= longest_loss)
    }

    /// Returns the state of the reports to the store that was read last. `longest_loss` is zero for
    /// a store that keeps all acknowledged writes: its records have all that a dead member was
    /// granted.
    #[must_use]
    pub fn reports(
        &self,
        members: &Members,
        longest_loss: DurationUs,
        now: TimestampUs,
    ) -> Reports {
        let Some(store) = self.store else {
            return Reports::Missing;
        };
        let mut each = members.0.iter();
        if each.all(|member| member.reported_to == store.identity) {
            return Reports::Complete;
        }
        let is_over = store.reads >= SILENT_READS && now.since(store.since) >= SILENT_AFTER;
        match (is_over, longest_loss) {
            (false, _) => Reports::Missing,
            (true, DurationUs::ZERO) => Reports::Complete,
            (true, _) => Reports::Lost,
        }
    }
}

impl Members {
    fn entry(&self, node: u64) -> Option<&Member> {
        self.0.iter().find(|member| member.node == node)
    }

    /// Returns the record without a member that has stopped, if it was one.
    #[must_use]
    pub fn without(&self, node: u64) -> Option<Self> {
        let others = self.0.iter().filter(|member| member.node != node);
        let others: Vec<Member> = others.copied().collect();
        (others.len() < self.0.len()).then_some(Self(others))
    }
}

#[cfg(test)]
mod tests;
