//! `[leases]`: length of the root's leases. The program fixes the length of leases from a data
//! center to its nodes.

use anteroom_config::toml_file::{Duration, Key, Table};
use anteroom_room::time::DurationMs;

/// Length of a lease from the root to a data center. A data center syncs once a second, so a lease
/// of less than two seconds would admit no visitor. With more than an hour, a lost data center
/// keeps its seats for too long.
const GLOBAL: Key<Duration> = Key {
    name: "global",
    kind: Duration {
        min: DurationMs::from_secs(2),
        max: DurationMs::from_secs(3_600),
        bare_unit: "m",
    },
    default: Some("\"10m\""),
};

/// Reads the length of a lease from the root to a data center.
pub(super) fn read(root: &mut Table<'_>) -> DurationMs {
    let mut table = root.table("leases");
    let global = table.defaulted(&GLOBAL);
    table.finish();
    global
}
