//! The table: every crate, and which of those below it it may use.

/// A crate and the crates below it that it may use. Lowest first: a row may name earlier rows
/// only. Rows of crates that do not exist yet are decisions already taken.
pub(super) const LAYERS: &[(&str, &[&str])] = &[
    // Before the core, for it knows nothing; who may use it is in `FOR_TESTS`.
    ("anteroom-testkit", &[]),
    ("anteroom-limit", &[]),
    ("anteroom-limit-store", &["anteroom-limit"]),
    ("anteroom-room", &[]),
    ("anteroom-ticket", &["anteroom-room"]),
    ("anteroom-terminal", &[]),
    ("anteroom-reading", &["anteroom-room"]),
    (
        "anteroom-config",
        &["anteroom-room", "anteroom-limit", "anteroom-reading"],
    ),
    ("anteroom-store", &["anteroom-room", "anteroom-config"]),
    (
        "anteroom-valkey",
        &["anteroom-room", "anteroom-config", "anteroom-limit", "anteroom-limit-store", "anteroom-store"],
    ),
    (
        "anteroom-memcached",
        &["anteroom-config", "anteroom-limit", "anteroom-limit-store"],
    ),
    ("anteroom-kafka", &["anteroom-limit", "anteroom-limit-store"]),
    (
        "anteroom-gossip",
        &["anteroom-config", "anteroom-limit", "anteroom-limit-store"],
    ),
    (
        "anteroom-embedded",
        &["anteroom-room", "anteroom-limit", "anteroom-limit-store", "anteroom-store"],
    ),
    (
        "anteroom-envoy",
        &["anteroom-config", "anteroom-limit", "anteroom-limit-store"],
    ),
    (
        "anteroom-node",
        &["anteroom-room", "anteroom-ticket", "anteroom-config", "anteroom-store"],
    ),
    (
        "anteroom-page",
        &["anteroom-room", "anteroom-config", "anteroom-store"],
    ),
    ("anteroom-front", &["anteroom-room", "anteroom-config"]),
    ("anteroom-origin", &["anteroom-room", "anteroom-config"]),
    (
        "anteroom-gateway",
        &["anteroom-room", "anteroom-ticket", "anteroom-config", "anteroom-store", "anteroom-node", "anteroom-origin", "anteroom-page", "anteroom-front"],
    ),
    (
        "anteroom-limit-http",
        &["anteroom-limit", "anteroom-limit-store", "anteroom-room", "anteroom-config", "anteroom-gateway"],
    ),
    (
        "anteroom-overrides",
        &["anteroom-room", "anteroom-limit", "anteroom-limit-store", "anteroom-config", "anteroom-store", "anteroom-node", "anteroom-limit-http"],
    ),
    (
        "anteroom-layers",
        &["anteroom-config", "anteroom-limit", "anteroom-store", "anteroom-valkey", "anteroom-node", "anteroom-front", "anteroom-gateway", "anteroom-limit-http", "anteroom-overrides", "anteroom-limit-store", "anteroom-embedded", "anteroom-memcached", "anteroom-kafka", "anteroom-gossip"],
    ),
    (
        "anteroom-control",
        &["anteroom-room", "anteroom-config", "anteroom-store", "anteroom-node", "anteroom-origin", "anteroom-overrides"],
    ),
    (
        "anteroom-check",
        &["anteroom-config", "anteroom-control", "anteroom-terminal", "anteroom-store", "anteroom-page", "anteroom-front", "anteroom-origin", "anteroom-gateway", "anteroom-limit-http", "anteroom-gossip", "anteroom-envoy"],
    ),
    (
        "anteroom-operator",
        &["anteroom-room", "anteroom-config", "anteroom-store", "anteroom-terminal", "anteroom-control", "anteroom-overrides"],
    ),
    ("anteroom-demo", &["anteroom-room"]),
    ("anteroom-sim", &["anteroom-room", "anteroom-ticket"]),
    (
        "anteroom-report",
        &["anteroom-room", "anteroom-config", "anteroom-limit", "anteroom-terminal", "anteroom-sim"],
    ),
    (
        "anteroom",
        &["anteroom-room", "anteroom-config", "anteroom-terminal", "anteroom-store", "anteroom-valkey", "anteroom-node", "anteroom-origin", "anteroom-page", "anteroom-front", "anteroom-gateway", "anteroom-limit-http", "anteroom-layers", "anteroom-check", "anteroom-control", "anteroom-operator", "anteroom-demo", "anteroom-limit", "anteroom-limit-store", "anteroom-envoy"],
    ),
    // Asks what `anteroom check` says, and what holds where a file says nothing.
    (
        "anteroom-deploy",
        &["anteroom-config", "anteroom-control", "anteroom-front", "anteroom-check", "anteroom"],
    ),
    // Looks at what comes out on either side of the gateway, with rooms and without.
    (
        "anteroom-passage",
        &["anteroom-room", "anteroom-config", "anteroom-front", "anteroom-origin", "anteroom-gateway", "anteroom"],
    ),
    // Starts the binary as a process, so it knows none of what the binary is made of.
    ("anteroom-cluster", &["anteroom-room", "anteroom-demo"]),
    // Runs nodes in its own process, to see what they take and what they cost.
    (
        "anteroom-bench",
        &["anteroom-room", "anteroom-config", "anteroom-store", "anteroom-valkey", "anteroom-node"],
    ),
    // Plays what the simulator recorded on real stores, so it sees both.
    (
        "anteroom-replay",
        &["anteroom-room", "anteroom-config", "anteroom-store", "anteroom-valkey", "anteroom-sim"],
    ),
    // Starts the binary as a process, beside others.
    ("anteroom-speed", &[]),
    ("xtask", &[]),
];

/// Crates that every crate's tests may use, and nothing but tests. They know no crate of ours.
pub(super) const FOR_TESTS: &[&str] = &["anteroom-testkit"];

/// Crates that are nothing but tests and measurements: what is for tests they may use in all that
/// they are. No row above names one.
pub(super) const ONLY_TESTS: &[&str] = &[
    "anteroom-passage",
    "anteroom-cluster",
    "anteroom-bench",
    "anteroom-speed",
    "anteroom-deploy",
    "anteroom-replay",
];

/// Arrows of tests alone: whoever runs a node in a test must bring a store.
pub(super) const ARROWS_OF_TESTS: &[(&str, &str)] = &[
    // Leases are tried over a real store, which has an address.
    ("anteroom-limit-store", "anteroom-config"),
    ("anteroom-limit-store", "anteroom-valkey"),
    ("anteroom-control", "anteroom-limit"),
    ("anteroom-control", "anteroom-limit-http"),
    ("anteroom-control", "anteroom-store"),
    ("anteroom-gateway", "anteroom-store"),
    ("anteroom-envoy", "anteroom-valkey"),
];
