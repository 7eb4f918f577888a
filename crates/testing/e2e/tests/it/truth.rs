//! Short runs of `cargo xtask bench truth`: it still measures, whatever it finds.

use std::time::Duration;

use anteroom_e2e::table::are_limits_kept;
use anteroom_e2e::truth::cases::{Deployment, TruthCase};
use anteroom_e2e::truth::report;
use anteroom_e2e::truth::run::{Outcome, run};
use anteroom_room::ticket::CLOCK_TOLERANCE;
use anteroom_room::time::DurationMs;
use anteroom_testkit::load::Visit;

use super::clusters::TURNS;

async fn measured(case: TruthCase) -> Outcome {
    let _turn = TURNS.acquire().await.expect("the semaphore stays open");
    let outcome = run(case, 1).await;
    let (case, found) = (&outcome.case, &outcome.findings);
    assert!(are_limits_kept(&outcome.verdict), "{:?}", outcome.verdict);
    assert_eq!(found.visitors, u64::from(case.visitors));
    assert_eq!((found.entered, found.failed), (found.visitors, 0));
    assert_eq!(outcome.verdict.admissions, found.entered);
    assert!(found.first.count() > 0, "a visitor was told a range");
    assert_eq!(found.all.count(), found.responses - found.without_range);
    assert_eq!(found.all_sentences.count(), found.all.count());
    let counted: u64 = outcome.by_nodes.iter().sum();
    assert!(counted > 0, "nodes count first ranges as well");
    let columns = |row: &str| row.matches('|').count();
    let header = report::header();
    let header = header.lines().next().unwrap_or_default();
    assert_eq!(columns(&outcome.table_row()), columns(header));
    outcome
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_with_its_own_store_is_measured() {
    let outcome = measured(TruthCase::short(Deployment::OneNode)).await;
    let json = report::json(&[outcome]);
    assert_eq!(json[0]["run"], "one-node-short-16");
    assert_eq!(json[0]["is_within_limits"], true);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_opening_at_three_nodes_is_measured() {
    let case = TruthCase {
        opens_after: Some(Duration::from_secs(7)),
        ..TruthCase::short(Deployment::ThreeNodes)
    };
    let outcome = measured(case).await;
    let visits = outcome.log.visits.iter();
    let first = visits
        .filter_map(Visit::admitted_at)
        .min()
        .expect("all are admitted");
    let first = u64::try_from(first.as_millis()).expect("a run of seconds");
    let first_at = outcome.log.began_at + DurationMs(first);
    let opens_at = outcome.opens_at.expect("the room was closed");
    assert!(
        first_at + CLOCK_TOLERANCE >= opens_at,
        "{first_at:?} {opens_at:?}"
    );
}
