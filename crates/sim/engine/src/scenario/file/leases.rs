//! `[leases]`: for how long is lent. Only what a rehearsal may want to vary; how long a data center
//! lends to its nodes is part of the program.

use anteroom_config::toml_file::{Duration, Key, Table};
use anteroom_room::time::DurationMs;

/// From the world to a data center. A data center asks once a second: with a shorter lease than two
/// nobody would be let in. Longer than an hour, a data center that was lost holds its seats for
/// longer than anybody would wait.
const GLOBAL: Key<Duration> = Key {
    name: "global",
    kind: Duration {
        min: DurationMs::from_secs(2),
        max: DurationMs::from_secs(3_600),
        bare_unit: "m",
    },
    default: Some("\"10m\""),
};

/// Reads how long the world lends to a data center.
pub(super) fn read(root: &mut Table<'_>) -> DurationMs {
    let mut table = root.table("leases");
    let global = table.defaulted(&GLOBAL);
    table.finish();
    global
}
