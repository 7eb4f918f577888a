//! Data center that cannot reach the global store until its lease has expired.
//!
//! In production that takes ten minutes. These runs shorten the lease, which release builds do not
//! allow.

use anteroom_e2e::cluster::Setup;
use anteroom_e2e::eventually;
use anteroom_testkit::load::{Habits, VisitorLoad};

use super::active_visitors::{ActiveVisitors, SESSION_SECS};
use super::{FIRST, Run, limits, meanwhile};

/// Long enough for three restarts on a busy machine.
const GLOBAL_LEASE_SECS: u64 = 25;
const RENEWALS: &str = "anteroom_renewals_total";
const LEASE_LEFT: &str = "anteroom_lease_remaining_seconds";
const LEASE_LIVE: &str = "anteroom_lease_live";
/// Visitors of the data center that is cut off, and of the other one. They leave a few of forty
/// seats free, because a full room fills slowly.
const CUT_OFF: u32 = 24;
const ELSEWHERE: u32 = 12;

/// Returns a setup with forty seats, and a root's lease that a run can wait for.
fn with_short_global_lease(session_secs: u64) -> Setup {
    Setup {
        global_lease_secs: Some(GLOBAL_LEASE_SECS),
        ..limits(40, 600, session_secs)
    }
}

/// Returns visitors who stay, so many percent of them near the first data center.
fn stay(first_data_center_percent: u32) -> Habits {
    Habits {
        first_data_center_percent,
        pages: u32::MAX..=u32::MAX,
        ..Habits::default()
    }
}

/// Restarts the nodes of the first data center one after the other, with sessions twelve times as
/// long.
async fn restart_with_longer_sessions(run: &mut Run) {
    for at in FIRST {
        let node = run.cluster.node_mut(at);
        node.terminate().await;
        node.edit(|config| {
            config.replace("session_duration = \"8s\"", "session_duration = \"96s\"")
        });
        run.cluster.restart(at).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_start_with_longer_sessions_while_their_data_center_is_cut_off() {
    let mut run = Run::start(with_short_global_lease(8)).await;
    let routes = run.cluster.routes();
    let cut_off = VisitorLoad::at_once(&routes, CUT_OFF, &stay(100), 310);
    let elsewhere = VisitorLoad::at_once(&routes, ELSEWHERE, &stay(0), 311);
    run.cluster.has_inside(CUT_OFF + ELSEWHERE).await;
    run.cluster.global_link(0).cut();
    restart_with_longer_sessions(&mut run).await;
    // Without renewals at the new nodes the run would prove nothing.
    eventually("the new nodes renew the seats", async || {
        let mut renewals = 0;
        for at in FIRST {
            renewals += run.cluster.metric::<u64>(at, RENEWALS).await;
        }
        renewals >= CUT_OFF.into()
    })
    .await;
    // The root grants these seats to the other data center as soon as it counts them as expired.
    let late = VisitorLoad::at_once(&routes, 40, &stay(0), 312);
    run.cluster.admits(15).await;
    meanwhile(5).await;
    let counters = cut_off.stop().await;
    let counters = counters.and(elsewhere.stop().await);
    let counters = counters.and(late.stop().await);
    run.cluster.assert_kept(&counters);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn valid_tickets_wait_for_nothing_while_the_global_store_is_unavailable() {
    let mut run = Run::start(with_short_global_lease(SESSION_SECS)).await;
    let mut active_visitors = ActiveVisitors::enter(&run).await;
    active_visitors.send(&run, "with a lease").await;
    let mut fresh = ActiveVisitors::enter(&run).await;
    run.cluster.global_link(0).stall();
    for at in FIRST {
        eventually("the lease is about to end", async || {
            run.cluster.metric::<f64>(at, LEASE_LEFT).await < 4.0
        })
        .await;
        fresh.open_pages_at(at).await;
    }
    for at in FIRST {
        eventually("the lease has ended", async || {
            run.cluster.metric::<u64>(at, LEASE_LIVE).await == 0
        })
        .await;
    }
    let mut active_visitors = active_visitors.and(fresh);
    let mut waited = active_visitors.send(&run, "while it sends nothing").await;
    run.cluster.global_mut().kill();
    run.cluster.global_link(0).heal();
    waited += active_visitors.send(&run, "while it is down").await;
    for at in FIRST {
        let is_live = run.cluster.metric::<u64>(at, LEASE_LIVE).await;
        assert_eq!(is_live, 0, "{at:?} has a lease again");
    }
    assert_eq!(waited, 0, "requests with a valid ticket wait");
}
