//! Order of arrival is the order of admission.

use super::{PLENTY, limits};
use crate::support::group_queue::{GroupQueue, SEATS};
use crate::support::stage::Stage;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_enter_in_order_of_arrival_and_newcomers_last() {
    let stage = Stage::open(limits(SEATS, PLENTY), "1s").await;
    let mut queue = GroupQueue::at(&stage.address, &stage.origin).await;
    for group in ["/group-1", "/group-2", "/group-3", "/group-4"] {
        queue.join(group, stage.gateway().admin).await;
    }
    queue.open().await;
    // Newcomers find free seats when they arrive, and must leave them to waiting visitors.
    queue.add("/newcomers");
    queue.assert_all_in_order(&stage.origin).await;
    stage.assert_within_limits();
}
