//! Nodes of several data centers in one process, on stores in memory and in virtual time, and a
//! checker that sees what an origin sees.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use anteroom_config::Config;
use anteroom_node::{Arrival, Intent, Node, NodeClock, NodeSettings, Outcome, RoomHandle, Stores};
use anteroom_room::hash::LotteryKey;
use anteroom_room::id::{DeploymentId, VisitorId};
use anteroom_room::time::{Minute, Timestamp};
use anteroom_store::memory::Memory;
use anteroom_store::{Clock, Membership, Store, join};
use tokio::time::Instant;

/// 2023-09-11T11:45:00Z: the first millisecond of a minute.
const START: u64 = 1_694_432_700_000;

/// Delay in one direction between a data center and the global store.
pub(crate) const FAR: Duration = Duration::from_millis(35);
/// Delay in one direction between a node and its data center's store.
pub(crate) const NEAR: Duration = Duration::from_micros(100);

/// Tokio's paused clock, which advances only while all tasks wait. Its wall clock may be stepped.
#[derive(Debug)]
pub(crate) struct VirtualClock {
    started: Instant,
    wall_ahead_ms: AtomicI64,
}

impl VirtualClock {
    fn start() -> Arc<Self> {
        Arc::new(Self {
            started: Instant::now(),
            wall_ahead_ms: AtomicI64::new(0),
        })
    }

    /// Steps the wall clock.
    pub(crate) fn step_wall(&self, ms: i64) {
        self.wall_ahead_ms.fetch_add(ms, Ordering::Relaxed);
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        let elapsed = self.started.elapsed().as_millis();
        Timestamp(START + u64::try_from(elapsed).unwrap())
    }

    fn never_before(&self, _at: Timestamp) {}
}

impl NodeClock for VirtualClock {
    fn wall(&self) -> Timestamp {
        let ahead = self.wall_ahead_ms.load(Ordering::Relaxed);
        Timestamp(self.now().0.wrapping_add_signed(ahead))
    }

    fn slew(&self) {}
}

/// Configuration of the room at all nodes.
#[derive(Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) seats: u32,
    pub(crate) per_minute: u32,
    pub(crate) session_s: u32,
    pub(crate) more: &'static str,
}

/// Nodes and their stores.
pub(crate) struct Deployment {
    pub(crate) clock: Arc<VirtualClock>,
    /// Store of each data center; none if there is one level.
    pub(crate) locals: Vec<Memory>,
    pub(crate) root: Memory,
    pub(crate) nodes: Vec<Arc<Node>>,
    rules: Rules,
    membership: Membership,
}

impl Deployment {
    /// Starts `nodes` nodes in each of `data_centers`, which have stores of their own.
    pub(crate) async fn two_levels(data_centers: usize, nodes: usize, rules: Rules) -> Self {
        let mut deployment = Self::empty(rules);
        deployment.root.set_delay(FAR);
        deployment.join().await;
        for index in 0..data_centers {
            deployment.locals.push(near(&deployment.clock));
            for _ in 0..nodes {
                deployment.start(index);
            }
        }
        deployment.settle().await;
        deployment
    }

    /// Starts nodes on one store.
    pub(crate) async fn one_level(nodes: usize, rules: Rules) -> Self {
        let mut deployment = Self::empty(rules);
        deployment.root.set_delay(NEAR);
        deployment.join().await;
        for _ in 0..nodes {
            deployment.start(0);
        }
        deployment.settle().await;
        deployment
    }

    fn empty(rules: Rules) -> Self {
        let clock = VirtualClock::start();
        let root = Memory::new(Arc::clone(&clock) as Arc<dyn Clock>);
        let membership = Membership {
            deployment: anteroom_store::Deployment {
                deployment_id: DeploymentId(7),
                lottery_key: LotteryKey([9; 16]),
            },
            ticket_keys: vec![[1; 32]],
        };
        Self {
            clock,
            locals: Vec::new(),
            root,
            nodes: Vec::new(),
            rules,
            membership,
        }
    }

    async fn join(&self) {
        join(&self.root, &self.membership, true, Timestamp::ZERO)
            .await
            .unwrap();
    }

    /// Starts one more node in a data center.
    pub(crate) fn start(&mut self, data_center: usize) {
        self.start_in(data_center, None);
    }

    /// Starts one more node, with a data folder.
    pub(crate) fn start_in(&mut self, data_center: usize, folder: Option<PathBuf>) {
        let root: Arc<dyn Store> = Arc::new(self.root.clone());
        let stores = match self.locals.get(data_center) {
            Some(local) => Stores::TwoLevels {
                local: Arc::new(local.clone()),
                global: root,
            },
            None => Stores::Shared(root),
        };
        let rules = self.rules;
        let text = format!(
            "[[room]]\nname = \"shop\"\norigin = \"http://127.0.0.1:9\"\nbypass = []\n\
             total_active_users = {}\nnew_users_per_minute = {}\nsession_duration = \"{}s\"\n{}\n",
            rules.seats, rules.per_minute, rules.session_s, rules.more
        );
        let settings = NodeSettings {
            folder,
            ticket_keys: self.membership.ticket_keys.clone(),
            deployment_id: self.membership.deployment.deployment_id,
            lottery_key: self.membership.deployment.lottery_key,
            data_center: format!("dc{data_center}"),
            history_bytes: 1 << 20,
            rooms: Config::parse("test.toml", &text).unwrap().config.rooms,
        };
        let clock = Arc::clone(&self.clock) as Arc<dyn NodeClock>;
        self.nodes
            .push(Node::start(settings, stores, clock).unwrap());
    }

    /// Stops all nodes, in order.
    pub(crate) async fn stop_all(&mut self) {
        for node in self.nodes.drain(..) {
            node.stop().await;
        }
    }

    /// Waits until every node has a lease.
    async fn settle(&self) {
        let_pass(Duration::from_secs(5)).await;
        assert!(self.nodes.iter().all(|node| node.is_healthy()));
    }

    /// Returns the room at a node.
    pub(crate) fn room(&self, node: usize) -> Arc<RoomHandle> {
        let rooms = self.nodes[node].rooms();
        Arc::clone(&rooms[0])
    }

    /// Counts requests to the local stores and to the root's store.
    pub(crate) fn requests(&self) -> (u64, u64) {
        let near = self.locals.iter().map(Memory::requests).sum();
        (near, self.root.requests())
    }
}

fn near(clock: &Arc<VirtualClock>) -> Memory {
    let store = Memory::new(Arc::clone(clock) as Arc<dyn Clock>);
    store.set_delay(NEAR);
    store
}

/// Lets virtual time pass.
pub(crate) async fn let_pass(time: Duration) {
    tokio::time::sleep(time).await; // tidy: paused time
}

/// Sends a request with the cookie that a visitor has.
pub(crate) async fn request(room: &RoomHandle, cookie: Option<&str>) -> Outcome {
    let tickets: Vec<&str> = cookie.into_iter().collect();
    let arrival = Arrival {
        tickets: &tickets,
        is_navigation: true,
        gets_page: true,
        intent: Intent::Enter,
    };
    room.decide(arrival).await
}

/// Checker that sees what an origin sees: visitors who pass, their admissions and ends of sessions.
#[derive(Default)]
pub(crate) struct Checker {
    ends: BTreeMap<VisitorId, Timestamp>,
    admitted: BTreeMap<Minute, u32>,
    pub(crate) inside_max: usize,
    pub(crate) admitted_total: u32,
}

impl Checker {
    /// Records an outcome. Returns the cookie that the visitor has from now on.
    pub(crate) fn note(
        &mut self,
        outcome: Outcome,
        cookie: Option<String>,
        now: Timestamp,
    ) -> Option<String> {
        match outcome {
            Outcome::Pass(pass) => {
                assert!(pass.seat_ends_at > now, "passed after the end of its seat");
                let end = self.ends.entry(pass.ticket.visitor).or_default();
                *end = (*end).max(pass.seat_ends_at);
                if pass.is_admission {
                    self.admitted_total += 1;
                    let accepted_at = pass.ticket.accepted_at.unwrap();
                    *self.admitted.entry(accepted_at.minute()).or_default() += 1;
                }
                self.inside_max = self.inside_max.max(self.inside(now));
                pass.new_ticket.or(cookie)
            }
            Outcome::Queue { ticket, .. } => ticket.or(cookie),
            Outcome::MayCome => cookie,
        }
    }

    /// Counts active visitors.
    pub(crate) fn inside(&self, now: Timestamp) -> usize {
        self.ends.values().filter(|end| **end > now).count()
    }

    /// Returns the most admissions of any minute.
    pub(crate) fn admitted_in_a_minute_max(&self) -> u32 {
        self.admitted.values().copied().max().unwrap_or(0)
    }
}
