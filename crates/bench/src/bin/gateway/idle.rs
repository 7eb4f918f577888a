//! Memory of many idle connections, each after one request.

use serde::Serialize;

use crate::generator::{Headers, Protocol};
use crate::load::{CONNECTIONS, Generator, Load};
use crate::peers::{Cast, Course, Stage};
use crate::races::cookies_for;

/// Name by which the measurement is chosen.
pub(crate) const NAME: &str = "idle connections";

/// Memory of one peer.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Idle {
    pub(crate) name: String,
    pub(crate) connections: usize,
    /// Resident memory after some requests, without connections.
    pub(crate) before_bytes: u64,
    /// Resident memory with all connections open.
    pub(crate) bytes: u64,
}

/// Returns how many of `connections` the gateway keeps open with this limit on open files.
///
/// It reckons with two files for each connection and a thousand others. From 70 % on, it closes
/// idle connections to make room. Ten other connections are open meanwhile, at most.
pub(crate) fn fitting(connections: usize, open_files: u64) -> usize {
    let all = open_files.saturating_sub(1_000) / 2;
    let kept = usize::try_from(all * 7 / 10).unwrap_or(usize::MAX);
    connections.min(kept.saturating_sub(10))
}

/// Opens connections at each peer in turn and measures its memory.
pub(crate) async fn run(cast: Cast<'_>, connections: usize) -> anyhow::Result<Vec<Idle>> {
    let stage = Stage::start(cast).await?;
    let mut results = Vec::new();
    let mut all_cookies = Vec::new();
    for peer in &stage.peers {
        eprintln!("{NAME}: {}", peer.name);
        all_cookies.push(cookies_for(peer, Course::Through, all_cookies.first()).await?);
        let cookies = all_cookies.last().map_or(&[][..], Vec::as_slice);
        let load = |connections| Load {
            address: peer.address,
            path: Course::Through.path(),
            cookies,
            connections,
            protocol: Protocol::Http1,
            headers: Headers::Lean,
            certificate: None,
        };
        // Exclude the cost of the first requests.
        Generator::start(&load(CONNECTIONS)).await?.end().await?;
        let before_bytes = peer.process.resident_bytes()?;
        let generator = Generator::start(&load(connections)).await?;
        let bytes = peer.process.resident_bytes()?;
        generator.end().await?;
        results.push(Idle {
            name: peer.name.clone(),
            connections,
            before_bytes,
            bytes,
        });
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_open_files_allow_fewer_connections() {
        assert_eq!(fitting(10_000, 100_000), 10_000);
        assert_eq!(fitting(10_000, 20_000), 6_640);
        assert_eq!(fitting(10_000, 0), 0);
    }
}
