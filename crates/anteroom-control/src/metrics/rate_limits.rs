//! What do the figures of Envoy's rate limit service mean?

use std::fmt;

use super::families::{Families, Title};
use crate::extras::RateLimitFigures;

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
            help: "How often the files of the rate limit service were read, by whether they hold since.",
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
    )
}
