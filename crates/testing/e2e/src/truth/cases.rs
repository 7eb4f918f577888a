//! Runs: a deployment, its limits, and how its visitors come.

use std::ops::RangeInclusive;
use std::time::Duration;

use anteroom_room::rules::Limits;

use crate::cluster::Setup;
use crate::stores::StoreKind;

/// Opening time of a room until the run sets the real one.
pub(super) const FAR_OPENING: &str = "2099-01-01T00:00:00Z";
/// Longest wait of all: a run that takes longer has failed.
const ENDS_WITHIN: Duration = Duration::from_secs(600);

/// One run.
#[derive(Clone, Debug)]
pub struct TruthCase {
    /// Deployment that serves the visitors.
    pub deployment: Deployment,
    /// Name of the way in which visitors come.
    pub crowd: &'static str,
    /// Number of visitors.
    pub visitors: u32,
    /// Time in which they come.
    pub come_within: Duration,
    /// Time from the first visitor to the opening; `None` if the room is open.
    pub opens_after: Option<Duration>,
    /// Limits of the room.
    pub limits: Limits,
    /// Length of a session.
    pub session_secs: u64,
    /// Time for which an admitted visitor opens pages.
    pub stays: RangeInclusive<Duration>,
    /// Time between two pages.
    pub think: Duration,
    /// Time after the last arrival within which all must have gone.
    pub ends_within: Duration,
}

/// Deployment of a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Deployment {
    /// One node with its embedded store.
    OneNode,
    /// Three nodes on one redis-server.
    ThreeNodes,
}

impl Deployment {
    /// All deployments.
    pub const ALL: [Self; 2] = [Self::OneNode, Self::ThreeNodes];

    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OneNode => "one-node",
            Self::ThreeNodes => "three-nodes",
        }
    }
}

/// Returns all runs.
#[must_use]
pub fn all() -> Vec<TruthCase> {
    let cases = Deployment::ALL.into_iter().flat_map(|deployment| {
        let small = TruthCase {
            deployment,
            crowd: "rush",
            visitors: 200,
            come_within: Duration::from_secs(10),
            opens_after: None,
            limits: Limits {
                total_active_users: 30,
                new_users_per_minute: 200,
            },
            session_secs: 10,
            stays: Duration::ZERO..=Duration::from_secs(12),
            think: Duration::from_secs(3),
            ends_within: ENDS_WITHIN,
        };
        let large = TruthCase {
            visitors: 2_000,
            come_within: Duration::from_secs(20),
            limits: Limits {
                total_active_users: 150,
                new_users_per_minute: 900,
            },
            ..small.clone()
        };
        let opening = TruthCase {
            crowd: "opening",
            come_within: Duration::from_secs(30),
            opens_after: Some(Duration::from_secs(40)),
            ..small.clone()
        };
        [small, large, opening]
    });
    cases.collect()
}

impl TruthCase {
    /// Returns a run of seconds, for tests: each visitor opens one page.
    #[must_use]
    pub fn short(deployment: Deployment) -> Self {
        Self {
            deployment,
            crowd: "short",
            visitors: 16,
            come_within: Duration::from_secs(1),
            opens_after: None,
            limits: Limits {
                total_active_users: 3,
                new_users_per_minute: 600,
            },
            session_secs: 2,
            stays: Duration::ZERO..=Duration::ZERO,
            think: Duration::from_secs(1),
            ends_within: ENDS_WITHIN,
        }
    }

    /// Returns its name, which has all that distinguishes it.
    #[must_use]
    pub fn name(&self) -> String {
        let deployment = self.deployment.name();
        format!("{deployment}-{}-{}", self.crowd, self.visitors)
    }

    /// Returns the deployment. Nodes choose the poll interval, as in production.
    pub(super) fn setup(&self) -> Setup {
        let (kind, nodes) = match self.deployment {
            Deployment::OneNode => (StoreKind::Embedded, 1),
            Deployment::ThreeNodes => (StoreKind::Single, 3),
        };
        let opening = self
            .opens_after
            .map(|_| format!("opens_at = \"{FAR_OPENING}\""));
        Setup {
            nodes,
            is_recorded: false,
            room: opening.unwrap_or_default(),
            ..Setup::new(self.limits, self.session_secs).on_one_store(kind)
        }
    }
}
