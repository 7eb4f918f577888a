//! Number of connections that fit the limit on open files of this process.
//!
//! Shells give a process 1,024 open files at first, and let it raise the limit itself. With too
//! few, accepting fails long before the table of connections is full, and no visitor is served.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// File descriptors for stores, journals, logs and listeners.
const REST: u64 = 1_000;

/// Raises the limit on open files to what `connections` visitors' connections need, as far as the
/// system allows. Returns the number of connections that fit, which may be lower.
pub(crate) fn make_room(connections: usize) -> usize {
    let needed = needed(connections);
    let before = getrlimit(Resource::Nofile);
    let allowed = before.maximum.unwrap_or(u64::MAX);
    let wanted = needed.min(allowed);
    let mut limit = before.current.unwrap_or(u64::MAX);
    if limit < wanted {
        let raised = Rlimit {
            current: Some(wanted),
            maximum: before.maximum,
        };
        match setrlimit(Resource::Nofile, raised) {
            Ok(()) => limit = wanted,
            Err(error) => tracing::warn!(%error, "cannot raise the limit on open files"),
        }
    }
    let fitting = fitting(limit).min(connections);
    if fitting < connections {
        tracing::warn!(
            open_files = limit,
            needed,
            connections = fitting,
            "the limit on open files is too low for size_limits.connections = {connections}, so \
             fewer connections are accepted. Raise the limit (LimitNOFILE in the unit, or ulimit \
             -n)"
        );
    }
    fitting
}

/// Returns the descriptors for these connections: each takes one, and one more while a request is
/// at the origin.
fn needed(connections: usize) -> u64 {
    let connections = u64::try_from(connections).unwrap_or(u64::MAX);
    connections.saturating_mul(2).saturating_add(REST)
}

fn fitting(limit: u64) -> usize {
    let rest = REST.min(limit / 4);
    usize::try_from((limit - rest) / 2)
        .unwrap_or(usize::MAX)
        .max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_needed_descriptors_fit_the_connections() {
        for connections in [100, 10_000, 150_000] {
            assert!(fitting(needed(connections)) >= connections);
        }
    }

    #[test]
    fn a_low_limit_reserves_descriptors_for_the_rest() {
        assert_eq!(fitting(256), 96);
        assert_eq!(fitting(1_024), 384);
        assert_eq!(fitting(0), 1);
    }
}
