//! Hold that keeps a connection counted, even after it has left HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::downstream::connection_table::{Claim, ConnectionSlot, Entry};
use crate::downstream::drain::DrainSignal;
use crate::downstream::observer::ConnectionObserver;
use crate::downstream::workers::Open;

/// Hold on a connection: keeps it counted and signals when it must end, for tunnels that outlive
/// HTTP.
#[derive(Clone)]
pub struct ConnectionHold {
    pub(crate) signal: DrainSignal,
    counted: Arc<Counted>,
}

impl ConnectionHold {
    pub(crate) fn new(
        slot: ConnectionSlot,
        observer: &Arc<dyn ConnectionObserver>,
        signal: DrainSignal,
        open: Open,
    ) -> Self {
        observer.opened();
        let counted = Arc::new(Counted {
            slot,
            _open: open,
            written: Arc::default(),
            observer: Arc::clone(observer),
        });
        Self { signal, counted }
    }

    /// Resolves when the drain timeout has passed.
    pub async fn cut(&self) {
        self.signal.clone().cut().await;
    }

    /// Counts bytes that were written to the client.
    pub(crate) fn note_written(&self, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.counted.written.fetch_add(bytes, Relaxed);
    }

    /// Returns the counter of bytes written to the client; it does not keep the connection counted.
    pub(crate) fn written(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.counted.written)
    }

    /// Returns a handle with which requests report on this connection.
    #[must_use]
    pub fn claim(&self) -> Claim {
        Claim(Arc::clone(self.entry()))
    }

    pub(crate) fn entry(&self) -> &Arc<Entry> {
        self.counted.slot.entry()
    }

    pub(crate) fn observer(&self) -> &dyn ConnectionObserver {
        &*self.counted.observer
    }
}

struct Counted {
    slot: ConnectionSlot,
    _open: Open,
    /// Bytes written to the client.
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
    /// Creates the hold of the only connection of a table.
    pub(crate) fn alone(observer: &Arc<dyn ConnectionObserver>, signal: DrainSignal) -> Self {
        let table = crate::downstream::connection_table::ConnectionTable::with_limit(10);
        let slot = table.admit(([127, 0, 0, 1], 1).into(), &**observer);
        Self::new(slot, observer, signal, Open::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::downstream::connection_table::ConnectionTable;
    use crate::downstream::observer::Unobserved;

    #[tokio::test]
    async fn a_tunnel_counts_on_its_worker() {
        let workers = crate::downstream::workers::Workers::start(1).unwrap();
        let observer: Arc<dyn ConnectionObserver> = Arc::new(Unobserved);
        let slot = ConnectionTable::with_limit(2).admit(([127, 0, 0, 1], 1).into(), &*observer);
        let (_trigger, signal) = crate::downstream::drain::drain();
        let hold = ConnectionHold::new(slot, &observer, signal, workers.choose().open);
        let tunnel = hold.clone();
        drop(hold);
        assert_eq!(workers.open(), [1]);
        drop(tunnel);
        assert_eq!(workers.open(), [0]);
    }
}
