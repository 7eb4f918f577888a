//! Event streams of a fake room, at times that the test chooses.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anteroom_proxy::downstream::drain::{DrainTrigger, drain};
use anteroom_room::id::VisitorId;
use anteroom_room::ticket::{Announced, Seats};
use anteroom_room::time::Timestamp;

use super::*;

/// Fake room that admits all visitors or none, and counts its checks.
#[derive(Default)]
struct Room {
    is_open: AtomicBool,
    checks: AtomicUsize,
}

impl Turns for Room {
    fn would_admit(&self, tickets: &[Ticket]) -> Vec<bool> {
        self.checks.fetch_add(1, Ordering::Relaxed);
        vec![self.is_open.load(Ordering::Relaxed); tickets.len()]
    }
}

struct Scene {
    streams: Arc<EventStreams<Room>>,
    room: Arc<Room>,
    trigger: DrainTrigger,
    start: Instant,
}

impl Scene {
    fn new(streams_max: usize) -> Self {
        let (trigger, signal) = drain();
        let streams = EventStreams {
            streams_max,
            ..EventStreams::new(10_000, signal)
        };
        Self {
            streams: Arc::new(streams),
            room: Arc::default(),
            trigger,
            start: Instant::now(),
        }
    }

    fn begin(&self, visitor: u8) -> Option<Receiver<Bytes>> {
        let ticket = Ticket {
            visitor: VisitorId([visitor; 16]),
            bucket: Timestamp(1_000),
            last_check_in_at: Timestamp(1_000),
            accepted_at: None,
            first_seat: None,
            has_missed_turn: false,
            counted_until: None,
            announced: Announced::default(),
            unseen_loss: None,
            seats: Seats::default(),
        };
        let room = Arc::clone(&self.room);
        self.streams.begin(room, ticket)
    }

    fn send_due_after(&self, ms: u64) -> bool {
        self.streams
            .send_due(self.start + Duration::from_millis(ms))
    }
}

fn received(events: &mut Receiver<Bytes>) -> Vec<Bytes> {
    std::iter::from_fn(|| events.try_recv().ok()).collect()
}

#[tokio::test]
async fn streams_are_bounded_and_each_visitor_has_one() {
    let scene = Scene::new(2);
    let mut first = scene.begin(1).unwrap();
    let second = scene.begin(2).unwrap();
    assert!(!scene.streams.has_room());
    assert!(scene.begin(3).is_none(), "one too many");
    let mut again = scene.begin(1).unwrap();
    assert_eq!(received(&mut again), [push::HELLO]);
    assert_eq!(received(&mut first), [push::HELLO]);
    assert!(first.is_closed(), "the older one has ended");
    drop(second);
    assert!(scene.begin(3).is_some(), "a stream that ended makes room");
}

#[test]
fn streams_leave_most_connections_to_requests() {
    for (connections, expected) in [(3, 0), (100, 25), (10_000, 1_024)] {
        let (_trigger, signal) = drain();
        let streams = EventStreams::<Room>::new(connections, signal);
        assert_eq!(streams.streams_max, expected);
    }
}

#[tokio::test]
async fn poll_events_are_sent_at_once_and_at_most_once_a_second() {
    let scene = Scene::new(9);
    let mut streams = [1, 2, 3].map(|visitor| scene.begin(visitor).unwrap());
    scene.send_due_after(250);
    scene.room.is_open.store(true, Ordering::Relaxed);
    for ms in (500..=1_750).step_by(250) {
        scene.send_due_after(ms);
    }
    for events in &mut streams {
        assert_eq!(received(events), [push::HELLO, push::POLL, push::POLL]);
    }
    let checks = scene.room.checks.load(Ordering::Relaxed);
    assert_eq!(checks, 7, "one check of the room for all streams");
}

#[tokio::test]
async fn an_idle_stream_gets_keep_alives_and_ends_in_time() {
    let scene = Scene::new(9);
    let mut events = scene.begin(1).unwrap();
    received(&mut events);
    let start = KEEP_ALIVE_INTERVAL + Duration::from_secs(1);
    let at = |after: Duration| u64::try_from(after.as_millis()).unwrap();
    assert!(scene.send_due_after(at(start)));
    assert_eq!(received(&mut events), [push::KEEP_ALIVE]);
    let is_left = scene.send_due_after(at(STREAM_DURATION_MAX + Duration::from_secs(1)));
    assert!(!is_left);
    assert_eq!(received(&mut events), [push::END]);
    assert!(events.is_closed());
}

#[tokio::test]
async fn a_client_that_does_not_read_is_dropped_and_delays_no_other() {
    let scene = Scene::new(9);
    let unread = scene.begin(1).unwrap();
    let mut events = scene.begin(2).unwrap();
    scene.room.is_open.store(true, Ordering::Relaxed);
    for second in 1..=6 {
        scene.send_due_after(second * 1_000);
        received(&mut events);
    }
    assert!(unread.is_closed() && !events.is_closed());
}

#[tokio::test]
async fn draining_ends_every_stream_with_an_end_event() {
    let scene = Scene::new(9);
    let mut streams = [1, 2].map(|visitor| scene.begin(visitor).unwrap());
    scene.trigger.start();
    for events in &mut streams {
        assert_eq!(events.recv().await, Some(push::HELLO));
        assert_eq!(events.recv().await, Some(push::END));
        assert_eq!(events.recv().await, None);
    }
}
