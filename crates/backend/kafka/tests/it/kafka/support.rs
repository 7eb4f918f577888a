//! Helpers that the tests share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anteroom_kafka::{KafkaCounts, KafkaSettings, LookBack};
use anteroom_limit::cost::Cost;
use anteroom_limit::fixed_window::FixedWindow;
use anteroom_limit::policy::Policy;
use anteroom_limit::rate::Rate;
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit::verdict::Verdict;
use anteroom_limit_store::ClientKey;
use anteroom_limit_store::shared::{CountsError, SharedAcquire, SharedCounts as _, TestTime};
use anteroom_testkit::eventually;
use rdkafka::mocking::{MockCluster, MockCoordinator};
use rdkafka::producer::DefaultProducerContext;

/// Start of a minute and of a day.
pub(crate) const START: TimestampUs = TimestampUs(1_767_225_600_000_000);
pub(crate) const PARTITIONS: i32 = 4;

/// Brokers of a test, and the clock of the nodes.
pub(crate) struct Cluster {
    pub(crate) brokers: MockCluster<'static, DefaultProducerContext>,
    pub(crate) time: TestTime,
}

impl Cluster {
    pub(crate) fn start() -> Self {
        let brokers = MockCluster::new(2).unwrap();
        for topic in ["test-calls", "test-totals"] {
            brokers.create_topic(topic, PARTITIONS, 1).unwrap();
        }
        let time = TestTime::default();
        time.set(START);
        Self { brokers, time }
    }

    /// Starts brokers of which the second leads these partitions of topics and the first all others
    /// and the group.
    pub(crate) fn with_second_leading(partitions: &[(&str, i32)]) -> Self {
        let cluster = Self::start();
        for topic in ["test-calls", "test-totals"] {
            for partition in 0..PARTITIONS {
                let is_second = partitions.contains(&(topic, partition));
                let leader = if is_second { 2 } else { 1 };
                let led = &cluster.brokers;
                let led = led.partition_leader(topic, partition, Some(leader));
                led.unwrap();
            }
        }
        let group = MockCoordinator::Group("test-aggregate".to_owned());
        cluster.brokers.coordinator(group, 1).unwrap();
        cluster
    }

    pub(crate) fn settings(&self) -> KafkaSettings {
        let brokers = self.brokers.bootstrap_servers();
        KafkaSettings {
            brokers: brokers.split(',').map(str::to_owned).collect(),
            prefix: "test".to_owned(),
            properties: BTreeMap::new(),
            // The mock finds nothing by time.
            look_back: LookBack::Everything,
        }
    }

    pub(crate) fn node(&self) -> KafkaCounts {
        self.node_with(self.settings())
    }

    pub(crate) fn node_with(&self, settings: KafkaSettings) -> KafkaCounts {
        let time = self.time.clone();
        KafkaCounts::open(settings, Arc::new(move || time.now())).unwrap()
    }

    /// Starts nodes and waits until they receive each other's reports.
    pub(crate) async fn nodes<const N: usize>(&self) -> [KafkaCounts; N] {
        let nodes = [(); N].map(|()| self.node());
        let policy = a_minute(1_000);
        // Each partition becomes available on its own, so use enough clients of each node to touch
        // all.
        let of = |at: u128| (0..24).map(move |client| 1_000 + 24 * at + client);
        let all = || (0..).take(N).flat_map(of);
        for (at, node) in (0..).zip(&nodes) {
            for client in of(at) {
                call(node, &policy, client, Cost::ONE).unwrap();
            }
        }
        eventually("all nodes know all counts", async || {
            let knows_all = |node| all().all(|client| left(node, &policy, client) == Some(999));
            nodes.iter().all(knows_all)
        })
        .await;
        nodes
    }
}

pub(crate) fn a_minute(requests: u32) -> Policy {
    policy(requests, Duration::from_secs(60))
}

pub(crate) fn policy(requests: u32, window: Duration) -> Policy {
    let window = DurationUs::from_secs(window.as_secs());
    let rate = Rate::new(requests, window).expect("it is in range");
    Policy::FixedWindow(FixedWindow::new(rate))
}

/// Acquires for a client.
pub(crate) fn call(
    counts: &KafkaCounts,
    policy: &Policy,
    client: u128,
    cost: Cost,
) -> Result<Verdict, CountsError> {
    let acquire = SharedAcquire {
        limit: "api",
        policy,
        key: ClientKey(client),
        cost,
    };
    let mut verdicts = Vec::new();
    let decided = counts.try_acquire_now(&[acquire], &mut verdicts);
    decided.expect("kafka decides at once")?;
    Ok(verdicts[0])
}

/// Returns what a client has left, as far as a node knows. `None` while the node is cut off, which
/// may happen for a moment on a busy machine; callers keep waiting then.
pub(crate) fn left(counts: &KafkaCounts, policy: &Policy, client: u128) -> Option<u32> {
    let verdict = call(counts, policy, client, Cost::Peek);
    verdict.ok().map(|verdict| verdict.remaining)
}

pub(crate) fn event(counts: &KafkaCounts, word: &str) -> u64 {
    let mut events = counts.events().into_iter();
    let found = events.find(|(found, _)| *found == word);
    found.expect("the event is counted").1
}
