//! Load generator: sends requests at a fixed rate, however long their responses take.
//!
//! Each proxy gets the same load. A generator that sends as fast as it can favors slow proxies:
//! they get more requests in one batch and share the cost of waking up. The generator is a process
//! of its own, on the processor of the origin. [`crate::load`] starts it and reads its output.

mod connection;
mod http1;
mod pace;
mod request;

use std::io::{BufRead as _, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use tokio::runtime::Builder;
use tokio::task::JoinSet;

pub(crate) use connection::{Connection, Target};
pub(crate) use pace::{Burst, Pace};
pub(crate) use request::{Headers, Prepared};

/// Connections that open at the same time.
const OPENING: usize = 64;

/// Protocol of the requests.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Protocol {
    /// HTTP/1.1 without TLS.
    Http1,
    /// HTTP/1.1 over TLS.
    Tls,
    /// HTTP/2 over TLS.
    Http2,
}

impl Protocol {
    /// Returns the name that the generator's option has.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Http1 => "http1",
            Self::Tls => "tls",
            Self::Http2 => "http2",
        }
    }
}

/// Target and kind of the requests.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Address of the proxy.
    #[arg(long)]
    address: SocketAddr,
    /// Path of all requests.
    #[arg(long)]
    path: String,
    /// Connections, each with at most one request at a time.
    #[arg(long)]
    connections: usize,
    /// File with a cookie (`name=value`) on each line, sent in turn. An empty line is no cookie.
    #[arg(long)]
    cookies: PathBuf,
    #[arg(long, value_enum)]
    protocol: Protocol,
    #[arg(long, value_enum)]
    headers: Headers,
    /// Certificate to trust, if the protocol uses TLS.
    #[arg(long)]
    certificate: Option<PathBuf>,
}

/// Opens the connections, sends one request on each, and prints `ready`.
///
/// Then each line of standard input is a [`Pace`], whose [`Burst`] is printed. The process ends
/// with its standard input.
#[expect(clippy::print_stdout, reason = "its owner reads it")]
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let cookies = std::fs::read_to_string(&options.cookies).context("reading the cookies")?;
    let requests = cookies
        .lines()
        .map(|cookie| Prepared::new(options.address, &options.path, options.headers, cookie))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let mut connections = runtime.block_on(open(options, &requests))?;
    println!("ready");
    for line in std::io::stdin().lock().lines() {
        let pace: Pace = serde_json::from_str(&line?).context("reading a pace")?;
        let burst = runtime.block_on(pace.run(&mut connections, &requests))?;
        println!("{}", serde_json::to_string(&burst)?);
        std::io::stdout().flush()?;
    }
    Ok(())
}

async fn open(options: &Options, requests: &[Prepared]) -> anyhow::Result<Vec<Connection>> {
    let target = Target::new(
        options.address,
        options.protocol,
        options.certificate.as_deref(),
    )?;
    let mut connections = Vec::with_capacity(options.connections);
    while connections.len() < options.connections {
        let mut opening = JoinSet::new();
        for number in connections.len()..options.connections.min(connections.len() + OPENING) {
            let (target, request) = (target.clone(), requests[number % requests.len()].clone());
            opening.spawn(async move {
                let mut connection = target.connect().await?;
                connection.send(&request).await?;
                connection.receive().await?;
                anyhow::Ok(connection)
            });
        }
        while let Some(connection) = opening.join_next().await {
            connections.push(connection?.context("opening a connection")?);
        }
    }
    Ok(connections)
}
