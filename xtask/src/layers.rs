//! Dependencies that crates may have on each other: a table, and a test that all are in it.
//!
//! It checks path dependencies of every kind (normal, dev, build). cargo-deny checks others, with
//! `deny.toml`.

mod table;

use anyhow::bail;

use self::table::{CRATES_MAX, LAYERS, Layer, Ships};
use crate::workspace::{Metadata, Package, metadata, root};

/// Checks the crates of this workspace.
///
/// # Errors
///
/// If a dependency is not in the table, a crate has no row or a row no crate, or there are more
/// crates than allowed. The error names all of these.
pub(crate) fn check() -> anyhow::Result<()> {
    let metadata = metadata()?;
    let mut problems = problems(&metadata);
    problems.extend(folder_problems(&metadata));
    problems.extend(shipped_tests());
    if !problems.is_empty() {
        bail!("{}", problems.join("\n"));
    }
    Ok(())
}

fn layer_of(name: &str) -> Option<&'static Layer> {
    LAYERS.iter().find(|layer| layer.name == name)
}

/// Returns the dependencies that are not in the table.
fn problems(metadata: &Metadata) -> Vec<String> {
    metadata.packages.iter().flat_map(problems_of).collect()
}

fn problems_of(package: &Package) -> Vec<String> {
    let from = &package.name;
    let Some(layer) = layer_of(from) else {
        return vec![format!(
            "{from} has no row in LAYERS (xtask/src/layers/table.rs): add its boundary \
             and what it may use; without a boundary it is a module"
        )];
    };
    let mut problems = Vec::new();
    for dependency in &package.dependencies {
        let to = &dependency.name;
        // A crate may depend on itself, to test itself with other features.
        if dependency.path.is_none() || to == from || layer.uses.contains(&to.as_str()) {
            continue;
        }
        let kind = dependency.kind.as_deref().unwrap_or("normal");
        if kind == "dev" && layer.tests_use.contains(&to.as_str()) {
            continue;
        }
        problems.push(format!(
            "{from} -> {to} ({kind} dependency) is not in LAYERS. {from} exists to hold this \
             boundary: {}. Move the code that needs {to} up, or pass it in as an argument or a \
             trait",
            layer.boundary
        ));
    }
    problems
}

/// Returns crates in other folders than in the table, rows without a crate, and too many crates.
fn folder_problems(metadata: &Metadata) -> Vec<String> {
    let mut problems = Vec::new();
    for layer in LAYERS {
        let manifest = root().join(layer.folder).join("Cargo.toml");
        let found = metadata.packages.iter().find(|it| it.name == layer.name);
        match found {
            None => problems.push(format!(
                "{} has a row in LAYERS but is no crate",
                layer.name
            )),
            Some(package) if package.manifest_path != manifest => problems.push(format!(
                "{} is in {}, but its row in LAYERS names {}",
                layer.name,
                package.manifest_path.display(),
                layer.folder
            )),
            Some(_) => {}
        }
    }
    let in_crates = LAYERS
        .iter()
        .filter(|layer| layer.folder.starts_with("crates/"));
    let count = in_crates.count();
    if count > CRATES_MAX {
        problems.push(format!(
            "{count} crates, but at most {CRATES_MAX} are allowed: make a module of one"
        ));
    }
    problems
}

/// Returns shipped crates that use one that is never shipped.
fn shipped_tests() -> Vec<String> {
    let never = |name: &&str| layer_of(name).is_some_and(|below| below.ships == Ships::Never);
    let shipped = LAYERS.iter().filter(|layer| layer.ships == Ships::Yes);
    let found = shipped.filter_map(|layer| {
        let stray = layer.uses.iter().copied().find(never)?;
        Some(format!(
            "{} is shipped, but uses {stray}, which never is",
            layer.name
        ))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the problems of a workspace with one crate that has one path dependency.
    fn check_dependency(from: &str, to: &str, kind: &str) -> Vec<String> {
        let json = format!(
            r#"{{"packages": [{{
                "name": "{from}", "manifest_path": "Cargo.toml",
                "dependencies": [
                    {{"name": "{to}", "kind": {kind}, "path": "crates/{to}"}},
                    {{"name": "serde", "kind": null}}
                ]
            }}]}}"#
        );
        problems(&serde_json::from_str(&json).unwrap())
    }

    #[test]
    fn dependencies_of_this_workspace_are_in_the_table() {
        check().unwrap();
    }

    #[test]
    fn a_dependency_on_a_higher_layer_is_reported() {
        let problems = check_dependency("anteroom-room", "anteroom-node", "null");
        assert_eq!(problems.len(), 1);
        assert!(
            problems[0].starts_with("anteroom-room -> anteroom-node (normal dependency)"),
            "{problems:?}"
        );
    }

    #[test]
    fn dependencies_of_tests_and_build_scripts_are_checked() {
        for (from, to, kind) in [
            ("anteroom-proxy", "anteroom-admin", r#""dev""#),
            ("anteroom-sim", "anteroom-node", r#""build""#),
            ("xtask", "anteroom-room", "null"),
        ] {
            assert_eq!(check_dependency(from, to, kind).len(), 1, "{from} -> {to}");
        }
    }

    #[test]
    fn an_allowed_dependency_and_one_on_itself_are_fine() {
        assert!(check_dependency("anteroom-node", "anteroom-store", "null").is_empty());
        assert!(check_dependency("anteroom-store", "anteroom-store", r#""dev""#).is_empty());
    }

    #[test]
    fn a_dependency_of_tests_is_for_tests_only() {
        let (from, to) = ("anteroom-ticket", "anteroom-testkit");
        assert!(check_dependency(from, to, r#""dev""#).is_empty());
        assert_eq!(check_dependency(from, to, "null").len(), 1);
        assert_eq!(check_dependency(from, to, r#""build""#).len(), 1);
    }

    #[test]
    fn rooms_and_limits_do_not_depend_on_each_other() {
        for layer in LAYERS {
            let is_of_limits = layer.folder.starts_with("crates/limit/");
            let is_of_rooms = layer.folder.starts_with("crates/room/");
            for below in layer.uses {
                let folder = layer_of(below).expect("a row").folder;
                // The core of rooms has the types of time.
                let knows_rooms = folder.starts_with("crates/room/") && *below != "anteroom-room";
                let knows_limits = folder.starts_with("crates/limit/");
                assert!(!(is_of_limits && knows_rooms), "{} -> {below}", layer.name);
                assert!(!(is_of_rooms && knows_limits), "{} -> {below}", layer.name);
            }
        }
    }

    #[test]
    fn each_row_states_a_boundary() {
        for layer in LAYERS {
            assert!(!layer.boundary.is_empty(), "{}", layer.name);
        }
    }

    #[test]
    fn a_crate_without_a_row_is_reported() {
        let problems = check_dependency("anteroom-misc", "anteroom-room", "null");
        assert!(
            problems[0].starts_with("anteroom-misc has no row"),
            "{problems:?}"
        );
    }

    #[test]
    fn every_row_names_earlier_rows_only() {
        for (index, layer) in LAYERS.iter().enumerate() {
            for below in layer.uses {
                let mut earlier = LAYERS[..index].iter();
                assert!(
                    earlier.any(|row| row.name == *below),
                    "{} -> {below} does not go down",
                    layer.name
                );
            }
        }
    }
}
