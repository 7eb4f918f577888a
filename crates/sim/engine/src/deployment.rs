//! Simulated deployment: nodes with the production room, stores with the production ledger, and the
//! network between them.
//!
//! This module says what each part can do; `run` decides when it happens.

pub(crate) mod ledgers;
pub(crate) mod network;
pub(crate) mod node;

use anteroom_config::schedule::Clocks;
use anteroom_config::{RoomConfig, RoomName};
use anteroom_room::hash::LotteryKey;
use anteroom_room::id::{DataCenterId, NodeId};
use anteroom_room::room::RoomIdentity;
use anteroom_room::rules::{Limits, NewUsersWindow, Rules};
use anteroom_room::time::Timestamp;

use crate::rng::{Draw, Purpose, SimRng};
use crate::scenario::model::{DataCenterPlan, NodeRef, RoomPlan, Scenario};
use ledgers::Stores;
use network::Network;
use node::{Node, NodeSchedule};

/// All parts between the visitors and the origin.
#[derive(Debug)]
pub(crate) struct Deployment {
    pub(crate) nodes: Vec<Node>,
    pub(crate) data_centers: Vec<DataCenter>,
    pub(crate) stores: Stores,
    pub(crate) network: Network,
    pub(crate) lottery_key: LotteryKey,
    start_rng: SimRng,
}

/// Data center; its nodes are adjacent in [`Deployment::nodes`].
#[derive(Debug)]
pub(crate) struct DataCenter {
    pub(crate) plan: DataCenterPlan,
    pub(crate) first_node: u32,
}

impl Deployment {
    pub(crate) fn new(scenario: &Scenario, room: &RoomPlan, rules: Rules, now: Timestamp) -> Self {
        let mut start_rng = SimRng::new(scenario.seed, Purpose::NodeStarts);
        let mut key = [0; 16];
        key[..8].copy_from_slice(&start_rng.word().to_le_bytes());
        let mut deployment = Self {
            nodes: Vec::new(),
            data_centers: Vec::new(),
            stores: Stores::new(scenario),
            network: Network::new(scenario),
            lottery_key: LotteryKey(key),
            start_rng,
        };
        for (plan, index) in scenario.data_centers.iter().zip(0u32..) {
            let first_node = deployment.node_count();
            for _ in 0..plan.nodes {
                let identity = deployment.new_incarnation(index);
                let is_paced = !scenario.is_one_node();
                let schedule = deployment.schedule(room, rules, now);
                let rules = (rules, schedule);
                let node = Node::new(identity, index, rules, is_paced, now);
                deployment.nodes.push(node);
            }
            deployment.data_centers.push(DataCenter {
                plan: plan.clone(),
                first_node,
            });
        }
        deployment
    }

    /// Returns the settings of a room with events; `None` for one without.
    fn schedule(&self, room: &RoomPlan, rules: Rules, now: Timestamp) -> Option<NodeSchedule> {
        if room.events.is_empty() {
            return None;
        }
        let name = RoomName::new(&room.name)?;
        let file = RoomConfig::of_rules(name, rules, room.events.clone());
        let clocks = Clocks {
            wall: now,
            room: now,
        };
        let has_copy = self.stores.has_two_levels();
        Some(NodeSchedule::new(file, has_copy, clocks))
    }

    /// Returns the identity of a node for its next start.
    pub(crate) fn new_incarnation(&mut self, data_center: u32) -> RoomIdentity {
        let node = NodeId(self.start_rng.word());
        RoomIdentity {
            node,
            process: node,
            is_alone: self.stores.is_alone(),
            data_center: DataCenterId(data_center + 1),
            lottery_key: self.lottery_key,
        }
    }

    /// Returns the random numbers for everything about starts of nodes.
    pub(crate) fn start_rng(&mut self) -> &mut SimRng {
        &mut self.start_rng
    }

    pub(crate) fn node_count(&self) -> u32 {
        u32::try_from(self.nodes.len()).unwrap_or(u32::MAX)
    }

    /// Returns the index of a node.
    pub(crate) fn node_at(&self, place: NodeRef) -> Option<u32> {
        let data_center = self.data_centers.get(place.data_center)?;
        let node = u32::try_from(place.node).ok()?;
        (node < data_center.plan.nodes).then_some(data_center.first_node + node)
    }

    /// Chooses a node as a load balancer does: the wanted one, the next running one of its data
    /// center, or one of another data center. Returns `None` if no node is open.
    pub(crate) fn route(&self, wanted: u32) -> Option<u32> {
        if self.nodes[wanted as usize].is_open() {
            return Some(wanted);
        }
        let home = self.nodes[wanted as usize].data_center as usize;
        let others =
            (0..self.data_centers.len()).map(|step| (home + step) % self.data_centers.len());
        for data_center in others.map(|index| &self.data_centers[index]) {
            let count = data_center.plan.nodes;
            let from = wanted.saturating_sub(data_center.first_node);
            let mut candidates =
                (0..count).map(|step| data_center.first_node + (from + step) % count);
            if let Some(found) = candidates.find(|&node| self.nodes[node as usize].is_open()) {
                return Some(found);
            }
        }
        None
    }

    /// Returns the highest limits of all nodes.
    pub(crate) fn highest_limits(&self) -> Limits {
        // A process that starts evaluates its schedule anew.
        let nodes = self.nodes.iter();
        let nodes = nodes.filter(|node| node.is_alive() || node.schedule.is_none());
        let limits = nodes.map(|node| node.rules.limits);
        let highest = limits.reduce(|a, b| Limits {
            total_active_users: a.total_active_users.max(b.total_active_users),
            new_users_per_minute: a.new_users_per_minute.max(b.new_users_per_minute),
        });
        highest.unwrap_or_else(|| Rules::default().limits)
    }

    /// Whether the limit of admissions is for a sliding window at all nodes.
    pub(crate) fn all_windows_slide(&self) -> bool {
        let slides = |node: &Node| node.rules.new_users_window == NewUsersWindow::Sliding;
        self.nodes.iter().all(slides)
    }

    /// Returns the name of a node in a trace: `sjc/2`.
    pub(crate) fn name_of(&self, node: u32) -> String {
        let data_center = &self.data_centers[self.nodes[node as usize].data_center as usize];
        format!(
            "{}/{}",
            data_center.plan.name,
            node - data_center.first_node
        )
    }

    /// Returns the seats that data centers hold unused while they are cut off from the root.
    pub(crate) fn unusable_seats(&self, now: Timestamp) -> u32 {
        let count = u32::try_from(self.data_centers.len()).unwrap_or(u32::MAX);
        let is_cut = |data_center: &u32| !self.network.global_cuts(*data_center).passes(false, now);
        let cut = (0..count).filter(is_cut);
        cut.map(|data_center| self.stores.unused_seats_of(data_center, now))
            .fold(0, u32::saturating_add)
    }

    /// Whether a message passes between a node and the store of its data center or the root's
    /// (`is_far`). `is_answer` is set for a reply to a write.
    pub(crate) fn is_linked(
        &self,
        node: u32,
        is_far: bool,
        is_answer: bool,
        now: Timestamp,
    ) -> bool {
        let node = &self.nodes[node as usize];
        let global = self.network.global_cuts(node.data_center);
        node.cuts.passes(is_answer, now) && (!is_far || global.passes(is_answer, now))
    }
}
