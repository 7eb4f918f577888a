//! How many connections may there be, and who counts them?

use std::io::Error as IoError;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::drain::DrainSignal;
use crate::lanes::Open;

/// Is told what happens to connections, to count it.
pub trait ConnectionObserver: Send + Sync {
    /// A connection was accepted.
    fn opened(&self) {}
    /// A connection, or the tunnel that it became, ended.
    fn closed(&self) {}
    /// The cap is reached: nothing is accepted until a connection ends.
    fn accept_paused(&self) {}
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

/// How many connections there may be at once, over all listeners that share it.
///
/// Each accept loop keeps one of them in hand for whoever comes next, so the cap should be well
/// above the number of loops.
#[derive(Clone, Debug)]
pub struct ConnectionCap {
    permits: Arc<Semaphore>,
    connections: u32,
}

impl ConnectionCap {
    /// A cap of `connections`, at least 1.
    #[must_use]
    pub fn new(connections: usize) -> Self {
        let most = u32::try_from(Semaphore::MAX_PERMITS).unwrap_or(u32::MAX);
        let connections = u32::try_from(connections).unwrap_or(most).clamp(1, most);
        let permits = usize::try_from(connections).unwrap_or(Semaphore::MAX_PERMITS);
        Self {
            permits: Arc::new(Semaphore::new(permits)),
            connections,
        }
    }

    /// Waits until no connection is left.
    pub(crate) async fn all_free(&self) {
        // The semaphore is never closed.
        let all = self.permits.acquire_many(self.connections).await;
        drop(all);
    }

    /// Waits until there may be one more connection.
    pub(crate) async fn permit(
        &self,
        observer: &dyn ConnectionObserver,
    ) -> Option<OwnedSemaphorePermit> {
        if let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() {
            return Some(permit);
        }
        observer.accept_paused();
        Arc::clone(&self.permits).acquire_owned().await.ok()
    }
}

/// Keeps a connection counted, and tells when it must end; for what outlives the HTTP on it.
#[derive(Clone)]
pub struct ConnectionHold {
    pub(crate) signal: DrainSignal,
    counted: Arc<Counted>,
}

impl ConnectionHold {
    pub(crate) fn new(
        permit: OwnedSemaphorePermit,
        observer: &Arc<dyn ConnectionObserver>,
        signal: DrainSignal,
        open: Open,
    ) -> Self {
        observer.opened();
        let counted = Arc::new(Counted {
            _permit: permit,
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

    /// All bytes that have gone to the client; whoever has this count does not keep the connection counted.
    pub(crate) fn written(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.counted.written)
    }

    pub(crate) fn observer(&self) -> &dyn ConnectionObserver {
        &*self.counted.observer
    }
}

struct Counted {
    _permit: OwnedSemaphorePermit,
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
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_outlives_http_counts_on_its_lane() {
        let lanes = crate::lanes::Lanes::start(1).unwrap();
        let permit = ConnectionCap::new(2).permit(&Unobserved).await.unwrap();
        let observer: Arc<dyn ConnectionObserver> = Arc::new(Unobserved);
        let (_trigger, signal) = crate::drain::drain();
        let hold = ConnectionHold::new(permit, &observer, signal, lanes.choose().open);
        let tunnel = hold.clone();
        drop(hold);
        assert_eq!(lanes.open(), [1]);
        drop(tunnel);
        assert_eq!(lanes.open(), [0]);
    }

    #[test]
    fn a_cap_is_at_least_one_and_at_most_what_can_be_counted() {
        assert_eq!(ConnectionCap::new(0).connections, 1);
        assert_eq!(ConnectionCap::new(7).permits.available_permits(), 7);
        assert!(ConnectionCap::new(usize::MAX).connections > 1_000_000);
    }
}
