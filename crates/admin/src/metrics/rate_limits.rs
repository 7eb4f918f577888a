//! Metrics of Envoy's rate limit service.

use std::fmt;

use super::writer::{Families, Title};
use crate::extras::{QuotaStats, RateLimitServiceStats};

/// Writes the families of the service; none where there is no service.
pub(super) fn write(
    families: &mut Families<'_>,
    stats: Option<&RateLimitServiceStats>,
) -> fmt::Result {
    let Some(stats) = stats else {
        return Ok(());
    };
    let responses = stats.answers.iter();
    families.totals(
        Title {
            name: "rate_limit_responses",
            help: "Responses of the rate limit service, by outcome.",
        },
        responses.map(|(word, count)| ([("outcome", *word)], *count)),
    )?;
    let hits = stats.hits.iter().flat_map(|(name, hits)| {
        let of = |word| [("limit", name.as_str()), ("kind", word)];
        hits.iter().map(move |(word, count)| (of(*word), *count))
    });
    families.totals(
        Title {
            name: "rate_limit_hits",
            help: "Hits that a limit of the rate limit service counts, by kind.",
        },
        hits,
    )?;
    families.totals(
        Title {
            name: "rate_limit_loads",
            help: "Reads of the files of the rate limit service, by outcome.",
        },
        [
            ([("outcome", "good")], stats.loads),
            ([("outcome", "bad")], stats.failed_loads),
        ],
    )?;
    families.total(
        "rate_limit_unknown_domains",
        "Requests to the rate limit service for domains that no file has.",
        stats.unknown_domains,
    )?;
    families.count(
        "rate_limit_keys",
        "Counters in the table of the rate limit service.",
        stats.keys,
    )?;
    families.total(
        "rate_limit_overflow_hits",
        "Hits counted in the overflow entry because the table was full.",
        stats.crowded,
    )?;
    write_quota(families, &stats.quota)
}

/// Writes the families of quotas: requests that are assigned ahead.
fn write_quota(families: &mut Families<'_>, stats: &QuotaStats) -> fmt::Result {
    families.count("quota_streams", "Open streams of quotas.", stats.streams)?;
    families.count(
        "quota_limits",
        "Limits of which requests are assigned ahead.",
        stats.limits,
    )?;
    families.count(
        "quota_buckets",
        "Buckets of Envoys to which requests are assigned ahead.",
        stats.buckets,
    )?;
    let requests = stats.requests.iter();
    families.totals(
        Title {
            name: "quota_requests",
            help: "Requests assigned ahead to Envoys, and requests that Envoys allowed and denied.",
        },
        requests.map(|(word, count)| ([("kind", *word)], *count)),
    )?;
    let events = stats.events.iter();
    families.totals(
        Title {
            name: "quota_events",
            help: "Other events of quotas that are assigned ahead.",
        },
        events.map(|(word, count)| ([("event", *word)], *count)),
    )
}
