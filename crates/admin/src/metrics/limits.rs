//! What do the figures of limits of calls mean?

use std::fmt;

use super::writer::{Families, Title};
use crate::extras::{ExtraFigures, LimitFigures};

/// Writes the families of limits; none without limits.
pub(super) fn write(families: &mut Families<'_>, figures: &ExtraFigures) -> fmt::Result {
    let limits = &figures.limits;
    let calls = limits.iter().flat_map(|(name, limit)| {
        let labels = |word| [("limit", name.as_str()), ("verdict", word)];
        let counts = limit.calls.iter();
        counts.map(move |(word, &count)| (labels(*word), count))
    });
    families.totals(
        Title {
            name: "limit_calls",
            help: "Calls that a limit counts, by what became of them.",
        },
        calls,
    )?;
    let each = |figure: fn(&LimitFigures) -> u64| {
        let limits = limits.iter();
        limits.map(move |(name, limit)| ([("limit", name.as_str())], figure(limit)))
    };
    families.counts(
        Title {
            name: "limit_keys",
            help: "Clients that a limit remembers.",
        },
        each(|limit| limit.keys),
    )?;
    families.counts(
        Title {
            name: "limit_keys_max",
            help: "Clients that a limit can remember at once.",
        },
        each(|limit| limit.keys_max),
    )?;
    families.totals(
        Title {
            name: "limit_crowded_calls",
            help: "Calls that were counted together with those of other clients, for want of \
                   place.",
        },
        each(|limit| limit.crowded),
    )?;
    families.totals(
        Title {
            name: "limit_store_failures",
            help: "Calls that could not be counted because the store was away.",
        },
        each(|limit| limit.store_failures),
    )?;
    let events = figures.limit_stores.iter();
    families.totals(
        Title {
            name: "limit_store_events",
            help: "What stores of several nodes have counted of themselves.",
        },
        events.map(|((store, event), &count)| ([("store", *store), ("event", *event)], count)),
    )
}
