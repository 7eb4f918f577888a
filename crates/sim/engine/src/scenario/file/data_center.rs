//! `[[data_center]]`, each written out, and `[data_centers]`, many of one kind.

use std::collections::BTreeMap;

use anteroom_config::toml_file::{Choice, InvalidValue, Key, Located, Number, Table, Text, Whole};
use anteroom_config::{Finding, data_center_name};
use anteroom_room::time::DurationMs;

use super::kinds::Travel;
use crate::scenario::model::{DataCenterPlan, Delay};

/// Most nodes over all data centers: each keeps a room in memory and sends its store a request
/// every second.
const NODES_MAX: u32 = 5_000;

const NAME: Key<Text<String>> = Key {
    name: "name",
    kind: Text {
        allowed: "a name of 1 to 64 characters without /, not \"Anywhere\" and not \"global\"",
        read: name,
    },
    default: None,
};
const PREFIX: Key<Text<String>> = Key {
    name: "name",
    kind: Text {
        allowed: "what names begin with, 1 to 32 characters without /",
        read: |text| match name(text)? {
            name if name.chars().count() <= 32 => Ok(name),
            _ => Err(InvalidValue::PLAIN),
        },
    },
    default: Some("\"dc\""),
};

const fn nodes(name: &'static str, default: Option<&'static str>) -> Key<Whole<u32>> {
    Key {
        name,
        kind: Whole {
            min: 1,
            max: NODES_MAX,
            note: "",
        },
        default,
    }
}

const COUNT: Key<Whole<u32>> = nodes("count", None);
const NODES: Key<Whole<u32>> = nodes("nodes", Some("1"));
const SHARE: Key<Number> = Key {
    name: "share",
    kind: Number { min: 0.0, max: 1e9 },
    default: Some("1"),
};
const SPREAD: Key<Choice<Spread>> = Key {
    name: "share",
    kind: Choice(&[("even", Spread::Even), ("zipf", Spread::Zipf)]),
    default: Some("\"even\""),
};
const TO_STORE: Key<Travel> = Key {
    name: "to_store",
    kind: Travel,
    default: Some("\"1ms\""),
};
const TO_GLOBAL: Key<Travel> = Key {
    name: "to_global",
    kind: Travel,
    default: None,
};

/// Between continents, one way.
const TO_GLOBAL_USUAL: Delay = Delay {
    from: DurationMs(40),
    to: DurationMs(40),
};
const NOWHERE: Delay = Delay {
    from: DurationMs::ZERO,
    to: DurationMs::ZERO,
};

/// Distribution of visitors over many data centers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Spread {
    /// All the same.
    Even,
    /// The second has half of the first's, the third a third, and so on, as cities differ.
    Zipf,
}

/// Data center as far as it could be read.
struct Read {
    name: Option<Located<String>>,
    nodes: u32,
    share: f64,
    to_store: Delay,
    to_global: Option<Delay>,
}

/// Reads both forms; returns one node without delay if there is neither, and `None` after a
/// mistake.
pub(super) fn read(root: &mut Table<'_>) -> Option<Vec<DataCenterPlan>> {
    let (has_list, has_many) = (root.has("data_center"), root.has("data_centers"));
    let mut all = Vec::new();
    for element in root.elements("data_center", "tables, each [[data_center]]") {
        let mut table = root.enter(&element);
        all.push(read_one(&mut table));
        table.finish();
    }
    all.extend(read_many(root.table("data_centers"), has_many));
    if !has_list && !has_many {
        return Some(vec![DataCenterPlan {
            name: "local".to_owned(),
            nodes: 1,
            share: 1.0,
            to_store: NOWHERE,
            to_global: NOWHERE,
        }]);
    }
    let key = if has_list {
        "data_center"
    } else {
        "data_centers"
    };
    check_names(root, &all);
    check_sums(root, key, &all);
    let is_alone = all.len() == 1;
    let usual = if is_alone { NOWHERE } else { TO_GLOBAL_USUAL };
    let plans: Option<Vec<DataCenterPlan>> = all
        .into_iter()
        .map(|read| {
            Some(DataCenterPlan {
                name: read.name?.value,
                nodes: read.nodes,
                share: read.share,
                to_store: read.to_store,
                to_global: read.to_global.unwrap_or(usual),
            })
        })
        .collect();
    plans.filter(|plans| !plans.is_empty())
}

fn read_one(table: &mut Table<'_>) -> Read {
    let name = table.required(&NAME);
    Read {
        name: name.map(|value| Located {
            value,
            location: table.location(NAME.name),
        }),
        nodes: table.defaulted(&NODES),
        share: table.defaulted(&SHARE),
        to_store: table.defaulted(&TO_STORE),
        to_global: table.optional(&TO_GLOBAL),
    }
}

fn read_many(mut table: Table<'_>, is_there: bool) -> Vec<Read> {
    if !is_there {
        return Vec::new();
    }
    let count = table.required(&COUNT);
    let prefix = table.defaulted(&PREFIX);
    let nodes = table.defaulted(&NODES);
    let spread = table.defaulted(&SPREAD);
    let to_store = table.defaulted(&TO_STORE);
    let to_global = table.optional(&TO_GLOBAL);
    let location = table.location(COUNT.name);
    table.finish();
    let count = count.unwrap_or(0);
    let width = count.to_string().len();
    let one = |number: u32| Read {
        name: Some(Located {
            value: format!("{prefix}-{number:0width$}"),
            location: location.clone(),
        }),
        nodes,
        share: match spread {
            Spread::Even => 1.0,
            Spread::Zipf => 1.0 / f64::from(number),
        },
        to_store,
        to_global,
    };
    (1..=count).map(one).collect()
}

fn check_names(root: &mut Table<'_>, all: &[Read]) {
    let mut seen = BTreeMap::new();
    for Located { value, location } in all.iter().filter_map(|read| read.name.as_ref()) {
        if seen.insert(value, ()).is_some() {
            let finding = format!("there are two data centers {value:?}");
            root.notes
                .report(location, Finding::Remark(finding), "", None);
        }
    }
}

fn check_sums(root: &mut Table<'_>, key: &'static str, all: &[Read]) {
    let nodes: u64 = all.iter().map(|read| u64::from(read.nodes)).sum();
    let location = root.location(key);
    if nodes > u64::from(NODES_MAX) {
        let found = Finding::Value(format!("{nodes} nodes"));
        let allowed = format!("at most {NODES_MAX} in all data centers");
        root.notes.report(&location, found, allowed, None);
    }
    if !all.is_empty() && all.iter().all(|read| read.share <= 0.0) {
        let finding = Finding::Remark("every share is 0, so no visitor comes".to_owned());
        root.notes.report(&location, finding, "", None);
    }
}

fn name(text: &str) -> Result<String, InvalidValue> {
    if text.contains('/') {
        return Err(InvalidValue::hint("sjc/2 is node 2 of data center sjc"));
    }
    if text.eq_ignore_ascii_case("global") {
        return Err(InvalidValue::hint(
            "faults use that word for the global store",
        ));
    }
    data_center_name(text)
}
