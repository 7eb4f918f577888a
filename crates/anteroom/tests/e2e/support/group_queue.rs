//! Groups that queue for a full room, and the order in which they enter.

use std::net::SocketAddr;
use std::time::Duration;

use anteroom::demo::checking_origin::CheckingOrigin;
use anteroom_room::time::{DurationMs, Timestamp};
use anteroom_room::watermark::BUCKET;
use tokio::time::{interval, timeout};

use super::operator::Operator;
use super::visitors::{self, endless_visits, short_visits};
use super::{TIMEOUT, eventually, now};
use anteroom_testkit::load::{Habits, NodeAddress, VisitorLoad};

/// Seats of the room.
pub(crate) const SEATS: u32 = 5;

/// Visitors of a group: more than there are seats, so that the seats never hold a whole one.
const GROUP: u32 = 6;

/// Time within which admissions are one: the last of a group and the first of the next one may all
/// have a slot, and take it when they refresh, every two seconds at the front.
const TOGETHER: DurationMs = DurationMs(2_100);

/// Queue of groups for a full room.
pub(crate) struct GroupQueue {
    address: NodeAddress,
    keepers: Option<VisitorLoad>,
    groups: Vec<(&'static str, VisitorLoad)>,
}

impl GroupQueue {
    /// Fills all seats with visitors who keep them.
    pub(crate) async fn at(address: &NodeAddress, origin: &CheckingOrigin) -> Self {
        let keepers = visitors::send(address, SEATS, &endless_visits());
        let is_full = async || origin.inside() == SEATS as usize;
        eventually("the room is full", is_full).await;
        Self {
            address: address.clone(),
            keepers: Some(keepers),
            groups: Vec::new(),
        }
    }

    /// Adds a group and waits until each of its visitors counts in the queue. The next group
    /// arrives in a later second.
    pub(crate) async fn join(&mut self, path: &'static str, admin: SocketAddr) {
        self.add(path);
        let operator = Operator::at(admin);
        let waiting = f64::from(GROUP) * self.groups.len() as f64;
        eventually("all have sent their tickets back", async || {
            operator.shows("anteroom_visitors_waiting", waiting).await
        })
        .await;
        let this_second = now().floor_to(BUCKET);
        eventually("the next second", async || {
            now().floor_to(BUCKET) > this_second
        })
        .await;
    }

    /// Adds a group, without waiting.
    pub(crate) fn add(&mut self, path: &'static str) {
        let habits = Habits {
            path,
            pages: 1..=1,
            log_out_percent: 0,
            are_followed: false,
            ..short_visits()
        };
        self.groups
            .push((path, visitors::send(&self.address, GROUP, &habits)));
    }

    /// Stops the visitors who keep the seats; seats come free as their sessions end.
    pub(crate) async fn open(&mut self) {
        if let Some(keepers) = self.keepers.take() {
            let counters = keepers.stop().await;
            assert_eq!(counters.queued_with_ticket, 0, "{counters:?}");
        }
    }

    /// Waits until all groups have entered, and fails if a visitor entered more than [`TOGETHER`]
    /// before one of an earlier group.
    pub(crate) async fn assert_all_in_order(self, origin: &CheckingOrigin) {
        let arrived: Vec<&str> = self.groups.iter().map(|(path, _)| *path).collect();
        let group_of = |path: &str| arrived.iter().position(|group| *group == path);
        let is_in = |group: &VisitorLoad| group.counters().entered == u64::from(GROUP);
        let mut looks = interval(Duration::from_millis(50));
        let all_in = async {
            while !self.groups.iter().all(|(_, group)| is_in(group)) {
                looks.tick().await;
            }
        };
        let in_time = timeout(TIMEOUT, all_in).await.is_ok();
        let admissions = origin.first_paths().into_iter();
        let of_group = |(at, path): (_, String)| Some((at, group_of(&path)?));
        let mut order: Vec<_> = admissions.filter_map(of_group).collect();
        order.sort();
        let counts = self
            .groups
            .iter()
            .map(|(path, group)| (path, group.counters()));
        let counts: Vec<_> = counts.collect();
        assert!(in_time, "not all have entered: {counts:?}, {order:?}");
        let mut latest = vec![Timestamp::ZERO; arrived.len()];
        for &(at, group) in &order {
            latest[group] = latest[group].max(at);
        }
        for &(at, group) in &order {
            let earlier = latest[..group].iter().max().copied().unwrap_or_default();
            assert!(earlier <= at + TOGETHER, "{order:?} of {arrived:?}");
        }
    }
}
