//! What do other parts of the program count that operators want to see? Whoever runs them says so
//! here.
//!
//! One struct with named figures, and not a list of samples: names, types and meanings of all
//! metrics stay in one crate, under one golden test.

use std::collections::BTreeMap;
use std::time::Duration;

use anteroom_config::RoomName;
use anteroom_proxy::upstream::RoomOriginStats;

/// Brings the figures of the rest of the program.
pub trait Extras: Send + Sync + 'static {
    /// The figures now. Called for every scrape; must not wait for anything.
    fn read(&self) -> ExtraStats {
        ExtraStats::default()
    }
}

/// No figures but the node's own.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoExtras;

impl Extras for NoExtras {}

/// Figures of the rest of the program. Fill in what there is, leave the rest at its default.
///
/// What is counted only rises while the process runs; every figure since the start of it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ExtraStats {
    /// Connections of visitors.
    pub connections: ConnectionStats,
    /// How often accepting paused until connections had ended that were told to.
    pub accept_pauses: u64,
    /// How often accepting failed, most likely with too many files open.
    pub accept_failures: u64,
    /// TLS handshakes of visitors that failed, and connections that were no TLS.
    pub handshakes_failed: u64,
    /// Connections that were broken off, by why: a few fixed words, such as `framing`.
    pub connections_broken_off: BTreeMap<&'static str, u64>,
    /// Until when the certificate is good, in seconds since 1970; `None` without TLS.
    pub certificate_expires_at: Option<i64>,
    /// Bypass rules that could not be worked out for a request.
    pub bypass_failures: BTreeMap<RoomName, u64>,
    /// Tickets that were used from too many networks, by room.
    pub shared_tickets: BTreeMap<RoomName, u64>,
    /// Requests that did without such a ticket, by room.
    pub shared_ticket_requests: BTreeMap<RoomName, u64>,
    /// Tickets whose networks were forgotten although they had been used lately.
    pub tickets_evicted: u64,
    /// How often the journal was written anew from memory because it had gone.
    pub journal_rewrites: u64,
    /// How the journal lost its memory, if it ever did.
    pub journal_loss: Option<String>,
    /// Config files that were read again and taken.
    pub reloads: u64,
    /// Config files that were read again and refused.
    pub failed_reloads: u64,
    /// Why the newest config file was refused; `None` if it was taken.
    pub last_reload_error: Option<String>,
    /// Requests that went to the origin, by what became of them: a few fixed words, such as
    /// `answered` or `timed_out`.
    pub origin_outcomes: BTreeMap<(RoomName, &'static str), u64>,
    /// The origins of each room.
    pub origins: BTreeMap<RoomName, RoomOriginStats>,
    /// Requests by what was said to them: a few fixed words, such as `admit` or `queue`.
    pub verdicts: BTreeMap<(RoomName, &'static str), u64>,
    /// How limits of calls do, by their names.
    pub limits: BTreeMap<String, LimitStats>,
    /// What the stores that count calls for several nodes have counted of themselves, by store and
    /// a fixed word.
    pub limit_stores: BTreeMap<(&'static str, &'static str), u64>,
    /// How Envoy's rate limit service does; `None` where there is none.
    pub rate_limits: Option<RateLimitServiceStats>,
}

/// How many connections visitors have, and what becomes of them where they are too many.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ConnectionStats {
    /// Those that are open now.
    pub open: u64,
    /// Those of them that have a ticket.
    pub with_ticket: u64,
    /// How many there may be.
    pub limit: u64,
    /// From how many on connections of waiting visitors are closed with each answer.
    pub near: u64,
    /// Idle connections that were ended to make room, by why: `crowded`, `address`.
    pub reclaimed: BTreeMap<&'static str, u64>,
    /// Connections that got nothing but a refusal, by why: `full`, `address`.
    pub turned_away: BTreeMap<&'static str, u64>,
}

/// How Envoy's rate limit service does.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RateLimitServiceStats {
    /// Requests by what was answered: a few fixed words, such as `ok` or `over_limit`.
    pub answers: Vec<(&'static str, u64)>,
    /// Hits of each limit by what became of them: a few fixed words, such as `within_limit`. The
    /// number of limits is bounded by whoever counts.
    pub hits: BTreeMap<String, [(&'static str, u64); 5]>,
    /// Requests for domains that no file has.
    pub unknown_domains: u64,
    /// Files that were read and taken.
    pub loads: u64,
    /// Files that were read and refused.
    pub failed_loads: u64,
    /// Counters that are remembered now; 0 where a store keeps them.
    pub keys: u64,
    /// Hits that were counted together with those of others, for want of place.
    pub crowded: u64,
    /// How calls are assigned ahead.
    pub quota: QuotaStats,
}

/// How calls are assigned ahead to Envoys that ask for them.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct QuotaStats {
    /// Streams that are open.
    pub streams: u64,
    /// Limits that somebody shares.
    pub limits: u64,
    /// Buckets that share them, of all streams.
    pub buckets: u64,
    /// Calls by what was said of them: a few fixed words, such as `assigned`.
    pub calls: Vec<(&'static str, u64)>,
    /// What happened besides: a few fixed words, such as `refused`.
    pub events: Vec<(&'static str, u64)>,
}

/// How one limit of calls does.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct LimitStats {
    /// Calls by what became of them: a few fixed words, such as `admit` or `reject`.
    pub calls: BTreeMap<&'static str, u64>,
    /// Clients that are remembered now.
    pub keys: u64,
    /// How many there is place for.
    pub keys_max: u64,
    /// Calls that were counted together with those of other clients, for want of place.
    pub crowded: u64,
    /// Calls that could not be counted because the store was away.
    pub store_failures: u64,
    /// The store that counts it, by its word in the config file.
    pub store: &'static str,
    /// How long ago a call could not be counted last, if the store is not known to be back since.
    pub store_failed_ago: Option<Duration>,
}
