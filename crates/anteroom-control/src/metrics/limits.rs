//! What do the figures of limits of calls mean?

use std::collections::BTreeMap;
use std::fmt;

use super::families::{Families, Title};
use crate::extras::LimitFigures;

/// Writes the families of limits; none without limits.
pub(super) fn write(
    families: &mut Families<'_>,
    limits: &BTreeMap<String, LimitFigures>,
) -> fmt::Result {
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
            help: "Calls that were counted together with those of other clients, for want of place.",
        },
        each(|limit| limit.crowded),
    )
}
