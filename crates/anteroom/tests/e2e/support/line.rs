//! Groups that stand in line before a full room, and the order in which they go in.

use std::net::SocketAddr;
use std::time::Duration;

use anteroom::demo::judging::CheckingOrigin;
use anteroom_room::watermark::BUCKET;
use tokio::time::{interval, timeout};

use super::crowd::{Door, Habits, LoadGenerator};
use super::operator::Operator;
use super::{PATIENCE, eventually, now};

/// Seats of the room.
pub(crate) const SEATS: u32 = 5;

/// Visitors of a group: more than there are seats, so that two groups are never called at once.
const GROUP: usize = 6;

/// A line.
pub(crate) struct Line {
    door: Door,
    keepers: Option<LoadGenerator>,
    groups: Vec<(&'static str, LoadGenerator)>,
}

impl Line {
    /// Lets visitors take all seats and keep them.
    pub(crate) async fn at(door: &Door, origin: &CheckingOrigin) -> Self {
        let keepers = LoadGenerator::send(door, SEATS as usize, Habits::stay());
        let is_full = async || origin.inside() == SEATS as usize;
        eventually("the room is full", is_full).await;
        Self {
            door: door.clone(),
            keepers: Some(keepers),
            groups: Vec::new(),
        }
    }

    /// Lets a group join and waits until each of it has been counted. The next one arrives in a
    /// later second.
    pub(crate) async fn join(&mut self, path: &'static str, admin: SocketAddr) {
        self.add(path);
        let operator = Operator::at(admin);
        let waiting = (GROUP * self.groups.len()) as f64;
        eventually("all have brought their tickets back", async || {
            operator.shows("anteroom_visitors_waiting", waiting).await
        })
        .await;
        let this_second = now().floor_to(BUCKET);
        eventually("the next second", async || {
            now().floor_to(BUCKET) > this_second
        })
        .await;
    }

    /// Lets a group come, whatever becomes of it.
    pub(crate) fn add(&mut self, path: &'static str) {
        let habits = Habits {
            path,
            pages: 1,
            say_goodbye: false,
            are_followed: false,
            ..Habits::default()
        };
        self.groups
            .push((path, LoadGenerator::send(&self.door, GROUP, habits)));
    }

    /// Lets those who keep the seats leave; seats come free as their sessions end.
    pub(crate) async fn open(&mut self) {
        if let Some(keepers) = self.keepers.take() {
            let counters = keepers.go_home().await;
            assert_eq!(counters.thrown_out, 0, "{counters:?}");
        }
    }

    /// Waits until all groups are in and fails if anybody went in before somebody of an earlier
    /// group.
    pub(crate) async fn assert_all_in_order(self, origin: &CheckingOrigin) {
        let came: Vec<&str> = self.groups.iter().map(|(path, _)| *path).collect();
        let group_of = |path: &str| came.iter().position(|group| *group == path);
        let is_in = |group: &LoadGenerator| group.counters().entered == GROUP as u64;
        let mut looks = interval(Duration::from_millis(50));
        let all_in = async {
            while !self.groups.iter().all(|(_, group)| is_in(group)) {
                looks.tick().await;
            }
        };
        let in_time = timeout(PATIENCE, all_in).await.is_ok();
        let admissions = origin.first_paths().into_iter();
        let of_group = |(at, path): (_, String)| Some((at, group_of(&path)?));
        let mut order: Vec<_> = admissions.filter_map(of_group).collect();
        // Who came in in the same millisecond came in together.
        order.sort();
        let tallies = self
            .groups
            .iter()
            .map(|(path, group)| (path, group.counters()));
        let tallies: Vec<_> = tallies.collect();
        assert!(in_time, "not everybody is in: {tallies:?}, {order:?}");
        assert!(
            order.is_sorted_by_key(|&(_, group)| group),
            "{order:?} of {came:?}"
        );
    }
}
