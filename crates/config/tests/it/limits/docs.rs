//! `docs/explanation/rate-limit-algorithms.md` states the bound of each algorithm, and names no
//! others.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anteroom_limit::algorithm::Algorithm as _;
use anteroom_limit::rate::Rate;
use anteroom_limit::registry::AlgorithmKind;
use anteroom_limit::settings::Settings;
use anteroom_limit::time::DurationUs;

/// Returns the table below the heading: the most that each algorithm allows in any window.
fn bounds_in_docs() -> BTreeMap<String, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/explanation/rate-limit-algorithms.md");
    let page = fs::read_to_string(path).expect("the page is part of the project");
    let section = page.split_once("## Which algorithm\n");
    let (_, section) = section.expect("the page has this section");
    let (section, _) = section
        .split_once("\n## ")
        .expect("another section follows");
    let rows = section.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("| `")?.split_once('`')?;
        let bound = rest.split(" | ").nth(1)?;
        Some((name.to_owned(), bound.to_owned()))
    });
    rows.skip(1).collect()
}

#[test]
fn the_docs_state_the_bound_of_each_algorithm() {
    let rate = Rate::new(100, DurationUs::from_secs(60)).unwrap();
    let settings = Settings {
        burst: Some(10),
        ..Settings::default()
    };
    let mut stated = bounds_in_docs();
    for kind in AlgorithmKind::ALL {
        let policy = kind.build(rate, &settings).unwrap();
        let expected = match policy.window_cost_max(1) {
            100 => "**L**",
            109 => "`burst` + L - 1",
            199 => "2 L - 1",
            200 => "2 L",
            other => panic!("{}: {other}", kind.name()),
        };
        let bound = stated.remove(kind.name()).unwrap_or_default();
        assert!(bound.starts_with(expected), "{}: {bound:?}", kind.name());
    }
    assert!(stated.is_empty(), "no algorithms: {stated:?}");
}
