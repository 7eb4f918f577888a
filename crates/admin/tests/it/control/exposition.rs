//! Strict parser of the OpenMetrics text format.

use std::collections::{BTreeMap, BTreeSet};

/// Family of samples.
#[derive(Debug, Default)]
pub(crate) struct Family {
    pub(crate) help: String,
    pub(crate) kind: String,
    unit: Option<String>,
    pub(crate) samples: Vec<Sample>,
}

/// Line with a value.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) labels: Vec<(String, String)>,
    pub(crate) value: f64,
}

/// Parses all families by name. Panics at the first malformed line.
pub(crate) fn parse(text: &str) -> BTreeMap<String, Family> {
    let body = text.strip_suffix("# EOF\n").expect("the end is marked");
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut present = String::new();
    let mut seen = BTreeSet::new();
    for line in body.split_terminator('\n') {
        if let Some(described) = line.strip_prefix("# ") {
            let mut words = described.splitn(3, ' ');
            let [what, name, rest] = [(); 3].map(|()| words.next().unwrap_or_default());
            assert!(is_name(name), "{line}");
            if what == "HELP" {
                assert!(!families.contains_key(name), "described twice: {line}");
                name.clone_into(&mut present);
            }
            assert_eq!(name, present, "families are mixed: {line}");
            describe(families.entry(present.clone()).or_default(), what, rest);
        } else {
            let family = families.get_mut(&present).expect("described first");
            let sample = parse_sample(line);
            check_suffix(&present, family, &sample);
            let series = (sample.name.clone(), sample.labels.clone());
            assert!(seen.insert(series), "duplicate sample: {line}");
            family.samples.push(sample);
        }
    }
    for (name, family) in &families {
        assert!(!family.kind.is_empty(), "{name} has no type");
        if let Some(unit) = &family.unit {
            assert!(
                name.ends_with(&format!("_{unit}")),
                "{name} has unit {unit}"
            );
        }
    }
    families
}

fn describe(family: &mut Family, what: &str, rest: &str) {
    assert!(family.samples.is_empty(), "described after its samples");
    match what {
        "HELP" => rest.clone_into(&mut family.help),
        "TYPE" => {
            let kinds = ["counter", "gauge", "histogram", "info"];
            assert!(kinds.contains(&rest), "{rest}");
            assert!(family.kind.is_empty(), "two types");
            rest.clone_into(&mut family.kind);
        }
        "UNIT" => family.unit = Some(rest.to_owned()),
        _ => panic!("neither HELP nor TYPE nor UNIT: {what}"),
    }
}

fn check_suffix(name: &str, family: &Family, sample: &Sample) {
    let suffix = sample.name.strip_prefix(name).expect("its family's name");
    let (expected, is_legal) = match family.kind.as_str() {
        "counter" => ("_total", sample.value >= 0.0 && sample.value.is_finite()),
        "histogram" => return check_histogram(suffix, sample),
        "info" => ("_info", (sample.value - 1.0).abs() < f64::EPSILON),
        _ => ("", true),
    };
    assert_eq!(suffix, expected, "{name}");
    assert!(is_legal, "{sample:?}");
}

/// Checks a bucket with its upper bound, a sum or a count.
fn check_histogram(suffix: &str, sample: &Sample) {
    let is_class = suffix == "_bucket";
    let bound = sample.labels.iter().find(|(label, _)| label == "le");
    assert_eq!(bound.is_some(), is_class, "{sample:?}");
    if let Some((_, bound)) = bound {
        assert!(bound == "+Inf" || bound.parse::<f64>().is_ok(), "{bound}");
    }
    assert!(is_class || ["_sum", "_count"].contains(&suffix), "{suffix}");
    assert!(sample.value >= 0.0, "{sample:?}");
}

fn parse_sample(line: &str) -> Sample {
    let at = line.find(['{', ' ']).expect("a name ends");
    let (name, rest) = line.split_at(at);
    assert!(is_name(name), "{line}");
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => parse_labels(rest),
        None => (Vec::new(), rest),
    };
    let value = rest.strip_prefix(' ').expect("one space");
    assert!(!value.contains(' '), "no timestamps: {line}");
    Sample {
        name: name.to_owned(),
        labels,
        value: value.parse().expect("a number"),
    }
}

/// Parses labels up to the closing brace, and returns the rest.
fn parse_labels(mut rest: &str) -> (Vec<(String, String)>, &str) {
    let mut labels = Vec::new();
    loop {
        let (name, quoted) = rest.split_once("=\"").expect("a label");
        assert!(is_name(name), "{name}");
        let (value, after) = unquote(quoted);
        labels.push((name.to_owned(), value));
        if let Some(after) = after.strip_prefix('}') {
            return (labels, after);
        }
        rest = after.strip_prefix(',').expect("a comma or the end");
    }
}

fn unquote(quoted: &str) -> (String, &str) {
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, &quoted[at + 1..]),
            '\\' => match characters.next().expect("something is escaped").1 {
                'n' => value.push('\n'),
                escaped @ ('"' | '\\') => value.push(escaped),
                other => panic!("escaped {other}"),
            },
            '\n' => panic!("a line ends within a value"),
            other => value.push(other),
        }
    }
    panic!("a value does not end: {quoted}");
}

fn is_name(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    let mut bytes = name.bytes();
    bytes.next().is_some_and(is_letter)
        && bytes.all(|byte| is_letter(byte) || byte.is_ascii_digit())
}
