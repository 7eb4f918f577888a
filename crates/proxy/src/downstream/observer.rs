//! What happens to connections, told to whoever counts it.

use std::io::Error as IoError;

/// Is told what happens to connections, to count it.
pub trait ConnectionObserver: Send + Sync {
    /// A connection was accepted.
    fn opened(&self) {}
    /// A connection, or the tunnel that it became, ended.
    fn closed(&self) {}
    /// Nothing is accepted until a connection ends that was told to.
    fn accept_paused(&self) {}
    /// An idle connection was told to end, to make room.
    fn reclaimed(&self, _why: Reclaimed) {}
    /// A connection was accepted, and gets nothing but a refusal.
    fn turned_away(&self, _why: TurnedAway) {}
    /// Accepting failed, with most likely too many files open.
    fn accept_failed(&self, _error: &IoError) {}
    /// A TLS handshake failed or took too long, or what came was not TLS.
    fn handshake_failed(&self) {}
    /// A connection was broken off because what came by it was no sane HTTP, or came too slowly.
    fn broken_off(&self, _why: BrokenOff) {}
}

/// Why a connection was broken off.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum BrokenOff {
    /// A request's framing means different things to different readers.
    Framing,
    /// A request head did not come in time.
    SlowHead,
    /// A request's body came too slowly.
    SlowBody,
    /// The client did not take what was sent to it.
    SlowReader,
}

impl BrokenOff {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Framing,
        Self::SlowHead,
        Self::SlowBody,
        Self::SlowReader,
    ];

    /// Stable name for metrics.
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

/// An observer that looks away.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl ConnectionObserver for Unobserved {}

/// Why an idle connection was ended.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Reclaimed {
    /// There were too many connections.
    Crowded,
    /// There were too many from its address.
    Address,
}

impl Reclaimed {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Crowded, Self::Address];

    /// Stable name for metrics.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Crowded => "total",
            Self::Address => "address",
        }
    }
}

/// Why a connection is answered with a refusal, whatever it asks for.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum TurnedAway {
    /// Each of the connections that there may be has a request on its way to an origin.
    Full,
    /// So has each of those that its address may have.
    Address,
}

impl TurnedAway {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Full, Self::Address];

    /// Stable name for metrics.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Address => "address",
        }
    }
}
