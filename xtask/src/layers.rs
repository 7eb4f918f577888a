//! Which crate may depend on which? One table, and a test that no arrow leaves it.
//!
//! Judges path dependencies of every kind (normal, dev, build). What comes from outside is judged
//! by [`crate::licences`].

mod table;

use anyhow::bail;

use self::table::{ARROWS_OF_TESTS, FOR_TESTS, LAYERS, ONLY_TESTS};
use crate::workspace::{Depth, Metadata, metadata};

/// Checks the crates of this workspace.
///
/// # Errors
///
/// Names every arrow that is not in the table, and every crate without a row.
pub(crate) fn check() -> anyhow::Result<()> {
    let problems = problems(&metadata(Depth::Members)?);
    if !problems.is_empty() {
        bail!("{}", problems.join("\n"));
    }
    Ok(())
}

fn problems(metadata: &Metadata) -> Vec<String> {
    let mut problems = Vec::new();
    for package in &metadata.packages {
        let from = &package.name;
        let Some((_, allowed)) = LAYERS.iter().find(|(name, _)| name == from) else {
            problems.push(format!(
                "{from} has no row in LAYERS (xtask/src/layers/table.rs): say there what it may use"
            ));
            continue;
        };
        for dependency in &package.dependencies {
            let to = &dependency.name;
            // A crate that tests itself with other features draws no arrow.
            if dependency.path.is_none() || to == from || allowed.contains(&to.as_str()) {
                continue;
            }
            let kind = dependency.kind.as_deref().unwrap_or("normal");
            let is_for_tests = FOR_TESTS.contains(&to.as_str())
                || ARROWS_OF_TESTS.contains(&(from.as_str(), to.as_str()));
            let is_test = kind == "dev" || ONLY_TESTS.contains(&from.as_str());
            if is_test && is_for_tests {
                continue;
            }
            problems.push(format!(
                "{from} -> {to} ({kind} dependency) is not in LAYERS: move the code that needs it \
                 up, or pass it in as an argument or a trait"
            ));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A workspace with one crate that has one path dependency.
    fn check_arrow(from: &str, to: &str, kind: &str) -> Vec<String> {
        let json = format!(
            r#"{{"packages": [{{
                "name": "{from}", "version": "0.1.0", "license": null, "source": null,
                "dependencies": [
                    {{"name": "{to}", "kind": {kind}, "path": "crates/{to}"}},
                    {{"name": "serde", "kind": null}}
                ]
            }}]}}"#
        );
        problems(&serde_json::from_str(&json).unwrap())
    }

    #[test]
    fn the_arrows_of_this_workspace_go_down() {
        check().unwrap();
    }

    #[test]
    fn an_arrow_that_goes_up_is_named() {
        let problems = check_arrow("anteroom-room", "anteroom-node", "null");
        assert_eq!(problems.len(), 1);
        assert!(
            problems[0].starts_with("anteroom-room -> anteroom-node (normal dependency)"),
            "{problems:?}"
        );
    }

    #[test]
    fn dependencies_of_tests_and_build_scripts_are_judged_alike() {
        assert_eq!(
            check_arrow("anteroom-admin", "anteroom-proxy", r#""dev""#).len(),
            1
        );
        assert_eq!(
            check_arrow("anteroom-sim", "anteroom-node", r#""build""#).len(),
            1
        );
        assert_eq!(check_arrow("xtask", "anteroom-room", "null").len(), 1);
    }

    #[test]
    fn an_arrow_of_the_table_and_a_crate_that_tests_itself_are_fine() {
        assert!(check_arrow("anteroom-node", "anteroom-store", "null").is_empty());
        assert!(check_arrow("anteroom-store", "anteroom-store", r#""dev""#).is_empty());
    }

    #[test]
    fn what_is_for_tests_is_for_tests_alone() {
        let testkit = "anteroom-testkit";
        assert!(check_arrow("anteroom-ticket", testkit, r#""dev""#).is_empty());
        assert_eq!(check_arrow("anteroom-ticket", testkit, "null").len(), 1);
        assert_eq!(
            check_arrow("anteroom-ticket", testkit, r#""build""#).len(),
            1
        );
        for (name, allowed) in LAYERS {
            let may_use = allowed.iter().any(|below| FOR_TESTS.contains(below));
            assert!(!may_use, "{name} may use it in what ships");
        }
    }

    #[test]
    fn a_crate_that_is_nothing_but_tests_uses_what_is_for_tests_and_is_used_by_none() {
        assert!(check_arrow("anteroom-e2e", "anteroom-testkit", "null").is_empty());
        for (name, allowed) in LAYERS {
            let uses_tests = allowed.iter().any(|below| ONLY_TESTS.contains(below));
            assert!(
                !uses_tests,
                "{name} may use a crate that is nothing but tests"
            );
        }
    }

    #[test]
    fn an_arrow_of_tests_is_for_tests_alone() {
        assert!(check_arrow("anteroom-admin", "anteroom-store", r#""dev""#).is_empty());
        assert_eq!(
            check_arrow("anteroom-admin", "anteroom-store", "null").len(),
            1
        );
    }

    #[test]
    fn a_crate_without_a_row_is_named() {
        let problems = check_arrow("anteroom-misc", "anteroom-room", "null");
        assert!(
            problems[0].starts_with("anteroom-misc has no row"),
            "{problems:?}"
        );
    }

    #[test]
    fn every_row_names_earlier_rows_only() {
        for (index, (name, allowed)) in LAYERS.iter().enumerate() {
            for below in *allowed {
                let earlier = &LAYERS[..index];
                assert!(
                    earlier.iter().any(|(name, _)| name == below),
                    "{name} -> {below} does not go down"
                );
            }
        }
    }
}
