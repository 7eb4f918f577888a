//! History of a room: what this node knows of it, and the rows of all nodes.

use std::sync::Arc;

use anteroom_history::{Query, Row, Sample};
use anteroom_room::room::Room;
use anteroom_room::time::Timestamp;
use anteroom_store::{HistoryName, StoreError};

use super::RoomHandle;
use crate::history::{OriginCounts, read};

impl RoomHandle {
    /// Sets where the responses of the room's origins are counted. A room on a site has those of
    /// the whole site.
    pub fn set_origin_counts(&self, counts: Arc<dyn OriginCounts>) {
        self.collector.lock().set_origin(counts);
    }

    /// Reads the rows of all nodes for a query. Those of the running minute are not written yet.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read.
    pub async fn history_rows(&self, query: &Query) -> Result<Vec<Row>, StoreError> {
        let store = self.shared.stores.of_history();
        read(&**store, &self.history_name(), query).await
    }

    /// Notes a reply of the ledger.
    pub(super) fn note_history(&self, room: &Room, now: Timestamp) {
        let snapshot = room.snapshot();
        let sample = Sample {
            at: now,
            active: snapshot.active,
            waiting: snapshot.waiting,
            limits: room.rules().limits,
        };
        self.collector.lock().note(sample, snapshot.root_as_of);
    }

    /// Moves the rows of minutes that have ended at `now` to those that wait for the store.
    pub(crate) fn collect_history(&self, node: u64, now: Timestamp) {
        let minutes = self.room.lock().take_figures(now);
        if minutes.is_empty() {
            return;
        }
        let rows = self.collector.lock().rows(&minutes, node);
        self.shared.history.add(&self.history_name(), rows);
    }

    fn history_name(&self) -> HistoryName {
        let shared = &self.shared;
        shared
            .stores
            .history_name(self.id.as_str(), shared.deployment_id)
    }
}
