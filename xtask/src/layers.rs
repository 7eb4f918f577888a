//! Which crate may depend on which? One table, and a test that no arrow leaves it.
//!
//! Judges path dependencies of every kind (normal, dev, build). What comes from outside is judged
//! by [`crate::licences`].

use anyhow::bail;

use crate::workspace::{Depth, Metadata, metadata};

/// A crate and the crates below it that it may use. Lowest first: a row may name earlier rows
/// only. Rows of crates that do not exist yet are decisions already taken.
const LAYERS: &[(&str, &[&str])] = &[
    // Before the core, for it knows nothing; who may use it is in `FOR_TESTS`.
    ("anteroom-testkit", &[]),
    ("anteroom-base", &[]),
    ("anteroom-queue", &["anteroom-base"]),
    ("anteroom-limits", &[]),
    ("anteroom-counts", &["anteroom-limits"]),
    ("anteroom-core", &["anteroom-base", "anteroom-queue"]),
    ("anteroom-ticket", &["anteroom-core"]),
    ("anteroom-reading", &["anteroom-core"]),
    (
        "anteroom-config",
        &["anteroom-core", "anteroom-limits", "anteroom-reading"],
    ),
    ("anteroom-envoy", &[]),
    ("anteroom-wire", &["anteroom-core", "anteroom-config"]),
    (
        "anteroom-store",
        &["anteroom-core", "anteroom-config", "anteroom-wire"],
    ),
    (
        "anteroom-valkey",
        &[
            "anteroom-core",
            "anteroom-config",
            "anteroom-limits",
            "anteroom-counts",
            "anteroom-store",
        ],
    ),
    (
        "anteroom-ratelimit",
        &[
            "anteroom-config",
            "anteroom-limits",
            "anteroom-counts",
            "anteroom-envoy",
        ],
    ),
    (
        "anteroom-node",
        &[
            "anteroom-core",
            "anteroom-ticket",
            "anteroom-config",
            "anteroom-wire",
            "anteroom-store",
        ],
    ),
    (
        "anteroom-page",
        &["anteroom-core", "anteroom-config", "anteroom-wire"],
    ),
    ("anteroom-front", &["anteroom-core", "anteroom-config"]),
    ("anteroom-origin", &["anteroom-core", "anteroom-config"]),
    (
        "anteroom-gateway",
        &[
            "anteroom-core",
            "anteroom-ticket",
            "anteroom-config",
            "anteroom-wire",
            "anteroom-node",
            "anteroom-origin",
            "anteroom-page",
            "anteroom-front",
        ],
    ),
    (
        "anteroom-meter",
        &[
            "anteroom-limits",
            "anteroom-counts",
            "anteroom-core",
            "anteroom-config",
            "anteroom-gateway",
        ],
    ),
    (
        "anteroom-check",
        &[
            "anteroom-config",
            "anteroom-store",
            "anteroom-page",
            "anteroom-front",
            "anteroom-origin",
            "anteroom-gateway",
            "anteroom-meter",
            "anteroom-ratelimit",
        ],
    ),
    (
        "anteroom-control",
        &[
            "anteroom-core",
            "anteroom-config",
            "anteroom-wire",
            "anteroom-node",
            "anteroom-origin",
        ],
    ),
    (
        "anteroom-operator",
        &[
            "anteroom-core",
            "anteroom-config",
            "anteroom-wire",
            "anteroom-control",
        ],
    ),
    ("anteroom-demo", &["anteroom-core"]),
    ("anteroom-scenario", &["anteroom-core", "anteroom-config"]),
    (
        "anteroom-sim",
        &["anteroom-core", "anteroom-ticket", "anteroom-scenario"],
    ),
    (
        "anteroom-report",
        &[
            "anteroom-core",
            "anteroom-config",
            "anteroom-scenario",
            "anteroom-sim",
        ],
    ),
    (
        "anteroom-rehearsal",
        &[
            "anteroom-core",
            "anteroom-config",
            "anteroom-scenario",
            "anteroom-sim",
            "anteroom-report",
        ],
    ),
    (
        "anteroom",
        &[
            "anteroom-core",
            "anteroom-ticket",
            "anteroom-config",
            "anteroom-store",
            "anteroom-valkey",
            "anteroom-node",
            "anteroom-origin",
            "anteroom-page",
            "anteroom-front",
            "anteroom-gateway",
            "anteroom-limits",
            "anteroom-counts",
            "anteroom-meter",
            "anteroom-ratelimit",
            "anteroom-check",
            "anteroom-control",
            "anteroom-operator",
            "anteroom-demo",
            "anteroom-rehearsal",
        ],
    ),
    // Asks what `anteroom check` says, and what holds where a file says nothing.
    (
        "anteroom-deploy",
        &[
            "anteroom-config",
            "anteroom-control",
            "anteroom-front",
            "anteroom-check",
            "anteroom",
        ],
    ),
    // Looks at what comes out on either side of the gateway, with rooms and without.
    (
        "anteroom-passage",
        &[
            "anteroom-core",
            "anteroom-config",
            "anteroom-front",
            "anteroom-origin",
            "anteroom-gateway",
            "anteroom",
        ],
    ),
    // Starts the binary as a process, so it knows none of what the binary is made of.
    ("anteroom-cluster", &["anteroom-core", "anteroom-demo"]),
    // Sends what no client would send through both, and looks at what comes out.
    (
        "anteroom-doorway",
        &[
            "anteroom-core",
            "anteroom-config",
            "anteroom-front",
            "anteroom-origin",
            "anteroom-gateway",
        ],
    ),
    // Runs nodes in its own process, to see what they take and what they cost.
    (
        "anteroom-bench",
        &[
            "anteroom-core",
            "anteroom-config",
            "anteroom-store",
            "anteroom-valkey",
            "anteroom-node",
        ],
    ),
    // Plays what the simulator recorded on real stores, so it sees both.
    (
        "anteroom-replay",
        &[
            "anteroom-core",
            "anteroom-config",
            "anteroom-store",
            "anteroom-valkey",
            "anteroom-scenario",
            "anteroom-sim",
        ],
    ),
    // Starts the binary as a process, beside others.
    ("anteroom-speed", &[]),
    ("xtask", &[]),
];

/// Crates that every crate's tests may use, and nothing but tests. They know no crate of ours.
const FOR_TESTS: &[&str] = &["anteroom-testkit"];

/// Crates that are nothing but tests and measurements: what is for tests they may use in all that
/// they are. No row above names one.
const ONLY_TESTS: &[&str] = &[
    "anteroom-passage",
    "anteroom-cluster",
    "anteroom-doorway",
    "anteroom-bench",
    "anteroom-speed",
    "anteroom-deploy",
    "anteroom-replay",
];

/// Arrows of tests alone: whoever runs a node in a test must bring a store.
const ARROWS_OF_TESTS: &[(&str, &str)] = &[
    ("anteroom-control", "anteroom-store"),
    ("anteroom-gateway", "anteroom-store"),
    ("anteroom-ratelimit", "anteroom-valkey"),
];

/// Checks the crates of this workspace.
///
/// # Errors
///
/// Names every arrow that is not in the table, and every crate without a row.
pub(crate) fn check() -> anyhow::Result<()> {
    let problems = problems(&metadata(Depth::Members)?);
    if !problems.is_empty() {
        bail!("{}", problems.join("\n"));
    }
    Ok(())
}

fn problems(metadata: &Metadata) -> Vec<String> {
    let mut problems = Vec::new();
    for package in &metadata.packages {
        let from = &package.name;
        let Some((_, allowed)) = LAYERS.iter().find(|(name, _)| name == from) else {
            problems.push(format!(
                "{from} has no row in LAYERS (xtask/src/layers.rs): say there what it may use"
            ));
            continue;
        };
        for dependency in &package.dependencies {
            let to = &dependency.name;
            // A crate that tests itself with other features draws no arrow.
            if dependency.path.is_none() || to == from || allowed.contains(&to.as_str()) {
                continue;
            }
            let kind = dependency.kind.as_deref().unwrap_or("normal");
            let is_for_tests = FOR_TESTS.contains(&to.as_str())
                || ARROWS_OF_TESTS.contains(&(from.as_str(), to.as_str()));
            let is_test = kind == "dev" || ONLY_TESTS.contains(&from.as_str());
            if is_test && is_for_tests {
                continue;
            }
            problems.push(format!(
                "{from} -> {to} ({kind} dependency) is not in LAYERS: move the code that needs it \
                 up, or pass it in as an argument or a trait"
            ));
        }
    }
    problems
}

#[cfg(test)]
mod tests;
