//! Differences between the clock of this node and those of its stores and of other nodes.
//!
//! Nothing is decided by them. They are shown in the log, in `status`, in `/healthz` and as
//! metrics, because limits are promised only for nodes whose clocks agree, and a wrong clock of a
//! store is usually that of its machine.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anteroom_room::id::NodeId;
use anteroom_room::sync::OtherClock;
use anteroom_room::time::Timestamp;
use anteroom_store::{Clock, RecordKey, Store};
use parking_lot::Mutex;
use tokio::time::interval;

/// Largest difference that is no problem, in milliseconds.
const TOLERANCE_MS: i64 = 500;
/// Interval at which a store's clock is read: seldom, because each node asks the global store.
const READ_INTERVAL: Duration = Duration::from_secs(30);

/// Clock that is compared with that of this node.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum OtherOwner {
    /// `store.local`, or the only store.
    LocalStore,
    /// `store.global`.
    GlobalStore,
    /// Process of another node.
    Node(NodeId),
}

/// Difference of a clock from that of this node.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ClockDifference {
    /// Owner of the other clock.
    pub owner: OtherOwner,
    /// Milliseconds by which it is ahead; negative: behind.
    pub ahead_ms: i64,
}

impl std::fmt::Display for OtherOwner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::LocalStore => f.write_str("store.local"),
            Self::GlobalStore => f.write_str("store.global"),
            Self::Node(process) => write!(f, "node {:016x}", process.0),
        }
    }
}

impl ClockDifference {
    /// Whether it is larger than clocks may differ.
    #[must_use]
    pub fn is_large(self) -> bool {
        self.ahead_ms.abs() > TOLERANCE_MS
    }
}

/// Clocks that are compared with that of this node.
#[derive(Debug, Default)]
pub struct ClockWatch {
    /// Milliseconds by which the clocks of stores are ahead.
    stores: Mutex<BTreeMap<OtherOwner, i64>>,
    /// Clock of another node that is ahead, by room.
    nodes: Mutex<BTreeMap<String, ClockDifference>>,
}

impl ClockWatch {
    /// Returns the differences from the stores' clocks, large or not.
    #[must_use]
    pub fn stores(&self) -> Vec<ClockDifference> {
        let stores = self.stores.lock();
        let differences = stores
            .iter()
            .map(|(&owner, &ahead_ms)| ClockDifference { owner, ahead_ms });
        differences.collect()
    }

    /// Returns how far the clock of the node that is ahead most is ahead of this one's, in
    /// milliseconds; 0 if none is known to be ahead by more than clocks may differ.
    #[must_use]
    pub fn nodes_ahead_ms(&self) -> i64 {
        let nodes = self.nodes.lock();
        nodes.values().map(|node| node.ahead_ms).max().unwrap_or(0)
    }

    /// Returns all differences that are larger than clocks may differ.
    #[must_use]
    pub fn large(&self) -> Vec<ClockDifference> {
        let nodes: Vec<_> = self.nodes.lock().values().copied().collect();
        let mut all = self.stores();
        all.extend(nodes);
        all.retain(|difference| difference.is_large());
        all.sort_unstable_by_key(|difference| difference.owner);
        all.dedup_by_key(|difference| difference.owner);
        all
    }

    /// Notes the clock of another node, as a reply shows it that arrives at `now`. The reply is
    /// older, so a clock that is behind looks the same as one that is right.
    pub(crate) fn note_node(&self, room: &str, other: Option<OtherClock>, now: Timestamp) {
        let ahead = other.map(|other| ClockDifference {
            owner: OtherOwner::Node(other.process),
            ahead_ms: millis_between(other.at, now),
        });
        let large = ahead.filter(|difference| difference.is_large() && difference.ahead_ms > 0);
        let mut nodes = self.nodes.lock();
        let known = match large {
            Some(difference) => nodes.insert(room.to_owned(), difference),
            None => nodes.remove(room),
        };
        drop(nodes);
        log_change(known, large);
    }

    /// Notes a store's clock, which showed `shown` between `sent_at` and `received_at`.
    fn note_store(
        &self,
        owner: OtherOwner,
        shown: Timestamp,
        (sent_at, received_at): (Timestamp, Timestamp),
    ) {
        // The store read its clock at some moment in between, so the nearer end is certain.
        let least = millis_between(shown, received_at);
        let most = millis_between(shown, sent_at);
        let ahead_ms = 0_i64.clamp(least.min(most), most.max(least));
        let known = self.stores.lock().insert(owner, ahead_ms);
        let large =
            |ahead_ms| Some(ClockDifference { owner, ahead_ms }).filter(|known| known.is_large());
        log_change(known.and_then(large), large(ahead_ms));
    }
}

/// Logs a difference when it begins or ends.
fn log_change(known: Option<ClockDifference>, now: Option<ClockDifference>) {
    match (known, now) {
        (None, Some(difference)) => {
            let (owner, ahead_ms) = (difference.owner, difference.ahead_ms);
            tracing::warn!(
                %owner,
                ahead_ms,
                "its clock and the clock of this node differ by more than half a second: run NTP \
                 on both machines"
            );
        }
        (Some(difference), None) => {
            let owner = difference.owner;
            tracing::info!(%owner, "its clock and the clock of this node agree again");
        }
        _ => {}
    }
}

/// Compares a store's clock with that of this node, until the task ends.
pub(crate) async fn watch_store(
    watch: Arc<ClockWatch>,
    owner: OtherOwner,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
) {
    let mut ticks = interval(READ_INTERVAL);
    let key = RecordKey("clock".to_owned());
    loop {
        ticks.tick().await;
        let sent_at = clock.now();
        // The sync loops report a store that is unavailable.
        if let Ok(loaded) = store.load(&key).await {
            watch.note_store(owner, loaded.now, (sent_at, clock.now()));
        }
    }
}

fn millis_between(later: Timestamp, earlier: Timestamp) -> i64 {
    let millis = i128::from(later.0) - i128::from(earlier.0);
    i64::try_from(millis).unwrap_or(if millis > 0 { i64::MAX } else { i64::MIN })
}

#[cfg(test)]
mod tests {
    use super::*;
    use anteroom_room::time::DurationMs;

    const NOW: Timestamp = Timestamp(1_694_432_754_000);
    const TRIP: DurationMs = DurationMs(300);

    fn store_ahead(shown: Timestamp) -> i64 {
        let watch = ClockWatch::default();
        watch.note_store(OtherOwner::LocalStore, shown, (NOW, NOW + TRIP));
        watch.stores()[0].ahead_ms
    }

    #[test]
    fn only_the_certain_part_of_a_difference_counts() {
        assert_eq!(store_ahead(NOW + DurationMs(150)), 0, "during the trip");
        assert_eq!(store_ahead(NOW + TRIP + DurationMs(700)), 700);
        assert_eq!(store_ahead(NOW - DurationMs(700)), -700);
    }

    #[test]
    fn a_node_is_shown_while_it_is_ahead() {
        let watch = ClockWatch::default();
        let note = |ahead: u64| {
            let other = OtherClock {
                process: NodeId(7),
                at: NOW + DurationMs(ahead),
            };
            watch.note_node("shop", Some(other), NOW);
            watch.large()
        };
        assert_eq!(note(500), []);
        let owner = OtherOwner::Node(NodeId(7));
        let ahead_ms = 501;
        assert_eq!(note(501), [ClockDifference { owner, ahead_ms }]);
        assert_eq!(watch.nodes_ahead_ms(), 501);
        assert_eq!(note(0), []);
        assert_eq!(watch.nodes_ahead_ms(), 0);
    }
}
