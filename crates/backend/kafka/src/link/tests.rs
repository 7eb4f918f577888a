//! Threads that end unexpectedly, and messages that the library does not accept.

use anteroom_testkit::eventually;
use rdkafka::mocking::MockCluster;

use super::*;
use crate::counter_table::SLOTS_MAX;

const NOW: TimestampUs = TimestampUs(1_767_225_600_000_000);
const ID: NodeId = NodeId(1);

fn settings(brokers: &str) -> KafkaSettings {
    KafkaSettings {
        brokers: brokers.split(',').map(str::to_owned).collect(),
        prefix: "test".to_owned(),
        properties: Default::default(),
        look_back: LookBack::Everything,
    }
}

/// Returns a clock that panics in the thread of this name once `is_failing` is set.
fn failing(thread: &'static str, is_failing: &Arc<AtomicBool>) -> Now {
    let is_failing = Arc::clone(is_failing);
    Arc::new(move || {
        let is_it = thread::current().name() == Some(thread);
        assert!(
            !(is_it && is_failing.load(Relaxed)),
            "this failure is intended"
        );
        NOW
    })
}

#[tokio::test]
async fn an_unexpected_end_of_any_thread_is_noticed() {
    let brokers = MockCluster::new(1).unwrap();
    for topic in ["test-calls", "test-totals"] {
        brokers.create_topic(topic, 1, 1).unwrap();
    }
    for name in ["kafka-publish", "kafka-aggregate", "kafka-listen"] {
        let is_failing = Arc::new(AtomicBool::new(false));
        let now = failing(name, &is_failing);
        let settings = settings(&brokers.bootstrap_servers());
        let (link, threads) = start(settings, ID, SLOTS_MAX, now).unwrap();
        eventually("it knows its partitions", async || {
            link.node().partitions().is_some()
        })
        .await;
        assert_eq!(link.ended(), 0, "{name}");
        is_failing.store(true, Relaxed);
        eventually("it is noticed", async || link.ended() == 1).await;
        link.stop();
        let failed = threads.into_iter().filter_map(|thread| thread.join().err());
        assert_eq!(failed.count(), 1, "{name}");
        assert_eq!(link.ended(), 1, "those that were stopped do not count");
    }
}

/// Event counters for metrics never decrease.
#[test]
fn messages_that_the_library_rejects_are_kept_and_not_counted() {
    let mut settings = settings("127.0.0.1:1");
    let few = ("queue.buffering.max.messages", "10");
    settings.properties = [few]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    let (link, threads) = start(settings, ID, SLOTS_MAX, Arc::new(|| NOW)).unwrap();
    link.stop();
    for thread in threads {
        thread.join().unwrap();
    }
    let published = || link.node().events()[0];
    let before = published().1;
    link.node().divide(Partitions::among(20, 20).unwrap());
    link.node().tick(NOW, Duration::from_secs(10));
    let round = Arc::new(Round::default());
    assert!(!link.send_all("test-calls", &outgoing::CALLS, &round));
    let sent = published().1 - before;
    assert!((1..=10).contains(&sent), "{sent}");
    assert_eq!(published().0, "published");
    let left = link.node().reports_to_send(100, Duration::from_secs(10));
    assert!(left.len() >= 10, "unsent reports are still pending");
}
