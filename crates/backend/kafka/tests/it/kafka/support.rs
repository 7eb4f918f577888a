//! What the tests have in common.

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
use anteroom_limit_store::CallKey;
use anteroom_limit_store::shared::{CountsError, SharedAcquire, SharedCounts as _, TestTime};
use anteroom_testkit::eventually;
use rdkafka::mocking::{MockCluster, MockCoordinator};
use rdkafka::producer::DefaultProducerContext;

/// A minute's beginning, and a day's.
pub(crate) const START: TimestampUs = TimestampUs(1_767_225_600_000_000);
pub(crate) const PARTITIONS: i32 = 4;

/// Brokers of a test, and the time by the nodes' clocks.
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

    /// Brokers of which the second leads these partitions of topics and the first all else, the
    /// group too.
    pub(crate) fn led_by_second(partitions: &[(&str, i32)]) -> Self {
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

    /// Nodes that hear each other.
    pub(crate) async fn nodes<const N: usize>(&self) -> [KafkaCounts; N] {
        let nodes = [(); N].map(|()| self.node());
        let policy = a_minute(1_000);
        // Each partition comes and goes by itself: so many clients of each node that they touch all
        // of them.
        let of = |at: u128| (0..24).map(move |client| 1_000 + 24 * at + client);
        let all = || (0..).take(N).flat_map(of);
        for (at, node) in (0..).zip(&nodes) {
            for client in of(at) {
                call(node, &policy, client, Cost::ONE).unwrap();
            }
        }
        eventually("all hear all", async || {
            let hears_all = |node| all().all(|client| left(node, &policy, client) == Some(999));
            nodes.iter().all(hears_all)
        })
        .await;
        nodes
    }
}

pub(crate) fn a_minute(calls: u32) -> Policy {
    policy(calls, Duration::from_secs(60))
}

pub(crate) fn policy(calls: u32, window: Duration) -> Policy {
    let window = DurationUs::from_secs(window.as_secs());
    let rate = Rate::new(calls, window).expect("it is in range");
    Policy::FixedWindow(FixedWindow::new(rate))
}

/// Charges a client.
pub(crate) fn call(
    counts: &KafkaCounts,
    policy: &Policy,
    client: u128,
    cost: Cost,
) -> Result<Verdict, CountsError> {
    let charge = SharedAcquire {
        limit: "api",
        policy,
        key: CallKey(client),
        cost,
    };
    let mut verdicts = Vec::new();
    let charged = counts.charge_now(&[charge], &mut verdicts);
    charged.expect("it decides by itself")?;
    Ok(verdicts[0])
}

/// What a client has left, as far as a node knows. `None` while the node finds itself away: on a
/// machine that is busy with other things it may be for a moment, and who waits for something waits
/// on.
pub(crate) fn left(counts: &KafkaCounts, policy: &Policy, client: u128) -> Option<u32> {
    let verdict = call(counts, policy, client, Cost::Peek);
    verdict.ok().map(|verdict| verdict.remaining)
}

pub(crate) fn event(counts: &KafkaCounts, word: &str) -> u64 {
    let mut events = counts.events().into_iter();
    let found = events.find(|(found, _)| *found == word);
    found.expect("it counts that").1
}
