//! EventStreams of a room that says what the test wants, at times that the test chooses.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anteroom_proxy::downstream::drain::{DrainTrigger, drain};
use anteroom_room::id::VisitorId;
use anteroom_room::ticket::Seats;
use anteroom_room::time::Timestamp;

use super::*;

/// Whether everybody may come, and how often it was asked.
#[derive(Default)]
struct Room {
    is_open: AtomicBool,
    asked: AtomicUsize,
}

impl Turns for Room {
    fn who_may_come(&self, tickets: &[Ticket]) -> Vec<bool> {
        self.asked.fetch_add(1, Ordering::Relaxed);
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
    fn new(most: usize) -> Self {
        let (trigger, signal) = drain();
        let streams = EventStreams {
            most,
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
            is_provisional: false,
            seats: Seats::default(),
        };
        let room = Arc::clone(&self.room);
        self.streams.begin(room, ticket)
    }

    fn speak_after(&self, ms: u64) -> bool {
        self.streams.speak(self.start + Duration::from_millis(ms))
    }
}

fn heard(events: &mut Receiver<Bytes>) -> Vec<Bytes> {
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
    assert_eq!(heard(&mut again), [push::HELLO]);
    assert_eq!(heard(&mut first), [push::HELLO]);
    assert!(first.is_closed(), "the older one has ended");
    drop(second);
    assert!(scene.begin(3).is_some(), "whoever left makes room");
}

#[test]
fn listeners_leave_most_connections_to_those_who_ask() {
    for (connections, most) in [(3, 0), (100, 25), (10_000, 1_024)] {
        let (_trigger, signal) = drain();
        assert_eq!(EventStreams::<Room>::new(connections, signal).most, most);
    }
}

#[tokio::test]
async fn a_turn_is_told_at_once_but_once_a_second() {
    let scene = Scene::new(9);
    let mut streams = [1, 2, 3].map(|visitor| scene.begin(visitor).unwrap());
    scene.speak_after(250);
    scene.room.is_open.store(true, Ordering::Relaxed);
    for ms in (500..=1_750).step_by(250) {
        scene.speak_after(ms);
    }
    for events in &mut streams {
        assert_eq!(heard(events), [push::HELLO, push::ASK, push::ASK]);
    }
    let asked = scene.room.asked.load(Ordering::Relaxed);
    assert_eq!(asked, 7, "one look at the room for all of them");
}

#[tokio::test]
async fn silence_is_broken_and_no_stream_grows_old() {
    let scene = Scene::new(9);
    let mut events = scene.begin(1).unwrap();
    heard(&mut events);
    let start = SPEAK_EVERY + Duration::from_secs(1);
    let at = |after: Duration| u64::try_from(after.as_millis()).unwrap();
    assert!(scene.speak_after(at(start)));
    assert_eq!(heard(&mut events), [push::STILL_HERE]);
    let is_left = scene.speak_after(at(INCARNATION + Duration::from_secs(1)));
    assert!(!is_left);
    assert_eq!(heard(&mut events), [push::END]);
    assert!(events.is_closed());
}

#[tokio::test]
async fn whoever_does_not_read_is_let_go_and_holds_nobody_up() {
    let scene = Scene::new(9);
    let deaf = scene.begin(1).unwrap();
    let mut events = scene.begin(2).unwrap();
    scene.room.is_open.store(true, Ordering::Relaxed);
    for second in 1..=6 {
        scene.speak_after(second * 1_000);
        heard(&mut events);
    }
    assert!(deaf.is_closed() && !events.is_closed());
}

#[tokio::test]
async fn draining_ends_every_stream_with_a_word() {
    let scene = Scene::new(9);
    let mut streams = [1, 2].map(|visitor| scene.begin(visitor).unwrap());
    scene.trigger.start();
    for events in &mut streams {
        assert_eq!(events.recv().await, Some(push::HELLO));
        assert_eq!(events.recv().await, Some(push::END));
        assert_eq!(events.recv().await, None);
    }
}
