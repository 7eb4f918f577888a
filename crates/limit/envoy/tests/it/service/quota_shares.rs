//! Shares of one limit: beside single requests, from minute to minute, and after the clock was set
//! back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anteroom_testkit::eventually;

use crate::service::quota::{left, open};
use crate::service::quota_client::{Reports, Update};
use crate::service::support::{Stage, request_of};

/// Requests per minute. The service of a test starts 13 s past a minute.
const LIMIT: u64 = 160;
const FILE: &str =
    "domain: d\ndescriptors: [{key: k, rate_limit: {unit: minute, requests_per_unit: 160}}]";

#[tokio::test]
async fn what_single_requests_leave_is_assigned() {
    let stage = Stage::new(FILE).await;
    let (mut client, quotas) = (stage.client().await, open(&stage).await);
    for _ in 0..LIMIT / 2 {
        assert!(client.outcome(&request_of(&["k=a"])).await.0);
    }
    eventually("the other half is assigned", async || {
        quotas.report(&[("k=a", 0, 100_000)]);
        stage.service.stats().quota.assigned == LIMIT / 2
    })
    .await;
    assert_eq!(left(&mut client, "k=a").await, 0);
}

#[tokio::test]
async fn a_clock_that_is_set_back_assigns_nothing_twice() {
    let stage = Stage::new(FILE).await;
    let (mut client, quotas) = (stage.client().await, open(&stage).await);
    for _ in 0..100 {
        assert!(client.outcome(&request_of(&["k=a"])).await.0);
    }
    let assigned = || stage.service.stats().quota.assigned;
    eventually("the rest is assigned", async || {
        quotas.report(&[("k=a", 0, 100_000)]);
        assigned() == LIMIT - 100
    })
    .await;
    // Within the minute, to the minute before, and to another hour; then to the end of the first
    // minute.
    let mut nothing_is_left = async |what| {
        let mut other = open(&stage).await;
        other.report(&[("k=a", 0, 1)]);
        assert_eq!(other.next_update().await, Update::Denied, "{what}");
        assert!(!client.outcome(&request_of(&["k=a"])).await.0, "{what}");
        assert_eq!(assigned(), LIMIT - 100, "{what}");
    };
    for seconds in [10, 20, 7_200] {
        stage.set_back(seconds);
        nothing_is_left(seconds).await;
    }
    stage.wait_seconds(10 + 20 + 7_200 + 45);
    nothing_is_left(0).await;
    stage.wait_seconds(2);
    eventually("the next minute is assigned", async || {
        quotas.report(&[("k=a", 0, 100_000)]);
        assigned() > LIMIT - 100
    })
    .await;
}

/// Stream with a count of what it was assigned.
struct Client {
    reports: Reports,
    assigned: Arc<AtomicU64>,
    /// Requests that it reported as allowed.
    spent: AtomicU64,
}

impl Client {
    async fn new(stage: &Stage) -> Self {
        let (reports, assigned) = open(stage).await.count();
        let spent = AtomicU64::new(0);
        Self {
            reports,
            assigned,
            spent,
        }
    }

    fn assigned(&self) -> u64 {
        self.assigned.load(Ordering::SeqCst)
    }

    /// Reports all assigned requests as used and more demand, or no requests.
    fn report(&self, is_busy: bool) {
        let (mut allowed, mut denied) = (0, 0);
        if is_busy {
            let assigned = self.assigned();
            allowed = assigned - self.spent.swap(assigned, Ordering::SeqCst);
            denied = 20;
        }
        self.reports.report(&[("k=a", allowed, denied)]);
    }
}

/// Runs from the 13th second of a minute to that of the next. Returns what each client was
/// assigned, while the busy ones have requests.
async fn minute(stage: &Stage, clients: &[Client; 2], are_busy: [bool; 2]) -> [u64; 2] {
    let before = clients.each_ref().map(Client::assigned);
    let assigned = || stage.service.stats().quota.assigned;
    let sum = before.iter().sum::<u64>();
    eventually("much of a minute is assigned", async || {
        for (client, is_busy) in clients.iter().zip(are_busy) {
            client.report(is_busy);
        }
        assigned() >= sum + LIMIT * 3 / 4
    })
    .await;
    // In the last second of a minute nothing is assigned.
    stage.wait_seconds(46);
    eventually("all have their updates", async || {
        clients.iter().map(Client::assigned).sum::<u64>() == assigned()
    })
    .await;
    let after = clients.each_ref().map(Client::assigned);
    stage.wait_seconds(14);
    [after[0] - before[0], after[1] - before[1]]
}

#[tokio::test]
async fn shares_move_to_the_busy_client() {
    let stage = Stage::new(FILE).await;
    let clients = [Client::new(&stage).await, Client::new(&stage).await];
    let mut minutes = Vec::new();
    for are_busy in [[true, false], [false, true], [true, false]] {
        loop {
            let shares = minute(&stage, &clients, are_busy).await;
            minutes.push((are_busy, shares));
            let all = minutes.iter().map(|(_, shares)| shares[0] + shares[1]);
            let most = LIMIT * u64::try_from(minutes.len()).unwrap();
            assert!(all.sum::<u64>() <= most, "{minutes:?}");
            let (busy, idle) = if are_busy[0] {
                (shares[0], shares[1])
            } else {
                (shares[1], shares[0])
            };
            if busy >= LIMIT * 2 / 3 && idle <= LIMIT / 8 {
                break;
            }
            // A client that became idle gets a small share after some reports.
            assert!(minutes.len() < 30, "{minutes:?}");
        }
    }
}
