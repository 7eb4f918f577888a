//! Requests that writers left beside a record, as a load returns them.

use anteroom_room::ledger_exchange::left_order;
use anteroom_room::sync::SyncRequest;

use crate::store::{LeftId, LeftRequest, Loaded};
use crate::wire::ledger::left_request;

/// Requests that are left beside a loaded record.
pub(crate) struct LeftRequests {
    /// Whether the own request is among them.
    pub(crate) is_own_left: bool,
    /// Requests of other writers, the oldest first.
    pub(crate) of_others: Vec<SyncRequest>,
    /// Requests that the next write makes superfluous: all, unreadable ones included.
    pub(crate) to_remove: Vec<LeftId>,
}

impl LeftRequests {
    pub(crate) fn of(loaded: &Loaded, own: Option<&LeftRequest>) -> Self {
        let is_own = |left: &LeftRequest| own.is_some_and(|own| own.id == left.id);
        let of_others = loaded.left.iter().filter(|left| !is_own(left));
        let of_others = of_others.filter_map(|left| {
            let request = left_request::decode(&left.value)?;
            (LeftId::of(&request) == left.id).then_some(request)
        });
        let mut of_others: Vec<_> = of_others.collect();
        // A store returns them in any order.
        of_others.sort_by_key(left_order);
        Self {
            is_own_left: loaded.left.iter().any(is_own),
            of_others,
            to_remove: loaded.left.iter().map(|left| left.id.clone()).collect(),
        }
    }
}

/// Returns a request as it is left; `None` if it is too long.
pub(crate) fn to_leave(request: &SyncRequest) -> Option<LeftRequest> {
    Some(LeftRequest {
        id: LeftId::of(request),
        value: left_request::encode(request)?,
    })
}
