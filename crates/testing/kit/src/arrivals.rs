//! Arrivals of many visitors who do not know each other.

use std::time::Duration;

use rand_core::{Rng as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

/// Plan of arrivals. The same plan yields the same visitors.
#[derive(Clone, Copy, Debug)]
pub struct ArrivalPlan {
    /// New visitors per second, over all nodes.
    pub per_second: u32,
    /// Time in which they come.
    pub lasts: Duration,
    /// Number of nodes. Each visitor comes to any of them.
    pub nodes: usize,
    /// Seed of all choices.
    pub seed: u64,
}

/// Times and nodes of arrivals: a Poisson process, as of many independent visitors. So the arrivals
/// at each node are one, too.
#[derive(Debug)]
pub struct Arrivals {
    rng: Pcg64Mcg,
    at: f64,
    plan: ArrivalPlan,
}

impl Arrivals {
    /// Creates the arrivals of a plan, which must have a node.
    #[must_use]
    pub fn new(plan: ArrivalPlan) -> Self {
        Self {
            rng: Pcg64Mcg::seed_from_u64(plan.seed),
            at: 0.0,
            plan,
        }
    }
}

impl Iterator for Arrivals {
    type Item = (Duration, usize);

    fn next(&mut self) -> Option<Self::Item> {
        let unit = (self.rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        self.at -= libm::log(1.0 - unit) / f64::from(self.plan.per_second);
        if self.at >= self.plan.lasts.as_secs_f64() {
            return None;
        }
        let node = self.rng.next_u64() % self.plan.nodes as u64;
        let node = usize::try_from(node).unwrap_or_default();
        Some((Duration::from_secs_f64(self.at), node))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_plan_yields_the_same_visitors_at_every_node() {
        let plan = ArrivalPlan {
            per_second: 1_000,
            lasts: Duration::from_secs(10),
            nodes: 4,
            seed: 7,
        };
        let all: Vec<_> = Arrivals::new(plan).collect();
        assert_eq!(all, Arrivals::new(plan).collect::<Vec<_>>());
        assert!((9_700..10_300).contains(&all.len()), "{}", all.len());
        assert!(all.is_sorted_by_key(|(at, _)| *at));
        for node in 0..4 {
            let arrived = all.iter().filter(|(_, to)| *to == node).count();
            assert!((2_300..2_700).contains(&arrived), "{arrived}");
        }
        let other = ArrivalPlan { seed: 8, ..plan };
        assert_ne!(all, Arrivals::new(other).collect::<Vec<_>>());
    }
}
