//! The crowd and the hostile sockets, each a process: one process may not open as many files.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use clap::{Args, ValueEnum};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::client::{Browser, Scheme, connect};

/// Browsers ask as often as those far behind in a queue.
const ASK_EVERY: Duration = Duration::from_secs(10);
/// A hostile socket that was closed is opened again after this.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// All have come after this.
const RAMP: Duration = Duration::from_secs(8);
/// Addresses of the hostile sockets: as many as a small botnet has, each with hundreds of them.
const HOSTILE_ADDRESSES: usize = 20;
/// Addresses of the browsers.
const BROWSER_ADDRESSES: usize = 1_000;

/// Who comes.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    Browsers,
    Hostile,
}

/// Who comes, where, and how many.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    kind: Kind,
    address: SocketAddr,
    #[arg(long)]
    count: usize,
}

/// Comes, and stays until this process is ended.
pub(crate) async fn run(options: Options) {
    let mut all = JoinSet::new();
    let count = u32::try_from(options.count.max(1)).unwrap_or(u32::MAX);
    for number in 0..options.count {
        match options.kind {
            Kind::Browsers => {
                let from = machine(1, number % BROWSER_ADDRESSES);
                all.spawn(wait(from, options.address));
            }
            Kind::Hostile => {
                let from = machine(2, number % HOSTILE_ADDRESSES);
                let sent: &[u8] = if number.is_multiple_of(2) {
                    b""
                } else {
                    b"GET /own HTTP/1.1\r\nhost: a\r\n"
                };
                all.spawn(hold(from, options.address, sent));
            }
        }
        if number.is_multiple_of(50) {
            sleep(RAMP * 50 / count).await;
        }
    }
    while all.join_next().await.is_some() {}
}

/// One of many machines.
fn machine(network: u8, number: usize) -> Ipv4Addr {
    let part = |number: usize| u8::try_from(number).unwrap_or(u8::MAX);
    Ipv4Addr::new(127, network, part(number / 250), part(1 + number % 250))
}

/// A browser that keeps its connection as long as it may.
async fn wait(from: Ipv4Addr, address: SocketAddr) {
    let mut browser = None;
    loop {
        if browser.is_none() {
            browser = Browser::connect(Some(from), address, &Scheme::Http)
                .await
                .ok();
        }
        if let Some(open) = &mut browser {
            let page = open.ask("/own", "").await;
            let is_kept =
                page.is_ok_and(|page| !page.to_ascii_lowercase().contains("connection: close"));
            if !is_kept {
                browser = None;
            }
        }
        sleep(ASK_EVERY).await;
    }
}

/// A socket that says nothing more, and comes back when it is closed.
async fn hold(from: Ipv4Addr, address: SocketAddr, sent: &'static [u8]) {
    loop {
        if let Ok(mut stream) = connect(Some(from), address).await {
            let _ = stream.write_all(sent).await;
            let _ = stream.read(&mut [0; 64]).await;
        }
        sleep(AGAIN_AFTER).await;
    }
}
