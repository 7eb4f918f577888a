//! Checks that the examples in the docs are valid, for Envoy and for the service.

use std::fs;
use std::process::Command;

use anteroom_envoy::folder;

use crate::envoy::process::program;

const DOCS: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../docs/how-to/envoy-rate-limits.md"
));

/// Page about quotas.
pub(crate) const QUOTAS: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../docs/how-to/envoy-quotas.md"
));

/// Returns the block of a page that begins with this line, without its indent.
pub(crate) fn block(page: &str, first: &str) -> String {
    let lines = page.lines().skip_while(|line| line.trim_start() != first);
    let block = lines.map_while(|line| line.strip_prefix("    "));
    let text: String = block.map(|line| format!("{line}\n")).collect();
    assert!(!text.is_empty(), "{first}");
    text
}

#[test]
fn examples_in_the_docs_are_valid() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("edge.yaml"), block(DOCS, "domain: edge")).unwrap();
    let limits = folder::read(path, false, None).unwrap().limits;
    assert_eq!(limits.limits().len(), 2);

    let file = path.join("envoy.conf.yaml");
    fs::write(&file, block(DOCS, "static_resources:")).unwrap();
    let validated = Command::new(program())
        .args(["--mode", "validate", "--config-path"])
        .arg(&file)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&validated.stderr);
    assert!(validated.status.success(), "{stderr}");
}
