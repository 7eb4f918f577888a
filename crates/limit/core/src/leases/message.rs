//! Messages between a node and its parent. They carry counts and durations, never a point in time
//! of the other's clock.

use crate::leases::epoch::EpochId;
use crate::time::DurationUs;

/// Identifier of a request, unique across nodes and clients. Otherwise a restarted node could take
/// the reply to its predecessor for its own, and time the lease from too late.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RequestId {
    /// Random number drawn when the process started.
    pub incarnation: u64,
    /// Counter that rises with each request of that process, for any client.
    pub number: u64,
}

/// Request of a node for one client's lease.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Request {
    /// Identifier.
    pub id: RequestId,
    /// Smallest useful grant. Zero queries the state of the limit.
    pub least: u32,
    /// Requests that wait. During a shortage also those that are rejected until the next message.
    pub waiting: u32,
    /// Largest useful grant: `waiting` and the expected requests.
    pub most: u32,
}

/// Reply of the parent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LeaseReply {
    /// Request that it answers.
    pub id: RequestId,
    /// Granted requests: none, or not less than `least` of the request.
    pub granted: u32,
    /// Length of the lease, from when the request was sent.
    pub ttl: DurationUs,
    /// Time until `least` more requests (at least one) could be granted if no other node takes any:
    /// zero for now, `None` for never.
    pub retry_after: Option<DurationUs>,
    /// Requests that could still be granted.
    pub remaining: u32,
    /// Time until the limit is fully free if no request comes.
    pub full_after: DurationUs,
    /// Time for which a rejection may be due to what the store lost, and not to the client.
    pub uncertain_for: DurationUs,
    /// Epoch of the grant.
    pub epoch: EpochId,
}
