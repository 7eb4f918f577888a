//! The faults of [`super::disk`] on file systems that are really full or read-only. They are
//! mounted for the gateway alone, which not every machine permits. Where it is not permitted, the
//! test reports that and checks nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

use super::disk::{assert_recovered, assert_unavailable};
use crate::limits::{PLENTY, limits};
use crate::support::client::seat_end;
use crate::support::eventually;
use crate::support::process::{BINARY, Gateway};
use crate::support::stage::Stage;
use crate::support::visitors;

/// Returns `anteroom serve` after a shell command that mounts something on `$0`, in its own
/// namespace; `None` where that is not permitted.
async fn serve_after(mount: &str, data: &Path, flags: &[String]) -> Option<Command> {
    fs::create_dir_all(data).unwrap();
    for flags_of_unshare in ["-m", "-rm"] {
        let mut trial = Command::new("unshare");
        trial.args([flags_of_unshare, "sh", "-c", mount]).arg(data);
        let status = trial.stderr(Stdio::null()).status().await;
        if status.is_ok_and(|status| status.success()) {
            let line = format!("{mount} && exec \"$@\"");
            let mut command = Command::new("unshare");
            command
                .args([flags_of_unshare, "sh", "-c", &line])
                .arg(data);
            command.args([BINARY, "serve"]).args(flags);
            eprintln!("permitted here, by unshare {flags_of_unshare}: {mount}");
            return Some(command);
        }
    }
    eprintln!("not permitted here: {mount}");
    None
}

/// Returns the data folder as the gateway sees it.
fn as_seen_by(gateway: &Gateway, data: &Path) -> PathBuf {
    let root = PathBuf::from(format!("/proc/{}/root", gateway.id()));
    root.join(data.strip_prefix("/").unwrap())
}

/// Uses all free space.
fn fill_up(file: &Path) {
    use std::io::Write as _;
    let mut file = fs::File::create(file).unwrap();
    for size in [65_536, 4_096, 1] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_journal_on_a_full_disk_admits_nobody_until_there_is_space() {
    let mut stage = Stage::prepare(limits(10, PLENTY), "30s").await;
    let mount = "mount -t tmpfs -o size=8m tmpfs \"$0\"";
    let Some(command) = serve_after(mount, &stage.data(), &stage.flags()).await else {
        return;
    };
    stage.enter(Gateway::spawn(command).await);
    let endless = stage.fill(5).await;
    let seen = as_seen_by(stage.gateway(), &stage.data());
    fill_up(&seen.join("ballast"));
    let operator = stage.operator();
    eventually("the lease ends", async || {
        operator.shows("anteroom_lease_live", 0.0).await
    })
    .await;
    assert_unavailable(&stage, &operator).await;
    stage.gateway().log_with("store unavailable").await;
    fs::remove_file(seen.join("ballast")).unwrap();
    assert_recovered(&stage, &operator).await;
    visitors::stop_endless(endless, 5).await;
    stage.assert_within_limits();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_read_only_disk_the_gateway_admits_nobody_new() {
    let mut stage = Stage::open(limits(10, PLENTY), "30s").await;
    let mut inside = stage.newcomer();
    assert!(seat_end(&inside.navigate("/").await).is_some());
    stage.terminate().await;
    let mount = "mount --bind \"$0\" \"$0\" && mount -o remount,bind,ro \"$0\"";
    let Some(command) = serve_after(mount, &stage.data(), &stage.flags()).await else {
        return;
    };
    stage.enter(Gateway::spawn(command).await);
    assert_unavailable(&stage, &stage.operator()).await;
    let mut inside = inside.at(stage.address.get().unwrap());
    assert!(seat_end(&inside.navigate("/").await).is_some());
    stage.gateway().log_with("Read-only file system").await;
    stage.terminate().await;
    stage.start().await;
    assert_recovered(&stage, &stage.operator()).await;
    stage.assert_within_limits();
}
