//! Other visitors: they queue, enter, and browse until they are stopped.

use std::time::Duration;

use http::Method;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::ROOM;
use crate::support::TIMEOUT;
use crate::support::client::Client;

/// Time between two pages of an active visitor: short enough to keep the session on a busy machine.
const BROWSE_EVERY: Duration = Duration::from_millis(300);

/// Poll interval of a waiting visitor. Shorter than requested, so that it does not lose its
/// position on a busy machine.
const POLL_EVERY: Duration = Duration::from_millis(500);

/// Another visitor.
pub(super) struct Neighbour {
    stage: watch::Receiver<Stage>,
    keeps_running: watch::Sender<bool>,
    task: JoinHandle<()>,
}

/// Stage of a visitor.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Stage {
    /// The visitor is on the way, or does not count in the queue yet.
    Coming,
    /// The visitor counts in the queue; visitors who arrive from now on are behind.
    Waiting,
    /// The visitor is active.
    Inside,
}

impl Neighbour {
    /// Starts a visitor; returns when it is in the queue or active.
    pub(super) async fn come(client: Client) -> Self {
        let (at, stage) = watch::channel(Stage::Coming);
        let (keeps_running, is_running) = watch::channel(true);
        let task = tokio::spawn(run(client, at, is_running));
        let mut neighbour = Self {
            stage,
            keeps_running,
            task,
        };
        neighbour.until(|stage| stage != Stage::Coming).await;
        neighbour
    }

    pub(super) fn stage(&self) -> Stage {
        *self.stage.borrow()
    }

    /// Waits until it is active.
    pub(super) async fn until_inside(&mut self) {
        self.until(|stage| stage == Stage::Inside).await;
    }

    /// Leaves: logs out if it is active, stops polling if it waits.
    pub(super) async fn leave(self) {
        self.keeps_running.send_replace(false);
        timeout(TIMEOUT, self.task).await.unwrap().unwrap();
    }

    async fn until(&mut self, mut is_wanted: impl FnMut(Stage) -> bool) {
        let stage = self.stage.wait_for(|stage| is_wanted(*stage));
        let stage = timeout(TIMEOUT, stage).await;
        stage.expect("it gets there").expect("it runs");
    }
}

async fn run(
    mut client: Client,
    stage: watch::Sender<Stage>,
    mut is_running: watch::Receiver<bool>,
) {
    let position_path = format!("/.well-known/anteroom/position?room={ROOM}");
    let mut is_waiting = client.navigate("/").await.is_queued();
    while is_waiting {
        let response = client.get(&position_path).await.json();
        is_waiting = response["cfWaitingRoom"]["inWaitingRoom"] == true;
        if !is_waiting {
            break;
        }
        let at = |name: &str| response["words"][name]["atMs"].as_u64().unwrap();
        // Order is by the second of arrival.
        if at("updated") >= at("since") + 1_000 {
            stage.send_replace(Stage::Waiting);
        }
        if is_stopped(&mut is_running, POLL_EVERY).await {
            return;
        }
    }
    loop {
        let response = client.navigate("/").await;
        assert!(!response.is_queued(), "inside, and queued again");
        stage.send_replace(Stage::Inside);
        if is_stopped(&mut is_running, BROWSE_EVERY).await {
            client.send(Method::POST, "/logout", &[], "").await;
            return;
        }
    }
}

async fn is_stopped(is_running: &mut watch::Receiver<bool>, within: Duration) -> bool {
    timeout(within, is_running.wait_for(|is_running| !is_running))
        .await
        .is_ok()
}
