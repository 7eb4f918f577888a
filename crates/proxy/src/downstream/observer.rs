//! Events of connections, for counters.

use std::io::Error as IoError;

/// Observer of connection events.
pub trait ConnectionObserver: Send + Sync {
    /// Called when a connection was accepted.
    fn opened(&self) {}
    /// Called when a connection, or the tunnel that it became, ended.
    fn closed(&self) {}
    /// Called when accepting pauses until a closing connection has ended.
    fn accept_paused(&self) {}
    /// Called when an idle connection is closed to make room.
    fn reclaimed(&self, _reason: Reclaimed) {}
    /// Called when a connection was accepted only for an error response.
    fn turned_away(&self, _reason: TurnedAway) {}
    /// Called when accepting failed, most likely with too many files open.
    fn accept_failed(&self, _error: &IoError) {}
    /// Called when a TLS handshake failed or timed out, or the bytes were not TLS.
    fn handshake_failed(&self) {}
    /// Called when a connection was aborted because its bytes were not valid HTTP, or too slow.
    fn aborted(&self, _reason: AbortReason) {}
    /// Called for each request that the fast path has looked at.
    fn fast_path(&self, _taken: FastPathRequest) {}
}

/// Way that a request took on the fast path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FastPathRequest {
    /// Forwarded it.
    Forwarded,
    /// Decided that the gateway responds itself.
    Answered,
    /// Passed it through the layers, and wrote their response.
    Layers,
    /// Left it and its connection to hyper: its method, version or target.
    Start,
    /// Left it and its connection to hyper: a header, or the form of the head.
    Header,
    /// Left it and its connection to hyper: a body that is long, or does not come at once.
    Body,
    /// Left it and its connection to hyper: the connection is only for an error response.
    Client,
}

impl FastPathRequest {
    /// All variants, in the order of their numbers.
    pub const ALL: [Self; 7] = [
        Self::Forwarded,
        Self::Answered,
        Self::Layers,
        Self::Start,
        Self::Header,
        Self::Body,
        Self::Client,
    ];

    /// Returns the stable name for metrics.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Forwarded => "forwarded",
            Self::Answered => "answered",
            Self::Layers => "layers",
            Self::Start => "left_for_start",
            Self::Header => "left_for_header",
            Self::Body => "left_for_body",
            Self::Client => "left_for_client",
        }
    }
}

/// Reason to abort a connection.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum AbortReason {
    /// A request's framing means different things to different readers.
    Framing,
    /// A request head did not arrive in time.
    SlowHead,
    /// A request's body was too slow.
    SlowBody,
    /// The client did not read its response.
    SlowReader,
}

impl AbortReason {
    /// All variants.
    pub const ALL: [Self; 4] = [
        Self::Framing,
        Self::SlowHead,
        Self::SlowBody,
        Self::SlowReader,
    ];

    /// Returns the stable name for metrics.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Framing => "framing",
            Self::SlowHead => "slow_head",
            Self::SlowBody => "slow_body",
            Self::SlowReader => "slow_reader",
        }
    }
}

/// Observer that ignores all events.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl ConnectionObserver for Unobserved {}

/// Reason to close an idle connection.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Reclaimed {
    /// The table was full.
    Full,
    /// The client's address had reached its limit.
    Address,
}

impl Reclaimed {
    /// All variants.
    pub const ALL: [Self; 2] = [Self::Full, Self::Address];

    /// Returns the stable name for metrics.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Full => "total",
            Self::Address => "address",
        }
    }
}

/// Reason to reject every request of a connection.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum TurnedAway {
    /// The table is full, and every connection has a request on its way to an origin.
    Full,
    /// The client's address has reached its limit, and every connection of it has such a request.
    Address,
}

impl TurnedAway {
    /// All variants.
    pub const ALL: [Self; 2] = [Self::Full, Self::Address];

    /// Returns the stable name for metrics.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Address => "address",
        }
    }
}
