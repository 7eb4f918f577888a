//! A limit, its book, Envoys and calls that are counted one by one, in steps of ten milliseconds.

use std::collections::BTreeMap;

use anteroom_limit::algorithm::Algorithm as _;
use anteroom_limit::cost::Cost;
use anteroom_limit::fixed_window::{FixedWindow, State};
use anteroom_limit::policy::Policy;
use anteroom_limit::quota::book::{Assignment, MemberId, Plan, QuotaLedger, Room};
use anteroom_limit::quota::lasting::MARGIN;
use anteroom_limit::rate::Rate;
use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit::verdict::Verdict;

use crate::quota::draw::Draw;
use crate::quota::envoy::{Envoy, Style, Told};

/// A step.
pub(crate) const STEP: u64 = 10;
/// A window.
pub(crate) const WINDOW: u64 = 60_000;

/// What the judge saw of one window.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    /// Calls that went through.
    pub(crate) calls: u64,
    /// Calls that were assigned.
    pub(crate) assigned: u64,
    /// The highest limit that held in it.
    pub(crate) limit: u64,
}

/// A charge that is on its way to the store and back.
struct Charged {
    answered_at: u64,
    asked_at: u64,
    plan: Plan,
    verdict: Verdict,
}

/// All of it.
pub(crate) struct World {
    pub(crate) now: u64,
    /// By how much the clock of the windows is ahead of that of the book.
    ahead: u64,
    /// By how much it was set back since.
    behind: u64,
    pub(crate) limit: u32,
    state: State,
    book: QuotaLedger,
    charged: Option<Charged>,
    pub(crate) envoys: Vec<Envoy>,
    pub(crate) draw: Draw,
    /// The longest way of a message, and that of the store.
    ways: (u64, u64),
    /// Once in so many times others call between a look and a charge.
    pub(crate) others_one_in: Option<u64>,
    pub(crate) windows: BTreeMap<u64, Seen>,
    /// What each Envoy let through, by its place, of each window.
    pub(crate) spent: BTreeMap<(usize, u64), u64>,
    members: u64,
}

impl World {
    pub(crate) fn new(seed: u64, limit: u32, ways: (u64, u64)) -> Self {
        let mut draw = Draw(seed);
        Self {
            now: 0,
            ahead: draw.below(WINDOW / STEP) * STEP,
            behind: 0,
            limit,
            state: State::default(),
            book: QuotaLedger::default(),
            charged: None,
            envoys: Vec::new(),
            draw,
            ways,
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

    /// The stream of one ends: what is on its way is lost, and it goes on with what it has. It
    /// comes back as another.
    pub(crate) fn cut(&mut self, which: usize) {
        self.book.handle_gone(self.envoys[which].member);
        let member = self.member();
        let envoy = &mut self.envoys[which];
        envoy.on_the_way.clear();
        envoy.member = member;
    }

    /// What the clock of the windows shows.
    fn wall(&self) -> u64 {
        (self.now + self.ahead).saturating_sub(self.behind)
    }

    /// It is set back.
    pub(crate) fn set_back(&mut self, ms: u64) {
        self.behind += ms.min(self.wall());
    }

    /// The window in which calls count now: none begins again in which something was charged after
    /// it.
    pub(crate) fn window(&self) -> u64 {
        let charged = self.state.starts_at.0 / 1_000;
        self.wall().max(charged) / WINDOW
    }

    fn seen(&mut self) -> &mut Seen {
        let (window, limit) = (self.window(), u64::from(self.limit));
        let seen = self.windows.entry(window).or_default();
        seen.limit = seen.limit.max(limit);
        seen
    }

    fn policy(&self) -> FixedWindow {
        let window = DurationUs(WINDOW * 1_000);
        FixedWindow::new(Rate::new(self.limit, window).unwrap())
    }

    fn charge(&mut self, cost: Cost) -> Verdict {
        let (policy, wall) = (self.policy(), micros(self.wall()));
        policy.step(&mut self.state, wall, cost)
    }

    /// A call that is counted at once.
    pub(crate) fn call(&mut self) {
        if self.charge(Cost::ONE).is_admitted() {
            self.seen().calls += 1;
        }
    }

    pub(crate) fn step(&mut self) {
        self.now += STEP;
        self.seen();
        let (now, window) = (self.now, self.window());
        for which in 0..self.envoys.len() {
            let envoy = &mut self.envoys[which];
            let spent = envoy.step(now, STEP);
            if let Some((allowed, denied)) = envoy.report(now) {
                let member = envoy.member;
                self.book
                    .handle_report(member, allowed, denied, micros(now));
            }
            self.seen().calls += spent;
            *self.spent.entry((which, window)).or_default() += spent;
        }
        self.serve();
    }

    /// What the service does.
    fn serve(&mut self) {
        let now = self.now;
        if let Some(charged) = self.charged.take_if(|charged| charged.answered_at <= now) {
            let policy = Policy::FixedWindow(self.policy());
            let said = (&policy, &charged.verdict);
            let times = (micros(charged.asked_at), micros(now));
            let told = self.book.handle_verdict(&charged.plan, said, times);
            self.tell(told);
        }
        if self.charged.is_some() || !self.book.is_due(micros(now)) {
            return;
        }
        let look = self.charge(Cost::Peek);
        let room = Room {
            calls: look.remaining,
            limit: self.policy().rate(),
            ends_in: DurationUs((WINDOW - self.wall() % WINDOW) * 1_000),
        };
        let plan = self.book.plan(room, micros(now));
        if plan.calls() == 0 {
            let told = self.book.handle_nothing(look.full_after, micros(now));
            self.tell(told);
            return;
        }
        let times = self.others_one_in;
        if times.is_some_and(|times| self.draw.is_one_in(times)) {
            // Others come in between.
            for _ in 0..self.draw.below(20) {
                self.call();
            }
        }
        let verdict = self.charge(Cost::take(plan.calls()));
        self.charged = Some(Charged {
            answered_at: now + self.draw.below(self.ways.1 + 1),
            asked_at: now,
            plan,
            verdict,
        });
    }

    fn tell(&mut self, told: Vec<Assignment>) {
        for told in told {
            self.seen().assigned += u64::from(told.calls);
            let way = match self.draw.below(3) {
                0 => 0,
                1 => self.ways.0,
                _ => self.draw.below(self.ways.0 + 1),
            };
            let envoy = self
                .envoys
                .iter_mut()
                .find(|envoy| envoy.member == told.member);
            if let Some(envoy) = envoy {
                envoy.tell(Told {
                    arrives_at: self.now + way,
                    calls: told.calls.into(),
                    lasts: u64::from(told.seconds) * 1_000,
                });
            }
        }
    }
}

/// The longest way that a message may take.
pub(crate) const fn longest_way() -> u64 {
    MARGIN.0 / 1_000
}

const fn micros(ms: u64) -> TimestampUs {
    TimestampUs(ms * 1_000)
}
