//! Requests with a valid ticket wait for no store, whatever is unavailable.
//!
//! The runs assert nothing about times: those depend on the machine. Nodes count the requests of
//! visitors inside that wait for a reply of their store, and the runs assert that there are none. A
//! node that is slow for other reasons adds nothing to that count. How long requests take is
//! printed.

use std::collections::BTreeMap;
use std::time::Duration;

use anteroom_e2e::cluster::NodeAt;
use anteroom_e2e::crowd::{Asks, Insider, Times};
use tokio::task::JoinSet;

use super::{FIRST, Run, limits, meanwhile};

/// Long enough that tickets are due for a check-in in some runs and in others not, as they choose.
pub(crate) const SESSION_SECS: u64 = 600;
/// A sixtieth of it: a page is due when its ticket is older, and what it loads when it is twice as
/// old.
const INTERVAL_SECS: u64 = SESSION_SECS / 60;
/// How many requests each visitor sends, one after the other.
const REQUESTS: usize = 10;

/// At each of [`FIRST`] two visitors: one asks for pages, the other one for pictures.
pub(crate) struct Insiders(Vec<(Insider, Asks)>);

impl Insiders {
    /// Lets them in.
    pub(crate) async fn enter(run: &Run) -> Self {
        let doors = run.cluster.doors();
        let mut insiders = Vec::new();
        for at in FIRST {
            for what in [Asks::Page, Asks::Picture] {
                insiders.push((Insider::enter(&doors, at).await, what));
            }
        }
        Self(insiders)
    }

    /// Those at this node open a page each, so that the node renews their tickets.
    #[cfg_attr(
        not(debug_assertions),
        expect(dead_code, reason = "for the runs of `cut_off`")
    )]
    pub(crate) async fn open_pages_at(&mut self, at: NodeAt) {
        for (insider, _) in self.0.iter_mut().filter(|(insider, _)| insider.at() == at) {
            insider.ask(Asks::Page).await;
        }
    }

    /// Both groups together.
    pub(crate) fn and(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    /// All of them send requests at the same time. Prints how long those take, and returns how many
    /// of them wait for a store.
    pub(crate) async fn send(&mut self, run: &Run, when: &str) -> u64 {
        let before = waited(run).await;
        let mut sending = JoinSet::new();
        for (mut insider, what) in self.0.drain(..) {
            sending.spawn(async move {
                let mut times = Vec::new();
                for _ in 0..REQUESTS {
                    let kind = kind(what, insider.ticket_age());
                    times.push((kind, insider.ask(what).await));
                }
                (insider, what, times)
            });
        }
        let mut by_kind: BTreeMap<&str, Times> = BTreeMap::new();
        let mut all = Times::default();
        for (insider, what, times) in sending.join_all().await {
            for (kind, took) in times {
                by_kind.entry(kind).or_default().note(took);
                all.note(took);
            }
            self.0.push((insider, what));
        }
        let waited = waited(run).await - before;
        eprintln!("{when}: {all}; {waited} of them wait for a store");
        for (kind, times) in by_kind {
            eprintln!("{when}: {kind}: {times}");
        }
        waited
    }
}

/// What a request is to the node, by the age of its ticket.
fn kind(what: Asks, age: Duration) -> &'static str {
    let is_older = |intervals| age >= Duration::from_secs(INTERVAL_SECS * intervals);
    match what {
        Asks::Page if is_older(1) => "page, due",
        Asks::Page => "page, not due",
        Asks::Picture if is_older(2) => "picture, due",
        Asks::Picture => "picture, not due",
    }
}

/// How many requests of visitors inside have waited for a store, at all of [`FIRST`].
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

/// Nodes are killed, and their store takes connections and says nothing. For a second a node does
/// not know that, and in this time its visitors come.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn starting_nodes_honour_valid_tickets_while_their_store_is_unavailable() {
    let mut run = Run::start(limits(40, 600, SESSION_SECS)).await;
    let insiders = Insiders::enter(&run).await;
    // Until pages and pictures of the first are due.
    meanwhile(INTERVAL_SECS * 2).await;
    let mut insiders = insiders.and(Insiders::enter(&run).await);
    // Nodes that said goodbye would not serve before their store knows of them: sessions may have
    // ended meanwhile.
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
    let waited = insiders.send(&run, "right after the start").await;
    assert_eq!(waited, 0, "requests with a valid ticket wait");
}
