//! What does a node do that counts over a log? Without the log: what it hears is brought to it, and
//! what it says is fetched from it, so tests lose, double and delay all of it.
//!
//! - A **call** is decided at once, by what is known here, and charged to this node's own figure.
//! - Changed figures are **told** to the topic of calls. Whoever aggregates a partition of it joins
//!   what it reads there and **publishes** totals, which every node joins.
//! - What does not come back in a total is told again, so a message, or an aggregator, that is lost
//!   is made good.

mod charging;
#[cfg(test)]
mod tests;

use std::time::Duration;

use anteroom_limit::time::{MicroSpan, Micros};
use anteroom_limit_store::CallKey;

use crate::beats::Beats;
use crate::board::{Board, Heard};
use crate::figures::{Figure, Name, NodeId, SlotId, Told};
use crate::lanes::Lanes;
use crate::{message, names};

/// The stretches of time that beats are told in. What a node that has ended leaves behind is
/// forgotten after two.
const BEATS_WIDTH: MicroSpan = MicroSpan::from_secs(60);

/// A node, without its connections.
#[derive(Debug)]
pub(crate) struct Node {
    id: NodeId,
    /// `None` until it is known how many there are.
    lanes: Option<Lanes>,
    board: Board,
    beats: Beats,
    /// By lane.
    beat_names: Vec<Name>,
    tally: Tally,
}

/// What it has counted of itself.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    told: u64,
    calls_heard: u64,
    totals_published: u64,
    totals_heard: u64,
    past_found: u64,
    past_read: u64,
    unreadable: u64,
    crowded: u64,
}

impl Node {
    pub(crate) fn new(id: NodeId, slots_max: usize) -> Self {
        Self {
            id,
            lanes: None,
            board: Board::new(id, slots_max),
            beats: Beats::default(),
            beat_names: beat_names(id, Lanes::ONE),
            tally: Tally::default(),
        }
    }

    /// From now on clients are divided so.
    pub(crate) fn divide(&mut self, lanes: Lanes) {
        if self.lanes != Some(lanes) {
            self.lanes = Some(lanes);
            self.beats.divide(lanes);
            self.beat_names = beat_names(self.id, lanes);
        }
    }

    /// How clients are divided, if that is known.
    pub(crate) fn lanes(&self) -> Option<Lanes> {
        self.lanes
    }

    /// Whether what it tells of a client would not have come back for too long.
    pub(crate) fn is_away(&self, limit: &str, key: CallKey, at: Duration) -> bool {
        if !self.beats.may_be_away(at) {
            return false;
        }
        let lanes = self.lanes.unwrap_or(Lanes::ONE);
        let is_away = |name| self.beats.is_away(lanes.lane(name), at);
        // The lane does not hang on the width.
        let width = MicroSpan::ZERO;
        is_away(names::client(limit, width, key))
            || self.board.is_full() && is_away(names::crowd(limit, width, key))
    }

    /// In how many lanes that is so, and how many there are.
    pub(crate) fn lanes_away(&self, at: Duration) -> (usize, usize) {
        (self.beats.count_away(at), self.beat_names.len())
    }

    /// What is to be done again and again, a portion of it. Says whether there is more. `at` is any
    /// time that only goes forward.
    pub(crate) fn tick(&mut self, now: Micros, at: Duration) -> bool {
        let portions = [self.board.sweep(now), self.board.look_after_awaited(at)];
        if let Some(taken) = self.beats.due(at) {
            let index = now.0 / BEATS_WIDTH.0;
            let until = Micros(index.saturating_add(2).saturating_mul(BEATS_WIDTH.0));
            let beat = Figure {
                taken,
                given_back: 0,
            };
            for name in self.beat_names.iter().copied() {
                self.board.put(SlotId { name, index }, until, beat);
            }
        }
        portions.contains(&true)
    }

    /// The next of at most so many messages for the topic of calls.
    pub(crate) fn calls_to_tell(&mut self, count_max: usize, at: Duration) -> Vec<Told> {
        let next = std::iter::from_fn(|| self.board.next_to_tell(at));
        next.take(count_max).collect()
    }

    /// The next of at most so many messages for the topic of totals.
    pub(crate) fn totals_to_publish(&mut self, count_max: usize) -> Vec<Told> {
        let next = std::iter::from_fn(|| self.board.next_to_publish());
        next.take(count_max).collect()
    }

    /// So many calls were sent.
    pub(crate) fn told(&mut self, count: u64) {
        self.tally.told += count;
    }

    /// So many totals were sent.
    pub(crate) fn published(&mut self, count: u64) {
        self.tally.totals_published += count;
    }

    /// It could not be sent.
    pub(crate) fn not_told(&mut self, id: SlotId) {
        self.board.tell(id);
    }

    /// It could not be sent, or did not arrive.
    pub(crate) fn publish_again(&mut self, id: SlotId) {
        self.board.publish(id);
    }

    /// A message from a partition of calls that this node aggregates.
    pub(crate) fn hear_call(&mut self, bytes: &[u8], now: Micros) {
        self.tally.calls_heard += 1;
        self.hear(bytes, Heard::Call, now);
    }

    /// A message from the topic of totals.
    pub(crate) fn hear_total(&mut self, bytes: &[u8], now: Micros) {
        self.tally.totals_heard += 1;
        let told = self.hear(bytes, Heard::Total, now);
        let Some(told) = told else {
            return;
        };
        let lane = self.lanes.unwrap_or(Lanes::ONE).lane(told.id.name);
        if self.beat_names.get(usize::from(lane)) == Some(&told.id.name) {
            for (_, beat) in &told.figures {
                self.beats.heard(lane, beat.taken);
            }
        }
    }

    /// So many totals lay there before it began to read.
    pub(crate) fn past_found(&mut self, count: u64) {
        self.tally.past_found += count;
    }

    /// It has read so many of them.
    pub(crate) fn past_read(&mut self, count: u64) {
        self.tally.past_read += count;
    }

    fn hear(&mut self, bytes: &[u8], heard: Heard, now: Micros) -> Option<Told> {
        let told = message::decode(bytes);
        let is_ours = |told: &Told| self.board.hear(told, heard, now);
        let told = told.filter(is_ours);
        self.tally.unreadable += u64::from(told.is_none());
        told
    }

    /// What it has counted of itself, each by a fixed word.
    pub(crate) fn events(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("told", self.tally.told),
            ("told_again", self.board.told_again()),
            ("call_heard", self.tally.calls_heard),
            ("total_published", self.tally.totals_published),
            ("total_heard", self.tally.totals_heard),
            ("past_found", self.tally.past_found),
            ("past_read", self.tally.past_read),
            ("unreadable", self.tally.unreadable),
            ("crowded", self.tally.crowded),
            ("without_place", self.board.without_place()),
        ]
    }
}

/// Under which names a node tells that it lives, by lane.
fn beat_names(id: NodeId, lanes: Lanes) -> Vec<Name> {
    let each = 0..lanes.count();
    each.map(|lane| names::beat(id, lanes, lane)).collect()
}
