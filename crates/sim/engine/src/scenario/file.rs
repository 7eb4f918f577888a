//! Reader of scenario files: TOML, read with the tools of the gateway's config file. It reports
//! every mistake at once, with its line, its key, what was found and what is allowed.
//!
//! The limits of a room and its queueing method are the gateway's own keys. Everything has a bound,
//! so that no file can require more than a machine has. The reader does not decide whether a
//! scenario is useful.

use std::path::Path;

use anteroom_config::toml_file::{
    Choice, Document, Duration, InvalidValue, Key, Located, Moment, Table, Text, Whole, nearest,
};
use anteroom_config::words::ALLOCATIONS;
use anteroom_config::{Finding, Problems};
use anteroom_room::rules::AllocationKind;
use anteroom_room::time::{DurationMs, Timestamp};

use super::model::{Arrivals, DataCenterPlan, RoomPlan, Scenario};
use super::settings::Setting;

mod arrivals;
mod curve;
mod data_center;
mod data_centers;
mod fault;
mod kinds;
mod leases;
mod room;
mod stores;

pub use curve::fuzz as fuzz_csv;

/// Longest scenario file in bytes. A curve of a million points belongs into a CSV file.
pub const FILE_BYTES_MAX: usize = 1 << 20;

/// Longest simulation: a month.
const LENGTH_MAX: DurationMs = DurationMs::from_secs(31 * 86_400);
/// Most visitors of a simulation, on average: five hours of the largest sale that we know of.
const VISITORS_MAX: f64 = 100_000_000.0;
/// Most samples over all data centers: they are kept in memory, some 20 bytes each.
const SAMPLES_MAX: u64 = 5_000_000;
/// Number of samples in a chart when the scenario sets none.
const SAMPLES_WANTED: u64 = 600;

const NAME: Key<Text<String>> = Key {
    name: "name",
    kind: Text {
        allowed: "a name of 1 to 64 characters",
        read: |text| one_line(text, 64),
    },
    default: None,
};
const ABOUT: Key<Text<String>> = Key {
    name: "about",
    kind: Text {
        allowed: "a text of at most 4000 characters",
        read: |text| {
            if text.chars().count() > 4_000 {
                return Err(InvalidValue::PLAIN);
            }
            Ok(text.split_whitespace().collect::<Vec<_>>().join(" "))
        },
    },
    default: Some("\"\""),
};
const SEED: Key<Whole<u64>> = Key {
    name: "seed",
    kind: Whole {
        min: 0,
        max: i64::MAX.unsigned_abs(),
        note: "",
    },
    default: Some("1"),
};
const STARTS_AT: Key<Moment> = Key {
    name: "starts_at",
    kind: Moment,
    default: Some("\"2030-01-01T00:00:00Z\""),
};
const LENGTH: Key<Duration> = Key {
    name: "length",
    kind: Duration {
        min: DurationMs::from_secs(1),
        max: LENGTH_MAX,
        bare_unit: "m",
    },
    default: Some("\"1h\""),
};
const SAMPLE_EVERY: Key<Duration> = Key {
    name: "sample_every",
    kind: Duration {
        min: DurationMs::from_secs(1),
        max: DurationMs::from_secs(86_400),
        bare_unit: "s",
    },
    default: None,
};
const COMPARE: Key<Choice<AllocationKind>> = Key {
    name: "compare",
    kind: Choice(ALLOCATIONS),
    default: Some("[\"even\", \"curve\", \"counters\", \"leases\"]"),
};

/// Scenario before it is read.
#[derive(Clone, Copy, Debug)]
pub struct ScenarioText<'a> {
    /// Name in messages, such as the path that was typed.
    pub source: &'a str,
    /// Name of the scenario, unless the file sets another one.
    pub name: &'a str,
    /// Text in TOML.
    pub text: &'a str,
    /// Folder of its CSV files; `None` = it can have none.
    pub folder: Option<&'a Path>,
}

/// Parts of the file that other parts need.
struct Frame<'a> {
    starts_at: Timestamp,
    length: DurationMs,
    folder: Option<&'a Path>,
    /// Data centers, or `None` after a mistake in them: an unknown name may then be no mistake.
    data_centers: Option<&'a [DataCenterPlan]>,
    /// Rooms, or `None` before they were read and after a mistake in them.
    rooms: Option<&'a [RoomPlan]>,
}

impl Frame<'_> {
    /// Returns the index of a data center, or the name that was probably meant; `None` if that
    /// cannot be known.
    fn find(&self, name: &str) -> Option<Result<usize, Option<&str>>> {
        let all = self.data_centers?;
        let found = all.iter().position(|plan| plan.name == name);
        Some(found.ok_or_else(|| nearest(name, all.iter().map(|plan| plan.name.as_str()))))
    }
}

fn did_you_mean(word: &str) -> String {
    format!("did you mean {word:?}?")
}

impl ScenarioText<'_> {
    /// Reads the scenario, with `settings` over the values of the file.
    ///
    /// # Errors
    ///
    /// Returns [`Problems`] with every mistake, those of CSV files included.
    pub fn read(&self, settings: &[Setting]) -> Result<Scenario, Problems> {
        if self.text.len() > FILE_BYTES_MAX {
            let head = Document::parse(self.source, "")?;
            return head.read(|table| {
                let found = Finding::Value(format!("a file of {} bytes", self.text.len()));
                let allowed = format!("at most {FILE_BYTES_MAX} bytes");
                let hint = "put long curves into a CSV file".to_owned();
                let location = table.location("");
                table.notes.report(&location, found, allowed, Some(hint));
                None
            });
        }
        let mut document = Document::parse(self.source, self.text)?;
        for setting in settings {
            document.set(setting.source, &setting.key, &setting.value);
        }
        document.read(|table| self.read_root(table))
    }

    fn read_root(&self, mut table: Table<'_>) -> Option<Scenario> {
        let name = table.optional(&NAME);
        let about = table.defaulted(&ABOUT);
        let seed = table.defaulted(&SEED);
        let starts_at = table.defaulted(&STARTS_AT);
        let length = table.defaulted(&LENGTH);
        let sample_every = table.optional(&SAMPLE_EVERY);
        let compare = read_compare(&mut table);
        let data_centers = data_center::read(&mut table);
        let global_lease = leases::read(&mut table);
        let durability = stores::read(&mut table);
        let frame = Frame {
            starts_at,
            length,
            folder: self.folder,
            data_centers: data_centers.as_deref(),
            rooms: None,
        };
        let mistakes = table.notes.count();
        let rooms = room::read(&mut table, &frame);
        let frame = Frame {
            rooms: (table.notes.count() == mistakes).then_some(&rooms),
            ..frame
        };
        let faults = fault::read(&mut table, &frame);
        check_visitors(&mut table, &rooms, length);
        let centers = data_centers.as_ref().map_or(0, Vec::len);
        let sample_every = check_samples(&mut table, sample_every, length, centers);
        table.finish();
        Some(Scenario {
            name: name.unwrap_or_else(|| self.name.to_owned()),
            about,
            seed,
            starts_at,
            length,
            sample_every,
            global_lease,
            durability,
            compare,
            rooms,
            data_centers: data_centers?,
            faults,
        })
    }
}

fn one_line(text: &str, chars_max: usize) -> Result<String, InvalidValue> {
    let is_plain = text.trim() == text && !text.chars().any(char::is_control);
    if is_plain && (1..=chars_max).contains(&text.chars().count()) {
        Ok(text.to_owned())
    } else {
        Err(InvalidValue::PLAIN)
    }
}

fn read_compare(table: &mut Table<'_>) -> Vec<AllocationKind> {
    let mut compare = Vec::new();
    let mistakes = table.notes.count();
    let Some(typed) = table.list(&COMPARE) else {
        return ALLOCATIONS.iter().map(|(_, kind)| *kind).collect();
    };
    if typed.is_empty() && table.notes.count() == mistakes {
        let location = table.location(COMPARE.name);
        let found = Finding::Value("an empty list".to_owned());
        table.notes.report(&location, found, "at least one", None);
    }
    for Located { value, location } in typed {
        if compare.contains(&value) {
            let finding = Finding::Remark("the same allocation again".to_owned());
            table.notes.report(&location, finding, "", None);
        }
        compare.push(value);
    }
    compare
}

/// Returns the average number of visitors until the end.
fn visitors(arrivals: &Arrivals, length: DurationMs) -> f64 {
    let pairs = arrivals.points.windows(2);
    let counts = pairs.map(|pair| {
        let (from, to) = (pair[0], pair[1]);
        let end = to.at.min(length);
        if end <= from.at {
            return 0.0;
        }
        let (part, whole) = (end.less(from.at), to.at.less(from.at));
        let reached = (to.per_second - from.per_second)
            .mul_add(seconds(part) / seconds(whole), from.per_second);
        (from.per_second + reached) / 2.0 * seconds(part)
    });
    counts.sum()
}

/// Returns a duration in seconds; a month has few enough milliseconds to be exact.
fn seconds(span: DurationMs) -> f64 {
    let millis = u32::try_from(span.0 % 1_000).unwrap_or(0);
    let whole = u32::try_from(span.0 / 1_000).unwrap_or(u32::MAX);
    f64::from(whole) + f64::from(millis) / 1_000.0
}

fn check_visitors(table: &mut Table<'_>, rooms: &[RoomPlan], length: DurationMs) {
    let arrivals = rooms.iter().flat_map(|room| &room.arrivals);
    let expected: f64 = arrivals.map(|arrivals| visitors(arrivals, length)).sum();
    if expected > VISITORS_MAX {
        let location = table.location("room");
        let found = Finding::Value(format!("arrivals of about {expected:.0} visitors"));
        let allowed = format!("at most {VISITORS_MAX} in all rooms");
        let hint = "simulate less time, or a part of the site".to_owned();
        table.notes.report(&location, found, allowed, Some(hint));
    }
}

/// Returns the time between samples, or one that suits a chart.
fn check_samples(
    table: &mut Table<'_>,
    typed: Option<DurationMs>,
    length: DurationMs,
    data_centers: usize,
) -> DurationMs {
    const NICE: [u64; 13] = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600];
    let rows = u64::try_from(data_centers)
        .unwrap_or(u64::MAX)
        .saturating_add(1);
    let wanted = SAMPLES_WANTED.min(SAMPLES_MAX / rows).max(1);
    let suits = |every: &u64| length.0 / (every * 1_000) <= wanted;
    let nice = NICE.into_iter().find(suits).unwrap_or(NICE[12]);
    let Some(every) = typed else {
        return DurationMs::from_secs(nice);
    };
    let samples = (length.0 / every.0.max(1)).saturating_mul(rows);
    if samples > SAMPLES_MAX {
        let location = table.location(SAMPLE_EVERY.name);
        let found = Finding::Value(format!("{samples} samples of {rows} curves"));
        let hint = format!("\"{nice}s\" would do");
        let allowed = format!("at most {SAMPLES_MAX}");
        table.notes.report(&location, found, allowed, Some(hint));
    }
    every
}

#[cfg(test)]
mod tests;
