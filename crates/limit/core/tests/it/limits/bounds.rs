//! Adversary that knows the edges, against the naive model: no window exceeds its bound.

use anteroom_limit::algorithm::Algorithm;
use anteroom_limit::cost::Cost;
use anteroom_limit::policy::State;
use anteroom_limit::time::TimestampUs;
use anteroom_limit::verdict::{Outcome, Verdict};
use proptest::prelude::*;

use crate::limits::model::Model;
use crate::limits::moves::{Client, Move, moves, moves_on_a_bad_clock, policies};

/// Client, its naive model, and the latest time of an allowed request.
struct Attack {
    client: Client,
    model: Model,
    cost_max: u32,
    latest: TimestampUs,
}

impl Attack {
    fn new(client: Client) -> Self {
        Self {
            latest: TimestampUs(0),
            client,
            model: Model::default(),
            cost_max: 1,
        }
    }

    fn perform(&mut self, next: Move) -> Result<(), String> {
        match next {
            Move::Jump(jump) => self.client.jump(jump),
            Move::Step(cost) => {
                self.step(cost)?;
            }
            Move::Flood => while self.step(Cost::ONE)?.is_allowed() {},
            Move::Forget => {
                if self
                    .client
                    .policy
                    .is_idle(&self.client.state, self.client.now)
                {
                    self.client.state = State::default();
                }
            }
        }
        Ok(())
    }

    fn step(&mut self, cost: Cost) -> Result<Verdict, String> {
        let verdict = self.client.step(cost);
        match (cost, verdict.outcome) {
            (Cost::Take(taken), Outcome::Allow { delay }) => {
                // A clock that goes back counts as one that stands still.
                self.latest = self.latest.max(self.client.now + delay);
                self.model.admit(self.latest, taken.get());
                self.cost_max = self.cost_max.max(taken.get());
                self.check()?;
            }
            (Cost::Refund(back), _) => {
                self.model.refund(back.get());
                let left = self.model.admitted.iter().map(|(at, _)| *at);
                self.latest = left.max().unwrap_or_default();
            }
            _ => {}
        }
        Ok(verdict)
    }

    fn check(&self) -> Result<(), String> {
        let policy = &self.client.policy;
        let inside = self
            .model
            .in_window_until(self.latest, policy.rate().window());
        let most = policy.window_cost_max(self.cost_max);
        if inside <= most {
            return Ok(());
        }
        Err(format!(
            "{inside} in a window, limit {most}: {:?}",
            self.model
        ))
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, ..ProptestConfig::default() })]

    #[test]
    fn no_window_exceeds_its_bound(
        policy in policies(),
        starts_at in prop_oneof![Just(0u64), 0u64..200_000_000, Just(1_700_000_000_000_000)],
        next in prop::collection::vec(moves(), 1..60),
    ) {
        let mut attack = Attack::new(Client::new(policy, starts_at));
        for next in next {
            attack.perform(next).map_err(TestCaseError::fail)?;
        }
    }

    #[test]
    fn no_window_exceeds_its_bound_when_the_clock_goes_back(
        policy in policies(),
        next in prop::collection::vec(moves_on_a_bad_clock(), 1..60),
    ) {
        let mut attack = Attack::new(Client::new(policy, 1_700_000_000_000_000));
        for next in next {
            attack.perform(next).map_err(TestCaseError::fail)?;
        }
    }
}
