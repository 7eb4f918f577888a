//! What must hold for any bytes whatever; called by fuzzers and by the tests.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anteroom_limit::time::TimestampUs;
use parking_lot::Mutex;

use crate::board::CounterTable;
use crate::cell::WriterId;
use crate::message::{BODY_LARGEST, CounterReport, Message, Packer};
use crate::node::{Node, NodeSettings};
use crate::seal::Secret;

/// The time of the node that hears it.
pub const NOW: TimestampUs = TimestampUs(1_767_225_600_000_000);

/// What another node sends, that knows the secret: none of it makes this program fail, counters
/// that can be read are written down as ones that read the same, and hearing them twice is as
/// hearing them once.
///
/// # Panics
///
/// If it does not hold.
pub fn bodies(bytes: &[u8]) {
    let (mut node, board) = node();
    node.handle_body(Duration::from_secs(1), NOW, bytes);
    node.poll(Duration::from_secs(2), NOW);
    let once = board.lock().sums();
    node.handle_body(Duration::from_secs(3), NOW, bytes);
    assert_eq!(board.lock().sums(), once, "heard twice");
    if let Some(Message::Counters { sent_at, told }) = Message::read(bytes) {
        assert_eq!(again(sent_at, &told), told, "written and read");
    }
}

/// A datagram from anywhere: without the secret nothing changes.
///
/// # Panics
///
/// If it does not hold.
pub fn datagrams(bytes: &[u8]) {
    let (mut node, board) = node();
    assert!(!node.handle_datagram(Duration::from_secs(1), NOW, bytes));
    assert!(board.lock().is_empty() && node.take_outbox().is_empty());
}

/// A message of counters, for a corpus.
///
/// # Panics
///
/// Never: a packer for one message makes one.
#[must_use]
pub fn a_message(counters: u64) -> Vec<u8> {
    let me = WriterId(7);
    let mut packer = Packer::new(me, NOW, 1);
    for at in 0..counters {
        let mut told = CounterReport {
            id: crate::cell::CounterId {
                name: u128::MAX - u128::from(at),
                width: 60_000_000,
                index: 29_453_760,
            },
            forget_at: TimestampUs(NOW.0 + 65_000_000),
            shares: smallvec::SmallVec::new(),
        };
        for writer in 7..=7 + at % 3 {
            told.shares.push(crate::cell::Share {
                writer: WriterId(writer),
                added: at * 100 + 1,
                back: at % 2,
            });
        }
        assert!(packer.push(&told));
    }
    packer.into_bodies().remove(0)
}

fn again(sent_at: TimestampUs, told: &[CounterReport]) -> Vec<CounterReport> {
    // Of which writer it came is not kept apart from the shares: each is written with its own
    // number.
    let mut packer = Packer::new(WriterId(0), sent_at, told.len());
    for one in told {
        assert!(packer.push(one));
    }
    let bodies = packer.into_bodies();
    assert!(bodies.iter().all(|body| body.len() <= BODY_LARGEST));
    let read = bodies.iter().flat_map(|body| match Message::read(body) {
        Some(Message::Counters { told, .. }) => told,
        _ => Vec::new(),
    });
    read.collect()
}

fn node() -> (Node, Arc<Mutex<CounterTable>>) {
    let secret = Secret::new(b"a secret for fuzzing").expect("it is long enough");
    let board = Arc::new(Mutex::new(CounterTable::new(WriterId(1), &secret, 1_000)));
    let settings = NodeSettings {
        address: SocketAddr::from(([127, 0, 0, 1], 7_946)),
        generation: 1,
        interval: Duration::from_millis(100),
        seed: 1,
    };
    (Node::new(settings, secret, Arc::clone(&board)), board)
}
