//! Metrics of rate limits.

use std::fmt;

use super::writer::{Families, Title};
use crate::extras::{ExtraStats, LimitStats};

/// Writes the families of limits; none without limits.
pub(super) fn write(families: &mut Families<'_>, stats: &ExtraStats) -> fmt::Result {
    let limits = &stats.limits;
    let requests = limits.iter().flat_map(|(name, limit)| {
        let labels = |word| [("limit", name.as_str()), ("verdict", word)];
        let counts = limit.requests.iter();
        counts.map(move |(word, &count)| (labels(*word), count))
    });
    families.totals(
        Title {
            name: "limit_requests",
            help: "Requests that a rate limit counts, by verdict.",
        },
        requests,
    )?;
    let each = |value: fn(&LimitStats) -> u64| {
        let limits = limits.iter();
        limits.map(move |(name, limit)| ([("limit", name.as_str())], value(limit)))
    };
    families.counts(
        Title {
            name: "limit_keys",
            help: "Clients in the table of a rate limit.",
        },
        each(|limit| limit.keys),
    )?;
    families.counts(
        Title {
            name: "limit_keys_max",
            help: "Clients that the table of a rate limit can hold.",
        },
        each(|limit| limit.keys_max),
    )?;
    families.totals(
        Title {
            name: "limit_overflow_requests",
            help: "Requests counted in the overflow entry because the table was full.",
        },
        each(|limit| limit.crowded),
    )?;
    families.totals(
        Title {
            name: "limit_store_failures",
            help: "Requests that could not be counted because the store was unavailable.",
        },
        each(|limit| limit.store_failures),
    )?;
    let events = stats.limit_stores.iter();
    families.totals(
        Title {
            name: "limit_store_events",
            help: "Events in the stores that several nodes share.",
        },
        events.map(|((store, event), &count)| ([("store", *store), ("event", *event)], count)),
    )
}
