//! Rate limits hold under all faults. Two data centers with three nodes each run as processes of
//! the real program, 70 ms from the store that they share; the origin checks them.
//!
//! In each run no window has more allowed requests of a client than its limit, whichever nodes it
//! uses. Runs print how many pass and do not check it, because it depends on the machine. Only the
//! runs that reach the limit check it: there one request too many would be seen.

mod leases;
mod valkey;

use std::time::Duration;

use anteroom_e2e::api_clients::{ApiClients, CLIENT, Demand, SentRequests, WillingOrigin};
use anteroom_e2e::cluster::{Cluster, Setup};
use anteroom_e2e::eventually;
use anteroom_room::rules::Limits;
use tokio::sync::SemaphorePermit;
use tokio::time::sleep;

use crate::clusters::TURNS;

const LIMIT: usize = 100;
const WINDOW: Duration = Duration::from_secs(8);
const CLIENTS: usize = 2;
/// Tasks per client: together they send some ten times the limit.
const TASKS: usize = 6;

/// Cluster whose turn it is, and its clients.
struct Run {
    cluster: Cluster,
    clients: ApiClients,
    /// Kept running.
    _origin: WillingOrigin,
    _turn: SemaphorePermit<'static>,
}

impl Run {
    /// Starts a run with these lines in the limit.
    async fn start(lines: &str, seed: u64) -> Self {
        Self::start_in(|_| {}, lines, seed).await
    }

    /// Starts a run with a changed setup.
    async fn start_in(change: impl FnOnce(&mut Setup), lines: &str, seed: u64) -> Self {
        let turn = TURNS.acquire().await.expect("the semaphore stays open");
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
            tasks: TASKS,
            path: "/api".to_owned(),
            seed,
        };
        let clients = ApiClients::at_once(&cluster.routes(), &demand, &origin);
        let run = Self {
            cluster,
            clients,
            _origin: origin,
            _turn: turn,
        };
        run.goes_on().await;
        run
    }

    /// Waits until requests pass.
    async fn goes_on(&self) {
        let wanted = self.clients.allowed_count() + LIMIT / 2;
        eventually("requests pass", async || {
            self.clients.allowed_count() >= wanted
        })
        .await;
    }

    /// Waits until requests pass again, and checks the limit. Returns all requests.
    async fn check(self) -> SentRequests {
        self.goes_on().await;
        meanwhile(2 * WINDOW.as_secs()).await;
        let requests = self.clients.stop().await;
        requests.assert_kept(LIMIT, WINDOW);
        requests
    }
}

/// Lets the clients continue.
async fn meanwhile(secs: u64) {
    sleep(Duration::from_secs(secs)).await; // tidy: time passes
}
