//! Simulated schedules on real stores: every reply and every record is equal.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod coverage;
mod rigs;

use anteroom_e2e::replay::{PlayError, Rig, play};
use anteroom_room::id::Incarnation;
use anteroom_room::ledger::Ledger;
use anteroom_room::sync::Reply;
use anteroom_sim::recording::{Found, Recording};
use anteroom_sim::scenario::model::{FaultKind, Scenario};
use anteroom_sim::seeds;
use anteroom_store::chain;
use coverage::Coverage;
use rigs::{Forgetful, InFolder, InMemory, OnServer};

/// Returns the first seeds, and those in which nodes drain.
fn first_seeds() -> Vec<u64> {
    let restarts = |fault: &FaultKind| matches!(fault, FaultKind::Restart { .. });
    let restarting = next(10, move |one| one.faults.iter().any(|f| restarts(&f.kind)));
    (0..10).chain(restarting).collect()
}

/// Returns seeds in which a store loses something, and those with one node and its journal.
fn special_seeds() -> Vec<u64> {
    let loses = |fault: &FaultKind| {
        matches!(
            fault,
            FaultKind::StoreWiped { .. } | FaultKind::StoreLosesWrites { .. }
        )
    };
    let losing = next(15, move |one| one.faults.iter().any(|f| loses(&f.kind)));
    losing.chain(next(5, Scenario::is_one_node)).collect()
}

fn next(count: usize, is: impl Fn(&Scenario) -> bool) -> impl Iterator<Item = u64> {
    let seeds = (10..).filter(move |&seed| is(&seeds::scenario(seed)));
    seeds.take(count)
}

/// Replays all of `seeds` on one store.
async fn check(seeds: Vec<u64>, mut rig: impl Rig) {
    for seed in seeds {
        check_seed(seed, &mut rig).await;
    }
}

async fn check_seed(seed: u64, rig: &mut dyn Rig) {
    for recording in seeds::record(seed) {
        if let Err(error) = play(&recording, rig).await {
            let place = recording.place;
            panic!("seed {seed}, {place:?}: {}", chain(&error));
        }
    }
}

#[tokio::test]
async fn a_store_in_memory_replies_as_simulated() {
    check(first_seeds(), InMemory::new()).await;
}

#[tokio::test]
async fn a_memory_store_with_losses_replies_as_simulated() {
    check(special_seeds(), InMemory::new()).await;
}

#[tokio::test]
async fn the_embedded_store_replies_as_simulated() {
    check(first_seeds(), InFolder::new()).await;
}

#[tokio::test]
async fn the_embedded_store_with_losses_replies_as_simulated() {
    check(special_seeds(), InFolder::new()).await;
}

#[tokio::test]
async fn a_server_replies_as_simulated() {
    check(first_seeds(), OnServer::start().await).await;
}

#[tokio::test]
async fn a_server_with_losses_replies_as_simulated() {
    check(special_seeds(), OnServer::start().await).await;
}

#[test]
fn the_seeds_meet_every_fault_of_a_store() {
    let mut coverage = Coverage::default();
    for seed in first_seeds().into_iter().chain(special_seeds()) {
        coverage.count_all(&seeds::record(seed));
    }
    eprintln!("{coverage:#?}");
    coverage.check();
}

/// Checks that a recording with a `change` does not replay.
async fn check_noticed(what: &str, change: impl FnOnce(&mut Recording)) {
    let is_damaged = |recording: &Recording| {
        let operations = &mut recording.operations.iter();
        operations.any(|operation| match operation.found {
            // On probation the incarnation stays.
            Found::Older { incarnation, .. } => incarnation != Incarnation::ALONE,
            Found::Unchanged | Found::Empty { .. } => false,
        })
    };
    let mut recorded = special_seeds().into_iter().flat_map(seeds::record);
    let mut recording = recorded.find(is_damaged).unwrap();
    play(&recording, &mut InMemory::new()).await.unwrap();
    change(&mut recording);
    match play(&recording, &mut InMemory::new()).await {
        Err(PlayError::Difference { what: found, .. }) => assert_eq!(found, what),
        other => panic!("{what}: {other:?}"),
    }
}

#[tokio::test]
async fn a_changed_reply_is_noticed() {
    check_noticed("reply", |recording| {
        let operations = recording.operations.iter_mut();
        let answers = operations.filter_map(|operation| operation.exchange.as_mut());
        let lent = answers.filter_map(|exchange| match &mut exchange.reply {
            Reply::Granted(response) => Some(response),
            _ => None,
        });
        lent.last().unwrap().granted.credits += 1;
    })
    .await;
}

#[tokio::test]
async fn a_changed_record_is_noticed() {
    check_noticed("ledger", |recording| {
        let operation = recording.operations.last_mut().unwrap();
        let mut parts = operation.ledger.to_parts();
        parts.generation += 1;
        operation.ledger = Ledger::from_parts(parts).unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_changed_incarnation_is_noticed() {
    check_noticed("reply", |recording| {
        for operation in &mut recording.operations {
            if let Found::Older { incarnation, .. } = &mut operation.found {
                *incarnation = Incarnation(incarnation.0 ^ 1);
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_store_that_loses_a_write_is_noticed() {
    let recording = seeds::record(0).pop().unwrap();
    let noticed = play(&recording, &mut Forgetful::new()).await;
    assert!(
        matches!(noticed, Err(PlayError::Difference { what: "ledger", .. })),
        "{noticed:?}"
    );
}

#[tokio::test]
#[should_panic(expected = "its clock fell")]
async fn a_clock_that_runs_backwards_is_noticed() {
    let recording = seeds::record(0).pop().unwrap();
    let rig = &mut InMemory::with_a_clock_that_runs_backwards();
    play(&recording, rig).await.unwrap();
}
