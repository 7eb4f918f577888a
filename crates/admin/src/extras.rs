//! Stats of other parts of the program, which bring them through [`Extras`].
//!
//! One struct with named fields, and not a list of samples: names, types and meanings of all
//! metrics stay in one crate, under one golden test.

use std::collections::BTreeMap;
use std::time::Duration;

use anteroom_config::{OriginOwner, RoomName};
use anteroom_proxy::upstream::GroupStats;

/// Source of the stats of the rest of the program.
pub trait Extras: Send + Sync + 'static {
    /// Returns the current stats. Called for every scrape; must not block.
    fn read(&self) -> ExtraStats {
        ExtraStats::default()
    }
}

/// Source without any stats.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoExtras;

impl Extras for NoExtras {}

/// Stats of the rest of the program. Fields without a source keep their defaults.
///
/// Counters begin with the process and never fall.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ExtraStats {
    /// Client connections.
    pub connections: ConnectionStats,
    /// Pauses of accepting until connections that were closed had ended.
    pub accept_pauses: u64,
    /// Failures of accepting, most likely with too many files open.
    pub accept_failures: u64,
    /// Failed TLS handshakes of clients, and connections without TLS.
    pub handshakes_failed: u64,
    /// Aborted connections by reason: a few fixed words, such as `framing`.
    pub connections_broken_off: BTreeMap<&'static str, u64>,
    /// Expiry of the certificate, in seconds since the Unix epoch; `None` without TLS.
    pub certificate_expires_at: Option<i64>,
    /// Requests whose bypass rule could not be evaluated.
    pub bypass_failures: BTreeMap<RoomName, u64>,
    /// Tickets used from too many networks, by room.
    pub shared_tickets: BTreeMap<RoomName, u64>,
    /// Requests whose ticket was ignored for this reason, by room.
    pub shared_ticket_requests: BTreeMap<RoomName, u64>,
    /// Tickets whose networks were evicted although they were in use.
    pub tickets_evicted: u64,
    /// Times that a lost journal was written again from memory.
    pub journal_rewrites: u64,
    /// Description of how the journal lost its memory, if it ever did.
    pub journal_loss: Option<String>,
    /// Reloads of the config file that succeeded.
    pub reloads: u64,
    /// Reloads of the config file that failed.
    pub failed_reloads: u64,
    /// Error of the newest config file; `None` if it was accepted.
    pub last_reload_error: Option<String>,
    /// Requests to the origin by outcome: a few fixed words, such as `answered` or `timed_out`.
    pub origin_outcomes: BTreeMap<(RoomName, &'static str), u64>,
    /// Origins of each site and room that has some.
    pub origins: BTreeMap<OriginOwner, GroupStats>,
    /// Requests by verdict: a few fixed words, such as `admit` or `queue`.
    pub verdicts: BTreeMap<(RoomName, &'static str), u64>,
    /// Rate limits by name.
    pub limits: BTreeMap<String, LimitStats>,
    /// Events of the stores that count requests for several nodes, by store and a fixed word.
    pub limit_stores: BTreeMap<(&'static str, &'static str), u64>,
    /// Envoy's rate limit service; `None` without one.
    pub rate_limits: Option<RateLimitServiceStats>,
}

/// Stats of client connections, and of what happens when there are too many.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ConnectionStats {
    /// Open connections.
    pub open: u64,
    /// Open connections with a ticket.
    pub with_ticket: u64,
    /// Limit on open connections.
    pub limit: u64,
    /// Number of open connections from which those of waiting visitors are closed with each
    /// response.
    pub near: u64,
    /// Idle connections that were closed to make room, by reason: `total`, `address`.
    pub reclaimed: BTreeMap<&'static str, u64>,
    /// Connections that got nothing but an error response, by reason: `full`, `address`.
    pub turned_away: BTreeMap<&'static str, u64>,
    /// Requests that the fast path has looked at, by what it did: fixed words.
    pub fast_path: BTreeMap<&'static str, u64>,
}

/// Stats of Envoy's rate limit service.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RateLimitServiceStats {
    /// Responses by outcome: a few fixed words, such as `ok` or `over_limit`.
    pub answers: Vec<(&'static str, u64)>,
    /// Hits of each limit by kind: a few fixed words, such as `within_limit`. The source bounds the
    /// number of limits.
    pub hits: BTreeMap<String, [(&'static str, u64); 5]>,
    /// Requests for domains without a file.
    pub unknown_domains: u64,
    /// Files that were read and accepted.
    pub loads: u64,
    /// Files that were read and rejected.
    pub failed_loads: u64,
    /// Counters in the table; 0 with a store.
    pub keys: u64,
    /// Hits counted in the overflow entry.
    pub crowded: u64,
    /// Quotas.
    pub quota: QuotaStats,
}

/// Stats of quotas: requests assigned ahead to Envoys.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct QuotaStats {
    /// Open streams.
    pub streams: u64,
    /// Limits with at least one bucket.
    pub limits: u64,
    /// Buckets of all streams.
    pub buckets: u64,
    /// Requests by kind: a few fixed words, such as `assigned`.
    pub requests: Vec<(&'static str, u64)>,
    /// Other events: a few fixed words, such as `refused`.
    pub events: Vec<(&'static str, u64)>,
}

/// Stats of one rate limit.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct LimitStats {
    /// Requests by verdict: a few fixed words, such as `allow` or `reject`.
    pub requests: BTreeMap<&'static str, u64>,
    /// Clients in the table.
    pub keys: u64,
    /// Capacity of the table.
    pub keys_max: u64,
    /// Requests counted in the overflow entry.
    pub crowded: u64,
    /// Requests that could not be counted because the store was unavailable.
    pub store_failures: u64,
    /// Store of the limit, by its word in the config file.
    pub store: &'static str,
    /// Time since the last request that could not be counted, unless the store has replied since.
    pub store_failed_ago: Option<Duration>,
    /// Cause of a recent such request, without secrets.
    pub store_cause: Option<String>,
    /// Whether this node has just started and the store grants it nothing yet.
    pub is_joining_store: bool,
}
