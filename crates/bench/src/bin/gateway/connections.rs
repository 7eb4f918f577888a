//! Response times while many browsers wait on keep-alive connections and hostile sockets are open.
//!
//! `cargo xtask bench gateway -- connections`: one gateway with the defaults, ten thousand waiting
//! browsers and ten thousand hostile sockets at once, each kind in its own process and from many
//! addresses of this machine. Meanwhile new visitors arrive, and active visitors send requests.

mod client;
mod flood;
mod memory;

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep};

use crate::process::{OF_OTHERS, OF_PROXIES, Process, free_port};
use client::{Browser, Scheme, open_page};
pub(crate) use flood::{Options as FloodOptions, run as flood};

/// Size of the measurement.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Browsers that wait on keep-alive connections.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    browsers: usize,
    /// Hostile sockets that send nothing, or half a request head.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    hostile: usize,
    /// Time for which new and active visitors are measured.
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    watch: u64,
    /// Connections whose memory is measured, each without and with TLS.
    #[arg(long, value_name = "N", default_value_t = 4_000)]
    idle: usize,
}

/// Time for browsers and sockets to connect.
const RAMP: Duration = Duration::from_secs(10);
/// Active visitors; each uses a keep-alive connection and new ones.
const ACTIVE_VISITORS: usize = 20;
/// Pause between two requests of an active visitor, and between two new visitors.
const PAUSE: Duration = Duration::from_millis(100);

/// Outcomes of one kind of visitor.
#[derive(Default)]
struct Outcomes {
    response_us: Vec<u64>,
    failed: u64,
}

impl Outcomes {
    fn note(&mut self, began: Instant, result: &anyhow::Result<String>, expected: &str) {
        match result {
            Ok(response) if response.contains(expected) => {
                let us = began.elapsed().as_micros();
                self.response_us.push(u64::try_from(us).unwrap_or(u64::MAX));
            }
            _ => self.failed += 1,
        }
    }

    fn add(&mut self, other: Self) {
        self.response_us.extend(other.response_us);
        self.failed += other.failed;
    }

    fn print(mut self, name: &str) {
        self.response_us.sort_unstable();
        let at = |percent: usize| {
            let index = self.response_us.len() * percent / 100;
            let last = self.response_us.len().saturating_sub(1);
            let us = self.response_us.get(index.min(last)).copied();
            us.unwrap_or(0) as f64 / 1e3
        };
        println!(
            "| {name} | {} | {} | {:.1} | {:.1} | {:.1} |",
            self.response_us.len(),
            self.failed,
            at(50),
            at(99),
            at(100)
        );
    }
}

/// Measures and prints the results.
pub(crate) async fn run(anteroom: &Path, options: &Options) -> anyhow::Result<()> {
    memory::run(anteroom, options.idle).await?;
    let folder = tempfile::tempdir()?;
    let gateway = Gateway::start(anteroom, folder.path(), "").await?;
    let mut cookies = Vec::new();
    for _ in 0..ACTIVE_VISITORS {
        cookies.push(gateway.admit_visitor().await?);
    }
    let myself = std::env::current_exe().context("a running program has a path")?;
    let start = |kind: &str, count: usize| {
        let (count, address) = (count.to_string(), gateway.address.to_string());
        let arguments = ["flood", kind, &address, "--count", &count];
        let log = folder.path().join(format!("{kind}.log"));
        Process::start(OF_OTHERS, &myself, &arguments, &log)
    };
    let _browsers = start("browsers", options.browsers)?;
    let _hostile = start("hostile", options.hostile)?;
    sleep(RAMP).await;
    let until = Instant::now() + Duration::from_secs(options.watch);
    let mut on_one = Vec::new();
    let mut on_new = Vec::new();
    for cookie in cookies {
        let address = gateway.address;
        on_one.push(tokio::spawn(keep_alive(address, cookie.clone(), until)));
        on_new.push(tokio::spawn(reconnect(address, cookie, until)));
    }
    let mut newcomers = Outcomes::default();
    while Instant::now() < until {
        let began = Instant::now();
        let page = open_page(None, gateway.address, "/own", "").await;
        newcomers.note(began, &page, "</html>");
        sleep(PAUSE).await;
    }
    println!(
        "\n{} waiting browsers on keep-alive connections, {} hostile sockets\n\n\
         | | responses | failed | p50 ms | p99 ms | max ms |\n\
         | --- | ---: | ---: | ---: | ---: | ---: |",
        options.browsers, options.hostile
    );
    for (name, tasks) in [
        ("active visitors, keep-alive connection", on_one),
        ("active visitors, new connection each", on_new),
    ] {
        let mut outcomes = Outcomes::default();
        for task in tasks {
            outcomes.add(task.await?);
        }
        outcomes.print(name);
    }
    newcomers.print("new visitors, a page each");
    let metrics = gateway.metrics().await?;
    let lines = metrics
        .lines()
        .filter(|line| line.starts_with("anteroom_connections_") || line.contains("accept_"));
    println!("\nMemory {} MiB", gateway.process.resident_bytes()? >> 20);
    lines.for_each(|line| println!("{line}"));
    Ok(())
}

/// Sends requests on one connection, which is reopened only if it was closed.
async fn keep_alive(address: SocketAddr, cookie: String, until: Instant) -> Outcomes {
    let mut outcomes = Outcomes::default();
    let mut browser = None;
    while Instant::now() < until {
        let began = Instant::now();
        let response = request_on(&mut browser, address, &cookie).await;
        if response.is_err() {
            browser = None;
        }
        outcomes.note(began, &response, "200 OK");
        sleep(PAUSE).await;
    }
    outcomes
}

async fn request_on(
    browser: &mut Option<Browser>,
    address: SocketAddr,
    cookie: &str,
) -> anyhow::Result<String> {
    if browser.is_none() {
        *browser = Some(Browser::connect(None, address, &Scheme::Http).await?);
    }
    let browser = browser.as_mut().context("the browser is connected")?;
    browser.get("/", cookie).await
}

async fn reconnect(address: SocketAddr, cookie: String, until: Instant) -> Outcomes {
    let mut outcomes = Outcomes::default();
    while Instant::now() < until {
        let began = Instant::now();
        let response = open_page(None, address, "/", &cookie).await;
        outcomes.note(began, &response, "200 OK");
        sleep(PAUSE).await;
    }
    outcomes
}

/// Gateway under test, with the defaults and the given settings.
struct Gateway {
    address: SocketAddr,
    admin: SocketAddr,
    process: Process,
}

impl Gateway {
    async fn start(program: &Path, folder: &Path, server: &str) -> anyhow::Result<Self> {
        let origin = start_origin().await?;
        let local = || anyhow::Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?)));
        let (address, admin) = (local()?, local()?);
        let room = |name: &str, path: &str, more: &str| {
            format!(
                "[[room]]\nname = \"{name}\"\npath = \"{path}\"\norigin = \"http://{origin}\"\n\
                 total_active_users = 100000\nnew_users_per_minute = 100000\nbypass = []\n{more}\n"
            )
        };
        let text = format!(
            "[server]\nlisten = \"{address}\"\nadmin = \"{admin}\"\ndata_dir = \"data\"\n{server}\n\
             {}{}",
            room("main", "/", ""),
            room("own", "/own", "queue_all = true"),
        );
        let config = folder.join("anteroom.toml");
        fs::write(&config, text)?;
        let config = config.display().to_string();
        let log = folder.join("gateway.log");
        let arguments = ["serve", "--config", &config, "--log", "warn"];
        let mut process = Process::start(OF_PROXIES, program, &arguments, &log)?;
        process.until_listening(address, &log).await?;
        Ok(Self {
            address,
            admin,
            process,
        })
    }

    /// Returns the cookie of an admitted visitor.
    async fn admit_visitor(&self) -> anyhow::Result<String> {
        for _ in 0..100 {
            let response = open_page(None, self.address, "/", "").await?;
            if response.contains("\r\n\r\nthe origin") {
                let lower = response.to_ascii_lowercase();
                let at = lower.find("set-cookie: ").context("no ticket")?;
                let cookie = &response[at + "set-cookie: ".len()..];
                let cookie = cookie.split(';').next().unwrap_or_default();
                return Ok(format!("cookie: {cookie}\r\n"));
            }
            sleep(PAUSE).await;
        }
        anyhow::bail!("no visitor is admitted")
    }

    async fn metrics(&self) -> anyhow::Result<String> {
        open_page(None, self.admin, "/metrics", "").await
    }
}

/// Starts an origin with a constant response, in this process.
async fn start_origin() -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut received = Vec::new();
                while stream
                    .read_buf(&mut received)
                    .await
                    .is_ok_and(|count| count > 0)
                {
                    if received.ends_with(b"\r\n\r\n") {
                        received.clear();
                        let response = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nthe origin";
                        if stream.write_all(response).await.is_err() {
                            return;
                        }
                    }
                }
            });
        }
    });
    Ok(address)
}
