//! What do the figures of Envoy's rate limit service mean?

use std::fmt;

use super::writer::{Families, Title};
use crate::extras::{QuotaFigures, RateLimitFigures};

/// Writes the families of the service; none where there is no service.
pub(super) fn write(
    families: &mut Families<'_>,
    figures: Option<&RateLimitFigures>,
) -> fmt::Result {
    let Some(figures) = figures else {
        return Ok(());
    };
    let answers = figures.answers.iter();
    families.totals(
        Title {
            name: "rate_limit_answers",
            help: "Requests to the rate limit service, by what was answered.",
        },
        answers.map(|(word, count)| ([("answer", *word)], *count)),
    )?;
    let hits = figures.hits.iter().flat_map(|(name, hits)| {
        let of = |word| [("limit", name.as_str()), ("hits", word)];
        hits.iter().map(move |(word, count)| (of(*word), *count))
    });
    families.totals(
        Title {
            name: "rate_limit_hits",
            help: "Hits that a limit of the rate limit service counts, by what became of them.",
        },
        hits,
    )?;
    families.totals(
        Title {
            name: "rate_limit_loads",
            help: "How often the files of the rate limit service were read, by whether they hold \
                   since.",
        },
        [
            ([("outcome", "good")], figures.loads),
            ([("outcome", "bad")], figures.failed_loads),
        ],
    )?;
    families.total(
        "rate_limit_unknown_domains",
        "Requests to the rate limit service for domains that no file has.",
        figures.unknown_domains,
    )?;
    families.count(
        "rate_limit_keys",
        "Counters that the rate limit service remembers here.",
        figures.keys,
    )?;
    families.total(
        "rate_limit_crowded_hits",
        "How often a counter of the rate limit service was shared, for want of place.",
        figures.crowded,
    )?;
    write_quota(families, &figures.quota)
}

/// Of calls that are assigned ahead.
fn write_quota(families: &mut Families<'_>, figures: &QuotaFigures) -> fmt::Result {
    families.count(
        "quota_streams",
        "Streams on which Envoys ask for calls ahead.",
        figures.streams,
    )?;
    families.count(
        "quota_limits",
        "Limits of which calls are assigned ahead.",
        figures.limits,
    )?;
    families.count(
        "quota_buckets",
        "Buckets of Envoys to which calls are assigned ahead.",
        figures.buckets,
    )?;
    let calls = figures.calls.iter();
    families.totals(
        Title {
            name: "quota_calls",
            help: "Calls that were assigned ahead, and requests that Envoys let through and \
                   refused by that.",
        },
        calls.map(|(word, count)| ([("calls", *word)], *count)),
    )?;
    let events = figures.events.iter();
    families.totals(
        Title {
            name: "quota_events",
            help: "What happened besides where calls are assigned ahead.",
        },
        events.map(|(word, count)| ([("event", *word)], *count)),
    )
}
