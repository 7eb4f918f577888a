//! `[[room.NAME.arrivals]]`: arrival rates by time. Every kind becomes points with straight lines
//! between them.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use anteroom_config::Finding;
use anteroom_config::toml_file::{
    Choice, Duration, InvalidValue, Key, Number, Table, Text, quoted,
};
use anteroom_room::time::DurationMs;

use super::data_centers::{DATA_CENTER, find_data_center};
use super::kinds::{PER_SECOND_MAX, Point};
use super::{Frame, LENGTH_MAX, curve};
use crate::scenario::model::{Arrivals, RatePoint};

/// Most streams of a room: each new visitor needs a look at every stream.
const STREAMS_MAX: usize = 1_000;
/// Largest CSV file: half a million lines, five years of one line per five minutes.
const CSV_BYTES_MAX: u64 = 10 << 20;

/// Description of the rate.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Shape {
    Constant,
    Ramp,
    Spike,
    Points,
    Csv,
}

const KIND: Key<Choice<Shape>> = Key {
    name: "kind",
    kind: Choice(&[
        ("constant", Shape::Constant),
        ("ramp", Shape::Ramp),
        ("spike", Shape::Spike),
        ("points", Shape::Points),
        ("csv", Shape::Csv),
    ]),
    default: None,
};

const fn rate(name: &'static str) -> Key<Number> {
    Key {
        name,
        kind: Number {
            min: 0.0,
            max: PER_SECOND_MAX,
        },
        default: None,
    }
}

const PER_SECOND: Key<Number> = rate("per_second");
const FROM_PER_SECOND: Key<Number> = rate("from_per_second");
const TO_PER_SECOND: Key<Number> = rate("to_per_second");
const TIMES: Key<Number> = Key {
    name: "times",
    kind: Number {
        min: 0.0,
        max: 1_000.0,
    },
    default: Some("1"),
};

const fn time(name: &'static str, default: Option<&'static str>) -> Key<Duration> {
    Key {
        name,
        kind: Duration {
            min: DurationMs::ZERO,
            max: LENGTH_MAX,
            bare_unit: "m",
        },
        default,
    }
}

const AT: Key<Duration> = time("at", None);
const FROM: Key<Duration> = time("from", Some("\"0s\""));
const UNTIL: Key<Duration> = time("until", None);
const RISE: Key<Duration> = time("rise", Some("\"0s\""));
const LASTS: Key<Duration> = time("lasts", Some("\"1m\""));
const FALL: Key<Duration> = time("fall", Some("\"0s\""));
const POINTS: Key<Point> = Key {
    name: "points",
    kind: Point,
    default: None,
};
const FILE: Key<Text<String>> = Key {
    name: "file",
    kind: Text {
        allowed: "the path of a CSV file, from the folder of the scenario",
        read: |text| {
            if text.is_empty() || text.contains('\0') {
                return Err(InvalidValue::PLAIN);
            }
            Ok(text.to_owned())
        },
    },
    default: None,
};
/// Reads the streams of a room.
pub(super) fn read(room: &mut Table<'_>, frame: &Frame<'_>) -> Vec<Arrivals> {
    let allowed = "at least one table [[room.NAME.arrivals]]";
    let mistakes = room.notes.count();
    let elements = room.elements("arrivals", allowed);
    if elements.is_empty() && room.notes.count() == mistakes {
        let location = room.location("arrivals");
        room.notes
            .report(&location, Finding::Missing, allowed, None);
    }
    if elements.len() > STREAMS_MAX {
        let location = room.location("arrivals");
        let found = Finding::Value(format!("{} tables", elements.len()));
        let allowed = format!("at most {STREAMS_MAX}");
        room.notes.report(&location, found, allowed, None);
    }
    let mut all = Vec::new();
    for element in elements.iter().take(STREAMS_MAX) {
        let mut table = room.enter(element);
        // The kind decides which keys belong here.
        if let Some(shape) = table.required(&KIND) {
            all.extend(read_one(&mut table, shape, frame));
            table.finish();
        }
    }
    all
}

fn read_one(table: &mut Table<'_>, shape: Shape, frame: &Frame<'_>) -> Vec<Arrivals> {
    let times = table.defaulted(&TIMES);
    let mut streams = if shape == Shape::Csv {
        read_csv(table, frame)
    } else {
        let data_center = read_data_center(table, frame);
        let points = match shape {
            Shape::Constant => read_constant(table, frame.length),
            Shape::Ramp => read_ramp(table),
            Shape::Spike => read_spike(table),
            Shape::Points | Shape::Csv => read_points(table),
        };
        vec![Arrivals {
            data_center,
            points: points.unwrap_or_default(),
        }]
    };
    let points = streams.iter_mut().flat_map(|stream| &mut stream.points);
    for point in points {
        point.per_second = (point.per_second * times).min(PER_SECOND_MAX);
    }
    streams.retain(|stream| !stream.points.is_empty());
    streams
}

const fn point(at: DurationMs, per_second: f64) -> RatePoint {
    RatePoint { at, per_second }
}

fn read_constant(table: &mut Table<'_>, length: DurationMs) -> Option<Vec<RatePoint>> {
    let rate = table.required(&PER_SECOND);
    let from = table.defaulted(&FROM);
    let until = table.optional(&UNTIL);
    check_order(table, from, until);
    let (rate, until) = (rate?, until.unwrap_or(length));
    // The scenario ends before the stream begins: no visitor comes.
    (from < until).then(|| vec![point(from, rate), point(until, rate)])
}

fn read_ramp(table: &mut Table<'_>) -> Option<Vec<RatePoint>> {
    let first = table.required(&FROM_PER_SECOND);
    let last = table.required(&TO_PER_SECOND);
    let from = table.defaulted(&FROM);
    // The default is not the length: a shorter simulation must not make the ramp steeper.
    let until = table.required(&UNTIL);
    check_order(table, from, until);
    Some(vec![point(from, first?), point(until?, last?)])
}

fn read_spike(table: &mut Table<'_>) -> Option<Vec<RatePoint>> {
    let at = table.required(&AT);
    let peak = table.required(&PER_SECOND);
    let rise = table.defaulted(&RISE);
    let lasts = table.defaulted(&LASTS);
    let fall = table.defaulted(&FALL);
    let (at, peak) = (at?, peak?);
    let (up, down) = (at + rise, at + rise + lasts);
    Some(vec![
        point(at, 0.0),
        point(up, peak),
        point(down, peak),
        point(down + fall, 0.0),
    ])
}

fn read_points(table: &mut Table<'_>) -> Option<Vec<RatePoint>> {
    if !table.has(POINTS.name) {
        table.required(&POINTS);
        return None;
    }
    let mistakes = table.notes.count();
    let points = table.list(&POINTS)?;
    if points.len() < 2 && table.notes.count() == mistakes {
        let location = table.location(POINTS.name);
        let found = Finding::Value(format!("a list of {}", points.len()));
        table.notes.report(&location, found, "at least 2", None);
    }
    for pair in points.windows(2) {
        if pair[1].value.at < pair[0].value.at {
            let finding = Finding::Remark("earlier than the point before".to_owned());
            table.notes.report(&pair[1].location, finding, "", None);
        }
    }
    Some(points.into_iter().map(|placed| placed.value).collect())
}

fn check_order(table: &mut Table<'_>, from: DurationMs, until: Option<DurationMs>) {
    if until.is_some_and(|until| until <= from) {
        let location = table.location(UNTIL.name);
        let finding = Finding::Remark("not later than from".to_owned());
        table.notes.report(&location, finding, "", None);
    }
}

fn read_data_center(table: &mut Table<'_>, frame: &Frame<'_>) -> Option<usize> {
    let name = table.optional(&DATA_CENTER)?;
    find_data_center(table, &DATA_CENTER, &name, frame)
}

fn read_csv(table: &mut Table<'_>, frame: &Frame<'_>) -> Vec<Arrivals> {
    let Some(file) = table.required(&FILE) else {
        return Vec::new();
    };
    let location = table.location(FILE.name);
    let Some(folder) = frame.folder else {
        let finding = Finding::Remark("this scenario has no folder to find files in".to_owned());
        table.notes.report(&location, finding, "", None);
        return Vec::new();
    };
    let path = folder.join(&file);
    match read_file(&path) {
        Ok(bytes) => {
            let source = path.display().to_string();
            curve::read(table.notes, &source, &bytes, frame)
        }
        Err(error) => {
            let finding = format!("cannot read {}: {error}", quoted(&path.to_string_lossy()));
            table
                .notes
                .report(&location, Finding::Remark(finding), "", None);
            Vec::new()
        }
    }
}

/// Reads an ordinary file that is not too long.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not an ordinary file"));
    }
    let mut bytes = Vec::new();
    file.take(CSV_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > CSV_BYTES_MAX) {
        let message = format!("it is longer than {CSV_BYTES_MAX} bytes");
        return Err(io::Error::other(message));
    }
    Ok(bytes)
}
