//! `[stores]`: promise of all stores about their writes.

use anteroom_config::toml_file::{Duration, Key, Table};
use anteroom_room::store::Durability;
use anteroom_room::time::DurationMs;

/// Longest time whose writes a store that comes back may lack; `None` without a promise.
const LONGEST_LOSS: Key<Duration> = Key {
    name: "longest_loss",
    kind: Duration {
        min: DurationMs::ZERO,
        max: DurationMs::from_secs(60),
        bare_unit: "s",
    },
    default: None,
};

/// Reads the promise of the stores.
pub(super) fn read(root: &mut Table<'_>) -> Durability {
    let mut table = root.table("stores");
    let longest = table.optional(&LONGEST_LOSS);
    table.finish();
    match longest {
        None => Durability::Unknown,
        Some(DurationMs::ZERO) => Durability::KeepsAll,
        Some(longest) => Durability::LosesAtMost(longest),
    }
}
