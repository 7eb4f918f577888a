//! One Envoy: its spending of assignments and its reports. All times are in milliseconds.

use std::collections::VecDeque;

use anteroom_limit::quota::book::MemberId;

use crate::quota::draw::Draw;

/// Spending behavior.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Style {
    /// Spends everything at once, with a thousandfold demand.
    Early,
    /// Spends everything in the last possible moment.
    Late,
    /// Requests a second, evenly.
    Steady(u64),
}

/// Assignment on its way to an Envoy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    pub(crate) arrives_at: u64,
    pub(crate) requests: u64,
    pub(crate) lasts: u64,
}

/// Simulated Envoy.
#[derive(Debug)]
pub(crate) struct Envoy {
    pub(crate) member: MemberId,
    pub(crate) style: Style,
    pub(crate) reports_every: u64,
    pub(crate) on_the_way: VecDeque<Delivery>,
    /// Requests that it may still allow, and the time until which it may.
    holds: Option<(u64, u64)>,
    allowed: u64,
    denied: u64,
    due: u64,
}

impl Envoy {
    pub(crate) fn new(member: MemberId, style: Style, draw: &mut Draw) -> Self {
        Self {
            member,
            style,
            reports_every: 500 + draw.below(5) * 500,
            on_the_way: VecDeque::new(),
            holds: None,
            allowed: 0,
            denied: 0,
            due: 0,
        }
    }

    /// Queues an assignment. It arrives after the earlier ones.
    pub(crate) fn deliver(&mut self, delivery: Delivery) {
        let last = self.on_the_way.back().map_or(0, |last| last.arrives_at);
        let arrives_at = delivery.arrives_at.max(last);
        self.on_the_way.push_back(Delivery {
            arrives_at,
            ..delivery
        });
    }

    /// Runs a step of `ms` and returns how many requests it allows.
    pub(crate) fn step(&mut self, now: u64, ms: u64) -> u64 {
        let mut spent = 0;
        while self
            .on_the_way
            .front()
            .is_some_and(|delivery| delivery.arrives_at <= now)
        {
            let delivery = self.on_the_way.pop_front().unwrap();
            if matches!(self.style, Style::Late) {
                spent += self.spend_all(now);
            }
            self.holds = Some((delivery.requests, now + delivery.lasts));
        }
        match self.style {
            Style::Early => {
                spent += self.spend_all(now);
                self.denied += 100;
            }
            Style::Late => {
                let is_last = self.holds.is_some_and(|(_, until)| now + ms >= until);
                if is_last {
                    spent += self.spend_all(now);
                }
                self.denied += 100;
            }
            Style::Steady(requests) => {
                self.due += requests * ms;
                while self.due >= 1_000 {
                    self.due -= 1_000;
                    let is_allowed = self.spend_one(now);
                    spent += u64::from(is_allowed);
                    self.denied += u64::from(!is_allowed);
                }
            }
        }
        self.allowed += spent;
        spent
    }

    fn spend_all(&mut self, now: u64) -> u64 {
        let holds = self.holds.as_mut().filter(|(_, until)| now < *until);
        holds.map_or(0, |(requests, _)| std::mem::take(requests))
    }

    fn spend_one(&mut self, now: u64) -> bool {
        let holds = self.holds.as_mut();
        let holds = holds.filter(|(requests, until)| *requests > 0 && now < *until);
        holds.map(|(requests, _)| *requests -= 1).is_some()
    }

    /// Returns the requests that it allowed and denied, if a report is due.
    pub(crate) fn report(&mut self, now: u64) -> Option<(u64, u64)> {
        let is_time = now.is_multiple_of(self.reports_every);
        let counts = (
            std::mem::take(&mut self.allowed),
            std::mem::take(&mut self.denied),
        );
        if is_time {
            return Some(counts);
        }
        (self.allowed, self.denied) = counts;
        None
    }
}
