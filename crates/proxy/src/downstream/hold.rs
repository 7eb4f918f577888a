//! What keeps a connection counted, also after it has left HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::downstream::connection_table::{Claim, ConnectionSlot, Entry};
use crate::downstream::drain::DrainSignal;
use crate::downstream::observer::ConnectionObserver;
use crate::downstream::workers::Open;

/// Keeps a connection counted, and tells when it must end; for what outlives the HTTP on it.
#[derive(Clone)]
pub struct ConnectionHold {
    pub(crate) signal: DrainSignal,
    counted: Arc<Counted>,
}

impl ConnectionHold {
    pub(crate) fn new(
        place: ConnectionSlot,
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
    place: ConnectionSlot,
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
        let table = crate::downstream::connection_table::ConnectionTable::with_limit(10);
        let place = table.admit(([127, 0, 0, 1], 1).into(), &**observer);
        Self::new(place, observer, signal, Open::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::downstream::connection_table::ConnectionTable;
    use crate::downstream::observer::Unobserved;

    #[tokio::test]
    async fn what_outlives_http_counts_on_its_worker() {
        let workers = crate::downstream::workers::Workers::start(1).unwrap();
        let observer: Arc<dyn ConnectionObserver> = Arc::new(Unobserved);
        let place = ConnectionTable::with_limit(2).admit(([127, 0, 0, 1], 1).into(), &*observer);
        let (_trigger, signal) = crate::downstream::drain::drain();
        let hold = ConnectionHold::new(place, &observer, signal, workers.choose().open);
        let tunnel = hold.clone();
        drop(hold);
        assert_eq!(workers.open(), [1]);
        drop(tunnel);
        assert_eq!(workers.open(), [0]);
    }
}
