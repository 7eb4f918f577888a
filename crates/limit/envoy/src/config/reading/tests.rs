//! Order, completeness and bounds of reported mistakes. `tests/it/bad_files.rs` has each mistake
//! alone.

use anteroom_limit::registry::AlgorithmKind;
use anteroom_limit::settings::Settings;

use super::*;
use crate::config::{AlgorithmChoice, Remark};

fn read_one(text: &str) -> Result<Read, Mistakes> {
    let file = File {
        name: "a.yaml",
        bytes: text.as_bytes(),
    };
    read(&[file], SameDomain::Refused)
}

/// Formats a mistake with its file, in the words of the reference service.
fn message_of(mistake: &Mistake) -> String {
    format!("{}: {}", mistake.file, mistake.defect)
}

/// Checks the reported mistakes, by line.
fn check(text: &str, expected: &[(u32, &str)]) {
    let mistakes = read_one(text).unwrap_err().0;
    let found: Vec<(u32, String)> = mistakes
        .iter()
        .map(|mistake| (mistake.line.unwrap_or(0), mistake.defect.to_string()))
        .collect();
    let found: Vec<(u32, &str)> = found.iter().map(|(line, text)| (*line, &**text)).collect();
    assert_eq!(found, expected, "{text}");
}

fn limit(settings: &str) -> String {
    format!("domain: d\ndescriptors:\n- key: k\n  rate_limit:\n    {settings}\n")
}

#[test]
fn every_mistake_is_reported_keys_first_then_types_then_meaning() {
    let text = "domain: d\n\
                descriptors:\n\
                - value: v\n\
                - key: a\n  rate_limit: {unit: fortnight, requests_per_unit: -1}\n\
                - key: a\n  shadowmode: true\n  rate_limit: {unlimited: true, unit: day}\n\
                - key: b\n  share_threshold: true\n  descriptors:\n  \
                - key: c\n    \
                rate_limit: {unit: day, name: n, replaces: [{name: n}, {name: ''}]}\n";
    check(
        text,
        &[
            (7, "config error, unknown key 'shadowmode'"),
            (
                5,
                "error loading config file: yaml: unmarshal errors:\n  \
                 line 5: cannot unmarshal !!int `-1` into uint32",
            ),
            (3, "descriptor has empty key"),
            (5, "invalid rate limit unit 'fortnight'"),
            (8, "should not specify rate limit unit when unlimited"),
            (
                10,
                "share_threshold can only be used with wildcard values (containing '*'), \
                 but found key 'b'",
            ),
            (13, "replaces should not contain name of same descriptor"),
            (13, "should not have an empty replaces entry"),
        ],
    );
}

#[test]
fn an_unreadable_value_is_not_reported_as_missing() {
    check("domian: d\n", &[(1, "config error, unknown key 'domian'")]);
    check(
        &limit("unti: second"),
        &[(5, "config error, unknown key 'unti'")],
    );
    let text = "domain: d\ndescriptors:\n- kye: a\n- kye: b\n";
    check(
        text,
        &[
            (3, "config error, unknown key 'kye'"),
            (4, "config error, unknown key 'kye'"),
        ],
    );
}

#[test]
fn syntax_is_checked_in_all_files_before_meaning() {
    let file = |name, text: &'static str| File {
        name,
        bytes: text.as_bytes(),
    };
    let files = [
        file("a.yaml", "domain: ''\n"),
        file("b.yaml", "domain: d\nx: y\n"),
        file("c.yaml", "domain: d\n"),
    ];
    let mistakes = read(&files, SameDomain::Refused).unwrap_err();
    let all: Vec<String> = mistakes.0.iter().map(message_of).collect();
    assert_eq!(
        all,
        [
            "b.yaml: config error, unknown key 'x'",
            "a.yaml: config file cannot have empty domain",
            "c.yaml: duplicate domain 'd' in config file",
        ]
    );
}

#[test]
fn scalars_are_strings_and_numbers_may_have_any_notation() {
    let text = "domain: yes\ndescriptors:\n- key: 010\n  value: ~\n  rate_limit: {unit: Day, \
                requests_per_unit: 0x10, unlimited: no, name: 5}\n";
    let read = read_one(text).unwrap();
    let (found, _) = read.limits.domain("yes").unwrap().find("010", "x").unwrap();
    let Some(crate::config::descriptors::Rule::Limited(limit)) = &found.node.rule else {
        panic!("no limit");
    };
    assert_eq!((limit.requests_per_unit, &*limit.name), (16, "5"));
    assert_eq!(&*limit.metric, "yes.010");
}

#[test]
fn the_last_repeated_key_wins_and_limits_are_merged() {
    let text = "domain: c\ndescriptors: [{key: 0.5}]\ndomain: d\ndescriptors:\n- key: k\n  \
                rate_limit: {unit: day, name: n}\n  rate_limit: {requests_per_unit: 7}\n";
    let limits = read_one(text).unwrap().limits;
    let (found, _) = limits.domain("d").unwrap().find("k", "").unwrap();
    let Some(crate::config::descriptors::Rule::Limited(limit)) = &found.node.rule else {
        panic!("no limit");
    };
    assert_eq!((limit.requests_per_unit, &*limit.name), (7, "n"));
    check(
        "domain: d\ndescriptors: [5]\ndescriptors: ~\n",
        &[(
            2,
            "error loading config file: yaml: unmarshal errors:\n  \
             line 2: cannot unmarshal !!int `5` into config.YamlDescriptor",
        )],
    );
}

#[test]
fn algorithms_are_read_beside_the_unit() {
    let check = |settings: &str, kind: AlgorithmKind, expected: Settings| {
        let read = read_one(&limit(&format!(
            "{{unit: day, requests_per_unit: 9, {settings}}}"
        )));
        let limits = read.unwrap_or_else(|mistakes| panic!("{mistakes}")).limits;
        let (found, _) = limits.domain("d").unwrap().find("k", "").unwrap();
        let Some(crate::config::descriptors::Rule::Limited(limit)) = &found.node.rule else {
            panic!("no limit");
        };
        let settings = expected;
        assert_eq!(limit.algorithm, AlgorithmChoice { kind, settings });
    };
    let none = Settings::default();
    check("", AlgorithmKind::FixedWindow, none);
    check("algorithm: sliding-log", AlgorithmKind::SlidingLog, none);
    check(
        "algorithm: token-bucket, burst: 3, initial_burst: 5",
        AlgorithmKind::TokenBucket,
        Settings {
            burst: Some(3),
            initial_burst: Some(5),
            ..none
        },
    );
    check(
        "sub_windows: 4, algorithm: sub-windows-strict",
        AlgorithmKind::SubWindowsStrict,
        Settings {
            sub_windows: Some(4),
            ..none
        },
    );
    check(
        "algorithm: leaky-bucket, burst: 6",
        AlgorithmKind::LeakyBucket,
        Settings {
            queue: Some(6),
            ..none
        },
    );
}

#[test]
fn a_merged_domain_has_the_descriptors_of_all_its_files() {
    let file = |name, text: &'static str| File {
        name,
        bytes: text.as_bytes(),
    };
    let one = file(
        "a.yaml",
        "domain: d\ndescriptors:\n- key: a\n- key: c\n  value: x*\n",
    );
    let other = file(
        "b.yaml",
        "domain: d\ndescriptors:\n- key: b\n- key: c\n  value: '*y'\n",
    );
    let read_both = |files: &[File<'static>]| read(files, SameDomain::Merged);
    let limits = read_both(&[one, other]).unwrap().limits;
    let domain = limits.domain("d").unwrap();
    for key in ["a", "b"] {
        assert!(domain.find(key, "").is_some(), "{key}");
    }
    // The order of the files is that of the patterns, too.
    let (found, _) = domain.find("c", "xy").unwrap();
    assert_eq!(&*found.value, "x*");

    let mistakes = read_both(&[one, one]).unwrap_err();
    let all: Vec<String> = mistakes.0.iter().map(message_of).collect();
    assert_eq!(
        all,
        [
            "a.yaml: duplicate descriptor composite key 'd.a'",
            "a.yaml: duplicate descriptor composite key 'd.c_x*'",
        ]
    );
    let mistakes = read(&[one, other], SameDomain::Refused).unwrap_err();
    assert_eq!(
        message_of(&mistakes.0[0]),
        "b.yaml: duplicate domain 'd' in config file"
    );
}

#[test]
fn what_the_reference_ignores_silently_gives_a_notice() {
    let text = "domain: d\ndescriptors:\n- key: k\n  unit: day\n  rate_limit:\n    unit: day\n    \
                shadow_mode: true\n    unit: hour\n- key: j\n  rate_limit: {unlimited: true, \
                unit: never}\n---\ndomain: e\n";
    let notices = read_one(text).unwrap().notices;
    let found: Vec<(u32, &Remark)> = notices
        .iter()
        .map(|notice| (notice.line, &notice.remark))
        .collect();
    let key = |key: &str| key.to_owned();
    assert_eq!(
        found,
        [
            (11, &Remark::FurtherDocument),
            (
                4,
                &Remark::Misplaced {
                    key: key("unit"),
                    belongs: "under 'rate_limit'"
                }
            ),
            (8, &Remark::Repeated { key: key("unit") }),
            (
                7,
                &Remark::Misplaced {
                    key: key("shadow_mode"),
                    belongs: "beside 'key', in a descriptor"
                }
            ),
            (10, &Remark::UnitIgnored { unit: key("never") }),
        ]
    );
    let line = notices[1].to_string();
    assert_eq!(
        line,
        "a.yaml:4: 'unit' has no effect here; it belongs under 'rate_limit'"
    );
}

#[test]
fn a_file_at_the_bounds_of_length_and_depth_is_read() {
    let nested = |depth: usize| {
        let levels = (0..depth).map(|level| {
            let indent = "  ".repeat(level);
            format!("{indent}descriptors:\n{indent}- key: k\n")
        });
        format!("domain: d\n{}", levels.collect::<String>())
    };
    let most = crate::config::ENTRIES_MAX;
    assert!(read_one(&nested(most)).is_ok());
    let line = u32::try_from(2 * most + 3).unwrap();
    check(
        &nested(most + 1),
        &[(line, "descriptors more than 32 deep inside each other")],
    );

    let long = format!("domain: d\n#{}", "x".repeat(FILE_BYTES_MAX));
    let long_message = format!("file of {} bytes is longer than 16777216", long.len());
    check(&long, &[(0, &long_message)]);
}

#[test]
fn the_number_of_descriptors_is_bounded_over_all_files() {
    let descriptors = |from: usize, count: usize| {
        let lines = (from..from + count).map(|number| format!("- key: k{number}\n"));
        format!(
            "domain: d{from}\ndescriptors:\n{}",
            lines.collect::<String>()
        )
    };
    let texts = [descriptors(0, 5), descriptors(5, 5), descriptors(10, 5)];
    let files: Vec<File<'_>> = texts
        .iter()
        .map(|text| File {
            name: "a.yaml",
            bytes: text.as_bytes(),
        })
        .collect();
    assert!(read_within(&files[..2], SameDomain::Refused, 10, &|_, _, _| Ok(())).is_ok());
    let mistakes = read_within(&files, SameDomain::Refused, 10, &|_, _, _| Ok(())).unwrap_err();
    assert_eq!(
        message_of(&mistakes.0[0]),
        "a.yaml: more than 10 descriptors in all files"
    );
    assert_eq!(mistakes.0.len(), 1);
}

#[test]
fn long_names_and_lists_of_mistakes_are_bounded() {
    let domain = "d".repeat(1 << 20);
    let file = |count: usize| {
        let descriptors = (0..count).map(|number| format!("- key: k{number}\n"));
        let descriptors: String = descriptors.collect();
        format!("domain: {domain}\ndescriptors:\n{descriptors}")
    };
    assert!(read_one(&file(60)).is_ok());
    check(
        &file(70),
        &[(
            66,
            "names of descriptors in all files take more than 67108864 bytes",
        )],
    );

    let keys: String = (0..2_000).map(|number| format!("k{number}: 1\n")).collect();
    let mistakes = read_one(&keys).unwrap_err().0;
    assert_eq!(mistakes.len(), REPORTED_MAX);
    assert_eq!(
        mistakes[0].defect.to_string(),
        "config error, unknown key 'k0'"
    );
}

#[test]
fn a_limit_that_cannot_be_counted_is_a_mistake_at_its_setting() {
    let text = "domain: d\ndescriptors:\n- key: a\n  rate_limit:\n    unit: second\n    \
                requests_per_unit: 5\n    algorithm: gcra\n    burst: 7\n\
                - key: b\n  rate_limit:\n    \
                unit: day\n    requests_per_unit: 5\n";
    let file = File {
        name: "a.yaml",
        bytes: text.as_bytes(),
    };
    let keep = |algorithm: AlgorithmChoice, requests: u32, unit: Unit| {
        assert_eq!(requests, 5);
        let AlgorithmChoice { kind, settings } = algorithm;
        let key = match (kind, settings.burst, unit) {
            (AlgorithmKind::Gcra, Some(7), Unit::Second) => "burst",
            (AlgorithmKind::FixedWindow, None, Unit::Day) => "unit",
            other => panic!("{other:?}"),
        };
        let message = format!("too {key}");
        Err(CannotKeep { key, message })
    };
    let mistakes = read_for(&[file], SameDomain::Refused, &keep).unwrap_err();
    let lines: Vec<_> = mistakes.0.iter().map(|mistake| mistake.line).collect();
    assert_eq!(lines, [Some(8), Some(11)]);
    assert_eq!(
        message_of(&mistakes.0[0]),
        "a.yaml: limit by 'gcra' cannot be kept: too burst"
    );
}

#[test]
fn limits_are_listed_by_domain_and_in_file_order() {
    let limit = "rate_limit: {unit: day, requests_per_unit: 1}";
    let text = format!(
        "domain: z\ndescriptors:\n\
         - {{key: b, {limit}, descriptors: [{{key: c, value: v, {limit}}}]}}\n\
         - {{key: a, {limit}}}\n- {{key: u, rate_limit: {{unlimited: true}}}}\n"
    );
    let other = format!("domain: y\ndescriptors:\n- {{key: x, {limit}}}\n");
    let files = [&text, &other].map(|text| File {
        name: "a.yaml",
        bytes: text.as_bytes(),
    });
    let read = read(&files, SameDomain::Refused).unwrap();
    let names: Vec<_> = read
        .limits
        .limits()
        .iter()
        .map(|limit| &*limit.metric)
        .collect();
    assert_eq!(names, ["y.x", "z.b", "z.b.c_v", "z.a"]);
}
