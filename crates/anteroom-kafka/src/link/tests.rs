//! What is sent when the library takes no more.

use super::*;
use crate::board::SLOTS_MAX;
use crate::settings::LookBack;

const NOW: Micros = Micros(1_767_225_600_000_000);
const ID: NodeId = NodeId(1);

fn settings(brokers: &str) -> KafkaSettings {
    KafkaSettings {
        brokers: brokers.split(',').map(str::to_owned).collect(),
        prefix: "test".to_owned(),
        properties: Default::default(),
        look_back: LookBack::Everything,
    }
}

/// What counts events for metrics never goes back.
#[test]
fn what_the_library_does_not_take_is_not_told_and_was_never_counted() {
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
    let told = || link.node().events()[0];
    let before = told().1;
    link.node().divide(Lanes::among(20, 20).unwrap());
    link.node().tick(NOW, Duration::from_secs(10));
    let round = Arc::new(Round::default());
    assert!(!link.send_all("test-calls", &outgoing::CALLS, &round));
    let sent = told().1 - before;
    assert!((1..=10).contains(&sent), "{sent}");
    assert_eq!(told().0, "told");
    let left = link.node().calls_to_tell(100, Duration::from_secs(10));
    assert!(left.len() >= 10, "what was not sent is still to be told");
}
