//! The simulator's schedules on real stores: every answer and every record is what the simulator
//! saw.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod met;
mod rigs;

use std::sync::{Arc, Mutex};

use anteroom_e2e::replay::{PlayError, Rig, play};
use anteroom_room::id::Incarnation;
use anteroom_room::ledger::Ledger;
use anteroom_room::sync::Reply;
use anteroom_sim::recording::{Found, Recording};
use anteroom_sim::scenario::model::{FaultKind, Scenario};
use anteroom_sim::seeds;
use anteroom_store::chain;
use met::Met;
use rigs::{Forgetful, InMemory, OnDisk, OnServer};
use tokio::task::JoinSet;

/// The first seeds there are, and those in which nodes say goodbye.
fn first_ones() -> Vec<u64> {
    let restarts = |fault: &FaultKind| matches!(fault, FaultKind::Restart { .. });
    let restarting = next(10, move |one| one.faults.iter().any(|f| restarts(&f.kind)));
    (0..10).chain(restarting).collect()
}

/// Those in which a store loses something, and those that have one node with its journal.
fn special_ones() -> Vec<u64> {
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

/// Plays all that happens in `seeds`, on as many stores at a time as there are.
async fn check<R: Rig + 'static>(seeds: Vec<u64>, rigs: Vec<R>) {
    let left = Arc::new(Mutex::new(seeds.into_iter()));
    let mut plays = JoinSet::new();
    for mut rig in rigs {
        let left = Arc::clone(&left);
        plays.spawn(async move {
            loop {
                let seed = left.lock().unwrap().next();
                let Some(seed) = seed else { break };
                check_seed(seed, &mut rig).await;
            }
        });
    }
    plays.join_all().await;
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
async fn a_store_in_memory_answers_as_the_simulator_saw() {
    check(first_ones(), vec![InMemory::new()]).await;
}

#[tokio::test]
async fn a_memory_store_with_losses_answers_as_simulated() {
    check(special_ones(), vec![InMemory::new()]).await;
}

/// Half as many are enough where each operation waits for the disk.
fn every_other(seeds: Vec<u64>) -> Vec<u64> {
    seeds.into_iter().step_by(2).collect()
}

/// Most of the time goes to waiting for the disk.
fn disks() -> Vec<OnDisk> {
    (0..4).map(|_| OnDisk::new()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_store_answers_as_the_simulator_saw() {
    check(every_other(first_ones()), disks()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_store_answers_as_the_simulator_saw_when_something_is_lost() {
    check(every_other(special_ones()), disks()).await;
}

#[tokio::test]
async fn a_server_answers_as_the_simulator_saw() {
    check(first_ones(), vec![OnServer::start().await]).await;
}

#[tokio::test]
async fn a_server_answers_as_the_simulator_saw_when_something_is_lost() {
    check(special_ones(), vec![OnServer::start().await]).await;
}

#[test]
fn the_seeds_meet_all_that_a_store_can_get_wrong() {
    let mut met = Met::default();
    for seed in first_ones().into_iter().chain(special_ones()) {
        met.look_at(&seeds::record(seed));
    }
    eprintln!("{met:#?}");
    met.check();
}

/// A recording of a store that has been through something, changed by `change`, must not come out.
async fn check_noticed(what: &str, change: impl FnOnce(&mut Recording)) {
    let is_damaged = |recording: &Recording| {
        let operations = &mut recording.operations.iter();
        operations.any(|operation| matches!(operation.found, Found::Older { .. }))
    };
    let mut recorded = special_ones().into_iter().flat_map(seeds::record);
    let mut recording = recorded.find(is_damaged).unwrap();
    play(&recording, &mut InMemory::new()).await.unwrap();
    change(&mut recording);
    match play(&recording, &mut InMemory::new()).await {
        Err(PlayError::Difference { what: found, .. }) => assert_eq!(found, what),
        other => panic!("{what}: {other:?}"),
    }
}

#[tokio::test]
async fn an_answer_that_was_another_one_is_noticed() {
    check_noticed("answer", |recording| {
        let operations = recording.operations.iter_mut();
        let answers = operations.filter_map(|operation| operation.exchange.as_mut());
        let lent = answers.filter_map(|exchange| match &mut exchange.reply {
            Reply::Granted(answer) => Some(answer),
            _ => None,
        });
        lent.last().unwrap().granted.credits += 1;
    })
    .await;
}

#[tokio::test]
async fn a_record_that_was_another_one_is_noticed() {
    check_noticed("ledger", |recording| {
        let operation = recording.operations.last_mut().unwrap();
        let mut parts = operation.ledger.to_parts();
        parts.generation += 1;
        operation.ledger = Ledger::from_parts(parts).unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_incarnation_that_nobody_began_is_noticed() {
    check_noticed("answer", |recording| {
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
