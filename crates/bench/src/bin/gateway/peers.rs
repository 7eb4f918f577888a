//! Peers of a race: the gateway, its other builds, hyper alone, nginx and haproxy, all before one
//! origin.

mod configs;
mod launcher;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use tempfile::TempDir;

use crate::certificate::Certificate;
use crate::process::{Process, find};
use crate::visitors::bytes_of;
pub(crate) use launcher::Launcher;

/// Settings of a gateway.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// Log level.
    log: &'static str,
    /// Whether plain requests take the fast path.
    fast_path: bool,
}

/// Settings without a line in the log for each request, like the other peers.
pub(crate) const QUIET: Settings = Settings {
    log: "warn",
    fast_path: false,
};
/// Settings with the fast path.
pub(crate) const FAST: Settings = Settings {
    fast_path: true,
    ..QUIET
};
/// Settings with the access log.
const LOGGED: Settings = Settings {
    log: "info",
    ..QUIET
};

/// Kind of requests.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Course {
    /// Requests of active visitors go through to the origin.
    Through,
    /// New visitors get a page of about six KiB, from an operator's template, and a ticket.
    Page,
    /// New visitors get the gateway's own page, and a ticket.
    OwnPage,
}

impl Course {
    pub(crate) const fn path(self) -> &'static str {
        match self {
            Self::Through => "/",
            Self::Page => "/page",
            Self::OwnPage => "/own",
        }
    }
}

/// Another build of the gateway.
#[derive(Clone, Debug)]
pub(crate) struct Also {
    name: String,
    program: PathBuf,
}

impl FromStr for Also {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, program) = text.split_once('=').ok_or("NAME=FILE is expected")?;
        Ok(Self {
            name: name.to_owned(),
            program: program.into(),
        })
    }
}

/// Proxy that is ready to be measured.
pub(crate) struct Peer {
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
    pub(crate) process: Process,
    /// Whether it is a gateway of any build, which needs the cookies of its own visitors.
    pub(crate) is_gateway: bool,
    /// Certificate, if it uses TLS.
    pub(crate) certificate: Option<PathBuf>,
}

/// Choice of the peers.
#[derive(Clone, Copy)]
pub(crate) struct Cast<'a> {
    pub(crate) anteroom: &'a Path,
    pub(crate) also: &'a [Also],
    /// Whether a gateway that logs each request runs, too.
    pub(crate) with_access_log: bool,
    pub(crate) with_tls: bool,
}

/// All peers and the origin.
pub(crate) struct Stage {
    pub(crate) peers: Vec<Peer>,
    /// Sizes of the gateway's pages; other peers respond with as many bytes.
    pub(crate) page_bytes: [usize; 2],
    _origin: Process,
    _folder: TempDir,
}

impl Stage {
    /// Starts the gateway first, then the other peers with pages of the same size.
    pub(crate) async fn start(cast: Cast<'_>) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let certificate = match cast.with_tls {
            true => Some(Certificate::create(folder.path())?),
            false => None,
        };
        let launcher = Launcher {
            folder: folder.path(),
            certificate: certificate.as_ref(),
            wrapper: &[],
        };
        let (origin_process, origin) = launcher.origin().await?;
        let mut peers = vec![
            launcher
                .gateway("anteroom", cast.anteroom, QUIET, origin)
                .await?,
        ];
        let name = "anteroom, fast path";
        peers.push(launcher.gateway(name, cast.anteroom, FAST, origin).await?);
        if cast.with_access_log {
            let name = "anteroom, access log";
            peers.push(
                launcher
                    .gateway(name, cast.anteroom, LOGGED, origin)
                    .await?,
            );
        }
        for Also { name, program } in cast.also {
            let name = format!("anteroom ({name})");
            peers.push(launcher.gateway(&name, program, QUIET, origin).await?);
        }
        let page_bytes = [
            bytes_of(&peers[0], Course::Page.path()).await?,
            bytes_of(&peers[0], Course::OwnPage.path()).await?,
        ];
        peers.push(launcher.bare(origin, page_bytes).await?);
        peers.push(launcher.nginx(origin, page_bytes).await?);
        if let Some(program) = find("haproxy") {
            peers.push(launcher.haproxy(&program, origin, page_bytes).await?);
        }
        Ok(Self {
            peers,
            page_bytes,
            _origin: origin_process,
            _folder: folder,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_has_a_name_and_a_file() {
        let also: Also = "mimalloc=target/x".parse().unwrap();
        assert_eq!(
            (also.name.as_str(), also.program),
            ("mimalloc", "target/x".into())
        );
        assert!("target/x".parse::<Also>().is_err());
    }
}
