//! What was charged and does not go through is taken back, whoever has left.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use anteroom_limit::cost::Cost;
use anteroom_limit::policy::Policy;
use anteroom_limit::sliding_window::SlidingWindow;
use anteroom_limit::sub_windows::SubWindows;
use anteroom_limit::time::DurationUs;
use anteroom_limit_store::CallKey;
use anteroom_limit_store::shared::{CountsError, SharedAcquire, SharedCounts as _, TestTime};
use anteroom_memcached::MemcachedCounts;
use anteroom_testkit::eventually;
use anteroom_testkit::memcached_server::MemcachedServer;
use anteroom_testkit::relay::{Delays, Relay};
use futures_util::FutureExt as _;

use crate::memcached::support::{
    START, a_minute, call, counts, counts_at, gcra, patient_for, rate,
};

/// A client that resets its calls is not shut out for longer than by its calls.
#[tokio::test]
async fn a_call_whose_caller_left_before_its_answer_is_taken_back_once() {
    let server = MemcachedServer::start().await;
    let counts = counts(server.port());
    let policy = Policy::SlidingWindow(SlidingWindow::new(rate(5, 60)));
    for _ in 0..5 {
        call(&counts, &policy, Cost::ONE).await.unwrap();
    }
    let values = server.values().await;
    let [(name, _)] = values.as_slice() else {
        panic!("{values:?}");
    };
    server.pause();
    for _ in 0..3 {
        let mut leaving = Box::pin(call(&counts, &policy, Cost::ONE));
        assert!(leaving.as_mut().now_or_never().is_none());
    }
    server.resume();
    // Behind those on their connection, so they have been added.
    call(&counts, &policy, Cost::Peek).await.unwrap();
    let get = format!("mg {name} v");
    eventually("all are taken back", async || {
        let stats = (
            server.stat("incr_hits").await,
            server.stat("decr_hits").await,
        );
        stats == (7, 3)
    })
    .await;
    call(&counts, &policy, Cost::Peek).await.unwrap();
    assert_eq!(server.ask(&get).await, "VA 1\r\n5\r\n");
    assert_eq!(server.stat("decr_hits").await, 3);
}

/// The server has written the state, and its answer is on its way.
#[tokio::test]
async fn a_call_abandoned_during_a_swap_is_taken_back_once() {
    let server = MemcachedServer::start().await;
    let delays = Delays {
        there: Duration::ZERO,
        back: Duration::from_millis(400),
    };
    let relay = Relay::start((Ipv4Addr::LOCALHOST, server.port()).into(), delays).await;
    let counts = Arc::new(patient_for(
        &[relay.address().port()],
        Duration::from_secs(20),
    ));
    let policy = gcra(5);
    call(&counts, &policy, Cost::ONE).await.unwrap();
    let mut kept = 1;
    // On a machine that stood still meanwhile a call may have had its answer before it is given up;
    // it counts then.
    let written = loop {
        assert!(kept < 5, "no call is ever given up in time");
        let written = server.stat("cmd_set").await;
        let calling = Arc::clone(&counts);
        let leaving = tokio::spawn(async move {
            let told = call(&calling, &gcra(5), Cost::ONE).await;
            told.map(|verdict| verdict.is_admitted())
        });
        eventually("it is written", async || {
            server.stat("cmd_set").await > written
        })
        .await;
        leaving.abort();
        match leaving.await {
            // The call's own.
            Err(_) => break written + 1,
            Ok(told) => assert!(told.unwrap()),
        }
        kept += 1;
    };
    // By its own wish and not by what comes free meanwhile: one a twelfth of a minute, and the
    // clock of these stands still.
    eventually("it is taken back", async || {
        server.stat("cmd_set").await > written
    })
    .await;
    let left = call(&counts, &policy, Cost::Peek).await.unwrap();
    assert_eq!(left.remaining, 5 - kept);
    assert_eq!(server.stat("cmd_set").await, written + 1);
}

/// Limits of one client, of which the last lies at another server than the first two.
struct Apart {
    servers: [MemcachedServer; 2],
    counts: Arc<MemcachedCounts>,
    key: CallKey,
    window: Policy,
    state: Policy,
}

impl Apart {
    async fn start(timeout: Duration) -> Self {
        let mut servers = [
            MemcachedServer::start().await,
            MemcachedServer::start().await,
        ];
        servers.sort_by_key(MemcachedServer::port);
        let ports = servers.each_ref().map(MemcachedServer::port);
        let counts = patient_for(&ports, timeout);
        let lies = |limit, key| counts.server_of(limit, key);
        let is_fit = |key: &CallKey| {
            let at = ["window", "state", "last"].map(|limit| lies(limit, *key));
            at == [0, 0, 1]
        };
        let key = (0..).map(CallKey).find(is_fit).expect("one in eight");
        Self {
            counts: Arc::new(counts),
            servers,
            key,
            window: a_minute(5),
            state: gcra(5),
        }
    }

    fn charges(&self, cost: Cost) -> [SharedAcquire<'_>; 3] {
        let charge = |limit, policy| SharedAcquire {
            limit,
            policy,
            key: self.key,
            cost,
        };
        [
            charge("window", &self.window),
            charge("state", &self.state),
            charge("last", &self.state),
        ]
    }

    /// What is left of the first two.
    async fn left(&self) -> Option<[u32; 2]> {
        let charges = self.charges(Cost::Peek);
        let verdicts = self.counts.charge(&charges[..2]).await.ok()?;
        Some([verdicts[0].remaining, verdicts[1].remaining])
    }

    async fn is_connected(&self) {
        eventually("both servers are used", async || {
            self.counts.charge(&self.charges(Cost::Peek)).await.is_ok()
        })
        .await;
    }
}

#[tokio::test]
async fn a_server_that_hangs_leaves_nothing_charged_at_another_and_is_named() {
    let stage = Apart::start(Duration::from_millis(300)).await;
    stage.is_connected().await;
    stage.servers[1].pause();
    let error = stage.counts.charge(&stage.charges(Cost::ONE)).await;
    let error = error.unwrap_err();
    let CountsError::Late { place, .. } = &error else {
        panic!("{error:?}");
    };
    let [first, second] = stage.servers.each_ref().map(|one| one.port().to_string());
    assert!(
        place.contains(&second) && !place.contains(&first),
        "{place}"
    );
    eventually("both are taken back", async || {
        stage.left().await == Some([5, 5])
    })
    .await;
}

#[tokio::test]
async fn what_was_charged_before_a_caller_left_is_taken_back() {
    let stage = Arc::new(Apart::start(Duration::from_secs(20)).await);
    stage.is_connected().await;
    stage.servers[1].pause();
    let calling = Arc::clone(&stage);
    let leaving = tokio::spawn(async move {
        let charges = calling.charges(Cost::ONE);
        calling.counts.charge(&charges).await.is_ok()
    });
    // On a machine that stood still for seconds the call has failed by then, and is to be taken
    // back as well.
    eventually("the first two are charged", async || {
        stage.left().await == Some([4, 4]) || leaving.is_finished()
    })
    .await;
    leaving.abort();
    eventually("both are taken back", async || {
        stage.left().await == Some([5, 5])
    })
    .await;
}

/// With its age a refund leaves calls alone that came later.
#[tokio::test]
async fn a_refund_with_its_age_undoes_no_later_call() {
    let server = MemcachedServer::start().await;
    let time = TestTime::default();
    let counts = counts_at(server.port(), &time);
    let policy = Policy::SubWindows(SubWindows::strict(rate(10, 60), 4).unwrap());
    for (at, cost) in [(14, 1), (16, 2)] {
        time.set(START + DurationUs::from_secs(at));
        call(&counts, &policy, Cost::take(cost)).await.unwrap();
    }
    let refund = SharedAcquire {
        limit: "api",
        policy: &policy,
        key: CallKey(1),
        cost: Cost::refund(1),
    };
    let left = counts.refund(&[refund], DurationUs::from_secs(5)).await;
    assert_eq!(left.unwrap()[0].remaining, 8);
    // When the first stretch is over nothing comes free: both that came in the second still count.
    time.set(START + DurationUs::from_secs(76));
    let left = call(&counts, &policy, Cost::Peek).await.unwrap();
    assert_eq!(left.remaining, 8);
    // What is older than it says is none of its own.
    let left = counts.refund(&[refund], DurationUs::from_secs(5)).await;
    assert_eq!(left.unwrap()[0].remaining, 8);
}
