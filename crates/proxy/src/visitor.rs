//! What do rate limits and waiting rooms say to each other? Who it is that sends a request, and who
//! has to wait.
//!
//! Neither knows the other: both know these extensions of requests and responses.

/// An extension of a request that calls more often than it may: whoever is not inside waits,
/// whatever is free.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct OverLimit;

/// An extension of the answer to a request with [`OverLimit`] that could not be made to wait: no
/// room covers it, or it would have passed. It has not been passed on, and nobody but whoever asked
/// for the wait knows what to say. What cookies the answer sets are to be handed on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CannotWait;

/// A visitor who shows a good ticket.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct KnownVisitor {
    /// Its number, the same as in its ticket.
    pub id: [u8; 16],
    /// Whether it is inside, and does not only wait.
    pub is_inside: bool,
}
