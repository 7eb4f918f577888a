//! Requests with a valid ticket wait for no store, whatever is unavailable.
//!
//! The runs check no times, which depend on the machine. Nodes count the requests of active
//! visitors that wait for a reply of their store, and the runs check that there are none. A node
//! that is slow for other reasons does not change that count. The runs print how long requests
//! take.

use std::collections::BTreeMap;
use std::time::Duration;

use anteroom_testkit::load::{ActiveVisitor, Latencies, NodeAt, PageRequest};
use tokio::task::JoinSet;

use super::{FIRST, Run, limits, meanwhile};

/// Long enough that a run decides whether tickets are due for a check-in.
pub(crate) const SESSION_SECS: u64 = 600;
/// Age from which a page's ticket is due: a sixtieth of the session. For subresources it is twice
/// that.
const INTERVAL_SECS: u64 = SESSION_SECS / 60;
/// Number of requests of each visitor, one after the other.
const REQUESTS: usize = 10;

/// Two visitors at each of [`FIRST`]: one requests pages, the other one pictures.
pub(crate) struct ActiveVisitors(Vec<(ActiveVisitor, PageRequest)>);

impl ActiveVisitors {
    /// Waits for their admission.
    pub(crate) async fn enter(run: &Run) -> Self {
        let routes = run.cluster.routes();
        let mut visitors = Vec::new();
        for at in FIRST {
            for what in [PageRequest::Page, PageRequest::Picture] {
                visitors.push((ActiveVisitor::enter(&routes, at).await, what));
            }
        }
        Self(visitors)
    }

    /// Makes the visitors at this node open a page each, so that the node renews their tickets.
    #[cfg_attr(
        not(debug_assertions),
        expect(dead_code, reason = "for the runs of `cut_off`")
    )]
    pub(crate) async fn open_pages_at(&mut self, at: NodeAt) {
        for (visitor, _) in self.0.iter_mut().filter(|(visitor, _)| visitor.at() == at) {
            visitor.ask(PageRequest::Page).await;
        }
    }

    /// Joins two groups.
    pub(crate) fn and(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    /// Sends requests of all visitors at the same time. Prints how long they take, and returns how
    /// many of them waited for a store.
    pub(crate) async fn send(&mut self, run: &Run, when: &str) -> u64 {
        let before = waited(run).await;
        let mut sending = JoinSet::new();
        for (mut visitor, what) in self.0.drain(..) {
            sending.spawn(async move {
                let mut times = Vec::new();
                for _ in 0..REQUESTS {
                    let kind = kind(what, visitor.ticket_age());
                    times.push((kind, visitor.ask(what).await));
                }
                (visitor, what, times)
            });
        }
        let mut by_kind: BTreeMap<&str, Latencies> = BTreeMap::new();
        let mut all = Latencies::default();
        for (visitor, what, times) in sending.join_all().await {
            for (kind, took) in times {
                by_kind.entry(kind).or_default().note(took);
                all.note(took);
            }
            self.0.push((visitor, what));
        }
        let waited = waited(run).await - before;
        eprintln!("{when}: {all}; {waited} of them waited for a store");
        for (kind, times) in by_kind {
            eprintln!("{when}: {kind}: {times}");
        }
        waited
    }
}

/// Returns the kind of a request, by the age of its ticket.
fn kind(what: PageRequest, age: Duration) -> &'static str {
    let is_older = |intervals| age >= Duration::from_secs(INTERVAL_SECS * intervals);
    match what {
        PageRequest::Page if is_older(1) => "page, due",
        PageRequest::Page => "page, not due",
        PageRequest::Picture if is_older(2) => "picture, due",
        PageRequest::Picture => "picture, not due",
    }
}

/// Returns how many requests of active visitors have waited for a store, at all of [`FIRST`].
async fn waited(run: &Run) -> u64 {
    let mut sum = 0;
    for at in FIRST {
        let metric = run
            .cluster
            .metric::<u64>(at, "anteroom_delayed_requests_total");
        sum += metric.await;
    }
    sum
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn starting_nodes_honour_valid_tickets_while_their_store_is_unavailable() {
    let mut run = Run::start(limits(40, 600, SESSION_SECS)).await;
    let visitors = ActiveVisitors::enter(&run).await;
    // Wait until pages and pictures of the first visitors are due.
    meanwhile(INTERVAL_SECS * 2).await;
    let mut visitors = visitors.and(ActiveVisitors::enter(&run).await);
    // A node that has drained serves only once its store knows it, because sessions may have ended
    // meanwhile. So kill the nodes.
    for at in FIRST {
        run.cluster.node_mut(at).kill().await;
    }
    run.cluster.local_link(0).stall();
    for at in FIRST {
        run.cluster.node_mut(at).spawn();
    }
    for at in FIRST {
        run.cluster.node_mut(at).serves().await;
    }
    let waited = visitors.send(&run, "right after the start").await;
    assert_eq!(waited, 0, "requests with a valid ticket wait");
}
