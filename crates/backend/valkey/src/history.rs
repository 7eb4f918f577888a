//! Histories of rooms at the server.
//!
//! Rows lie in hashes that expire: those of minutes by hour, those of a quarter of an hour by day.
//! Beside them is a hash with the size of each of these parts, so that the oldest part goes when
//! all of them together are too large.
//!
//! # Why parts of one room
//!
//! In a cluster, the keys of two rooms may be at two servers, and nobody knows the size of all. So
//! each room keeps to its share of the bound.

use std::collections::BTreeMap;
use std::time::Duration;

use anteroom_room::id::NodeId;
use anteroom_room::time::Minute;
use anteroom_store::{
    HistoryBound, HistoryGrain, HistoryName, HistoryRow, HistoryRows, HistorySpan,
    history_bytes_of, history_kept_from,
};
use redis::Value;

use crate::failure::Failure;
use crate::keys::Keys;
use crate::link::ServerReply;
use crate::route::Route;
use crate::script::{Text, number};

/// Time beyond the age of its rows after which a part expires by itself: one whole part, and what
/// the clocks of server and nodes may differ.
const SLACK: Duration = Duration::from_hours(1);
/// Most parts that one request reads, so that no other request waits long for the server.
const PARTS_AT_ONCE: usize = 8;
/// Most rows that one request writes: a script has a few thousand arguments at most.
const ROWS_AT_ONCE: usize = 500;

/// Scripts of histories.
pub(crate) struct HistoryScripts {
    put: Text,
    drop: Text,
    load: Text,
}

/// Rows that lie in one hash.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Part {
    /// First minute; first in the order, so that the oldest part is the first one.
    begins: Minute,
    grain: HistoryGrain,
}

impl Part {
    fn of(grain: HistoryGrain, minute: Minute) -> Self {
        let begins = Minute(minute.0 - minute.0 % minutes(grain));
        Self { begins, grain }
    }

    fn ends(self) -> Minute {
        Minute(self.begins.0.saturating_add(minutes(self.grain)))
    }

    /// Returns the name: `m490754` for an hour, `q20448` for a day.
    fn name(self) -> String {
        let letter = match self.grain {
            HistoryGrain::Minute => 'm',
            HistoryGrain::Quarter => 'q',
        };
        format!("{letter}{}", self.begins.0 / minutes(self.grain))
    }

    fn named(name: &str) -> Option<Self> {
        let grain = match name.chars().next()? {
            'm' => HistoryGrain::Minute,
            'q' => HistoryGrain::Quarter,
            _ => return None,
        };
        let at: u64 = name[1..].parse().ok()?;
        let begins = Minute(at.checked_mul(minutes(grain))?);
        Some(Self { begins, grain })
    }
}

/// Returns the minutes of a part.
const fn minutes(grain: HistoryGrain) -> u64 {
    match grain {
        HistoryGrain::Minute => 60,
        HistoryGrain::Quarter => 24 * 60,
    }
}

/// Returns the lifetime of a part since its last write, in milliseconds.
fn lifetime_ms(grain: HistoryGrain) -> String {
    let minutes = grain.kept_for() + minutes(grain);
    let lifetime = Duration::from_mins(minutes) + SLACK;
    lifetime.as_millis().to_string()
}

/// Returns the name of a row in its part: `29446244:00000000000000ab`.
fn row_name(row: &HistoryRow) -> String {
    format!("{}:{:016x}", row.begins.0, row.node.0)
}

fn named_row(grain: HistoryGrain, name: &[u8], value: Vec<u8>) -> Option<HistoryRow> {
    let (begins, node) = std::str::from_utf8(name).ok()?.split_once(':')?;
    Some(HistoryRow {
        grain,
        begins: Minute(begins.parse().ok()?),
        node: NodeId(u64::from_str_radix(node, 16).ok()?),
        value,
    })
}

impl HistoryScripts {
    pub(crate) fn new() -> Self {
        Self {
            put: Text::new(include_str!("script/put_history.lua")),
            drop: Text::new(include_str!("script/drop_history.lua")),
            load: Text::new(include_str!("script/load_history.lua")),
        }
    }

    /// Writes rows, and drops parts that are too old or too many.
    pub(crate) async fn put(
        &self,
        route: &Route,
        keys: &Keys,
        all: &[HistoryRows],
        bound: HistoryBound,
    ) -> Result<(), Failure> {
        let newest = all.iter().flat_map(|all| &all.rows).map(|row| row.begins);
        let Some(newest) = newest.max() else {
            return Ok(());
        };
        for HistoryRows { name, rows } in all {
            let mut parts: BTreeMap<Part, Vec<&HistoryRow>> = BTreeMap::new();
            for row in rows {
                let part = Part::of(row.grain, row.begins);
                parts.entry(part).or_default().push(row);
            }
            for (part, rows) in parts {
                for rows in rows.chunks(ROWS_AT_ONCE) {
                    let sizes = self.put_part(route, keys, name, part, rows).await?;
                    let surplus = surplus(&sizes, newest, bound.bytes_of_room());
                    self.drop_parts(route, keys, name, &surplus).await?;
                }
            }
        }
        Ok(())
    }

    /// Writes rows of one part. Returns the sizes of all parts.
    async fn put_part(
        &self,
        route: &Route,
        keys: &Keys,
        name: &HistoryName,
        part: Part,
        rows: &[&HistoryRow],
    ) -> Result<BTreeMap<Part, u64>, Failure> {
        let part_name = part.name();
        let (key, sizes) = (keys.history_part(name, &part_name), keys.history(name));
        let each = history_bytes_of(name, &[]).to_string();
        let lifetimes = [part.grain, HistoryGrain::Quarter].map(lifetime_ms);
        let names: Vec<String> = rows.iter().map(|row| row_name(row)).collect();
        let mut args = vec![
            part_name.as_bytes(),
            lifetimes[0].as_bytes(),
            lifetimes[1].as_bytes(),
            each.as_bytes(),
        ];
        for (name, row) in names.iter().zip(rows) {
            args.extend([name.as_bytes(), &row.value]);
        }
        let called = self.put.call(route, &[&key, &sizes], &args, None).await?;
        sizes_in(&called).ok_or_else(|| called.connection.unexpected_reply("no sizes"))
    }

    async fn drop_parts(
        &self,
        route: &Route,
        keys: &Keys,
        name: &HistoryName,
        parts: &[Part],
    ) -> Result<(), Failure> {
        if parts.is_empty() {
            return Ok(());
        }
        let names: Vec<String> = parts.iter().map(|part| part.name()).collect();
        let part_keys = names.iter().map(|part| keys.history_part(name, part));
        let all_keys: Vec<String> = [keys.history(name)].into_iter().chain(part_keys).collect();
        let all_keys: Vec<&str> = all_keys.iter().map(String::as_str).collect();
        let args: Vec<&[u8]> = names.iter().map(String::as_bytes).collect();
        self.drop.call(route, &all_keys, &args, None).await?;
        Ok(())
    }

    /// Reads rows, in the order of their minutes.
    pub(crate) async fn load(
        &self,
        route: &Route,
        keys: &Keys,
        name: &HistoryName,
        span: HistorySpan,
    ) -> Result<Vec<HistoryRow>, Failure> {
        let sizes = keys.history(name);
        let called = self.load.call(route, &[&sizes], &[], None).await?;
        let Some([sizes]) = lists(&called.value) else {
            return Err(called.connection.unexpected_reply("no sizes"));
        };
        let parts =
            pairs(sizes).filter_map(|(name, _)| Part::named(std::str::from_utf8(name).ok()?));
        let is_wanted = |part: &Part| {
            part.grain == span.grain && part.begins < span.until && span.from < part.ends()
        };
        let mut parts: Vec<Part> = parts.filter(is_wanted).collect();
        parts.sort_unstable();
        let mut rows = Vec::new();
        for parts in parts.chunks(PARTS_AT_ONCE) {
            let part_keys = parts
                .iter()
                .map(|part| keys.history_part(name, &part.name()));
            let part_keys: Vec<String> = part_keys.collect();
            let part_keys: Vec<&str> = part_keys.iter().map(String::as_str).collect();
            let called = self.load.call(route, &part_keys, &[], None).await?;
            let Value::Array(found) = &called.value else {
                return Err(called.connection.unexpected_reply("no rows"));
            };
            for part in found {
                let Value::Array(part) = part else {
                    return Err(called.connection.unexpected_reply("no rows"));
                };
                let found =
                    pairs(part).filter_map(|(name, row)| named_row(span.grain, name, row.to_vec()));
                rows.extend(found.filter(|row| (span.from..span.until).contains(&row.begins)));
            }
        }
        rows.sort_unstable_by_key(|row| (row.begins, row.node));
        Ok(rows)
    }
}

/// Returns the parts that are too old, and then the oldest ones until the others fit. The newest
/// part stays.
fn surplus(sizes: &BTreeMap<Part, u64>, newest: Minute, bytes_max: u64) -> Vec<Part> {
    let is_old = |part: &Part| part.ends() <= history_kept_from(part.grain, newest);
    let mut surplus: Vec<Part> = sizes.keys().copied().filter(is_old).collect();
    let kept = sizes.iter().filter(|(part, _)| !is_old(part));
    let mut bytes = kept
        .clone()
        .fold(0_u64, |sum, (_, size)| sum.saturating_add(*size));
    let mut kept = kept.peekable();
    while let Some((part, size)) = kept.next()
        && bytes > bytes_max
        && kept.peek().is_some()
    {
        surplus.push(*part);
        bytes = bytes.saturating_sub(*size);
    }
    surplus
}

fn sizes_in(reply: &ServerReply) -> Option<BTreeMap<Part, u64>> {
    let Value::Array(sizes) = &reply.value else {
        return None;
    };
    let sizes = pairs(sizes).filter_map(|(name, size)| {
        let part = Part::named(std::str::from_utf8(name).ok()?)?;
        Some((part, number(&Value::BulkString(size.to_vec()))?))
    });
    Some(sizes.collect())
}

/// Returns the only list in a list.
fn lists(value: &Value) -> Option<[&[Value]; 1]> {
    match value {
        Value::Array(lists) => match &lists[..] {
            [Value::Array(list)] => Some([list]),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the names and values of a hash; whatever is no text is left out.
fn pairs(hash: &[Value]) -> impl Iterator<Item = (&[u8], &[u8])> {
    hash.chunks_exact(2).filter_map(|pair| match pair {
        [Value::BulkString(name), Value::BulkString(value)] => Some((&name[..], &value[..])),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_found_by_its_name() {
        for grain in HistoryGrain::ALL {
            let part = Part::of(grain, Minute(29_446_244));
            assert_eq!(Part::named(&part.name()), Some(part));
        }
        assert_eq!(Part::of(HistoryGrain::Minute, Minute(121)).name(), "m2");
        assert_eq!(Part::of(HistoryGrain::Quarter, Minute(1_440)).name(), "q1");
        for name in ["", "m", "x1", "m-1", "m1x", "m18446744073709551615", "é1"] {
            assert_eq!(Part::named(name), None, "{name}");
        }
    }

    #[test]
    fn the_oldest_parts_go_until_the_others_fit() {
        let newest = Minute(100 * 1_440);
        let hour = |hours: u64| Part::of(HistoryGrain::Minute, Minute(newest.0 - 60 * hours));
        let day = |days: u64| Part::of(HistoryGrain::Quarter, Minute(newest.0 - 1_440 * days));
        let check = |parts: &[(Part, u64)], bytes_max, expected: &[Part]| {
            let sizes = parts.iter().copied().collect();
            assert_eq!(surplus(&sizes, newest, bytes_max), expected);
        };
        check(&[(hour(0), 9), (hour(48), 9)], 18, &[]);
        check(&[(hour(0), 9), (hour(49), 9)], 18, &[hour(49)]);
        check(&[(day(31), 9), (day(32), 9)], 18, &[day(32)]);
        check(&[(hour(0), 9), (hour(1), 9), (day(2), 9)], 18, &[day(2)]);
        check(&[(hour(0), 9), (hour(1), 9)], 17, &[hour(1)]);
        check(&[(hour(0), 9)], 1, &[]);
    }
}
