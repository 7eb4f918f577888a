//! How children come, report, fall silent and leave.

use alloc::vec::Vec;

use super::{Child, Departed, Ledger, LeftWaiting};
use crate::estimate::ASK_AFTER_LAST;
use crate::id::NodeId;
use crate::seats::SeatRow;
use crate::sync::{Held, MINUTES_KEPT, SyncRequest};
use crate::time::{Millis, Minute};
use crate::waiting::OVERDUE;
use crate::watermark::WaitingCounts;

impl Ledger {
    /// Takes over what a child says of itself, in absolute figures.
    pub(super) fn handle_report(&mut self, request: &SyncRequest, now: Millis) {
        self.take_back_handed(request);
        // A child that came back after its lease had been given up, and says that its row is
        // complete: what it really did replaces what it might have done.
        self.departed.retain(|gone| gone.node != request.child);
        let generation = match self.children.get(&request.child) {
            Some(child) => child.generation,
            None => {
                self.generation += 1;
                self.generation
            }
        };
        let held = if request.is_final {
            Held::default()
        } else {
            request.held
        };
        let mut row = request.row.clone();
        row.drop_through(self.closed_through);
        let child = Child {
            generation,
            number: request.number,
            held,
            ends_at: Millis::ZERO,
            longest_seat: request.longest_seat,
            row,
            admitted: request.admitted.clone(),
            closed_through: request.closed_through,
            waiting: request.waiting.clone(),
            handed: WaitingCounts::new(),
            wants: request.wants.slots,
            terms: request.terms,
        };
        self.children.insert(request.child, child);
        self.agree_on_terms();
        self.handle_revocations(request, now);
    }

    /// A child that has just reported says that it will do nothing more.
    pub(super) fn handle_goodbye(&mut self, node: NodeId, now: Millis) {
        if let Some(child) = self.children.get_mut(&node) {
            child.held = Held::default();
        }
        self.give_up(node, now, now);
    }

    /// Waiting visitors who were handed over with an answer that never arrived.
    fn take_back_handed(&mut self, request: &SyncRequest) {
        let Some(child) = self.children.get_mut(&request.child) else {
            return;
        };
        if request.answered == child.number {
            return;
        }
        for (rank, count) in core::mem::take(&mut child.handed) {
            *self.left_waiting.counts.entry(rank).or_insert(0) += count;
        }
    }

    /// Ends a lease: what was lent and not reported counts as used until it cannot be any more.
    pub(super) fn give_up(&mut self, node: NodeId, ended_at: Millis, now: Millis) {
        let Some(child) = self.children.remove(&node) else {
            return;
        };
        self.leave_waiting(&child, now);
        let mut admitted = child.admitted;
        if child.held.admissions > 0 {
            match admitted.iter_mut().find(|(m, _)| *m == child.held.minute) {
                Some((_, count)) => *count += child.held.admissions,
                None => admitted.push((child.held.minute, child.held.admissions)),
            }
        }
        self.departed.push(Departed {
            node,
            generation: child.generation,
            number: child.number,
            row: child.row,
            phantoms: child.held.seats.saturating_add(child.held.credits),
            ends_at: ended_at + child.longest_seat,
            admitted,
        });
    }

    /// Forgets departed children of whom nothing counts any more: no phantom, no seat, no admission
    /// of the running minute. Until then they may come back with what they really did.
    ///
    /// Phantoms end, like all seats, when every live child treats them as over; a clock alone would
    /// let one end before the move that another node made of it.
    pub(super) fn forget_departed(&mut self, now: Millis) {
        let closed = self.closed_through;
        let (over, kept): (Vec<_>, Vec<_>) = core::mem::take(&mut self.departed)
            .into_iter()
            .partition(|gone| {
                let newest_minute = gone.admitted.iter().map(|(minute, _)| *minute).max();
                let is_past = newest_minute.is_none_or(|minute| minute < now.minute());
                gone.ends_at <= closed && gone.row.is_empty() && is_past
            });
        self.departed = kept;
        for gone in over {
            for (minute, count) in gone.admitted {
                *self.settled_minutes.entry(minute).or_insert(0) += count;
            }
        }
        let oldest = Minute(now.minute().0.saturating_sub(MINUTES_KEPT as u64));
        self.settled_minutes.retain(|minute, _| *minute > oldest);
    }

    /// Gives back the intervals that every live child treats as over.
    ///
    /// Without a live child nothing is given back: the next one that comes says how far it is. A
    /// child whose clock is ahead closes nothing before its time.
    pub(super) fn close_intervals(&mut self, now: Millis) {
        let Some(slowest) = self.children.values().map(|c| c.closed_through).min() else {
            return;
        };
        self.closed_through = self.closed_through.max(slowest.min(now));
        let closed = self.closed_through;
        self.rows_mut().for_each(|row| row.drop_through(closed));
    }

    /// All rows that make up the count of seats.
    pub(super) fn rows(&self) -> impl Iterator<Item = &SeatRow> {
        self.children
            .values()
            .map(|child| &child.row)
            .chain(self.departed.iter().map(|gone| &gone.row))
            .chain(core::iter::once(&self.settled))
    }

    fn rows_mut(&mut self) -> impl Iterator<Item = &mut SeatRow> {
        self.children
            .values_mut()
            .map(|child| &mut child.row)
            .chain(self.departed.iter_mut().map(|gone| &mut gone.row))
            .chain(core::iter::once(&mut self.settled))
    }

    fn leave_waiting(&mut self, child: &Child, now: Millis) {
        if child.waiting.is_empty() {
            return;
        }
        let mut counts = core::mem::take(&mut self.left_waiting).counts;
        // Slots that it held count as used, and then by those who were first in line: counted on,
        // they would hold up everybody behind them although nobody is left to ask for their place.
        // Whoever still waits is counted again with its next ask.
        let mut used = child.held.seats;
        for (&rank, &count) in &child.waiting {
            let gone = count.min(used);
            used -= gone;
            if count > gone {
                *counts.entry(rank).or_insert(0) += count - gone;
            }
        }
        let latest_ask = now + ASK_AFTER_LAST + ASK_AFTER_LAST + OVERDUE;
        self.left_waiting = LeftWaiting {
            counts,
            until: latest_ask,
        };
    }
}
