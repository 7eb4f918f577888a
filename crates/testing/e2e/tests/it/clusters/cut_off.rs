//! A data center cannot reach the global store until its lease has ended.
//!
//! In production that takes ten minutes. These runs shorten the lease, and programs that are built
//! for release do not allow that.

use anteroom_e2e::cluster::Setup;
use anteroom_e2e::crowd::{Crowd, Habits};
use anteroom_e2e::eventually;

use super::insiders::{Insiders, SESSION_SECS};
use super::{FIRST, Run, limits, meanwhile};

/// Long enough for three restarts on a busy machine.
const GLOBAL_LEASE_SECS: u64 = 25;
const RENEWALS: &str = "anteroom_renewals_total";
const LEASE_LEFT: &str = "anteroom_lease_remaining_seconds";
const LEASE_LIVE: &str = "anteroom_lease_live";
/// Visitors of the data center that is cut off, and of the other one. They leave a few of forty
/// seats free: a full room fills slowly.
const CUT_OFF: u32 = 24;
const ELSEWHERE: u32 = 12;

/// Forty seats, and a global lease that a run can wait for.
fn soon_over(session_secs: u64) -> Setup {
    Setup {
        global_lease_secs: Some(GLOBAL_LEASE_SECS),
        ..limits(40, 600, session_secs)
    }
}

/// Visitors who stay: of a hundred so many near the first data center.
fn stay(first_data_center_percent: u32) -> Habits {
    Habits {
        first_data_center_percent,
        pages: u32::MAX..=u32::MAX,
        ..Habits::default()
    }
}

/// Restarts the nodes of the first data center in good order, with sessions twelve times as long.
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
    let mut run = Run::start(soon_over(8)).await;
    let doors = run.cluster.doors();
    let cut_off = Crowd::at_once(&doors, CUT_OFF, &stay(100), 310);
    let elsewhere = Crowd::at_once(&doors, ELSEWHERE, &stay(0), 311);
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
    // The global ledger lends these seats to the other data center as soon as it counts them as
    // ended.
    let late = Crowd::at_once(&doors, 40, &stay(0), 312);
    run.cluster.admits(15).await;
    meanwhile(5).await;
    let counters = cut_off.go_home().await;
    let counters = counters.and(elsewhere.go_home().await);
    let counters = counters.and(late.go_home().await);
    run.cluster.assert_kept(&counters);
}

/// First the global store says nothing, then it refuses connections. The store of the data center
/// answers all the time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn valid_tickets_wait_for_nothing_while_the_global_store_is_unavailable() {
    let mut run = Run::start(soon_over(SESSION_SECS)).await;
    let mut insiders = Insiders::enter(&run).await;
    insiders.send(&run, "with a lease").await;
    let mut fresh = Insiders::enter(&run).await;
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
    let mut insiders = insiders.and(fresh);
    let mut waited = insiders.send(&run, "while it is silent").await;
    run.cluster.global_mut().kill();
    run.cluster.global_link(0).heal();
    waited += insiders.send(&run, "while it is down").await;
    for at in FIRST {
        let is_live = run.cluster.metric::<u64>(at, LEASE_LIVE).await;
        assert_eq!(is_live, 0, "{at:?} has a lease again");
    }
    assert_eq!(waited, 0, "requests with a valid ticket wait");
}
