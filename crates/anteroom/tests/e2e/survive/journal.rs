//! The journal loses its memory while nothing runs: it is emptied, damaged, or restored from an
//! older copy. Seats that were granted before still count.

use std::fs;
use std::path::{Path, PathBuf};

use crate::limits::{PLENTY, limits};
use crate::support::command::run;
use crate::support::eventually;
use crate::support::stage::Stage;
use crate::support::visitors::{self, endless_visits};

fn journal(stage: &Stage) -> PathBuf {
    stage.data().join("journal.redb")
}

/// Returns the earlier journals in the data folder.
fn kept(stage: &Stage) -> Vec<PathBuf> {
    let entries = fs::read_dir(stage.data()).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let is_kept = |path: &PathBuf| path.to_string_lossy().contains("journal.redb.lost-");
    paths.filter(is_kept).collect()
}

/// Fills a room of five, stops it, changes the journal, and starts it again.
async fn after(damage: impl AsyncFnOnce(&mut Stage, &Path), what: &str) {
    let mut stage = Stage::open(limits(5, PLENTY), "30s").await;
    let endless = stage.fill(5).await;
    let path = journal(&stage);
    damage(&mut stage, &path).await;
    stage.start().await;

    let load = visitors::send(&stage.address, 20, &endless_visits());
    stage.queues_newcomers("recovering").await;
    let pages = endless.counters().pages;
    let passes = async || endless.counters().pages >= pages + 20;
    eventually("active visitors pass", passes).await;
    assert_eq!(load.counters().entered, 0, "no visitor is admitted");

    let kept = kept(&stage);
    assert_eq!(kept.len(), 1, "{kept:?}");
    for words in [what, "assume-empty"] {
        stage.gateway().log_with(words).await;
    }
    let (_, health) = stage.operator().health().await;
    let detail = health["rooms"][0]["detail"].as_str().unwrap();
    assert!(detail.contains(what), "{detail}");
    assert!(
        detail.contains("anteroom room assume-empty main"),
        "{detail}"
    );
    let admin = stage.gateway().admin.to_string();
    let status = run(&["status", "--admin", &admin]).await;
    let expected = [what, "DEGRADED: recovering until ", "assume-empty"];
    assert!(
        expected
            .iter()
            .all(|expected| status.out.contains(expected)),
        "{}",
        status.out
    );

    visitors::stop_endless(endless, 5).await;
    load.stop().await;
    stage.assert_within_limits();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_emptied_journal_admits_no_new_visitors() {
    let empty = async |stage: &mut Stage, path: &Path| {
        stage.terminate().await;
        fs::write(path, "").unwrap();
    };
    after(empty, "the journal was empty").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_copy_of_the_journal_admits_no_new_visitors() {
    let put_back = async |stage: &mut Stage, path: &Path| {
        stage.terminate().await;
        let copy = fs::read(path).unwrap();
        stage.start().await;
        eventually("it writes", async || fs::read(path).unwrap() != copy).await;
        stage.kill().await;
        // In place, so that neither the inode nor the creation time shows it.
        fs::write(path, copy).unwrap();
    };
    after(put_back, "the journal was an older copy").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_truncated_journal_admits_no_new_visitors() {
    let cut = async |stage: &mut Stage, path: &Path| {
        stage.kill().await;
        let file = fs::OpenOptions::new().write(true).open(path).unwrap();
        // The end of a repaired file may be free space: to cut it there loses nothing.
        file.set_len(8_192).unwrap();
    };
    after(cut, "the journal was damaged").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_overwritten_journal_admits_no_new_visitors() {
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
async fn an_untouched_journal_knows_all_and_has_no_reserve() {
    let mut stage = Stage::open(limits(6, PLENTY), "30s").await;
    let endless = stage.fill(5).await;
    stage.terminate().await;
    stage.start().await;
    // The sixth seat is free, and is granted at once.
    stage.admits_newcomers().await;
    stage.kill().await;
    stage.start().await;
    stage.queues_newcomers("full").await;
    assert_eq!(kept(&stage), Vec::<PathBuf>::new());
    visitors::stop(endless).await;
    stage.assert_within_limits();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_assume_empty_it_admits_with_the_next_minute() {
    let mut stage = Stage::open(limits(5, PLENTY), "30s").await;
    stage.terminate().await;
    fs::write(journal(&stage), "").unwrap();
    stage.start().await;
    stage.queues_newcomers("recovering").await;
    let admin = stage.gateway().admin.to_string();
    let token = stage.data().join("admin-token").display().to_string();
    let args = ["room", "assume-empty", "main", "--admin", &admin];
    let ended = run(&[&args[..], &["--token-file", &token]].concat()).await;
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    stage.admits_newcomers().await;
    stage.assert_within_limits();
}
