//! What do the figures of Envoy's rate limit service mean?

use std::fmt;

use super::families::{Families, Title};
use crate::extras::RateLimitFigures;

/// Writes the families of the service; without it they have no samples.
pub(super) fn write(
    families: &mut Families<'_>,
    figures: Option<&RateLimitFigures>,
) -> fmt::Result {
    let service = figures.into_iter();
    families.totals(
        Title {
            name: "rate_limit_answers",
            help: "Requests to the rate limit service, by what was answered.",
        },
        service.clone().flat_map(|figures| {
            let answers = figures.answers.iter();
            answers.map(|(word, count)| ([("answer", *word)], *count))
        }),
    )?;
    families.totals(
        Title {
            name: "rate_limit_hits",
            help: "Hits that a limit of the rate limit service counts, by what became of them.",
        },
        service.clone().flat_map(|figures| {
            figures.hits.iter().flat_map(|(name, hits)| {
                let of = |word| [("limit", name.as_str()), ("hits", word)];
                hits.iter().map(move |(word, count)| (of(*word), *count))
            })
        }),
    )?;
    families.totals(
        Title {
            name: "rate_limit_loads",
            help: "How often the files of the rate limit service were read, by whether they hold since.",
        },
        service.clone().flat_map(|figures| {
            let RateLimitFigures {
                loads,
                failed_loads,
                ..
            } = *figures;
            [
                ([("outcome", "good")], loads),
                ([("outcome", "bad")], failed_loads),
            ]
        }),
    )?;
    let none: [(&str, &str); 0] = [];
    families.totals(
        Title {
            name: "rate_limit_unknown_domains",
            help: "Requests to the rate limit service for domains that no file has.",
        },
        service
            .clone()
            .map(|figures| (none, figures.unknown_domains)),
    )?;
    families.counts(
        Title {
            name: "rate_limit_keys",
            help: "Counters that the rate limit service remembers here.",
        },
        service.clone().map(|figures| (none, figures.keys)),
    )?;
    families.totals(
        Title {
            name: "rate_limit_crowded_hits",
            help: "Hits that were counted together with those of others, for want of place.",
        },
        service.map(|figures| (none, figures.crowded)),
    )
}
