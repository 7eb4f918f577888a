//! Properties that hold for any bytes; called by fuzzers and by the tests.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anteroom_limit::time::TimestampUs;
use parking_lot::Mutex;

use crate::cell::WriterId;
use crate::counter_table::CounterTable;
use crate::message::{BODY_LARGEST, CounterReport, Message, Packer};
use crate::node::{Node, NodeSettings};
use crate::seal::Secret;

/// Clock of the receiving node.
pub const NOW: TimestampUs = TimestampUs(1_767_225_600_000_000);

/// Checks a message of a node that knows the secret: it never causes a panic, counters that can be
/// read are written so that they read the same, and receiving them twice changes nothing more.
///
/// # Panics
///
/// If a property does not hold.
pub fn bodies(bytes: &[u8]) {
    let (mut node, table) = node();
    node.handle_body(Duration::from_secs(1), NOW, bytes);
    node.poll(Duration::from_secs(2), NOW);
    let once = table.lock().sums();
    node.handle_body(Duration::from_secs(3), NOW, bytes);
    assert_eq!(table.lock().sums(), once, "received twice");
    if let Some(Message::Counters { sent_at, reports }) = Message::read(bytes) {
        assert_eq!(reencode(sent_at, &reports), reports, "written and read");
    }
}

/// Checks a datagram that is not sealed with the secret: it changes nothing.
///
/// # Panics
///
/// If a property does not hold.
pub fn datagrams(bytes: &[u8]) {
    let (mut node, table) = node();
    assert!(!node.handle_datagram(Duration::from_secs(1), NOW, bytes));
    assert!(table.lock().is_empty() && node.take_outbox().is_empty());
}

/// Returns a message of counters, for a corpus.
///
/// # Panics
///
/// Never: a packer for one message makes one.
#[must_use]
pub fn a_message(counters: u64) -> Vec<u8> {
    let me = WriterId(7);
    let mut packer = Packer::new(me, NOW, 1);
    for at in 0..counters {
        let mut report = CounterReport {
            id: crate::cell::CounterId {
                name: u128::MAX - u128::from(at),
                width: 60_000_000,
                index: 29_453_760,
            },
            forget_at: TimestampUs(NOW.0 + 65_000_000),
            shares: smallvec::SmallVec::new(),
        };
        for writer in 7..=7 + at % 3 {
            report.shares.push(crate::cell::Share {
                writer: WriterId(writer),
                added: at * 100 + 1,
                refunded: at % 2,
            });
        }
        assert!(packer.push(&report));
    }
    packer.into_bodies().remove(0)
}

fn reencode(sent_at: TimestampUs, reports: &[CounterReport]) -> Vec<CounterReport> {
    // The sender is not kept apart from the shares: each is written with its own number.
    let mut packer = Packer::new(WriterId(0), sent_at, reports.len());
    for report in reports {
        assert!(packer.push(report));
    }
    let bodies = packer.into_bodies();
    assert!(bodies.iter().all(|body| body.len() <= BODY_LARGEST));
    let read = bodies.iter().flat_map(|body| match Message::read(body) {
        Some(Message::Counters { reports, .. }) => reports,
        _ => Vec::new(),
    });
    read.collect()
}

fn node() -> (Node, Arc<Mutex<CounterTable>>) {
    let secret = Secret::new(b"a secret for fuzzing").expect("it is long enough");
    let table = Arc::new(Mutex::new(CounterTable::new(WriterId(1), &secret, 1_000)));
    let settings = NodeSettings {
        address: SocketAddr::from(([127, 0, 0, 1], 7_946)),
        generation: 1,
        interval: Duration::from_millis(100),
        seed: 1,
    };
    (Node::new(settings, secret, Arc::clone(&table)), table)
}
