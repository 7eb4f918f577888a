//! Memory of an idle connection.

use std::net::Ipv4Addr;
use std::path::Path;

use anyhow::Context as _;

use super::Gateway;
use super::client::{Browser, Scheme};
use crate::certificate::{Certificate, connector};

/// Connections per address, below the limit.
const PER_ADDRESS: usize = 500;

/// Opens connections, sends one request on each, and prints the growth of the gateway.
pub(super) async fn run(anteroom: &Path, count: usize) -> anyhow::Result<()> {
    println!(
        "Memory of an idle connection after one request, of {count}\n\n\
         | | bytes each |\n| --- | ---: |"
    );
    for name in ["plain HTTP", "TLS"] {
        let folder = tempfile::tempdir()?;
        let (server, scheme) = match name {
            "TLS" => certificate(folder.path())?,
            _ => (String::new(), Scheme::Http),
        };
        let gateway = Gateway::start(anteroom, folder.path(), &server).await?;
        // Exclude the cost of the first requests.
        open(&gateway, &scheme, 50).await?;
        let before = gateway.process.resident_bytes()?;
        let open = open(&gateway, &scheme, count).await?;
        let grown = gateway.process.resident_bytes()?.saturating_sub(before);
        println!("| {name} | {} |", grown / count.max(1) as u64);
        drop(open);
    }
    Ok(())
}

async fn open(gateway: &Gateway, scheme: &Scheme, count: usize) -> anyhow::Result<Vec<Browser>> {
    let mut browsers = Vec::new();
    for number in 0..count {
        let host = u8::try_from(1 + number / PER_ADDRESS).context("too many")?;
        let from = Ipv4Addr::new(127, 3, 0, host);
        let mut browser = Browser::connect(Some(from), gateway.address, scheme).await?;
        browser.get("/own", "").await?;
        browsers.push(browser);
    }
    Ok(browsers)
}

/// Creates a certificate in this folder; returns the gateway's settings and a client that trusts
/// it.
fn certificate(folder: &Path) -> anyhow::Result<(String, Scheme)> {
    let files = Certificate::create(folder)?;
    let text = format!(
        "tls_certificate = {:?}\ntls_key = {:?}\n",
        files.certificate, files.key
    );
    let connector = connector(&files.certificate, b"http/1.1")?;
    Ok((text, Scheme::Https(connector)))
}
