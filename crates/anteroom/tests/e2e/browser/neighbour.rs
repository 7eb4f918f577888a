//! Other people: they stand in line, go in, look around until they are told to leave.

use std::time::Duration;

use http::Method;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::ROOM;
use crate::support::PATIENCE;
use crate::support::client::Client;

/// How often somebody inside asks for a page: often enough that no busy machine ends its session.
const BROWSE_EVERY: Duration = Duration::from_millis(300);

/// How often the eager ask for their place. More often than they are told to, so that no busy
/// machine makes them lose it to those behind.
const ASK_EVERY: Duration = Duration::from_millis(500);

/// Somebody else.
pub(super) struct Neighbour {
    stage: watch::Receiver<Stage>,
    may_stay: watch::Sender<bool>,
    incarnation: JoinHandle<()>,
}

/// Where somebody is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Stage {
    /// On the way, or not counted in the line yet.
    Coming,
    /// Counted in the line, and whoever comes from now on is behind.
    Waiting,
    /// In the shop.
    Inside,
}

impl Neighbour {
    /// Somebody comes; returns when it stands in line or is inside.
    pub(super) async fn come(client: Client) -> Self {
        let (at, stage) = watch::channel(Stage::Coming);
        let (may_stay, stays) = watch::channel(true);
        let incarnation = tokio::spawn(live(client, at, stays));
        let mut neighbour = Self {
            stage,
            may_stay,
            incarnation,
        };
        neighbour.until(|stage| stage != Stage::Coming).await;
        neighbour
    }

    pub(super) fn stage(&self) -> Stage {
        *self.stage.borrow()
    }

    /// Waits until it is in.
    pub(super) async fn until_inside(&mut self) {
        self.until(|stage| stage == Stage::Inside).await;
    }

    /// It leaves: by logging out if it is inside, by asking no more if it waits.
    pub(super) async fn leave(self) {
        self.may_stay.send_replace(false);
        timeout(PATIENCE, self.incarnation).await.unwrap().unwrap();
    }

    async fn until(&mut self, mut is_wanted: impl FnMut(Stage) -> bool) {
        let stage = self.stage.wait_for(|stage| is_wanted(*stage));
        let stage = timeout(PATIENCE, stage).await;
        stage.expect("it gets there").expect("it lives");
    }
}

async fn live(mut client: Client, stage: watch::Sender<Stage>, mut stays: watch::Receiver<bool>) {
    let place = format!("/.well-known/anteroom/place?room={ROOM}");
    let mut is_waiting = client.navigate("/").await.is_queued();
    while is_waiting {
        let answer = client.get(&place).await.json();
        is_waiting = answer["cfWaitingRoom"]["inWaitingRoom"] == true;
        if !is_waiting {
            break;
        }
        let at = |name: &str| answer["words"][name]["atMs"].as_u64().unwrap();
        // Places have the order of the seconds in which people came.
        if at("updated") >= at("since") + 1_000 {
            stage.send_replace(Stage::Waiting);
        }
        if is_told_to_leave(&mut stays, ASK_EVERY).await {
            return;
        }
    }
    loop {
        let answer = client.navigate("/").await;
        assert!(!answer.is_queued(), "inside, and queued again");
        stage.send_replace(Stage::Inside);
        if is_told_to_leave(&mut stays, BROWSE_EVERY).await {
            client.send(Method::POST, "/logout", &[], "").await;
            return;
        }
    }
}

async fn is_told_to_leave(stays: &mut watch::Receiver<bool>, within: Duration) -> bool {
    timeout(within, stays.wait_for(|stays| !stays))
        .await
        .is_ok()
}
