//! The listening sockets of a process, its own or handed on.

use std::io::Error as IoError;
use std::net::SocketAddr;

use anteroom_config::ServerConfig;
use tokio::net::TcpListener;
use tracing::warn;

use crate::handover::{HandoverError, Inherited, Legacy, OPERATORS, REDIRECT, VISITORS};
use crate::listener::listen;

/// Why a process cannot listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SocketsError {
    /// The address is taken, or not ours.
    #[error("cannot listen on {address} (server.{key})")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Which key says so.
        key: &'static str,
        /// Why not.
        #[source]
        source: IoError,
    },
    /// What was handed on cannot be used.
    #[error("cannot take over a socket")]
    Inherited(#[from] HandoverError),
}

/// See the top of this file.
#[derive(Debug)]
pub struct Sockets {
    /// Where visitors connect.
    pub visitors: TcpListener,
    /// Where operators connect.
    pub operators: TcpListener,
    /// Where those connect who are sent to https.
    pub redirect: Option<TcpListener>,
}

impl Sockets {
    /// Takes what was handed on, and opens the rest as the config says.
    ///
    /// # Errors
    ///
    /// [`SocketsError`] if one of them cannot be had.
    pub fn open(server: &ServerConfig, mut inherited: Inherited) -> Result<Self, SocketsError> {
        let visitors = one(&mut inherited, VISITORS, "listen", server.listen)?;
        let operators = one(&mut inherited, OPERATORS, "admin", server.admin)?;
        let redirect = match server.redirect_from {
            Some(from) => Some(one(&mut inherited, REDIRECT, "redirect_from", from)?),
            None => None,
        };
        for name in inherited.unused() {
            warn!(
                name,
                "a socket was handed on that is of no use here, and is closed"
            );
        }
        Ok(Self {
            visitors,
            operators,
            redirect,
        })
    }

    /// The same sockets, for a successor.
    ///
    /// # Errors
    ///
    /// If there are no more file descriptors.
    pub fn legacy(&self) -> Result<Legacy, IoError> {
        let mut legacy = Legacy::default();
        legacy.add(VISITORS, &self.visitors)?;
        legacy.add(OPERATORS, &self.operators)?;
        if let Some(redirect) = &self.redirect {
            legacy.add(REDIRECT, redirect)?;
        }
        Ok(legacy)
    }
}

fn one(
    inherited: &mut Inherited,
    name: &str,
    key: &'static str,
    address: SocketAddr,
) -> Result<TcpListener, SocketsError> {
    if let Some(socket) = inherited.socket(name)? {
        let is_other = socket
            .local_addr()
            .is_ok_and(|own| own != address && address.port() != 0);
        if is_other {
            // It may be that a supervisor opened it elsewhere: then that is what was meant.
            warn!(name, socket = ?socket.local_addr(), "server.{key} is {address}, but a socket was handed on");
        }
        return Ok(socket);
    }
    listen(address, false).map_err(|source| SocketsError::Listen {
        address,
        key,
        source,
    })
}
