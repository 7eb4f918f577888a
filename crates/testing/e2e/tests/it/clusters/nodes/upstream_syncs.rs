//! The node that syncs upstream for its data center is killed during the sync.

use std::time::Duration;

use anteroom_e2e::cluster::Setup;
use anteroom_testkit::load::Habits;

use crate::clusters::{Run, limits, meanwhile};

/// Times of the kill after the node's first message, in ms. An upstream sync is two requests of 70
/// ms each. The times cover each way of both, and the moment after the reply.
const AFTER_MS: [u64; 6] = [0, 20, 50, 90, 125, 160];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_node_that_syncs_upstream_is_killed_on_the_way() {
    let setup = Setup {
        has_taps: true,
        ..limits(40, 600, 12)
    };
    let mut run = Run::start(setup).await;
    let load = run.load(&Habits::default(), 300).await;
    for (number, after) in AFTER_MS.into_iter().enumerate() {
        let ago = Duration::from_millis(after);
        let carrier = run.cluster.who_spoke_to_global(number % 2, ago).await;
        eprintln!("{carrier:?} syncs upstream, and is killed {after} ms later");
        run.cluster.node_mut(carrier).kill().await;
        // Another node must sync upstream meanwhile.
        meanwhile(1).await;
        run.cluster.restart(carrier).await;
        meanwhile(1).await;
    }
    meanwhile(12).await;
    run.check(load).await;
}
