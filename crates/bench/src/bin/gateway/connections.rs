//! Is everybody answered while a crowd waits on kept connections and somebody hostile holds
//! sockets?
//!
//! `cargo xtask bench gateway -- connections`: one gateway with the defaults, ten thousand waiting
//! browsers and ten thousand hostile sockets at once, each in a process of its own and from many
//! addresses of this machine. Meanwhile newcomers come, and visitors inside go on.

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

/// How much of it.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Browsers that wait, on connections that they keep.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    browsers: usize,
    /// Hostile sockets that send nothing, or half of a head.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    hostile: usize,
    /// How long newcomers and visitors inside are watched.
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    watch: u64,
    /// Connections whose memory is measured, each in the clear and by TLS.
    #[arg(long, value_name = "N", default_value_t = 4_000)]
    idle: usize,
}

/// For the crowd and the sockets to come.
const RAMP: Duration = Duration::from_secs(10);
/// Visitors inside; each asks on a kept connection and on new ones.
const INSIDE: usize = 20;
/// Between two requests of one of them, and between two newcomers.
const PAUSE: Duration = Duration::from_millis(100);

/// What one kind of visitor met.
#[derive(Default)]
struct Met {
    answered_us: Vec<u64>,
    failed: u64,
}

impl Met {
    fn note(&mut self, began: Instant, result: &anyhow::Result<String>, expected: &str) {
        match result {
            Ok(answer) if answer.contains(expected) => {
                let us = began.elapsed().as_micros();
                self.answered_us.push(u64::try_from(us).unwrap_or(u64::MAX));
            }
            _ => self.failed += 1,
        }
    }

    fn add(&mut self, other: Self) {
        self.answered_us.extend(other.answered_us);
        self.failed += other.failed;
    }

    fn print(mut self, name: &str) {
        self.answered_us.sort_unstable();
        let at = |percent: usize| {
            let index = self.answered_us.len() * percent / 100;
            let last = self.answered_us.len().saturating_sub(1);
            let us = self.answered_us.get(index.min(last)).copied();
            us.unwrap_or(0) as f64 / 1e3
        };
        println!(
            "| {name} | {} | {} | {:.1} | {:.1} | {:.1} |",
            self.answered_us.len(),
            self.failed,
            at(50),
            at(99),
            at(100)
        );
    }
}

/// Measures and prints.
pub(crate) async fn run(anteroom: &Path, options: &Options) -> anyhow::Result<()> {
    memory::run(anteroom, options.idle).await?;
    let folder = tempfile::tempdir()?;
    let gateway = Gateway::start(anteroom, folder.path(), "").await?;
    let mut inside = Vec::new();
    for _ in 0..INSIDE {
        inside.push(gateway.come_in().await?);
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
    let mut kept = Vec::new();
    let mut anew = Vec::new();
    for cookie in inside {
        let address = gateway.address;
        kept.push(tokio::spawn(stay(address, cookie.clone(), until)));
        anew.push(tokio::spawn(return_often(address, cookie, until)));
    }
    let mut newcomers = Met::default();
    while Instant::now() < until {
        let began = Instant::now();
        let page = open_page(None, gateway.address, "/own", "").await;
        newcomers.note(began, &page, "</html>");
        sleep(PAUSE).await;
    }
    println!(
        "\n{} waiting browsers on kept connections, {} hostile sockets\n\n\
         | | answered | failed | p50 ms | p99 ms | most ms |\n\
         | --- | ---: | ---: | ---: | ---: | ---: |",
        options.browsers, options.hostile
    );
    for (name, tasks) in [
        ("inside, on a kept connection", kept),
        ("inside, each time on a new one", anew),
    ] {
        let mut met = Met::default();
        for task in tasks {
            met.add(task.await?);
        }
        met.print(name);
    }
    newcomers.print("newcomers, a page each");
    let metrics = gateway.metrics().await?;
    let lines = metrics
        .lines()
        .filter(|line| line.starts_with("anteroom_connections_") || line.contains("accept_"));
    println!("\nMemory {} MiB", gateway.process.resident_bytes()? >> 20);
    lines.for_each(|line| println!("{line}"));
    Ok(())
}

/// Asks on one connection, which is opened anew only if it was closed.
async fn stay(address: SocketAddr, cookie: String, until: Instant) -> Met {
    let mut met = Met::default();
    let mut browser = None;
    while Instant::now() < until {
        let began = Instant::now();
        let answer = ask_on(&mut browser, address, &cookie).await;
        if answer.is_err() {
            browser = None;
        }
        met.note(began, &answer, "200 OK");
        sleep(PAUSE).await;
    }
    met
}

async fn ask_on(
    browser: &mut Option<Browser>,
    address: SocketAddr,
    cookie: &str,
) -> anyhow::Result<String> {
    if browser.is_none() {
        *browser = Some(Browser::connect(None, address, &Scheme::Http).await?);
    }
    let browser = browser.as_mut().context("it was made just now")?;
    browser.ask("/", cookie).await
}

async fn return_often(address: SocketAddr, cookie: String, until: Instant) -> Met {
    let mut met = Met::default();
    while Instant::now() < until {
        let began = Instant::now();
        let answer = open_page(None, address, "/", &cookie).await;
        met.note(began, &answer, "200 OK");
        sleep(PAUSE).await;
    }
    met
}

/// The gateway under test, with the defaults but for what is given.
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

    /// The cookie of somebody who is let in.
    async fn come_in(&self) -> anyhow::Result<String> {
        for _ in 0..100 {
            let answer = open_page(None, self.address, "/", "").await?;
            if answer.contains("\r\n\r\nthe origin") {
                let lower = answer.to_ascii_lowercase();
                let at = lower.find("set-cookie: ").context("no ticket")?;
                let cookie = &answer[at + "set-cookie: ".len()..];
                let cookie = cookie.split(';').next().unwrap_or_default();
                return Ok(format!("cookie: {cookie}\r\n"));
            }
            sleep(PAUSE).await;
        }
        anyhow::bail!("nobody is let in")
    }

    async fn metrics(&self) -> anyhow::Result<String> {
        open_page(None, self.admin, "/metrics", "").await
    }
}

/// An origin that answers everything the same way, in this process.
async fn start_origin() -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut heard = Vec::new();
                while stream
                    .read_buf(&mut heard)
                    .await
                    .is_ok_and(|count| count > 0)
                {
                    if heard.ends_with(b"\r\n\r\n") {
                        heard.clear();
                        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nthe origin";
                        if stream.write_all(answer).await.is_err() {
                            return;
                        }
                    }
                }
            });
        }
    });
    Ok(address)
}
