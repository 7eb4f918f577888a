//! One bad file per mistake, with the text of the reference service, word for word.
//!
//! Each text before the algorithms is what the reference's own code returns for the same bytes.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use anteroom_envoy::config::{File, Mistakes, SameDomain, read};

/// File, line if known, text after the name of the file.
const EXPECTED: &[(&str, Option<u32>, &str)] = &[
    (
        "not_yaml_open_quote",
        Some(3),
        "error loading config file: yaml: line 3: found unexpected end of stream",
    ),
    (
        "not_yaml_indent",
        Some(4),
        "error loading config file: yaml: line 4: mapping values are not allowed in this context",
    ),
    (
        "not_yaml_template",
        Some(1),
        "error loading config file: yaml: invalid map key: map[interface {}]interface {}\
         {\".Values.domain\":interface {}(nil)}",
    ),
    (
        "not_yaml_unknown_alias",
        Some(3),
        "error loading config file: yaml: unknown anchor 'users' referenced",
    ),
    (
        "not_utf8",
        Some(1),
        "error loading config file: yaml: invalid trailing UTF-8 octet",
    ),
    (
        "alias_bomb",
        Some(9),
        "error loading config file: yaml: document contains excessive aliasing",
    ),
    (
        "wrong_type_root",
        Some(1),
        "error loading config file: yaml: unmarshal errors:\n  \
         line 1: cannot unmarshal !!seq into map[interface {}]interface {}",
    ),
    (
        "wrong_type_descriptors",
        Some(3),
        "error loading config file: yaml: unmarshal errors:\n  \
         line 3: cannot unmarshal !!map into []config.YamlDescriptor",
    ),
    (
        "wrong_type_flag",
        Some(4),
        "error loading config file: yaml: unmarshal errors:\n  \
         line 4: cannot unmarshal !!str `true` into bool",
    ),
    (
        "wrong_type_limit",
        Some(4),
        "error loading config file: yaml: unmarshal errors:\n  \
         line 4: cannot unmarshal !!int `100` into config.YamlRateLimit",
    ),
    (
        "wrong_type_number",
        Some(6),
        "error loading config file: yaml: unmarshal errors:\n  \
         line 6: cannot unmarshal !!str `a hundred` into uint32",
    ),
    (
        "key_not_text",
        Some(4),
        "config error, key is not of type string: 404",
    ),
    (
        "unknown_key",
        Some(4),
        "config error, unknown key 'ratelimit'",
    ),
    (
        "unknown_key_nested",
        Some(8),
        "config error, unknown key 'requestsperunit'",
    ),
    (
        "algorithm_outside",
        Some(4),
        "config error, unknown key 'algorithm'",
    ),
    (
        "element_not_map",
        Some(3),
        "config error, yaml file contains list of type other than map: user",
    ),
    ("value_of_no_use", Some(6), "error checking config"),
    ("empty_domain", None, "config file cannot have empty domain"),
    (
        "duplicate_domain",
        Some(1),
        "duplicate domain 'shop' in config file",
    ),
    ("empty_key", Some(3), "descriptor has empty key"),
    (
        "duplicate_descriptor",
        Some(7),
        "duplicate descriptor composite key 'shop.user.path_/pay'",
    ),
    (
        "unknown_unit",
        Some(5),
        "invalid rate limit unit 'fortnight'",
    ),
    ("missing_unit", Some(5), "invalid rate limit unit ''"),
    (
        "unit_of_unlimited",
        Some(6),
        "should not specify rate limit unit when unlimited",
    ),
    (
        "empty_replaces",
        Some(8),
        "should not have an empty replaces entry",
    ),
    (
        "replaces_itself",
        Some(10),
        "replaces should not contain name of same descriptor",
    ),
    (
        "shared_without_wildcard",
        Some(5),
        "share_threshold can only be used with wildcard values (containing '*'), but found key \
         'path_/pay'",
    ),
    // Mistakes of our own settings.
    ("unknown_algorithm", Some(7), "unknown algorithm 'bucket'"),
    (
        "algorithm_of_unlimited",
        Some(6),
        "should not specify an algorithm or its settings when unlimited",
    ),
    (
        "setting_of_another",
        Some(7),
        "algorithm 'fixed-window' has no setting 'burst'",
    ),
    (
        "setting_out_of_range",
        Some(8),
        "sub_windows of 500 is not from 1 to 120",
    ),
    (
        "too_deep",
        Some(2),
        "lists and maps more than 128 deep inside each other",
    ),
    (
        "descriptors_too_deep",
        Some(67),
        "descriptors more than 32 deep inside each other",
    ),
];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/bad")
}

fn mistakes(name: &str) -> Mistakes {
    let bytes = fs::read(folder().join(format!("{name}.yaml")));
    let bytes = bytes.unwrap_or_else(|error| panic!("{name}: {error}"));
    let file = File {
        name: "a.yaml",
        bytes: &bytes,
    };
    // A file that is bad only beside another is read twice.
    let files = [file; 2];
    let count = if name == "duplicate_domain" { 2 } else { 1 };
    let read = read(&files[..count], SameDomain::Refused);
    read.err()
        .unwrap_or_else(|| panic!("{name} is not bad at all"))
}

#[test]
fn every_bad_file_has_the_message_of_the_reference() {
    for (name, line, text) in EXPECTED {
        let mistakes = mistakes(name);
        let first = &mistakes.0[0];
        assert_eq!(
            (&*first.file, first.defect.to_string().as_str()),
            ("a.yaml", *text),
            "{name}"
        );
        assert_eq!(first.line, *line, "{name}");
        assert_eq!(mistakes.0.len(), 1, "{name}: {mistakes}");
    }
}

#[test]
fn every_mistake_has_a_remedy_on_one_line() {
    for (name, ..) in EXPECTED {
        let mistakes = mistakes(name);
        assert!(mistakes.0[0].remedy().len() > 10, "{name}");
        assert_eq!(mistakes.to_string().lines().count(), 1, "{name}");
    }
    let remedy = |name| mistakes(name).0[0].remedy();
    assert_eq!(remedy("unknown_key"), "did you mean 'rate_limit'?");
    assert_eq!(
        remedy("algorithm_outside"),
        "'algorithm' belongs under 'rate_limit'"
    );
    assert!(remedy("unknown_unit").contains("week"));
    assert!(remedy("not_yaml_template").contains("template"));
}

#[test]
fn every_bad_file_is_tested() {
    let expected: BTreeSet<String> = EXPECTED
        .iter()
        .map(|(name, ..)| format!("{name}.yaml"))
        .collect();
    let files = fs::read_dir(folder()).expect("the fixtures are part of the crate");
    let files: BTreeSet<String> = files
        .map(|file| file.expect("the folder can be read").file_name())
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    assert_eq!(files, expected);
    assert_eq!(expected.len(), EXPECTED.len(), "a file is listed twice");
}
