//! Which crate may depend on which? One table, and a test that no arrow leaves it.
//!
//! Judges path dependencies of every kind (normal, dev, build). What comes from outside is judged
//! by cargo-deny, with `deny.toml`.

mod table;

use anyhow::bail;

use self::table::{CRATES_MAX, LAYERS, Layer, Ships};
use crate::workspace::{Metadata, Package, metadata, root};

/// Checks the crates of this workspace.
///
/// # Errors
///
/// Names every arrow that is not in the table, every crate without a row, every row without a
/// crate, and crates beyond the number that there may be.
pub(crate) fn check() -> anyhow::Result<()> {
    let metadata = metadata()?;
    let mut problems = problems(&metadata);
    problems.extend(places(&metadata));
    problems.extend(shipped_tests());
    if !problems.is_empty() {
        bail!("{}", problems.join("\n"));
    }
    Ok(())
}

fn layer_of(name: &str) -> Option<&'static Layer> {
    LAYERS.iter().find(|layer| layer.name == name)
}

/// Arrows that are not in the table.
fn problems(metadata: &Metadata) -> Vec<String> {
    metadata.packages.iter().flat_map(arrows_of).collect()
}

fn arrows_of(package: &Package) -> Vec<String> {
    let from = &package.name;
    let Some(layer) = layer_of(from) else {
        return vec![format!(
            "{from} has no row in LAYERS (xtask/src/layers/table.rs): say there what boundary it \
             holds and what it may use; without a boundary it is a module"
        )];
    };
    let mut problems = Vec::new();
    for dependency in &package.dependencies {
        let to = &dependency.name;
        // A crate that tests itself with other features draws no arrow.
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

/// Crates that are not where the table has them, rows without a crate, and too many crates.
fn places(metadata: &Metadata) -> Vec<String> {
    let mut problems = Vec::new();
    for layer in LAYERS {
        let manifest = root().join(layer.folder).join("Cargo.toml");
        let found = metadata.packages.iter().find(|it| it.name == layer.name);
        match found {
            None => problems.push(format!(
                "{} has a row in LAYERS and is no crate",
                layer.name
            )),
            Some(package) if package.manifest_path != manifest => problems.push(format!(
                "{} is in {}, and its row in LAYERS says {}",
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
            "{count} crates, and at most {CRATES_MAX} may be: make a module of one"
        ));
    }
    problems
}

/// Crates that users run and that use one which never ships.
fn shipped_tests() -> Vec<String> {
    let never = |name: &&str| layer_of(name).is_some_and(|below| below.ships == Ships::Never);
    let shipped = LAYERS.iter().filter(|layer| layer.ships == Ships::Yes);
    let found = shipped.filter_map(|layer| {
        let stray = layer.uses.iter().copied().find(never)?;
        Some(format!("{} ships, and {stray} never does", layer.name))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A workspace with one crate that has one path dependency.
    fn check_arrow(from: &str, to: &str, kind: &str) -> Vec<String> {
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
        for (from, to, kind) in [
            ("anteroom-proxy", "anteroom-admin", r#""dev""#),
            ("anteroom-sim", "anteroom-node", r#""build""#),
            ("xtask", "anteroom-room", "null"),
        ] {
            assert_eq!(check_arrow(from, to, kind).len(), 1, "{from} -> {to}");
        }
    }

    #[test]
    fn an_allowed_arrow_and_a_self_testing_crate_are_fine() {
        assert!(check_arrow("anteroom-node", "anteroom-store", "null").is_empty());
        assert!(check_arrow("anteroom-store", "anteroom-store", r#""dev""#).is_empty());
    }

    #[test]
    fn an_arrow_of_tests_is_for_tests_alone() {
        let (from, to) = ("anteroom-ticket", "anteroom-testkit");
        assert!(check_arrow(from, to, r#""dev""#).is_empty());
        assert_eq!(check_arrow(from, to, "null").len(), 1);
        assert_eq!(check_arrow(from, to, r#""build""#).len(), 1);
    }

    #[test]
    fn rooms_and_limits_do_not_know_each_other() {
        for layer in LAYERS {
            let is_of_limits = layer.folder.starts_with("crates/limit/");
            let is_of_rooms = layer.folder.starts_with("crates/room/");
            for below in layer.uses {
                let folder = layer_of(below).expect("a row").folder;
                // Times stand in the core of rooms.
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
    fn a_crate_without_a_row_is_named() {
        let problems = check_arrow("anteroom-misc", "anteroom-room", "null");
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
