//! Confirmed writes survive, at whichever step the process is killed or the power fails.

use std::collections::BTreeMap;

use anteroom_limit::leases::epoch::Before;
use anteroom_limit_store::lease_store::Swapped;

use crate::leases::disk::{Crash, Disk};
use crate::leases::folder::{Folder, before, load, must_write, write};

const CLIENTS: u128 = 5;
const WRITES: u128 = 20;

/// Confirmed writes, and the one in flight at the crash.
#[derive(Debug, Default)]
struct Confirmed {
    kept: BTreeMap<u128, u128>,
    in_flight: Option<(u128, u128)>,
    has_begun: bool,
}

/// Writes until the crash.
async fn work(folder: &Folder, disk: &Disk) -> Confirmed {
    let on = disk.clone();
    let file = folder.start_on(move |file| on.open(file));
    let mut confirmed = Confirmed::default();
    for token in 1..=WRITES {
        let key = token % CLIENTS;
        // Small records, and some of many pages.
        let len = if token % 7 == 0 { 20_000 } else { 100 };
        match write(&file, key, token, &vec![1; len]).await {
            Ok(swapped) => {
                assert_eq!(swapped, Swapped::Written);
                confirmed.kept.insert(key, token);
                confirmed.has_begun = true;
            }
            Err(_) if disk.has_crashed() => {
                confirmed.in_flight = Some((key, token));
                break;
            }
            Err(error) => panic!("{error:?}"),
        }
    }
    // The crash may also happen during the close. Nothing is left to write when this returns.
    file.close().await;
    confirmed
}

/// Crashes after some steps, and checks what is left. Returns whether there was a crash.
async fn check(steps: u64, crash: Crash) -> bool {
    let folder = Folder::new();
    let disk = Disk::crashing_after(steps, crash);
    let confirmed = work(&folder, &disk).await;
    let file = folder.start();
    for key in 0..CLIENTS {
        let loaded = load(&file, key).await.unwrap();
        // A crash must not count as a loss, which would cost all clients a window.
        assert_eq!(before(&loaded, None), Before::Nothing, "{steps} {crash:?}");
        let found = loaded.expected().client.0;
        let kept = confirmed.kept.get(&key).copied().unwrap_or(0);
        let is_in_flight = confirmed.in_flight == Some((key, found));
        assert!(
            found == kept || is_in_flight,
            "{steps} steps, {crash:?}: {found} of client {key}, {confirmed:?}"
        );
    }
    // The file still works.
    must_write(&file, 0, 1_000, b"on").await;
    if confirmed.has_begun {
        assert_eq!(folder.names(), ["lent.redb"], "{steps}");
    }
    disk.has_crashed()
}

async fn steps_total() -> u64 {
    let disk = Disk::crashing_after(u64::MAX, Crash::Killed);
    let confirmed = work(&Folder::new(), &disk).await;
    assert_eq!(confirmed.kept.len() as u128, CLIENTS);
    disk.steps()
}

#[tokio::test]
async fn a_process_killed_at_any_step_loses_no_confirmed_write() {
    let steps = steps_total().await;
    assert!(u128::from(steps) > WRITES, "{steps}");
    for step in 0..steps {
        assert!(check(step, Crash::Killed).await);
    }
}

#[tokio::test]
async fn a_power_failure_at_any_step_loses_no_confirmed_write() {
    for step in 0..steps_total().await {
        let seed = step.wrapping_mul(0x9E37_79B9_7F4A_7C15) + 1;
        assert!(check(step, Crash::PowerFailure { seed }).await);
    }
}
