//! What do a node and its parent say to each other? Counts and lengths of time, never a point in
//! time of the other's clock.

use crate::lending::epoch::EpochId;
use crate::time::DurationUs;

/// Which request. Never the same twice, whoever asks and for whomever: a node that has started anew
/// would take an answer to its predecessor for one to itself, and count the lease from too late.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RequestId {
    /// Drawn at random when the process started.
    pub incarnation: u64,
    /// Rises with each request of that process, to whichever client it belongs.
    pub number: u64,
}

/// What a node asks for one client.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Request {
    /// Its name.
    pub id: RequestId,
    /// Fewer are of no use. Zero asks how the limit stands.
    pub least: u32,
    /// For so many calls somebody waits, or would if they were not refused until then.
    pub wants: u32,
    /// With those that are expected. More are not wanted.
    pub most: u32,
}

/// What the parent says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Answer {
    /// To which request.
    pub id: RequestId,
    /// How many calls are lent: at least what was asked at least, or none.
    pub held: u32,
    /// For how long, from when the request was sent.
    pub ttl: DurationUs,
    /// In how long as many as were asked at least, and at least one, could be lent besides, if
    /// nobody else asks: zero if at once, `None` if never.
    pub retry_after: Option<DurationUs>,
    /// How many more could have been lent.
    pub remaining: u32,
    /// In how long the limit is wholly free if nobody calls.
    pub full_after: DurationUs,
    /// In which epoch.
    pub epoch: EpochId,
}
