//! May we ship what we depend on, and do we know where it comes from?
//!
//! Judges every package of `Cargo.lock`, for all platforms and tests too, by the lists of
//! `deny.toml` (licences, sources, banned names), so that the rule holds where cargo-deny is not
//! installed. Reads what packages say of themselves; cargo-deny also looks into their licence
//! files, at versions and at doubled packages.

mod spdx;

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use serde::Deserialize;

use crate::workspace::{Depth, Metadata, Package, metadata, root};

/// The part of `deny.toml` that is read here; the rest is cargo-deny's own.
#[derive(Deserialize)]
struct DenyFile {
    licenses: Licences,
    bans: Bans,
    sources: Sources,
}

#[derive(Deserialize)]
struct Licences {
    allow: Vec<String>,
    #[serde(default)]
    exceptions: Vec<Exception>,
}

#[derive(Deserialize)]
struct Exception {
    #[serde(rename = "crate")]
    package: String,
    allow: Vec<String>,
}

#[derive(Deserialize)]
struct Bans {
    deny: Vec<Ban>,
}

#[derive(Deserialize)]
struct Ban {
    #[serde(rename = "crate")]
    package: String,
    reason: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Sources {
    allow_registry: Vec<String>,
}

/// Checks the packages of this workspace.
///
/// # Errors
///
/// Names every package that is banned, or whose licence or source is not allowed.
pub(crate) fn check() -> anyhow::Result<()> {
    let path = root().join("deny.toml");
    let text = std::fs::read_to_string(&path).context("reading deny.toml")?;
    let rules: DenyFile = toml::from_str(&text).context("reading deny.toml")?;
    let problems = problems(&metadata(Depth::Everything)?, &rules);
    if !problems.is_empty() {
        bail!("{}", problems.join("\n"));
    }
    Ok(())
}

fn problems(metadata: &Metadata, rules: &DenyFile) -> Vec<String> {
    let exceptions: BTreeMap<&str, &[String]> = rules
        .licenses
        .exceptions
        .iter()
        .map(|exception| (exception.package.as_str(), exception.allow.as_slice()))
        .collect();
    let mut problems = Vec::new();
    for package in &metadata.packages {
        let excepted = exceptions
            .get(package.name.as_str())
            .copied()
            .unwrap_or(&[]);
        let is_allowed = |licence: &str| {
            let mut all = rules.licenses.allow.iter().chain(excepted);
            all.any(|allowed| allowed == licence)
        };
        let found = [
            licence_problem(package, is_allowed),
            ban_problem(package, &rules.bans.deny),
            source_problem(package, &rules.sources.allow_registry),
        ];
        for problem in found.into_iter().flatten() {
            problems.push(format!("{} {}: {problem}", package.name, package.version));
        }
    }
    problems
}

fn licence_problem(package: &Package, is_allowed: impl Fn(&str) -> bool) -> Option<String> {
    let Some(expression) = &package.license else {
        return Some("it names no licence; do not use it".to_owned());
    };
    match spdx::is_satisfied(expression, &is_allowed) {
        Ok(true) => None,
        Ok(false) => Some(format!(
            "licence `{expression}` is not allowed by deny.toml; use another package, or decide \
             and add it there with the reason"
        )),
        Err(error) => Some(format!("licence `{expression}` cannot be read: {error}")),
    }
}

fn ban_problem(package: &Package, bans: &[Ban]) -> Option<String> {
    let ban = bans.iter().find(|ban| ban.package == package.name)?;
    Some(format!("banned by deny.toml: {}", ban.reason))
}

fn source_problem(package: &Package, registries: &[String]) -> Option<String> {
    // A folder: whether it belongs here is for the layers to say.
    let source = package.source.as_deref()?;
    let is_allowed = source
        .strip_prefix("registry+")
        .is_some_and(|registry| registries.iter().any(|allowed| allowed == registry));
    (!is_allowed).then(|| {
        format!("source `{source}` is not in allow-registry of deny.toml; use a published version")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGISTRY: &str = "registry+https://example.com/index";

    fn check_package(name: &str, license: Option<&str>, source: Option<&str>) -> Vec<String> {
        let rules: DenyFile = toml::from_str(
            r#"
            [licenses]
            allow = ["MIT", "Apache-2.0"]
            exceptions = [{ crate = "templates", allow = ["MPL-2.0"] }]
            [bans]
            deny = [{ crate = "other-tls", reason = "one is enough" }]
            [sources]
            allow-registry = ["https://example.com/index"]
            "#,
        )
        .unwrap();
        let package = Package {
            name: name.to_owned(),
            manifest_path: "Cargo.toml".into(),
            version: "1.0.0".to_owned(),
            license: license.map(str::to_owned),
            source: source.map(str::to_owned),
            dependencies: Vec::new(),
        };
        let packages = vec![package];
        problems(&Metadata { packages }, &rules)
    }

    #[test]
    fn every_package_of_this_workspace_is_allowed() {
        check().unwrap();
    }

    #[test]
    fn a_licence_that_is_not_on_the_list_is_named() {
        let problems = check_package("viral", Some("GPL-3.0-only"), Some(REGISTRY));
        assert!(
            problems[0].starts_with("viral 1.0.0: licence `GPL-3.0-only` is not allowed"),
            "{problems:?}"
        );
        assert_eq!(check_package("silent", None, Some(REGISTRY)).len(), 1);
        assert_eq!(
            check_package("odd", Some("MIT OR"), Some(REGISTRY)).len(),
            1
        );
    }

    #[test]
    fn an_exception_holds_for_its_package_alone() {
        assert!(check_package("templates", Some("MPL-2.0"), Some(REGISTRY)).is_empty());
        assert_eq!(
            check_package("others", Some("MPL-2.0"), Some(REGISTRY)).len(),
            1
        );
    }

    #[test]
    fn a_banned_package_is_named_with_the_reason() {
        assert_eq!(
            check_package("other-tls", Some("MIT"), Some(REGISTRY)),
            ["other-tls 1.0.0: banned by deny.toml: one is enough"]
        );
    }

    #[test]
    fn other_registries_and_repositories_are_named_but_folders_are_ours() {
        for source in [
            "git+https://example.com/index",
            "registry+https://example.org/index",
            "https://example.com/index",
        ] {
            assert_eq!(check_package("stray", Some("MIT"), Some(source)).len(), 1);
        }
        assert!(check_package("own", Some("MIT"), None).is_empty());
    }
}
