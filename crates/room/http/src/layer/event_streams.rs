//! Who listens, and when are they told to ask?
//!
//! One task looks at each room that somebody listens to, four times a second, and tells those whose
//! turn it may be: one look for all of them, however many they are. It begins with the first
//! stream, ends with the last, and ends all of them when the process drains.

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

/// Most streams of a process. Each is a connection that stays open; whoever gets none asks as often
/// as before.
const STREAMS_MAX: usize = 1_024;

/// Of so many connections, one may be a stream.
const CONNECTIONS_FOR_ONE: usize = 4;

/// How often rooms are looked at: as often as a busy room hears from its ledger.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Nobody is told to ask more often. A turn that was taken by somebody else is not over at once.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// How often something is sent at least. Proxies cut what is silent for a minute, many for less.
const SPEAK_EVERY: Duration = Duration::from_secs(15);

/// How long a stream lives. Then the page asks and listens anew, so that what was told about it
/// once (its room, its ticket) does not grow old.
const INCARNATION: Duration = Duration::from_secs(300);

/// Events that wait for a slow reader. It has missed its turn anyway when there are more.
const WAITING_MAX: usize = 4;

/// What is asked of a room.
pub(super) trait Turns: Send + Sync + 'static {
    /// Of these waiting tickets, which would probably be let in now?
    fn who_may_come(&self, tickets: &[Ticket]) -> Vec<bool>;
}

impl Turns for RoomHandle {
    fn who_may_come(&self, tickets: &[Ticket]) -> Vec<bool> {
        Self::who_may_come(self, tickets)
    }
}

/// All streams of a process.
pub(super) struct EventStreams<R = RoomHandle> {
    most: usize,
    draining: DrainSignal,
    open: Mutex<Open<R>>,
}

struct Open<R> {
    streams: Vec<EventStream<R>>,
    is_watched: bool,
}

struct EventStream<R> {
    room: Arc<R>,
    ticket: Ticket,
    events: Sender<Bytes>,
    since: Instant,
    spoke_at: Instant,
    asked_at: Option<Instant>,
}

impl<R> EventStreams<R> {
    /// For a process that takes so many connections: listeners must not use up what those need who
    /// ask.
    pub(super) fn new(connections: usize, draining: DrainSignal) -> Self {
        let open = Open {
            streams: Vec::new(),
            is_watched: false,
        };
        Self {
            most: STREAMS_MAX.min(connections / CONNECTIONS_FOR_ONE),
            draining,
            open: Mutex::new(open),
        }
    }
}

impl<R: Turns> EventStreams<R> {
    /// Whether one more would be let in.
    pub(super) fn has_room(&self) -> bool {
        self.open.lock().streams.len() < self.most
    }

    /// Begins a stream; `None` if there are as many as may be. A visitor has one for each room: an
    /// older one ends.
    pub(super) fn begin(self: &Arc<Self>, room: Arc<R>, ticket: Ticket) -> Option<Receiver<Bytes>> {
        let (events, receiver) = mpsc::channel(WAITING_MAX);
        let now = Instant::now();
        let mut open = self.open.lock();
        let is_other = |stream: &EventStream<R>| {
            stream.ticket.visitor != ticket.visitor || !Arc::ptr_eq(&stream.room, &room)
        };
        open.streams
            .retain(|stream| is_other(stream) && !stream.events.is_closed());
        if open.streams.len() >= self.most {
            return None;
        }
        let _ = events.try_send(push::HELLO);
        open.streams.push(EventStream {
            room,
            ticket,
            events,
            since: now,
            spoke_at: now,
            asked_at: None,
        });
        if !open.is_watched {
            open.is_watched = true;
            tokio::spawn(watch(Arc::downgrade(self), self.draining.clone()));
        }
        Some(receiver)
    }

    /// Tells everybody what there is to tell; whether anybody is left.
    fn speak(&self, now: Instant) -> bool {
        let mut open = self.open.lock();
        open.streams.retain(|stream| !stream.events.is_closed());
        let whose_turn = whose_turn(&open.streams);
        let mut turns = whose_turn.into_iter();
        open.streams
            .retain_mut(|stream| stream.speak(turns.next().unwrap_or(false), now));
        open.is_watched = !open.streams.is_empty();
        open.is_watched
    }

    fn end_all(&self) {
        let mut open = self.open.lock();
        for stream in open.streams.drain(..) {
            // A reader that does not even take this sees the end of the stream.
            let _ = stream.events.try_send(push::END);
        }
        open.is_watched = false;
    }
}

impl<R> EventStream<R> {
    /// Says what is due; whether the stream goes on.
    fn speak(&mut self, is_turn: bool, now: Instant) -> bool {
        if now.duration_since(self.since) >= INCARNATION {
            let _ = self.events.try_send(push::END);
            return false;
        }
        let was_asked = self
            .asked_at
            .is_some_and(|at| now.duration_since(at) < ASK_EVERY);
        let event = if is_turn && !was_asked {
            self.asked_at = Some(now);
            push::ASK
        } else if now.duration_since(self.spoke_at) >= SPEAK_EVERY {
            push::STILL_HERE
        } else {
            return true;
        };
        self.spoke_at = now;
        self.events.try_send(event).is_ok()
    }
}

/// In the order of the streams; one look at each room.
fn whose_turn<R: Turns>(streams: &[EventStream<R>]) -> Vec<bool> {
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
        let answers = streams[*first].room.who_may_come(&tickets);
        for (at, may_come) in listeners.iter().zip(answers) {
            turns[*at] = may_come;
        }
    }
    turns
}

async fn watch<R: Turns>(streams: Weak<EventStreams<R>>, draining: DrainSignal) {
    let mut looks = tokio::time::interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut draining = std::pin::pin!(draining.leaving());
    loop {
        let is_draining = tokio::select! {
            () = draining.as_mut() => true,
            _ = looks.tick() => false,
        };
        let Some(streams) = streams.upgrade() else {
            return;
        };
        if is_draining {
            streams.end_all();
            return;
        }
        if !streams.speak(Instant::now()) {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
