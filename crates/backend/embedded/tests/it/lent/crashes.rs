//! Whoever was told that something is written finds it again, wherever the process died or the
//! power went.

use std::collections::BTreeMap;

use anteroom_limit::lending::epoch::Before;
use anteroom_limit_store::lent::Swapped;

use crate::lent::disk::{Death, Disk};
use crate::lent::folder::{Folder, before, load, must_write, write};

const CLIENTS: u128 = 5;
const WRITES: u128 = 20;

/// What clients were told, and what was under way when it ended.
#[derive(Debug, Default)]
struct Told {
    kept: BTreeMap<u128, u128>,
    under_way: Option<(u128, u128)>,
    has_begun: bool,
}

/// Writes until it dies.
async fn work(folder: &Folder, disk: &Disk) -> Told {
    let on = disk.clone();
    let file = folder.start_on(move |file| on.open(file));
    let mut told = Told::default();
    for token in 1..=WRITES {
        let key = token % CLIENTS;
        // Small ones, and one that takes many pages.
        let len = if token % 7 == 0 { 20_000 } else { 100 };
        match write(&file, key, token, &vec![1; len]).await {
            Ok(swapped) => {
                assert_eq!(swapped, Swapped::Written);
                told.kept.insert(key, token);
                told.has_begun = true;
            }
            Err(_) if disk.is_dead() => {
                told.under_way = Some((key, token));
                break;
            }
            Err(error) => panic!("{error:?}"),
        }
    }
    // It may also die while it lets go. Nothing of it is left to write when this returns.
    file.close().await;
    told
}

/// Dies after so many steps, and looks what is left. Returns whether it died at all.
async fn check(steps: u64, death: Death) -> bool {
    let folder = Folder::new();
    let disk = Disk::dying_after(steps, death);
    let told = work(&folder, &disk).await;
    let file = folder.start();
    for key in 0..CLIENTS {
        let loaded = load(&file, key).await.unwrap();
        // No loss is believed where there was none: it would cost everybody a window.
        assert_eq!(before(&loaded, None), Before::Nothing, "{steps} {death:?}");
        let found = loaded.expected().client.0;
        let kept = told.kept.get(&key).copied().unwrap_or(0);
        let is_under_way = told.under_way == Some((key, found));
        assert!(
            found == kept || is_under_way,
            "{steps} steps, {death:?}: {found} of client {key}, {told:?}"
        );
    }
    // And it goes on.
    must_write(&file, 0, 1_000, b"on").await;
    if told.has_begun {
        assert_eq!(folder.names(), ["lent.redb"], "{steps}");
    }
    disk.is_dead()
}

async fn steps_in_all() -> u64 {
    let disk = Disk::dying_after(u64::MAX, Death::Killed);
    let told = work(&Folder::new(), &disk).await;
    assert_eq!(told.kept.len() as u128, CLIENTS);
    disk.steps()
}

#[tokio::test]
async fn a_process_that_is_killed_at_any_step() {
    let steps = steps_in_all().await;
    assert!(u128::from(steps) > WRITES, "{steps}");
    for step in 0..steps {
        assert!(check(step, Death::Killed).await);
    }
}

#[tokio::test]
async fn a_machine_that_loses_its_power_at_any_step() {
    for step in 0..steps_in_all().await {
        let seed = step.wrapping_mul(0x9E37_79B9_7F4A_7C15) + 1;
        assert!(check(step, Death::Unpowered { seed }).await);
    }
}
