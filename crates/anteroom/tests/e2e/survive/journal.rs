//! The journal loses its memory while nothing runs: it is emptied, damaged, or put back from an
//! older copy. What was given before still counts.

use std::fs;
use std::path::{Path, PathBuf};

use crate::limits::{PLENTY, limits};
use crate::support::command::run;
use crate::support::crowd::{Habits, LoadGenerator};
use crate::support::eventually;
use crate::support::stage::Stage;

fn journal(stage: &Stage) -> PathBuf {
    stage.data().join("journal.redb")
}

/// The files in the data folder that were journals once.
fn kept(stage: &Stage) -> Vec<PathBuf> {
    let entries = fs::read_dir(stage.data()).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let is_kept = |path: &PathBuf| path.to_string_lossy().contains("journal.redb.lost-");
    paths.filter(is_kept).collect()
}

/// Fills a room of five, stops it, does this to the journal, and starts it again.
async fn after(damage: impl AsyncFnOnce(&mut Stage, &Path), what: &str) {
    let mut stage = Stage::open(limits(5, PLENTY), "30s").await;
    let stay = stage.fill(5).await;
    let path = journal(&stage);
    damage(&mut stage, &path).await;
    stage.start().await;

    let crowd = LoadGenerator::send(&stage.door, 20, Habits::stay());
    stage.queues_newcomers("recovering").await;
    let pages = stay.counters().pages;
    let passes = async || stay.counters().pages >= pages + 20;
    eventually("those inside pass", passes).await;
    assert_eq!(crowd.counters().entered, 0, "nobody is admitted");

    let kept = kept(&stage);
    assert_eq!(kept.len(), 1, "{kept:?}");
    let log = stage.gateway().log();
    let says = |words: &str| log.iter().any(|line| line.contains(words));
    assert!(says(what) && says("assume-empty"), "{log:?}");
    let (_, health) = stage.operator().health().await;
    let detail = health["rooms"][0]["detail"].as_str().unwrap();
    assert!(detail.contains(what), "{detail}");
    assert!(
        detail.contains("anteroom room main assume-empty"),
        "{detail}"
    );
    let admin = stage.gateway().admin.to_string();
    let status = run(&["status", "--admin", &admin]).await;
    let told = [what, "DEGRADED: recovering until ", "assume-empty"];
    assert!(
        told.iter().all(|told| status.out.contains(told)),
        "{}",
        status.out
    );

    let stay = stay.go_home().await;
    assert_eq!((stay.entered, stay.thrown_out), (5, 0), "{stay:?}");
    crowd.go_home().await;
    stage.assert_within_limits();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn emptied_it_admits_nobody_beside_those_inside() {
    let empty = async |stage: &mut Stage, path: &Path| {
        stage.terminate().await;
        fs::write(path, "").unwrap();
    };
    after(empty, "the journal was empty").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn put_back_from_an_older_copy_it_admits_nobody_beside_those_inside() {
    let put_back = async |stage: &mut Stage, path: &Path| {
        stage.terminate().await;
        let copy = fs::read(path).unwrap();
        stage.start().await;
        eventually("it writes", async || fs::read(path).unwrap() != copy).await;
        stage.kill().await;
        // In place: neither the number of the file nor its birth tells of it.
        fs::write(path, copy).unwrap();
    };
    after(put_back, "the journal was an older copy").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_short_it_admits_nobody_beside_those_inside() {
    let cut = async |stage: &mut Stage, path: &Path| {
        stage.kill().await;
        let file = fs::OpenOptions::new().write(true).open(path).unwrap();
        // Much of the end of a file that is mended may be free: cut there, nothing is lost.
        file.set_len(8_192).unwrap();
    };
    after(cut, "the journal was damaged").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn overwritten_with_rubbish_it_admits_nobody_beside_those_inside() {
    let overwrite = async |stage: &mut Stage, path: &Path| {
        stage.terminate().await;
        let rubbish: Vec<u8> = (0..100_000_u32)
            .map(|i| u8::try_from(i * 31 % 251).unwrap())
            .collect();
        fs::write(path, rubbish).unwrap();
    };
    after(overwrite, "the journal was damaged").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn untouched_it_knows_everybody_and_holds_no_reserve() {
    let mut stage = Stage::open(limits(6, PLENTY), "30s").await;
    let stay = stage.fill(5).await;
    stage.terminate().await;
    stage.start().await;
    // The sixth seat is free, and is given at once.
    stage.admits_newcomers().await;
    stage.kill().await;
    stage.start().await;
    stage.queues_newcomers("full").await;
    assert_eq!(kept(&stage), Vec::<PathBuf>::new());
    assert_eq!(stay.go_home().await.thrown_out, 0);
    stage.assert_within_limits();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_the_word_that_nobody_is_inside_it_admits_at_once() {
    let mut stage = Stage::open(limits(5, PLENTY), "30s").await;
    stage.terminate().await;
    fs::write(journal(&stage), "").unwrap();
    stage.start().await;
    stage.queues_newcomers("recovering").await;
    let admin = stage.gateway().admin.to_string();
    let token = stage.data().join("admin-token").display().to_string();
    let args = ["room", "main", "assume-empty", "--admin", &admin];
    let said = run(&[&args[..], &["--token-file", &token]].concat()).await;
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    stage.admits_newcomers().await;
    stage.assert_within_limits();
}
