//! The disk is full, or the journal cannot be opened. The faults are injected, so that this runs
//! everywhere; [`super::mounted`] uses real file systems.

use std::path::Path;
use std::sync::Arc;

use anteroom::gateway::Gateway;
use anteroom_config::Config;
use anteroom_embedded::faults::Faults;
use anteroom_embedded::{DataDir, Embedded};
use anteroom_node::RoomClock;
use anteroom_room::rules::OnStoreFailure;
use anteroom_store::{Clock, Identity};
use http::StatusCode;

use crate::limits::{PLENTY, limits};
use crate::support::eventually;
use crate::support::operator::Operator;
use crate::support::stage::Stage;
use crate::support::visitors::{self, endless_visits, short_visits};

pub(super) const STORE_UNAVAILABLE: &str =
    "anteroom_degraded{room=\"main\",reason=\"store_unavailable\"}";

async fn start_on_faults(config: &Config, data: &Path, faults: &Faults) -> Gateway {
    let dir = DataDir::open(data).unwrap();
    let clock = Arc::new(RoomClock::start(dir.clock()));
    let identity = Identity(dir.deployment().unwrap().deployment_id.0);
    let store_clock = Arc::clone(&clock) as Arc<dyn Clock>;
    let store = Embedded::with_faults(dir.clone(), identity, store_clock, faults);
    let gateway = Gateway::start_on(config, dir, clock, Arc::new(store)).await;
    gateway.unwrap()
}

/// Fails unless visitors and operators see that the store is unavailable.
pub(super) async fn assert_unavailable(stage: &Stage, operator: &Operator) {
    stage.queues_newcomers("store_unavailable").await;
    let page = stage.newcomer().navigate("/").await;
    assert_eq!(page.headers["anteroom-reason"], "store_unavailable");
    let text = page.text();
    assert!(
        text.contains("A part of this waiting room can’t be reached"),
        "{text}"
    );
    assert!(operator.shows("anteroom_lease_live", 0.0).await);
    assert!(operator.shows(STORE_UNAVAILABLE, 1.0).await);
    let failed = operator.metric("anteroom_sync_failures_total").await;
    assert!(failed.is_some_and(|failed| failed > 0.0));
    let (status, health) = operator.health().await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(
        health["rooms"][0]["reason"], "store_unavailable",
        "{health}"
    );
}

/// Fails unless visitors are admitted and all is healthy.
pub(super) async fn assert_recovered(stage: &Stage, operator: &Operator) {
    stage.admits_newcomers().await;
    assert_healthy(operator).await;
}

async fn assert_healthy(operator: &Operator) {
    assert!(operator.shows("anteroom_lease_live", 1.0).await);
    assert!(operator.shows(STORE_UNAVAILABLE, 0.0).await);
    assert_eq!(operator.health().await.0, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_full_disk_nobody_is_admitted_beyond_what_was_leased() {
    let stage = Stage::prepare(limits(10, PLENTY), "30s").await;
    let faults = Faults::default();
    let gateway = start_on_faults(&stage.config(), &stage.data(), &faults).await;
    stage.address.set(Some(gateway.address()));
    let operator = Operator::at(gateway.admin());
    let endless = stage.fill(5).await;
    faults.set_full(true);
    eventually("the lease ends", async || {
        operator.shows("anteroom_lease_live", 0.0).await
    })
    .await;
    assert_unavailable(&stage, &operator).await;

    let (pages, before) = (endless.counters().pages, stage.origin.admissions());
    let load = visitors::send(&stage.address, 20, &short_visits());
    eventually(
        "active visitors pass, though their sessions are not extended",
        async || {
            let unrenewed = operator.metric("anteroom_unrenewed_requests_total").await;
            endless.counters().pages >= pages + 20 && unrenewed.is_some_and(|count| count > 0.0)
        },
    )
    .await;
    assert_eq!(stage.origin.admissions(), before, "no visitor was admitted");

    faults.set_full(false);
    let comes_in = async || load.counters().entered >= 20;
    eventually("the waiting visitors enter", comes_in).await;
    assert_healthy(&operator).await;
    visitors::stop(load).await;
    visitors::stop_endless(endless, 5).await;
    stage.assert_within_limits();
    gateway.stop_soon().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_room_may_admit_all_without_its_store_and_counts_them() {
    let stage = Stage::prepare(limits(3, PLENTY), "30s").await;
    let faults = Faults::default();
    let mut config = stage.config();
    config.rooms[0].rules.on_store_failure = OnStoreFailure::Admit;
    let gateway = start_on_faults(&config, &stage.data(), &faults).await;
    stage.address.set(Some(gateway.address()));
    let operator = Operator::at(gateway.admin());
    let endless = stage.fill(3).await;
    stage.queues_newcomers("full").await;
    faults.set_full(true);
    let load = visitors::send(&stage.address, 20, &endless_visits());
    eventually("all are active", async || load.counters().entered == 20).await;
    assert!(
        operator
            .shows("anteroom_admissions_outside_limits_total", 20.0)
            .await
    );
    assert!(operator.shows("anteroom_admissions_total", 3.0).await);
    assert!(operator.shows(STORE_UNAVAILABLE, 1.0).await);
    assert_eq!(operator.health().await.0, StatusCode::SERVICE_UNAVAILABLE);

    faults.set_full(false);
    eventually("it knows all active visitors", async || {
        operator.shows("anteroom_seats_active", 23.0).await
    })
    .await;
    stage.queues_newcomers("full").await;
    for load in [endless, load] {
        let counters = load.stop().await;
        assert_eq!(counters.queued_with_ticket, 0, "{counters:?}");
    }
    gateway.stop_soon().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_journal_that_cannot_be_opened_is_named_and_retried() {
    let mut stage = Stage::prepare(limits(10, PLENTY), "30s").await;
    let journal = stage.data().join("journal.redb");
    std::fs::create_dir_all(&journal).unwrap();
    stage.start().await;
    assert_unavailable(&stage, &stage.operator()).await;
    let wanted = format!("cannot open the journal {}", journal.display());
    stage.gateway().log_with(&wanted).await;
    std::fs::remove_dir(&journal).unwrap();
    assert_recovered(&stage, &stage.operator()).await;
    stage.assert_within_limits();
}
