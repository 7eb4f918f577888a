//! Who keeps a connection counted, and who is told what happens to connections?

use std::io::Error as IoError;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::downstream::drain::DrainSignal;
use crate::downstream::lanes::Open;
use crate::downstream::table::{Claim, Entry, Place, Reclaimed, TurnedAway};

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

/// Keeps a connection counted, and tells when it must end; for what outlives the HTTP on it.
#[derive(Clone)]
pub struct ConnectionHold {
    pub(crate) signal: DrainSignal,
    counted: Arc<Counted>,
}

impl ConnectionHold {
    pub(crate) fn new(
        place: Place,
        observer: &Arc<dyn ConnectionObserver>,
        signal: DrainSignal,
        open: Open,
    ) -> Self {
        observer.opened();
        let counted = Arc::new(Counted {
            place,
            _open: open,
            written: Arc::default(),
            observer: Arc::clone(observer),
        });
        Self { signal, counted }
    }

    /// Resolves when draining has taken too long.
    pub async fn cut(&self) {
        self.signal.clone().cut().await;
    }

    /// So many bytes are on their way to the client.
    pub(crate) fn note_written(&self, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.counted.written.fetch_add(bytes, Relaxed);
    }

    /// All bytes that have gone to the client; whoever has this count does not keep the connection
    /// counted.
    pub(crate) fn written(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.counted.written)
    }

    /// What requests by this connection may say about it.
    #[must_use]
    pub fn claim(&self) -> Claim {
        Claim(Arc::clone(self.entry()))
    }

    pub(crate) fn entry(&self) -> &Arc<Entry> {
        self.counted.place.entry()
    }

    pub(crate) fn observer(&self) -> &dyn ConnectionObserver {
        &*self.counted.observer
    }
}

struct Counted {
    place: Place,
    _open: Open,
    /// Bytes that have gone to the client.
    written: Arc<AtomicU64>,
    observer: Arc<dyn ConnectionObserver>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.observer.closed();
    }
}

#[cfg(test)]
impl ConnectionHold {
    /// Of the only connection there is.
    pub(crate) fn alone(observer: &Arc<dyn ConnectionObserver>, signal: DrainSignal) -> Self {
        let table = crate::downstream::table::ConnectionTable::with_limit(10);
        let place = table.admit(([127, 0, 0, 1], 1).into(), &**observer);
        Self::new(place, observer, signal, Open::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::downstream::table::ConnectionTable;

    #[tokio::test]
    async fn what_outlives_http_counts_on_its_lane() {
        let lanes = crate::downstream::lanes::Lanes::start(1).unwrap();
        let observer: Arc<dyn ConnectionObserver> = Arc::new(Unobserved);
        let place = ConnectionTable::with_limit(2).admit(([127, 0, 0, 1], 1).into(), &*observer);
        let (_trigger, signal) = crate::downstream::drain::drain();
        let hold = ConnectionHold::new(place, &observer, signal, lanes.choose().open);
        let tunnel = hold.clone();
        drop(hold);
        assert_eq!(lanes.open(), [1]);
        drop(tunnel);
        assert_eq!(lanes.open(), [0]);
    }
}
