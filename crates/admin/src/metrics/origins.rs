//! Metrics of origins, as this node sees them.

use std::fmt;

use anteroom_config::OriginOwner;
use anteroom_proxy::upstream::{Condition, OriginStats};

use super::writer::{Distribution, Families, Title};
use crate::extras::ExtraStats;

/// Labels of an origin's samples.
type Labels<'a> = [(&'static str, &'a str); 2];

/// Writes all families of origins.
pub(super) fn write(families: &mut Families<'_>, stats: &ExtraStats) -> fmt::Result {
    let rows = || rows(stats);
    families.counts(
        Title {
            name: "origin_up",
            help: "1 while the origin takes requests, 0 while it is left out.",
        },
        rows().map(|(labels, row)| (labels, u64::from(row.condition == Condition::Up))),
    )?;
    families.counts(
        Title {
            name: "origin_requests_in_flight",
            help: "Requests at the origin whose responses are not complete.",
        },
        rows().map(|(labels, row)| (labels, row.in_flight as u64)),
    )?;
    families.totals(
        Title {
            name: "origin_requests",
            help: "Requests that went to this origin, by outcome; a request retried at another \
                   origin counts at both.",
        },
        rows().flat_map(|(labels, row)| words(labels, "class", &row.outcomes)),
    )?;
    families.totals(
        Title {
            name: "origin_checks",
            help: "Health checks of the origin, by outcome.",
        },
        rows().flat_map(|([owner, origin], row)| {
            let checks = [("good", row.good_checks), ("bad", row.bad_checks)];
            checks.map(|(word, count)| ([owner, origin, ("outcome", word)], count))
        }),
    )?;
    families.distributions(
        Title {
            name: "origin_response",
            help: "Time until the head of the response of the origin, connecting included.",
        },
        rows().map(|(labels, row)| (labels, times(row))),
    )?;
    families.totals(
        Title {
            name: "origin_retries",
            help: "Requests sent again. Reason stale: the connection was just being closed, or \
                   the origin did not process the request. Reason elsewhere: an origin took no \
                   connection, and another one got the request.",
        },
        stats.origins.iter().flat_map(|(owner, stats)| {
            let retries = stats.retries;
            let counts = [("stale", retries.stale), ("elsewhere", retries.elsewhere)];
            counts.map(|(word, count)| ([label(owner), ("reason", word)], count))
        }),
    )
}

/// Returns the label of a site or a room.
fn label(owner: &OriginOwner) -> (&'static str, &str) {
    (owner.kind(), owner.name())
}

fn rows(stats: &ExtraStats) -> impl Iterator<Item = (Labels<'_>, &OriginStats)> {
    stats.origins.iter().flat_map(|(owner, stats)| {
        let labels = |url| [label(owner), ("origin", url)];
        stats
            .origins
            .iter()
            .map(move |row| (labels(row.url.as_str()), row))
    })
}

fn words<'a>(
    labels: Labels<'a>,
    name: &'static str,
    counts: &'a [(&'static str, u64)],
) -> impl Iterator<Item = ([(&'static str, &'a str); 3], u64)> {
    let [owner, origin] = labels;
    let counts = counts.iter();
    counts.map(move |(word, count)| ([owner, origin, (name, *word)], *count))
}

fn times(row: &OriginStats) -> Distribution {
    let classes = row.response_times.iter();
    let classes = classes.map(|(bound, count)| {
        let bound = bound.map_or(f64::INFINITY, |bound| bound.as_secs_f64());
        (bound, *count)
    });
    Distribution {
        classes: classes.collect(),
        sum: row.response_time_sum.as_secs_f64(),
    }
}
