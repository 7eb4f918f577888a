//! Browsers or hostile sockets, each kind in its own process: one process may not open as many
//! files.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use clap::{Args, ValueEnum};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::client::{Browser, Scheme, connect};

/// Poll period of browsers, as of visitors far back in a queue.
const POLL_PERIOD: Duration = Duration::from_secs(10);
/// Time after which a closed hostile socket is reopened.
const REOPEN_AFTER: Duration = Duration::from_secs(1);
/// Time until all have connected.
const RAMP: Duration = Duration::from_secs(8);
/// Addresses of the hostile sockets: as many as a small botnet has, each with hundreds of sockets.
const HOSTILE_ADDRESSES: usize = 20;
/// Addresses of the browsers.
const BROWSER_ADDRESSES: usize = 1_000;

/// Kind of client.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    Browsers,
    Hostile,
}

/// Kind, target and number of clients.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    kind: Kind,
    address: SocketAddr,
    #[arg(long)]
    count: usize,
}

/// Runs the clients until this process is killed.
pub(crate) async fn run(options: Options) {
    let mut all = JoinSet::new();
    let count = u32::try_from(options.count.max(1)).unwrap_or(u32::MAX);
    for number in 0..options.count {
        match options.kind {
            Kind::Browsers => {
                let from = local_address(1, number % BROWSER_ADDRESSES);
                all.spawn(run_browser(from, options.address));
            }
            Kind::Hostile => {
                let from = local_address(2, number % HOSTILE_ADDRESSES);
                let sent: &[u8] = if number.is_multiple_of(2) {
                    b""
                } else {
                    b"GET /own HTTP/1.1\r\nhost: a\r\n"
                };
                all.spawn(run_hostile_socket(from, options.address, sent));
            }
        }
        if number.is_multiple_of(50) {
            sleep(RAMP * 50 / count).await;
        }
    }
    while all.join_next().await.is_some() {}
}

/// Returns one of many local addresses.
fn local_address(network: u8, number: usize) -> Ipv4Addr {
    let part = |number: usize| u8::try_from(number).unwrap_or(u8::MAX);
    Ipv4Addr::new(127, network, part(number / 250), part(1 + number % 250))
}

/// Runs a browser that keeps its connection as long as possible.
async fn run_browser(from: Ipv4Addr, address: SocketAddr) {
    let mut browser = None;
    loop {
        if browser.is_none() {
            browser = Browser::connect(Some(from), address, &Scheme::Http)
                .await
                .ok();
        }
        if let Some(open) = &mut browser {
            let page = open.get("/own", "").await;
            let is_kept =
                page.is_ok_and(|page| !page.to_ascii_lowercase().contains("connection: close"));
            if !is_kept {
                browser = None;
            }
        }
        sleep(POLL_PERIOD).await;
    }
}

/// Runs a socket that sends nothing more, and reopens it when it is closed.
async fn run_hostile_socket(from: Ipv4Addr, address: SocketAddr, sent: &'static [u8]) {
    loop {
        if let Ok(mut stream) = connect(Some(from), address).await {
            let _ = stream.write_all(sent).await;
            let _ = stream.read(&mut [0; 64]).await;
        }
        sleep(REOPEN_AFTER).await;
    }
}
