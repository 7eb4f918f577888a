//! Limit, its ledger, Envoys and single requests, in steps of ten milliseconds.

use std::collections::BTreeMap;

use anteroom_limit::algorithm::Algorithm as _;
use anteroom_limit::cost::Cost;
use anteroom_limit::fixed_window::{FixedWindow, State};
use anteroom_limit::policy::Policy;
use anteroom_limit::quota::book::{Assignment, LimitStatus, MemberId, Plan, QuotaLedger};
use anteroom_limit::quota::lifetime::MARGIN;
use anteroom_limit::rate::Rate;
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit::verdict::Verdict;

use crate::quota::draw::Draw;
use crate::quota::envoy::{Delivery, Envoy, Style};

/// Length of a step, in ms.
pub(crate) const STEP: u64 = 10;
/// Length of a window, in ms.
pub(crate) const WINDOW: u64 = 60_000;

/// Requests that the checker saw in one window.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WindowStats {
    /// Requests that were allowed.
    pub(crate) requests: u64,
    /// Requests that were assigned.
    pub(crate) assigned: u64,
    /// Highest limit in force during the window.
    pub(crate) limit: u64,
}

/// Plan on its way to the store and back.
struct Pending {
    replied_at: u64,
    sent_at: u64,
    plan: Plan,
    verdict: Verdict,
}

/// Simulated limit with its members.
pub(crate) struct Simulation {
    pub(crate) now: u64,
    /// Lead of the window clock over the ledger's clock.
    ahead: u64,
    /// Time by which the window clock was set back since.
    behind: u64,
    pub(crate) limit: u32,
    state: State,
    ledger: QuotaLedger,
    pending: Option<Pending>,
    pub(crate) envoys: Vec<Envoy>,
    pub(crate) draw: Draw,
    /// Longest delays of a message and of the store, in ms.
    delays_max: (u64, u64),
    /// Average number of reads between those before which other clients come in.
    pub(crate) others_one_in: Option<u64>,
    pub(crate) windows: BTreeMap<u64, WindowStats>,
    /// Requests that each Envoy allowed, by its index and the window.
    pub(crate) spent: BTreeMap<(usize, u64), u64>,
    members: u64,
}

impl Simulation {
    pub(crate) fn new(seed: u64, limit: u32, delays_max: (u64, u64)) -> Self {
        let mut draw = Draw(seed);
        Self {
            now: 0,
            ahead: draw.below(WINDOW / STEP) * STEP,
            behind: 0,
            limit,
            state: State::default(),
            ledger: QuotaLedger::default(),
            pending: None,
            envoys: Vec::new(),
            draw,
            delays_max,
            others_one_in: None,
            windows: BTreeMap::new(),
            spent: BTreeMap::new(),
            members: 0,
        }
    }

    pub(crate) fn member(&mut self) -> MemberId {
        self.members += 1;
        MemberId(self.members)
    }

    pub(crate) fn join(&mut self, style: Style) {
        let member = self.member();
        let envoy = Envoy::new(member, style, &mut self.draw);
        self.envoys.push(envoy);
    }

    /// Ends the stream of one Envoy. Messages on their way are lost, and it continues with what it
    /// has. It returns as another member.
    pub(crate) fn cut(&mut self, which: usize) {
        self.ledger.handle_departure(self.envoys[which].member);
        let member = self.member();
        let envoy = &mut self.envoys[which];
        envoy.on_the_way.clear();
        envoy.member = member;
    }

    /// Returns the time of the window clock.
    fn wall(&self) -> u64 {
        (self.now + self.ahead).saturating_sub(self.behind)
    }

    /// Sets the window clock back.
    pub(crate) fn set_back(&mut self, ms: u64) {
        self.behind += ms.min(self.wall());
    }

    /// Returns the window in which requests count now. A window does not begin again after a later
    /// one was used.
    pub(crate) fn window(&self) -> u64 {
        let acquired = self.state.starts_at.0 / 1_000;
        self.wall().max(acquired) / WINDOW
    }

    fn window_stats(&mut self) -> &mut WindowStats {
        let (window, limit) = (self.window(), u64::from(self.limit));
        let window_stats = self.windows.entry(window).or_default();
        window_stats.limit = window_stats.limit.max(limit);
        window_stats
    }

    fn policy(&self) -> FixedWindow {
        let window = DurationUs(WINDOW * 1_000);
        FixedWindow::new(Rate::new(self.limit, window).unwrap())
    }

    fn acquire(&mut self, cost: Cost) -> Verdict {
        let (policy, wall) = (self.policy(), micros(self.wall()));
        policy.step(&mut self.state, wall, cost)
    }

    /// Sends a request that is counted at once.
    pub(crate) fn request(&mut self) {
        if self.acquire(Cost::ONE).is_allowed() {
            self.window_stats().requests += 1;
        }
    }

    pub(crate) fn step(&mut self) {
        self.now += STEP;
        self.window_stats();
        let (now, window) = (self.now, self.window());
        for which in 0..self.envoys.len() {
            let envoy = &mut self.envoys[which];
            let spent = envoy.step(now, STEP);
            if let Some((allowed, denied)) = envoy.report(now) {
                let member = envoy.member;
                self.ledger
                    .handle_report(member, allowed, denied, micros(now));
            }
            self.window_stats().requests += spent;
            *self.spent.entry((which, window)).or_default() += spent;
        }
        self.serve();
    }

    /// Runs the service for one step.
    fn serve(&mut self) {
        let now = self.now;
        if let Some(pending) = self.pending.take_if(|pending| pending.replied_at <= now) {
            let policy = Policy::FixedWindow(self.policy());
            let decided = (&policy, &pending.verdict);
            let times = (micros(pending.sent_at), micros(now));
            let assignments = self.ledger.handle_verdict(&pending.plan, decided, times);
            self.deliver(assignments);
        }
        if self.pending.is_some() || !self.ledger.is_due(micros(now)) {
            return;
        }
        let peek = self.acquire(Cost::Peek);
        let status = LimitStatus {
            requests: peek.remaining,
            limit: self.policy().rate(),
            ends_in: DurationUs((WINDOW - self.wall() % WINDOW) * 1_000),
        };
        let plan = self.ledger.plan(status, micros(now));
        if plan.requests() == 0 {
            let assignments = self.ledger.handle_nothing(peek.full_after, micros(now));
            self.deliver(assignments);
            return;
        }
        let times = self.others_one_in;
        if times.is_some_and(|times| self.draw.is_one_in(times)) {
            // Others come in between.
            for _ in 0..self.draw.below(20) {
                self.request();
            }
        }
        let verdict = self.acquire(Cost::take(plan.requests()));
        self.pending = Some(Pending {
            replied_at: now + self.draw.below(self.delays_max.1 + 1),
            sent_at: now,
            plan,
            verdict,
        });
    }

    fn deliver(&mut self, assignments: Vec<Assignment>) {
        for assignment in assignments {
            self.window_stats().assigned += u64::from(assignment.requests);
            let delay = match self.draw.below(3) {
                0 => 0,
                1 => self.delays_max.0,
                _ => self.draw.below(self.delays_max.0 + 1),
            };
            let envoy = self
                .envoys
                .iter_mut()
                .find(|envoy| envoy.member == assignment.member);
            if let Some(envoy) = envoy {
                envoy.deliver(Delivery {
                    arrives_at: self.now + delay,
                    requests: assignment.requests.into(),
                    lasts: u64::from(assignment.seconds) * 1_000,
                });
            }
        }
    }
}

/// Returns the longest delay of a message, in ms.
pub(crate) const fn message_delay_max() -> u64 {
    MARGIN.0 / 1_000
}

const fn micros(ms: u64) -> TimestampUs {
    TimestampUs(ms * 1_000)
}
