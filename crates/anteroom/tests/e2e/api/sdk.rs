//! Cloudflare's SDK for Python drives every method of its waiting rooms.

use std::path::Path;

use tokio::process::Command;

use super::{Nodes, TOKEN};

/// Folder of the SDK, from the root of the workspace. `cargo xtask test` installs it.
const SDK: &str = "target/tools/cloudflare-5.9.0";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_python_sdk_drives_every_method_at_two_nodes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let sdk = root.join(SDK);
    assert!(
        sdk.join("cloudflare").is_dir(),
        "{SDK} is missing; `cargo xtask test --only tests` installs it, or run: pip3 install \
         --no-deps --only-binary=:all: --require-hashes --requirement xtask/cloudflare.txt \
         --target {SDK}"
    );
    let nodes = Nodes::start().await;
    let script = root.join("crates/anteroom/tests/e2e/api/sdk.py");
    let ended = Command::new("python3")
        .arg(script)
        .args([nodes.base(0), nodes.base(1), TOKEN.to_owned()])
        .env("PYTHONPATH", &sdk)
        // The SDK reads these.
        .env_remove("CLOUDFLARE_API_KEY")
        .env_remove("CLOUDFLARE_EMAIL")
        .output()
        .await
        .unwrap();
    let out = String::from_utf8_lossy(&ended.stdout);
    let err = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{out}\n{err}");
    assert!(out.trim().ends_with(" calls"), "{out}");
}
