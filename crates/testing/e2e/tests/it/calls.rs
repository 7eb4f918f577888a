//! Do limits of calls hold while everything goes wrong that can? Two data centers with three nodes
//! each, as processes of the real program, 70 ms from the store that they share; judged by what
//! arrives at the origin.
//!
//! In each run: in no window more calls of a client come through than its limit says, whichever
//! nodes it calls. How many come through is printed and not judged, as it depends on the machine;
//! but for the runs that are to reach the limit, where one call too many would be seen.

mod leases;
mod valkey;

use std::time::Duration;

use anteroom_e2e::callers::{CLIENT, Callers, Calls, Demand, WillingOrigin};
use anteroom_e2e::cluster::{Cluster, Setup};
use anteroom_e2e::eventually;
use anteroom_room::rules::Limits;
use tokio::sync::SemaphorePermit;
use tokio::time::sleep;

use crate::clusters::TURNS;

const LIMIT: usize = 100;
const WINDOW: Duration = Duration::from_secs(8);
const CLIENTS: usize = 2;
/// Of each client: together they call some ten times as often as they may.
const LINES: usize = 6;

/// A cluster whose turn it is, and those who call it.
struct Run {
    cluster: Cluster,
    callers: Callers,
    /// Kept up.
    _origin: WillingOrigin,
    _turn: SemaphorePermit<'static>,
}

impl Run {
    /// With these lines in the limit.
    async fn start(lines: &str, seed: u64) -> Self {
        Self::start_in(|_| {}, lines, seed).await
    }

    /// The same somewhere else.
    async fn start_in(change: impl FnOnce(&mut Setup), lines: &str, seed: u64) -> Self {
        let turn = TURNS.acquire().await.expect("nobody closes it");
        let origin = WillingOrigin::start().await;
        let limits = Limits {
            total_active_users: 10,
            new_users_per_minute: 600,
        };
        let mut setup = Setup::new(limits, 12);
        let room = format!(
            "\n[[room]]\n\
             name = \"api\"\n\
             path = \"/api\"\n\
             origin = \"http://{}\"\n\
             total_active_users = 10\n\
             new_users_per_minute = 10\n\
             suspended = true\n\
             [[limit]]\n\
             name = \"api\"\n\
             limit = \"{LIMIT}/{}s\"\n\
             routes = [{{ path = \"/api\" }}]\n\
             key = \"header:{CLIENT}\"\n\
             {lines}\n",
            origin.address(),
            WINDOW.as_secs(),
        );
        setup.room.push_str(&room);
        change(&mut setup);
        let cluster = Cluster::start(setup).await;
        let demand = Demand {
            clients: CLIENTS,
            lines: LINES,
            path: "/api".to_owned(),
            seed,
        };
        let callers = Callers::at_once(&cluster.doors(), &demand, &origin);
        let run = Self {
            cluster,
            callers,
            _origin: origin,
            _turn: turn,
        };
        run.goes_on().await;
        run
    }

    /// Waits until calls come through.
    async fn goes_on(&self) {
        let wanted = self.callers.went() + LIMIT / 2;
        eventually("calls come through", async || self.callers.went() >= wanted).await;
    }

    /// Waits until calls come through again, and judges. Returns what came of them.
    async fn judge(self) -> Calls {
        self.goes_on().await;
        meanwhile(2 * WINDOW.as_secs()).await;
        let calls = self.callers.stop().await;
        calls.assert_kept(LIMIT, WINDOW);
        calls
    }
}

/// Lets all do what they do.
async fn meanwhile(secs: u64) {
    sleep(Duration::from_secs(secs)).await; // tidy: time passes
}
