//! The figures of limits of calls, as operators are shown them.

use anteroom_control::LimitFigures;
use anteroom_meter::Figures;

/// Those of one limit, by its name.
pub(crate) fn shown(figures: Figures) -> (String, LimitFigures) {
    let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let calls = figures.events.iter();
    let shown = LimitFigures {
        calls: calls.map(|(event, count)| (event.name(), *count)).collect(),
        keys: count(figures.keys),
        keys_max: count(figures.keys_max),
        crowded: figures.crowded,
        store_failures: figures.store_failures,
    };
    (figures.name, shown)
}
