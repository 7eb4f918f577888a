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
    ("anteroom-config", &["anteroom-room", "anteroom-limit"]),
    ("anteroom-store", &["anteroom-room", "anteroom-config"]),
    (
        "anteroom-valkey",
        &[
            "anteroom-room",
            "anteroom-config",
            "anteroom-limit",
            "anteroom-limit-store",
            "anteroom-store",
        ],
    ),
    (
        "anteroom-memcached",
        &["anteroom-config", "anteroom-limit", "anteroom-limit-store"],
    ),
    (
        "anteroom-kafka",
        &["anteroom-limit", "anteroom-limit-store"],
    ),
    (
        "anteroom-gossip",
        &["anteroom-config", "anteroom-limit", "anteroom-limit-store"],
    ),
    (
        "anteroom-embedded",
        &[
            "anteroom-room",
            "anteroom-limit",
            "anteroom-limit-store",
            "anteroom-store",
        ],
    ),
    (
        "anteroom-envoy",
        &["anteroom-config", "anteroom-limit", "anteroom-limit-store"],
    ),
    (
        "anteroom-node",
        &[
            "anteroom-room",
            "anteroom-ticket",
            "anteroom-config",
            "anteroom-store",
        ],
    ),
    (
        "anteroom-room-http",
        &["anteroom-room", "anteroom-config", "anteroom-store"],
    ),
    (
        "anteroom-proxy",
        &[
            "anteroom-room",
            "anteroom-ticket",
            "anteroom-config",
            "anteroom-store",
            "anteroom-node",
            "anteroom-room-http",
        ],
    ),
    (
        "anteroom-limit-http",
        &[
            "anteroom-limit",
            "anteroom-limit-store",
            "anteroom-room",
            "anteroom-config",
            "anteroom-proxy",
        ],
    ),
    (
        "anteroom-tower",
        &[
            "anteroom-config",
            "anteroom-limit",
            "anteroom-store",
            "anteroom-valkey",
            "anteroom-node",
            "anteroom-proxy",
            "anteroom-limit-http",
            "anteroom-admin",
            "anteroom-limit-store",
            "anteroom-embedded",
            "anteroom-memcached",
            "anteroom-kafka",
            "anteroom-gossip",
        ],
    ),
    (
        "anteroom-admin",
        &[
            "anteroom-room",
            "anteroom-config",
            "anteroom-store",
            "anteroom-node",
            "anteroom-proxy",
        ],
    ),
    ("anteroom-demo", &["anteroom-room"]),
    ("anteroom-sim", &["anteroom-room", "anteroom-ticket"]),
    (
        "anteroom-report",
        &[
            "anteroom-room",
            "anteroom-config",
            "anteroom-limit",
            "anteroom-sim",
        ],
    ),
    (
        "anteroom",
        &[
            "anteroom-room",
            "anteroom-config",
            "anteroom-store",
            "anteroom-valkey",
            "anteroom-node",
            "anteroom-proxy",
            "anteroom-room-http",
            "anteroom-limit-http",
            "anteroom-tower",
            "anteroom-admin",
            "anteroom-demo",
            "anteroom-limit",
            "anteroom-limit-store",
            "anteroom-envoy",
        ],
    ),
    // Asks what `anteroom check` says, and what holds where a file says nothing.
    // Looks at what comes out on either side of the gateway, with rooms and without.
    // Starts the binary as a process, so it knows none of what the binary is made of.
    ("anteroom-e2e", &["anteroom-room", "anteroom-demo"]),
    // Runs nodes in its own process, to see what they take and what they cost.
    (
        "anteroom-bench",
        &[
            "anteroom-room",
            "anteroom-config",
            "anteroom-store",
            "anteroom-valkey",
            "anteroom-node",
        ],
    ),
    // Plays what the simulator recorded on real stores, so it sees both.
    // Starts the binary as a process, beside others.
    ("xtask", &[]),
];

/// Crates that every crate's tests may use, and nothing but tests. They know no crate of ours.
pub(super) const FOR_TESTS: &[&str] = &["anteroom-testkit"];

/// Crates that are nothing but tests and measurements: what is for tests they may use in all that
/// they are. No row above names one.
pub(super) const ONLY_TESTS: &[&str] = &[
    "anteroom-e2e",
    "anteroom-e2e",
    "anteroom-bench",
    "anteroom-bench",
    "anteroom-e2e",
    "anteroom-e2e",
];

/// Arrows of tests alone: whoever runs a node in a test must bring a store.
pub(super) const ARROWS_OF_TESTS: &[(&str, &str)] = &[
    // Leases are tried over a real store, which has an address.
    ("anteroom-limit-store", "anteroom-config"),
    ("anteroom-limit-store", "anteroom-valkey"),
    ("anteroom-admin", "anteroom-limit"),
    ("anteroom-admin", "anteroom-limit-http"),
    ("anteroom-admin", "anteroom-store"),
    ("anteroom-proxy", "anteroom-store"),
    ("anteroom-envoy", "anteroom-valkey"),
];
