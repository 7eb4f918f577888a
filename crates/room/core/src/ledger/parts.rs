//! Parts of a ledger, for a record: all of it but the sums.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use super::sums::Sums;
use super::{
    Child, DepartedChild, Group, Ledger, Logouts, Probation, RecentAdmissions, Reserve,
    RevokedList, Upstream,
};
use crate::id::{DataCenterId, Incarnation, NodeId};
use crate::store::StoreFacts;
use crate::sync::RoomFacts;
use crate::time::{DurationMs, Minute, Timestamp};

/// Parts of a [`Ledger`]; the ledger's fields of the same names explain them. Borrowed from a
/// ledger that is written, owned where one is read.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(missing_docs, reason = "documented at the fields of the ledger")]
pub struct LedgerParts<'a> {
    pub incarnation: Incarnation,
    pub store: StoreFacts,
    pub probation: Option<Probation>,
    pub upstream: Option<Cow<'a, Upstream>>,
    pub reserve: Option<Reserve>,
    pub has_reserved: bool,
    pub settings: Option<RoomFacts>,
    pub terms_version: u32,
    pub longest_seat: DurationMs,
    pub generation: u32,
    pub children: Cow<'a, BTreeMap<NodeId, Child>>,
    pub departed: Cow<'a, [DepartedChild]>,
    pub groups: Cow<'a, BTreeMap<DataCenterId, Group>>,
    pub settled_minutes: Cow<'a, BTreeMap<Minute, u32>>,
    pub recent: Cow<'a, RecentAdmissions>,
    pub revoked: Cow<'a, RevokedList>,
    pub logouts: Cow<'a, Logouts>,
    pub clock_at: Timestamp,
    pub began_at: Option<Timestamp>,
    pub as_of: Timestamp,
}

/// Error of parts that no sequence of transitions makes.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the ledger breaks the rule: {rule}")]
pub struct UnsoundLedger {
    /// Invariant that the parts break.
    pub rule: &'static str,
}

impl Ledger {
    /// Returns the parts, to write them down.
    #[must_use]
    pub fn to_parts(&self) -> LedgerParts<'_> {
        LedgerParts {
            incarnation: self.incarnation,
            store: self.store,
            probation: self.probation,
            upstream: self.upstream.as_deref().map(Cow::Borrowed),
            reserve: self.reserve,
            has_reserved: self.has_reserved,
            settings: self.settings,
            terms_version: self.terms_version,
            longest_seat: self.longest_seat,
            generation: self.generation,
            children: Cow::Borrowed(&self.children),
            departed: Cow::Borrowed(&self.departed),
            groups: Cow::Borrowed(&self.groups),
            settled_minutes: Cow::Borrowed(&self.settled_minutes),
            recent: Cow::Borrowed(&self.recent),
            revoked: Cow::Borrowed(&self.revoked),
            logouts: Cow::Borrowed(&self.logouts),
            clock_at: self.clock_at,
            began_at: self.began_at,
            as_of: self.as_of,
        }
    }

    /// Makes a ledger from its parts.
    ///
    /// # Errors
    ///
    /// [`UnsoundLedger`] if no sequence of transitions makes such a ledger.
    pub fn from_parts(parts: LedgerParts<'_>) -> Result<Self, UnsoundLedger> {
        let upstream = parts.upstream.map(Cow::into_owned);
        let mut ledger = Self {
            incarnation: parts.incarnation,
            store: parts.store,
            probation: parts.probation,
            upstream: upstream.map(Box::new),
            reserve: parts.reserve,
            has_reserved: parts.has_reserved,
            settings: parts.settings,
            terms_version: parts.terms_version,
            longest_seat: parts.longest_seat,
            generation: parts.generation,
            children: parts.children.into_owned(),
            departed: parts.departed.into_owned(),
            groups: parts.groups.into_owned(),
            settled_minutes: parts.settled_minutes.into_owned(),
            recent: parts.recent.into_owned(),
            revoked: parts.revoked.into_owned(),
            logouts: parts.logouts.into_owned(),
            clock_at: parts.clock_at,
            began_at: parts.began_at,
            as_of: parts.as_of,
            sums: Sums::default(),
        };
        ledger.check()?;
        ledger.rebuild_sums();
        Ok(ledger)
    }
}

impl PartialEq for Ledger {
    /// Compares the records; sums follow from those.
    fn eq(&self, other: &Self) -> bool {
        self.to_parts() == other.to_parts()
    }
}

impl Eq for Ledger {}
