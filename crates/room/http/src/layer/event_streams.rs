//! Event streams of waiting visitors near the front of the queue.
//!
//! One task checks each room with streams four times a second, once for all its streams. It sends
//! an event to each visitor who would probably be admitted, and the page then polls. The task
//! starts with the first stream, ends with the last, and ends all of them when the process drains.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use anteroom_node::RoomHandle;
use anteroom_proxy::downstream::drain::DrainSignal;
use anteroom_room::ticket::Ticket;
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::time::{Instant, MissedTickBehavior};

use crate::waiting::push;

/// Most streams of a process. Each is a connection that stays open. A visitor without a stream
/// polls as often as with one.
const STREAMS_MAX: usize = 1_024;

/// Number of connections for each of which one stream is allowed.
const CONNECTIONS_PER_STREAM: usize = 4;

/// Interval of checks of a room: that of a busy room's syncs with its ledger.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// Shortest interval of poll events of a stream. A slot may go to another visitor, and the next one
/// takes a moment.
const POLL_INTERVAL_MIN: Duration = Duration::from_secs(1);

/// Longest pause between events. Proxies cut connections that are idle for a minute or less.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// Longest duration of a stream. The page then polls and opens another, with its current room and
/// ticket.
const STREAM_DURATION_MAX: Duration = Duration::from_secs(300);

/// Most pending events of a slow client. With more, it has missed its turn anyway.
const PENDING_EVENTS_MAX: usize = 4;

/// Room of event streams.
pub(super) trait Turns: Send + Sync + 'static {
    /// Returns for each waiting ticket whether the room would probably admit it now.
    fn would_admit(&self, tickets: &[Ticket]) -> Vec<bool>;
}

impl Turns for RoomHandle {
    fn would_admit(&self, tickets: &[Ticket]) -> Vec<bool> {
        Self::who_may_come(self, tickets)
    }
}

/// Event streams of a process.
pub(super) struct EventStreams<R = RoomHandle> {
    streams_max: usize,
    draining: DrainSignal,
    open: Mutex<Open<R>>,
}

struct Open<R> {
    streams: Vec<EventStream<R>>,
    has_task: bool,
}

struct EventStream<R> {
    room: Arc<R>,
    ticket: Ticket,
    events: Sender<Bytes>,
    began_at: Instant,
    sent_at: Instant,
    polled_at: Option<Instant>,
}

impl<R> EventStreams<R> {
    /// Returns an empty set of streams for a process with so many connections. Most of them must
    /// stay free for requests.
    pub(super) fn new(connections: usize, draining: DrainSignal) -> Self {
        let open = Open {
            streams: Vec::new(),
            has_task: false,
        };
        Self {
            streams_max: STREAMS_MAX.min(connections / CONNECTIONS_PER_STREAM),
            draining,
            open: Mutex::new(open),
        }
    }
}

impl<R: Turns> EventStreams<R> {
    /// Whether one more stream is allowed.
    pub(super) fn has_room(&self) -> bool {
        self.open.lock().streams.len() < self.streams_max
    }

    /// Begins a stream; `None` if there are too many. A visitor has one stream for each room: an
    /// older one ends.
    pub(super) fn begin(self: &Arc<Self>, room: Arc<R>, ticket: Ticket) -> Option<Receiver<Bytes>> {
        let (events, receiver) = mpsc::channel(PENDING_EVENTS_MAX);
        let now = Instant::now();
        let mut open = self.open.lock();
        let is_other = |stream: &EventStream<R>| {
            stream.ticket.visitor != ticket.visitor || !Arc::ptr_eq(&stream.room, &room)
        };
        open.streams
            .retain(|stream| is_other(stream) && !stream.events.is_closed());
        if open.streams.len() >= self.streams_max {
            return None;
        }
        let _ = events.try_send(push::HELLO);
        open.streams.push(EventStream {
            room,
            ticket,
            events,
            began_at: now,
            sent_at: now,
            polled_at: None,
        });
        if !open.has_task {
            open.has_task = true;
            tokio::spawn(watch(Arc::downgrade(self), self.draining.clone()));
        }
        Some(receiver)
    }

    /// Sends all due events. Returns whether a stream is left.
    fn send_due(&self, now: Instant) -> bool {
        let mut open = self.open.lock();
        open.streams.retain(|stream| !stream.events.is_closed());
        let mut turns = turns(&open.streams).into_iter();
        open.streams
            .retain_mut(|stream| stream.send_due(turns.next().unwrap_or(false), now));
        open.has_task = !open.streams.is_empty();
        open.has_task
    }

    fn end_all(&self) {
        let mut open = self.open.lock();
        for stream in open.streams.drain(..) {
            // A client with a full channel sees the end of the stream instead.
            let _ = stream.events.try_send(push::END);
        }
        open.has_task = false;
    }
}

impl<R> EventStream<R> {
    /// Sends the event that is due. Returns whether the stream goes on.
    fn send_due(&mut self, is_turn: bool, now: Instant) -> bool {
        if now.duration_since(self.began_at) >= STREAM_DURATION_MAX {
            let _ = self.events.try_send(push::END);
            return false;
        }
        let was_polled = self
            .polled_at
            .is_some_and(|at| now.duration_since(at) < POLL_INTERVAL_MIN);
        let event = if is_turn && !was_polled {
            self.polled_at = Some(now);
            push::POLL
        } else if now.duration_since(self.sent_at) >= KEEP_ALIVE_INTERVAL {
            push::KEEP_ALIVE
        } else {
            return true;
        };
        self.sent_at = now;
        self.events.try_send(event).is_ok()
    }
}

/// Returns for each stream whether it is its turn, with one check of each room.
fn turns<R: Turns>(streams: &[EventStream<R>]) -> Vec<bool> {
    let mut by_room: BTreeMap<*const R, Vec<usize>> = BTreeMap::new();
    for (at, stream) in streams.iter().enumerate() {
        let room = Arc::as_ptr(&stream.room);
        by_room.entry(room).or_default().push(at);
    }
    let mut turns = vec![false; streams.len()];
    for listeners in by_room.values() {
        let tickets: Vec<Ticket> = listeners.iter().map(|at| streams[*at].ticket).collect();
        let Some(first) = listeners.first() else {
            continue;
        };
        let admitted = streams[*first].room.would_admit(&tickets);
        for (at, is_turn) in listeners.iter().zip(admitted) {
            turns[*at] = is_turn;
        }
    }
    turns
}

async fn watch<R: Turns>(streams: Weak<EventStreams<R>>, draining: DrainSignal) {
    let mut checks = tokio::time::interval(CHECK_INTERVAL);
    checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut draining = std::pin::pin!(draining.leaving());
    loop {
        let is_draining = tokio::select! {
            () = draining.as_mut() => true,
            _ = checks.tick() => false,
        };
        let Some(streams) = streams.upgrade() else {
            return;
        };
        if is_draining {
            streams.end_all();
            return;
        }
        if !streams.send_due(Instant::now()) {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
