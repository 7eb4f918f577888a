//! Acquires of requests that are not admitted are undone, even if callers have left.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use anteroom_limit::cost::Cost;
use anteroom_limit::policy::Policy;
use anteroom_limit::sliding_window::SlidingWindow;
use anteroom_limit::sub_windows::SubWindows;
use anteroom_limit::time::DurationUs;
use anteroom_limit_store::ClientKey;
use anteroom_limit_store::shared::{CountsError, SharedAcquire, SharedCounts as _, TestTime};
use anteroom_memcached::MemcachedCounts;
use anteroom_testkit::eventually;
use anteroom_testkit::memcached_server::MemcachedServer;
use anteroom_testkit::relay::{Delays, Relay};
use futures_util::FutureExt as _;

use crate::memcached::support::{
    START, a_minute, call, counts, counts_at, counts_with_timeout, gcra, rate,
};

/// A client that aborts requests must not be rejected because of them.
#[tokio::test]
async fn a_request_whose_caller_left_before_the_reply_is_undone_once() {
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
    // This peek follows the requests on their connection, so they have been added.
    call(&counts, &policy, Cost::Peek).await.unwrap();
    let get = format!("mg {name} v");
    eventually("all are undone", async || {
        let stats = (
            server.stat("incr_hits").await,
            server.stat("decr_hits").await,
        );
        stats == (7, 3)
    })
    .await;
    call(&counts, &policy, Cost::Peek).await.unwrap();
    assert_eq!(server.send(&get).await, "VA 1\r\n5\r\n");
    assert_eq!(server.stat("decr_hits").await, 3);
}

/// The server has written the state, and its reply is in flight.
#[tokio::test]
async fn a_request_abandoned_during_a_swap_is_undone_once() {
    let server = MemcachedServer::start().await;
    let delays = Delays {
        there: Duration::ZERO,
        back: Duration::from_millis(400),
    };
    let relay = Relay::start((Ipv4Addr::LOCALHOST, server.port()).into(), delays).await;
    let counts = Arc::new(counts_with_timeout(
        &[relay.address().port()],
        Duration::from_secs(20),
    ));
    let policy = gcra(5);
    call(&counts, &policy, Cost::ONE).await.unwrap();
    let mut kept = 1;
    // On a stalled machine a request may get its reply before it is abandoned; it counts then.
    let written = loop {
        assert!(kept < 5, "no request is ever abandoned in time");
        let written = server.stat("cmd_set").await;
        let shared = Arc::clone(&counts);
        let leaving = tokio::spawn(async move {
            let result = call(&shared, &gcra(5), Cost::ONE).await;
            result.map(|verdict| verdict.is_allowed())
        });
        eventually("the state is written", async || {
            server.stat("cmd_set").await > written
        })
        .await;
        leaving.abort();
        match leaving.await {
            // The write of the abandoned request.
            Err(_) => break written + 1,
            Ok(result) => assert!(result.unwrap()),
        }
        kept += 1;
    };
    // The undo frees it, not the refill: that is one per twelfth of a minute, and the clock stands
    // still.
    eventually("the request is undone", async || {
        server.stat("cmd_set").await > written
    })
    .await;
    let left = call(&counts, &policy, Cost::Peek).await.unwrap();
    assert_eq!(left.remaining, 5 - kept);
    assert_eq!(server.stat("cmd_set").await, written + 1);
}

/// Limits of one client, the last of which is at another server than the first two.
struct TwoServers {
    servers: [MemcachedServer; 2],
    counts: Arc<MemcachedCounts>,
    key: ClientKey,
    window: Policy,
    state: Policy,
}

impl TwoServers {
    async fn start(timeout: Duration) -> Self {
        let mut servers = [
            MemcachedServer::start().await,
            MemcachedServer::start().await,
        ];
        servers.sort_by_key(MemcachedServer::port);
        let ports = servers.each_ref().map(MemcachedServer::port);
        let counts = counts_with_timeout(&ports, timeout);
        let server_of = |limit, key| counts.server_of(limit, key);
        let is_fit = |key: &ClientKey| {
            let at = ["window", "state", "last"].map(|limit| server_of(limit, *key));
            at == [0, 0, 1]
        };
        let key = (0..).map(ClientKey).find(is_fit).expect("one in eight");
        Self {
            counts: Arc::new(counts),
            servers,
            key,
            window: a_minute(5),
            state: gcra(5),
        }
    }

    fn acquires(&self, cost: Cost) -> [SharedAcquire<'_>; 3] {
        let acquire = |limit, policy| SharedAcquire {
            limit,
            policy,
            key: self.key,
            cost,
        };
        [
            acquire("window", &self.window),
            acquire("state", &self.state),
            acquire("last", &self.state),
        ]
    }

    /// Returns the rest of the first two limits.
    async fn left(&self) -> Option<[u32; 2]> {
        let acquires = self.acquires(Cost::Peek);
        let verdicts = self.counts.acquire(&acquires[..2]).await.ok()?;
        Some([verdicts[0].remaining, verdicts[1].remaining])
    }

    async fn wait_until_connected(&self) {
        eventually("both servers are used", async || {
            self.counts
                .acquire(&self.acquires(Cost::Peek))
                .await
                .is_ok()
        })
        .await;
    }
}

#[tokio::test]
async fn a_hanging_server_leaves_no_count_at_another_and_is_named() {
    let stage = TwoServers::start(Duration::from_millis(300)).await;
    stage.wait_until_connected().await;
    stage.servers[1].pause();
    let error = stage.counts.acquire(&stage.acquires(Cost::ONE)).await;
    let error = error.unwrap_err();
    let CountsError::Late { store_name, .. } = &error else {
        panic!("{error:?}");
    };
    let [first, second] = stage.servers.each_ref().map(|one| one.port().to_string());
    assert!(
        store_name.contains(&second) && !store_name.contains(&first),
        "{store_name}"
    );
    eventually("both are undone", async || {
        stage.left().await == Some([5, 5])
    })
    .await;
}

#[tokio::test]
async fn acquires_before_a_caller_left_are_undone() {
    let stage = Arc::new(TwoServers::start(Duration::from_secs(20)).await);
    stage.wait_until_connected().await;
    stage.servers[1].pause();
    let shared = Arc::clone(&stage);
    let leaving = tokio::spawn(async move {
        let acquires = shared.acquires(Cost::ONE);
        shared.counts.acquire(&acquires).await.is_ok()
    });
    // On a machine that stalled for seconds the request has failed by then, and is to be undone as
    // well.
    eventually("the first two are acquired", async || {
        stage.left().await == Some([4, 4]) || leaving.is_finished()
    })
    .await;
    leaving.abort();
    eventually("both are undone", async || {
        stage.left().await == Some([5, 5])
    })
    .await;
}

/// A refund with the age of its request keeps later requests.
#[tokio::test]
async fn a_refund_with_an_age_undoes_no_later_request() {
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
        key: ClientKey(1),
        cost: Cost::refund(1),
    };
    let left = counts.refund(&[refund], DurationUs::from_secs(5)).await;
    assert_eq!(left.unwrap()[0].remaining, 8);
    // The end of the first sub-window frees nothing: both requests of the second still count.
    time.set(START + DurationUs::from_secs(76));
    let left = call(&counts, &policy, Cost::Peek).await.unwrap();
    assert_eq!(left.remaining, 8);
    // Nothing is left that is as new as the refunded request.
    let left = counts.refund(&[refund], DurationUs::from_secs(5)).await;
    assert_eq!(left.unwrap()[0].remaining, 8);
}
